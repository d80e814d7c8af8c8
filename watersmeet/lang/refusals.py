"""What the language does not do, and what to do instead."""

from __future__ import annotations

from typing import Final

_LATER = "on the streaming DataFrame that wm.stream returns, or on the rows of wm.run"
_BEFORE = "compute it before the join, or on what comes out of it"
_AGGREGATE = f"aggregate {_LATER}"
_OUTER = (
    "rows of one stream without a partner: begin FROM with it, and join the others in parentheses: a [...] LEFT JOIN (b [...] JOIN c"
    " [...] ON ...) ON ..."
)
_SUBQUERY = "join with the stream or table itself, or make the inner result a stream first and pass it by name"
_HERE = "operators, CAST, CASE, COALESCE, LOWER, UPPER, SUBSTRING, ABS and DATE_TRUNC can be used here"
_SETS = "run one query for each side and combine the DataFrames that come out"
_NOW = "time here is event time: compare with the timestamp columns, or pass the moment as TIMESTAMP '...'"

# Found where it cannot stand: the word, what it is called, what to do instead.
WORDS: Final = {
    "LEFT": ("a LEFT JOIN behind another join", _OUTER),
    "RIGHT": ("RIGHT JOIN", _OUTER),
    "FULL": ("FULL JOIN", _OUTER),
    "OUTER": ("OUTER JOIN", _OUTER),
    "SEMI": ("SEMI JOIN", "join, select the columns of one side, and drop duplicates on the DataFrame that comes out"),
    "ANTI": ("ANTI JOIN", _OUTER),
    "NATURAL": ("NATURAL JOIN", "name the columns: JOIN ... ON a.x = b.x"),
    "USING": ("JOIN ... USING", "name the columns: JOIN ... ON a.x = b.x"),
    "LATERAL": ("LATERAL", "explode the column on the DataFrame before the join"),
    "GROUP": ("GROUP BY", _AGGREGATE),
    "HAVING": ("HAVING", _AGGREGATE),
    "QUALIFY": ("QUALIFY", f"use window functions {_LATER}"),
    "ORDER": ("ORDER BY", f"sort {_LATER}; a stream has no end to sort at"),
    "LIMIT": ("LIMIT", f"limit {_LATER}"),
    "OFFSET": ("OFFSET", f"limit {_LATER}"),
    "FETCH": ("FETCH", f"limit {_LATER}"),
    "DISTINCT": ("SELECT DISTINCT", f"drop duplicates {_LATER}"),
    "UNION": ("UNION", _SETS),
    "INTERSECT": ("INTERSECT", _SETS),
    "EXCEPT": ("EXCEPT", _SETS),
    "MINUS": ("MINUS", _SETS),
    "WITH": ("WITH", _SUBQUERY),
    "SELECT": ("a subquery", _SUBQUERY),
    "PIVOT": ("PIVOT", f"pivot {_LATER}"),
    "UNPIVOT": ("UNPIVOT", f"unpivot {_LATER}"),
    "TABLESAMPLE": ("TABLESAMPLE", "ON OVERLOAD SHED drops tuples when the budget demands it"),
    "INTO": ("SELECT ... INTO", "EMIT ISTREAM INTO '<path>' FORMAT <format>, at the end, writes the results"),
    "COLLATE": ("COLLATE", "strings compare by their UTF-8 bytes"),
    "ILIKE": ("ILIKE", "LOWER(x) LIKE 'a%'"),
    "RLIKE": ("RLIKE", "use LIKE, or filter on the DataFrame before the join"),
    "REGEXP": ("REGEXP", "use LIKE, or filter on the DataFrame before the join"),
    "ESCAPE": ("LIKE ... ESCAPE", "the backslash escapes: LIKE '10\\%'"),
    "DIV": ("DIV", "x / y is a DOUBLE: CAST(x / y AS BIGINT)"),
    "CURRENT_DATE": ("CURRENT_DATE", _NOW),
    "CURRENT_TIME": ("CURRENT_TIME", _NOW),
    "CURRENT_TIMESTAMP": ("CURRENT_TIMESTAMP", _NOW),
    "LOCALTIMESTAMP": ("LOCALTIMESTAMP", _NOW),
    "::": ("::", "CAST(x AS BIGINT)"),
    "<=>": ("<=>", "NULL joins nothing; on one stream say x = y OR x IS NULL AND y IS NULL"),
    "->": ("->", "take the field out of the JSON before the join"),
    "<<": ("shifting bits", _BEFORE),
    ">>": ("shifting bits", _BEFORE),
    "&": ("arithmetic on bits", _BEFORE),
    "|": ("arithmetic on bits", "strings are joined by ||"),
    "^": ("arithmetic on bits", _BEFORE),
    "~": ("arithmetic on bits", _BEFORE),
    "?": ("a placeholder", "write the value into the text"),
    "@": ("a variable", "write the value into the text"),
    "$": ("a variable", "write the value into the text"),
    "{": ("a template", "fill it in first: the text must be the query itself"),
    "#": ("#", "a comment begins with --"),
}

# Where an operand is expected, the other words are names without their back-quotes.
_OPERANDS = (
    "DISTINCT",
    "SELECT",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIMESTAMP",
    *"~?@${#",
)
OPERANDS: Final = {word: WORDS[word] for word in _OPERANDS}
AFTER_IS: Final = {"DISTINCT": ("IS DISTINCT FROM", WORDS["<=>"][1])}

# Where a statement begins.
STATEMENTS: Final = {
    "WITH": ("WITH", _SUBQUERY),
    "FROM": ("a query that begins with FROM", "SELECT comes first"),
    "(": ("a query in parentheses", "write the SELECT by itself"),
    "VALUES": ("VALUES", "pass the rows as a table by name, or read them from a file with CREATE TABLE"),
    "INSERT": ("INSERT", "EMIT ISTREAM INTO '<path>' FORMAT <format> at the end of the SELECT writes the results"),
    "EXPLAIN": ("EXPLAIN", "watersmeet explain JOB.sql, or wm.explain(text)"),
    "DESCRIBE": ("DESCRIBE", "watersmeet explain JOB.sql, or wm.explain(text)"),
    "SHOW": ("SHOW", "watersmeet explain JOB.sql, or wm.explain(text)"),
    "SET": ("SET", "a job is declarations and one SELECT; BUDGET says what it may use"),
    **{
        word: (word, "a job is CREATE STREAM and CREATE TABLE declarations, then one SELECT")
        for word in (
            "UPDATE",
            "DELETE",
            "MERGE",
            "DROP",
            "ALTER",
            "TRUNCATE",
            "USE",
            "CACHE",
            "ANALYZE",
            "COPY",
            "CALL",
        )
    },
}

_AGGREGATES = """ANY_VALUE APPROX_COUNT_DISTINCT ARRAY_AGG AVG BIT_AND BIT_OR BOOL_AND BOOL_OR COLLECT_LIST COLLECT_SET CORR
    COUNT COUNT_IF COVAR_POP COVAR_SAMP EVERY FIRST GROUP_CONCAT KURTOSIS LAST LISTAGG MAX MAX_BY MEAN MEDIAN MIN MIN_BY MODE
    PERCENTILE PERCENTILE_APPROX SKEWNESS STD STDDEV STDDEV_POP STDDEV_SAMP STRING_AGG SUM VARIANCE VAR_POP VAR_SAMP"""
AGGREGATES: Final = frozenset(_AGGREGATES.split())
_RANKINGS = "CUME_DIST DENSE_RANK FIRST_VALUE LAG LAST_VALUE LEAD NTH_VALUE NTILE PERCENT_RANK RANK ROW_NUMBER"
RANKINGS: Final = frozenset(_RANKINGS.split())


def function(name: str, over: bool) -> tuple[str, str]:
    """What to call a function that was found, and what to do instead; `over` says that OVER follows its arguments."""
    word = name.upper()
    if over or word in RANKINGS:
        return f"a window function ({name} OVER ...)", f"use it {_LATER}"
    if word in AGGREGATES:
        return f"an aggregate ({name})", _AGGREGATE
    if word in ("EXISTS", "ANY", "ALL", "SOME"):
        return f"a subquery ({name})", _SUBQUERY
    if word in ("NOW", "UNIX_TIMESTAMP", "CURDATE"):
        return f"{name}()", _NOW
    if word in ("UNNEST", "EXPLODE"):
        return f"{name}()", WORDS["LATERAL"][1]
    if word == "TRY_CAST":
        return "TRY_CAST", "CAST(x AS type) stops the query where a value does not fit"
    return f"a function ({name})", f"{_BEFORE}; {_HERE}"

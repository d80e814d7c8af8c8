"""The language: text becomes a Query.

`dialect` makes tokens, `expressions` and `grammar` are the rules on top of sqlglot's parser, `convert` turns its trees into
the model's expressions, `refusals` words what is not supported, `places` knows lines and columns.
"""

from __future__ import annotations

from watersmeet.errors import QueryError
from watersmeet.lang.dialect import Watersmeet, tokenize
from watersmeet.lang.positions import Places, placed
from watersmeet.model.bind import bind
from watersmeet.model.expr import At
from watersmeet.model.query import Query


def parse(text: str) -> Query:
    """The query that the text says; raises QueryError, with line, column and a caret, for any other text.

    If streams are declared, names and types are checked too.

    >>> query = parse("SELECT a.k FROM a [RANGE 10 SECONDS], b [ROWS 5] WHERE a.k = b.k")
    >>> print(query)
    SELECT a.k
    FROM a [RANGE 10 SECONDS], b [ROWS 5]
    WHERE a.k = b.k
    EMIT ISTREAM;
    >>> parse(str(query)) == query
    True
    """
    places = Places(text)
    try:
        query = Watersmeet.Parser(dialect=Watersmeet).job(tokenize(text, places), text, places)
        if query.declarations:
            with placed(query.select[0].at or At(1, 1)):
                bind(query)
    except QueryError as e:
        shown = text.encode("utf-8", "replace").decode("utf-8")  # an error must be printable, whatever the text
        raise e.at(shown) from None
    except RecursionError:
        raise QueryError("the query nests too deep", text, 1, 1) from None
    return query


__all__ = ["parse"]

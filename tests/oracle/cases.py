"""What expressions are worth: one table of cases that runs through the oracle, through Spark and through the kernel.

Every expression is over the one row ROW and is text that both Watersmeet and Spark read in the same way: DOUBLE constants
have an exponent (Spark takes 1.5 for a DECIMAL), and whole numbers meet a BIGINT column before they are computed with.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from math import inf, nan
from typing import Any, Final, NamedTuple

import pyarrow as pa

ERROR: Final = "an error"
"""The expected value of an expression that stops the query (DataError, in Spark an ANSI error)."""

BIG: Final = (1 << 63) - 1
DAY: Final = dt.date(2026, 1, 2)
NOON: Final = dt.datetime(2026, 1, 2, 12, 0, 0, 1, tzinfo=dt.UTC)


class Case(NamedTuple):
    """An expression and its value, or ERROR."""

    text: str
    expected: Any


COLUMNS: Final[dict[str, tuple[str, Any]]] = {
    "x": ("BIGINT", 7), "zero": ("BIGINT", 0), "n": ("BIGINT", None), "big": ("BIGINT", BIG), "small": ("BIGINT", -BIG - 1),
    "odd": ("BIGINT", 2**53 + 1),
    "h": ("DOUBLE", 1.5), "dn": ("DOUBLE", None), "na": ("DOUBLE", nan), "inf": ("DOUBLE", inf), "nz": ("DOUBLE", -0.0),
    "pz": ("DOUBLE", 0.0), "two63": ("DOUBLE", 2.0**63), "huge": ("DOUBLE", 1e300),
    "s": ("STRING", "abc"), "sn": ("STRING", None), "empty": ("STRING", ""), "pct": ("STRING", "10%"),
    "back": ("STRING", "a\\b"), "lines": ("STRING", "a\nb"), "clef": ("STRING", "\U0001d11e"), "tilde": ("STRING", "\uff5e"),
    "t": ("BOOLEAN", True), "f": ("BOOLEAN", False), "bn": ("BOOLEAN", None),
    "d": ("DATE", DAY), "eve": ("DATE", dt.date(1969, 12, 31)), "dno": ("DATE", None),
    "ts": ("TIMESTAMP", NOON), "tn": ("TIMESTAMP", None),
    "before": ("TIMESTAMP", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
    "m": ("DECIMAL(10,2)", Decimal("7.25")), "m7": ("DECIMAL(12,4)", Decimal("7.0000")), "mn": ("DECIMAL(10,2)", None),
    "wide": ("DECIMAL(38,0)", Decimal(10**37)),
}  # fmt: skip

_ARROW: Final = {
    "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"), "DECIMAL(10,2)": pa.decimal128(10, 2), "DECIMAL(12,4)": pa.decimal128(12, 4),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
}  # fmt: skip

ROW: Final = pa.table({name: pa.array([value], _ARROW[kind]) for name, (kind, value) in COLUMNS.items()})

CASES: Final[tuple[Case, ...]] = tuple(
    Case(*case)
    for case in (
        # Whole numbers are 64 bits wide and never wrap around.
        ("x + 1", 8), ("x - 8", -1), ("x * x", 49), ("-x", -7), ("big + 1", ERROR), ("small - 1", ERROR),
        ("big * 2", ERROR), ("-small", ERROR), ("big - 1 + 1", BIG), ("n + 1", None), ("n * big", None),
        # / is DOUBLE, and dividing by zero is an error, also by -0.0 and also NaN.
        ("x / 2", 3.5), ("h / 2", 0.75), ("x / zero", ERROR), ("h / nz", ERROR), ("na / pz", ERROR), ("inf / 2", inf),
        ("n / zero", None), ("x / n", None), ("small / -1", 2.0**63), ("odd / 1", 2.0**53),
        # % takes the sign of the dividend.
        ("x % 4", 3), ("x % -4", 3), ("(0 - x) % 4", -3), ("small % -1", 0), ("x % zero", ERROR), ("(0 - h) % x", -1.5),
        ("x % h", 1.0), ("inf % x", nan), ("h % inf", 1.5), ("na % x", nan), ("h % pz", ERROR), ("n % zero", None),
        # DOUBLE arithmetic is IEEE 754.
        ("huge * huge", inf), ("inf - inf", nan), ("inf * pz", nan), ("h + x", 8.5), ("-h", -1.5), ("na + 1", nan),
        # NaN equals NaN and is greater than all else; -0.0 equals 0.0.
        ("na = na", True), ("na <> na", False), ("na > inf", True), ("na >= na", True), ("na < na", False), ("inf < na", True),
        ("na <= inf", False), ("na BETWEEN pz AND na", True), ("na IN (1E0, na)", True), ("nz = pz", True), ("nz < pz", False),
        ("nz IN (0E0)", True), ("dn = na", None),
        # A BIGINT meets a DOUBLE as DOUBLE, a DECIMAL as DECIMAL.
        ("odd = 9007199254740992E0", True), ("odd = 9007199254740992", False), ("big = two63", True), ("x < h", False),
        ("x = m", False), ("x = m7", True), ("x < m", True), ("m > m7", True), ("m = 7.25E0", True), ("m7 = x + 0E0", True),
        ("big < wide", True), ("mn = x", None), ("m IN (7, 8)", False), ("m7 IN (7, 8)", True),
        # IN compares all in one type; BETWEEN is two comparisons.
        ("odd IN (5E-1, 9007199254740992)", True), ("odd BETWEEN 5E-1 AND 9007199254740992", False),
        ("x IN (1, 7)", True), ("x IN (1, 2)", False), ("x IN (NULL, 7)", True), ("x IN (NULL, 1)", None),
        ("x NOT IN (NULL, 1)", None), ("x NOT IN (1, 2)", True), ("n IN (1, 2)", None), ("x BETWEEN 7 AND 8", True),
        ("x BETWEEN 8 AND n", False), ("x BETWEEN n AND 6", False), ("x BETWEEN n AND 8", None), ("x NOT BETWEEN 1 AND 6", True),
        # Three-valued logic.
        ("n = 1", None), ("n = n", None), ("n <> 1", None), ("n IS NULL", True), ("x IS NULL", False), ("n IS NOT NULL", False),
        ("NOT bn", None), ("NOT f", True), ("t AND bn", None), ("f AND bn", False), ("bn AND f", False), ("t OR bn", True),
        ("bn OR t", True), ("f OR bn", None), ("bn OR f", None), ("(n = 1) IS NULL", True), ("t = f", False), ("t <> f", True),
        ("bn = t", None), ("x = NULL", None), ("NOT (n > 1)", None),
        # What is not needed is not evaluated: left before right, the divisor before the dividend.
        ("f AND x / zero > 1", False), ("t OR x / zero > 1", True), ("bn AND x / zero > 1", ERROR),
        ("x / zero > 1 AND f", ERROR), ("bn OR x / zero > 1", ERROR), ("n + x / zero", None), ("x / zero + n", ERROR),
        ("n = x / zero", None), ("x / zero = n", ERROR), ("n / (x / zero)", ERROR), ("(x / zero) / n", None),
        ("n % (x / zero)", ERROR), ("x IN (7, x / zero)", True), ("x IN (n, x / zero)", ERROR), ("n IN (x / zero, 1)", None),
        ("x BETWEEN 8 AND x / zero", False), ("x BETWEEN n AND x / zero", ERROR), ("n BETWEEN x / zero AND 3", None),
        ("(n + x / zero) IS NULL", True),
        # Casts.
        ("CAST(h AS BIGINT)", 1), ("CAST(0 - h AS BIGINT)", -1), ("CAST(na AS BIGINT)", ERROR), ("CAST(inf AS BIGINT)", ERROR),
        ("CAST(huge AS BIGINT)", ERROR), ("CAST(two63 AS BIGINT)", BIG), ("CAST(two63 + 2048 AS BIGINT)", ERROR),
        ("CAST(0 - two63 AS BIGINT)", -BIG - 1), ("CAST(odd AS DOUBLE)", 2.0**53), ("CAST(big AS DOUBLE)", 2.0**63),
        ("CAST(n AS DOUBLE)", None), ("CAST(m AS DOUBLE)", 7.25), ("CAST(x AS DECIMAL(3,1))", Decimal("7.0")),
        ("CAST(x AS DECIMAL(1,0))", Decimal(7)), ("CAST(big AS DECIMAL(18,0))", ERROR), ("CAST(x AS DECIMAL(2,2))", ERROR),
        ("CAST(m AS DECIMAL(10,1))", Decimal("7.3")), ("CAST(m AS DECIMAL(2,1))", Decimal("7.3")),
        ("CAST(m AS DECIMAL(2,2))", ERROR), ("CAST(m AS DECIMAL(1,0))", Decimal(7)), ("CAST(mn AS DOUBLE)", None),
        ("CAST(d AS TIMESTAMP)", dt.datetime(2026, 1, 2, tzinfo=dt.UTC)), ("CAST(ts AS DATE)", DAY),
        ("CAST(before AS DATE)", dt.date(1969, 12, 31)), ("CAST(eve AS TIMESTAMP) < before", True),
        ("CAST(dno AS TIMESTAMP)", None), ("CAST(tn AS DATE)", None), ("CAST(NULL AS BIGINT)", None), ("CAST(x AS BIGINT)", 7),
        # Times are microseconds in UTC.
        ("d = ts", False), ("d < ts", True), ("CAST(ts AS DATE) = d", True), ("d = '2026-01-02'", True),
        ("ts > '2026-01-02 12:00:00'", True), ("ts = TIMESTAMP '2026-01-02 12:00:00.000001'", True),
        ("ts = TIMESTAMP '2026-01-02 14:00:00.000001+02:00'", True), ("d BETWEEN DATE '2026-01-01' AND DATE '2026-01-02'", True),
        ("ts + INTERVAL 1 DAY", NOON + dt.timedelta(days=1)),
        ("ts - INTERVAL 1 MICROSECOND", NOON - dt.timedelta(microseconds=1)),
        ("INTERVAL 2 HOURS + ts", NOON + dt.timedelta(hours=2)),
        ("ts - before", NOON - dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
        ("ts - ts = INTERVAL 0 SECONDS", True), ("before - ts < INTERVAL 0 SECONDS", True), ("tn + INTERVAL 1 DAY", None),
        ("ts - ts + INTERVAL 1 DAY - INTERVAL 25 HOURS", dt.timedelta(hours=-1)), ("ts - tn", None),
        ("-(ts - ts + INTERVAL 1 SECOND)", dt.timedelta(seconds=-1)), ("d IN ('2026-01-01', '2026-01-02')", True),
        # Strings compare by their UTF-8 bytes, with no regard to locale or case.
        ("s = 'abc'", True), ("s < 'abd'", True), ("s < 'B'", False), ("s > empty", True), ("s || 'd'", "abcd"),
        ("s || sn", None), ("empty || s", "abc"), ("clef > tilde", True),
        ("s < sn", None), ("s = 'abc '", False), ("s BETWEEN 'a' AND 'b'", True),
        ("s IN ('x', 'abc')", True), ("s <> 'it''s'", True),
        # LIKE: % any run, _ any one character, backslash escapes.
        ("s LIKE 'a%'", True), ("s LIKE '%'", True), ("s LIKE 'ab'", False), ("s LIKE '_b_'", True), ("s LIKE 'A%'", False),
        ("s LIKE '__'", False), ("empty LIKE '%'", True), ("empty LIKE '_'", False), ("sn LIKE '%'", None),
        ("lines LIKE 'a%b'", True),
        ("clef LIKE '_'", True), (r"pct LIKE '10\\%'", True), (r"s LIKE 'a\\%'", False), (r"back LIKE 'a\\\\b'", True),
        (r"back LIKE 'a\\\\%'", True), (r"back LIKE '%\\\\b'", True), (r"back LIKE '%\\\\%'", True), (r"back LIKE 'a\\\\_'", True),
        (r"back LIKE 'a\\\\\\\\%'", False), (r"back LIKE '%\\\\'", False), (r"s LIKE '%\\\\%'", False),
        (r"pct LIKE '%\\%'", True), (r"pct LIKE '10\\%%'", True), (r"pct LIKE '1\\_%'", False), (r"pct LIKE '1\\%%'", False),
        ("s NOT LIKE 'a%'", False), ("s LIKE 'a.c'", False), ("s LIKE ''", False), ("empty LIKE ''", True),
        # COALESCE and CASE look no further than the answer; their values have one type.
        ("COALESCE(n, x)", 7), ("COALESCE(n, NULL)", None), ("COALESCE(x, x / zero)", 7.0), ("COALESCE(n, x / zero)", ERROR),
        ("COALESCE(n, h)", 1.5), ("COALESCE(sn, s)", "abc"), ("COALESCE(dno, ts)", NOON), ("COALESCE(x)", 7),
        ("CASE WHEN x > 1 THEN 'a' ELSE 'b' END", "a"), ("CASE WHEN bn THEN 1 WHEN t THEN 2 ELSE 3 END", 2),
        ("CASE WHEN f THEN x END", None), ("CASE x WHEN 6 THEN s WHEN 7 THEN 'seven' END", "seven"), ("CASE n WHEN n THEN 1 ELSE 0 END", 0),
        ("CASE WHEN t THEN x ELSE x / zero END", 7.0), ("CASE WHEN f THEN x / zero ELSE h END", 1.5),
        ("CASE WHEN x / zero > 1 THEN 1 ELSE 2 END", ERROR), ("CASE WHEN f THEN x ELSE big + 1 END", ERROR),
        ("CASE WHEN t THEN x = 7 ELSE bn END", True), ("CASE WHEN x > 1 THEN x ELSE h END + 1", 8.0),
        # Functions of text, numbers and times.
        ("LOWER('AbC')", "abc"), ("UPPER(s)", "ABC"), ("UPPER('straße')", "STRASSE"), ("LOWER('ÉÇ')", "éç"), ("LOWER(sn)", None),
        ("UPPER(s) = 'ABC'", True), ("LCASE('X')", "x"), ("SUBSTRING(s, 2)", "bc"), ("SUBSTRING(s, 2, 1)", "b"),
        ("SUBSTRING(s, 0, 2)", "ab"), ("SUBSTRING(s, -2)", "bc"), ("SUBSTRING(s, -2, 1)", "b"), ("SUBSTRING(s, -5, 3)", "a"),
        ("SUBSTRING(s, 9)", ""), ("SUBSTR(s, 1, 0)", ""), ("SUBSTRING(s, 2, -1)", ""), ("SUBSTRING(clef || s, 2, 1)", "a"),
        ("SUBSTRING(sn, 1)", None), ("ABS(0 - x)", 7), ("ABS(small)", ERROR), ("ABS(n)", None), ("ABS(0 - h)", 1.5), ("ABS(na)", nan),
        ("ABS(nz)", 0.0), ("ABS(0 - inf)", inf), ("ABS(before - before)", dt.timedelta(0)),
        ("DATE_TRUNC('HOUR', ts)", NOON.replace(microsecond=0)), ("DATE_TRUNC('day', ts)", NOON.replace(hour=0, microsecond=0)),
        ("DATE_TRUNC('week', ts)", dt.datetime(2025, 12, 29, tzinfo=dt.UTC)),
        ("DATE_TRUNC('QUARTER', d)", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        ("DATE_TRUNC('YEAR', before)", dt.datetime(1969, 1, 1, tzinfo=dt.UTC)),
        ("DATE_TRUNC('MONTH', before)", dt.datetime(1969, 12, 1, tzinfo=dt.UTC)),
        ("DATE_TRUNC('MILLISECOND', before)", dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)),
        ("DATE_TRUNC('MICROSECOND', ts)", NOON), ("DATE_TRUNC('SECOND', tn)", None), ("DATE_TRUNC('MINUTE', ts) < ts", True),
    )
)  # fmt: skip

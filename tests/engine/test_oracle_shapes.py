"""Products, self-joins, tables, residuals, and streams in which little or nothing happens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import watersmeet as wm
from tests.engine.running import Run, agrees, stream
from watersmeet.engine.executor import Engine

PLANS = ("(R S T)", "(R S T) orders {R: T S; S: T R; T: S R}", "((R S) T)", "((R T) S)", "(R (S T))")


def streams(n: int = 25, seed: int = 0, keys: int = 5) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    return {
        name: stream(
            np.sort(rng.integers(0, 2 * n, n)), id=np.arange(n), k=rng.integers(0, keys, n),
            w=pa.array([f"w{v}" for v in rng.integers(0, keys, n)]),
        )
        for name in "RST"
    }  # fmt: skip


def query(where: str = "", windows: tuple[str, str, str] = ("[RANGE 9 MICROSECONDS]", "[ROWS 4]", "[ROWS 3]")) -> str:
    r, s, t = windows
    return f"SELECT R.id AS r, S.id AS s, T.id AS t FROM R {r}, S {s}, T {t}" + (f" WHERE {where}" if where else "")


@pytest.mark.parametrize("emit", ["ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("where", ["", "R.k = S.k", "R.k = S.k AND T.k > 2", "R.k < T.k"])
def test_oracle_cartesian_products(where: str, emit: str) -> None:
    assert agrees(f"{query(where)} EMIT {emit}", streams(), *PLANS).num_rows > 20


@pytest.mark.parametrize(
    "where",
    [
        "R.k + S.k = T.k", "R.k = S.k AND R.k + S.k + T.k > 5", "R.w || S.w LIKE '%1w%' AND S.k = T.k",
        "R.k = T.k AND S.w < T.w", "NOT (R.k = S.k AND S.k < T.k) AND R.k = T.k", "R.k IN (S.k, T.k + 1)",
        "R.k = S.k AND S.k = T.k AND R.k * S.k BETWEEN T.k AND T.k + 9",
    ],
)  # fmt: skip
def test_oracle_residual_predicates(where: str) -> None:
    assert agrees(query(where), streams(), *PLANS).num_rows > 5


@pytest.mark.parametrize("window", ["[RANGE 6 MICROSECONDS]", "[ROWS 5]", "[PARTITION BY k ROWS 2]", "[UNBOUNDED]"])
def test_oracle_a_stream_joined_with_itself(window: str) -> None:
    """Each alias is a window of its own; a row meets itself, because it arrives at one alias after the other."""
    text = f"""SELECT a.id AS a, b.id AS b, c.id AS c FROM R {window} AS a, R [ROWS 3] AS b, R {window} AS c
        WHERE a.k = b.k AND b.k <= c.k"""
    made = agrees(text, {"R": streams()["R"]}, "(a b c)", "((a b) c)", "(a (c b))")
    assert any(row["a"] == row["b"] == row["c"] for row in made.to_pylist())


@pytest.mark.parametrize(
    "plan", ["(R A B)", "((R A) B)", "(R (A B))", "(R (B A))", "((R B) A)", "(R A B) orders {R: B A}"]
)
@pytest.mark.parametrize("emit", ["ISTREAM", "DSTREAM"])
def test_oracle_static_tables_also_as_a_node_of_tables_alone(plan: str, emit: str) -> None:
    tables = {
        "R": streams()["R"],
        "A": pa.table({"k": [0, 1, 1, 2, None, 3], "j": [7, 7, 8, 8, 7, 9]}),
        "B": pa.table({"j": [7, 8, 8, None, 9], "name": ["x", "y", "z", "u", "v"]}),
    }
    text = "SELECT R.id, B.name FROM R [RANGE 5 MICROSECONDS], A, B WHERE R.k = A.k AND A.j = B.j AND B.name <> 'v'"
    assert agrees(f"{text} EMIT {emit}", tables, plan).num_rows > 20
    run = Run.of(text, tables, plan)
    tables_only = [s for s in run.engine.stores() if s.name in ("(A B)", "(B A)")]
    assert [s.tuples for s in tables_only] == [6] * len(tables_only)  # there before the first row


def test_oracle_empty_tables_and_streams() -> None:
    tables = streams() | {"A": pa.table({"k": [1, 2]})}
    text = "SELECT R.id, S.id AS s FROM R [UNBOUNDED], S [ROWS 2], A WHERE R.k = S.k AND S.k = A.k"
    del tables["T"]
    assert agrees(text, tables).num_rows > 0
    for empty in tables:
        assert (
            agrees(text, tables | {empty: tables[empty].slice(0, 0)}, "(R S A)", "((R S) A)", "(R (S A))").num_rows == 0
        )
    nothing = {name: table.slice(0, 0) for name, table in tables.items()}
    assert agrees(f"{text} EMIT DSTREAM", nothing).num_rows == 0
    assert agrees(text, [nothing, nothing]).num_rows == 0


def test_oracle_streams_of_one_row() -> None:
    for order in ((1, 2, 3), (3, 2, 1), (2, 2, 2)):
        one = {name: stream([ts], id=[ts], k=[4], w=["w"]) for name, ts in zip("RST", order, strict=True)}
        assert agrees(query("R.k = S.k AND S.w = T.w"), one, *PLANS).num_rows == 1
        assert agrees(query("R.k = S.k AND S.k < T.k"), one, *PLANS).num_rows == 0


@pytest.mark.parametrize("selection", ["R.k > 100", "R.k IS NULL", "NULL", "R.w LIKE 'x%'", "1 > 2", "S.k + 1 < S.k"])
def test_oracle_selections_that_reject_everything(selection: str) -> None:
    for windows in (("[RANGE 9 MICROSECONDS]",) * 3, ("[ROWS 4]",) * 3, ("[PARTITION BY k ROWS 1]",) * 3):
        made = agrees(query(f"R.k = S.k AND S.k = T.k AND {selection}", windows), streams(), *PLANS)
        assert made.num_rows == 0


def test_oracle_selections_come_after_windows() -> None:
    """A rejected row still pushes another out of ROWS 2."""
    r = stream([1, 2, 3], id=[1, 2, 3], k=[1, 9, 9])
    s = stream([4], id=[1], k=[1])
    text = "SELECT R.id AS r FROM R [ROWS {}], S [UNBOUNDED] WHERE R.k = S.k AND R.k < 5"
    assert agrees(text.format(2), {"R": r, "S": s}).num_rows == 0
    assert agrees(text.format(3), {"R": r, "S": s}).num_rows == 1


def test_oracle_attributes_of_one_stream_that_must_be_equal_through_another() -> None:
    """R.k = S.k AND R.id = S.k makes R.k = R.id, which is checked when the row comes."""
    text = query("R.k = S.k AND R.id = S.k AND S.k = T.k AND R.k + 1 = T.id - 1 + 2")
    made = agrees(query("R.k = S.k AND R.id = S.k AND S.k = T.k", ("[UNBOUNDED]",) * 3), streams(keys=3), *PLANS)
    assert made.num_rows > 10
    agrees(text, streams(keys=3), *PLANS)


def test_oracle_many_streams() -> None:
    """Twelve streams on one key: an MJoin, left-deep, bushy, and mixed."""
    rng = np.random.default_rng(3)
    names = [f"S{i:02}" for i in range(12)]
    tables = {n: stream(np.sort(rng.integers(0, 40, 6)), id=np.arange(6), k=rng.integers(0, 2, 6)) for n in names}
    where = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    sources = ", ".join(f"{n} [PARTITION BY k ROWS 1]" for n in names)
    text = f"SELECT {', '.join(f'{n}.id AS {n}' for n in names)} FROM {sources} WHERE {where}"
    half = " ".join(names[:6]), " ".join(names[6:])
    plans = [str(wm.Plan.mjoin(names)), str(wm.Plan.left_deep(names)), f"(({half[0]}) ({half[1]}))"]
    assert agrees(text, tables, *plans).num_rows > 10


def test_oracle_streams_of_long_ago_with_a_table() -> None:
    """Times before 1970 are below zero; a table is there before them, also when windows are put back."""
    tables = {
        "R": stream([-90, -80, -70], id=[1, 2, 3], k=[1, 1, 1]),
        "S": stream([-60, -50], id=[4, 5], k=[1, 1]),
        "A": pa.table({"k": [1]}),
    }
    text = "SELECT R.id AS r, S.id AS s FROM R [RANGE 25 MICROSECONDS], S [ROWS 1], A WHERE R.k = S.k AND S.k = A.k"
    assert agrees(text, tables, "(R S A)", "((R A) S)").num_rows == 3
    engine = Engine(Run.of(text, tables, "(R S A)").batches.bound, wm.Plan.parse("((R A) S)"))
    engine.restore({"R": tables["R"], "A": tables["A"]})
    found = [batch.column("r").to_pylist() for batch in engine.feed({"S": tables["S"]})]
    assert found == [[3, 2, 3]]

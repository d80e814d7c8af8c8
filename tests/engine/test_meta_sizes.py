"""How much fits where changes nothing: output buffers, first sizes of stores, chunks of input, groups, ids taken down, look-ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.engine.running import Run, check, in_time_order, run_switching
from watersmeet.engine import executor
from watersmeet.engine.rows import payload
from watersmeet.engine.rows.payload import Payload
from watersmeet.engine.store import arena as state
from watersmeet.engine.store.arena import Arena
from watersmeet.testing import Case, random_case

CHOICES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "OUT": (executor, (1, 2, 3, 7, 1 << 16)),
    "CHUNK": (executor, (1, 3, 10, 1 << 17)),
    "CACHE": (executor, (0, 1 << 20)),
    "LARGEST_GROUP": (executor, (8, 9, 100, 512)),
    "LISTS": (executor, (0, 100, 1 << 16)),
    "SLACK": (executor, (0, 5, 1 << 16)),
    "SMALLEST": (state, (2, 4, 64, 1024)),
    "REBASE": (state, (1, 20, 1 << 30)),
    "SMALL": (payload, (1, 8, 1 << 16)),
    "SPREAD": (payload, (0, 4)),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the engine did what these sizes are to make it do."""
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str, matters: Callable[..., bool] = lambda *_: True) -> None:
        before = getattr(owner, name)

        def counting(*args: Any) -> Any:
            counted[name] += matters(*args)
            return before(*args)

        monkeypatch.setattr(owner, name, counting)

    count(Arena, "grow")
    count(Arena, "free_dead")
    count(Arena, "_shift_members", lambda _, leaf, by: by > 0)
    count(executor.Engine, "_results")
    count(executor.Engine, "_run")
    count(Payload, "keep")
    return counted


@pytest.mark.parametrize("first", range(0, 30, 15))
def test_meta_sizes_at_random(first: int, monkeypatch: pytest.MonkeyPatch, calls: Counter[str]) -> None:
    for seed in range(first, first + 15):
        case = random_case(seed, rows=120, results=60)
        rng = Random(seed)
        for way in ("whole", "batches", "switching"):
            sizes = {name: rng.choice(values) for name, (_, values) in CHOICES.items()}
            for name, size in sizes.items():
                monkeypatch.setattr(CHOICES[name][0], name, size)
            inputs: Any = case.streams if way == "whole" else in_time_order(case, 20)
            try:
                if way == "switching":
                    check(case, run_switching(rng, case.query, inputs, case.plan, (1, 10, 50))[0])
                else:
                    check(case, Run.of(case.query, inputs, case.plan).rows())
            except AssertionError as e:
                raise AssertionError(f"{way} with {sizes}\n{e}") from None
    wanted = {"grow": 100, "_shift_members": 20, "_results": 300, "_run": 300, "keep": 3, "free_dead": 5}
    assert {name: calls[name] for name, least in wanted.items() if calls[name] < least} == {}


def _large(seed: int) -> Case:
    return random_case(seed, rows=120, results=150)


@pytest.mark.parametrize("out", [1, 2, 3, 7])
def test_meta_output_buffer(out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel stops in the middle of a tuple and goes on: the same results in the same order."""
    results = 0
    for seed in range(8):
        case = _large(seed)
        monkeypatch.undo()
        whole = Run.of(case.query, case.streams, case.plan).rows()
        monkeypatch.setattr(executor, "OUT", out)
        run = Run.of(case.query, case.streams, case.plan)
        (released,) = run.batches.released()
        batches = list(run.engine.feed(released.rows))
        assert max((b.num_rows for b in batches), default=0) <= out
        if case.query.emit == "ISTREAM":
            made = pa.Table.from_batches(batches, run.engine.output)
            assert made.combine_chunks().to_pylist() == whole.combine_chunks().to_pylist() or _has_nan(made), str(case)
            check(case, made)
        results += whole.num_rows
    assert results > 300


def _has_nan(table: pa.Table) -> bool:
    return "nan" in str(table.to_pylist())


@pytest.mark.parametrize("smallest", [2, 1 << 14])
def test_meta_first_size_of_stores(smallest: int, monkeypatch: pytest.MonkeyPatch, calls: Counter[str]) -> None:
    monkeypatch.setattr(state, "SMALLEST", smallest)
    for seed in range(25):
        case = _large(seed)
        check(case, Run.of(case.query, case.streams, case.plan).rows())
    assert calls["grow"] > 200 if smallest == 2 else calls["grow"] < 10


def test_meta_ids_taken_down_again_and_again(monkeypatch: pytest.MonkeyPatch, calls: Counter[str]) -> None:
    monkeypatch.setattr(state, "REBASE", 1)
    monkeypatch.setattr(state, "SMALLEST", 2)
    for seed in range(25):
        case = _large(seed)
        check(case, Run.of(case.query, in_time_order(case, 7), case.plan).rows())
    assert calls["_shift_members"] > 200


def test_meta_look_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for cache lines of rows to come changes no result, and is done only where state is larger than the cache.

    Groups do it in their own way, so rows go one by one here.
    """
    ahead = dict.fromkeys((0, 1 << 40), 0)
    for seed in range(25):
        case = _large(seed)
        for cache in ahead:
            monkeypatch.setattr(executor, "CACHE", cache)
            run = Run.of(case.query, case.streams, case.plan, groups=False)
            check(case, run.rows())
            ahead[cache] += run.engine.inspect().look_aheads
    assert ahead[0] > 100 and ahead[1 << 40] == 0

"""Experiment: what a paper's folder consists of, and how it is run, resumed and checked.

A *part* is one table of raw results, `results/<part>.csv`. It has *settings* (what identifies a measurement: a seed, a plan, a size) and
measures those that the table does not hold yet, so a run that was stopped goes on where it was. Results belong to a config: the one they
were made with lies beside them, and another one is refused unless the run starts afresh.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from watersmeet.errors import WatersmeetError

Config: TypeAlias = Mapping[str, Any]
Setting: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]
Tables: TypeAlias = Mapping[str, list[dict[str, Any]]]
QUICK = "quick"


@dataclass(frozen=True)
class Part:
    """One table: its settings, and how some of them are measured; every row starts with the columns of its setting."""

    name: str
    settings: Callable[[Config], Iterable[Setting]]
    measure: Callable[[Config, list[Setting]], Iterator[tuple[Setting, list[Row]]]]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, what was found, whether it holds (None: can't be decided), and why not where it does not."""

    place: str
    says: str
    found: str
    holds: bool | None
    why: str = ""


@dataclass(frozen=True)
class Experiment:
    """A paper's experiments."""

    name: str
    paper: str
    parts: tuple[Part, ...]
    claims: Callable[[Config, Tables], Iterator[Claim]]
    figures: Callable[[Config, Tables, Path], Iterator[Path]]

    @property
    def folder(self) -> Path:
        return Path(__file__).parent / self.name

    def config(self, quick: bool = False) -> dict[str, Any]:
        """The config; `quick`: with the small numbers of its section of that name in place of the full ones."""
        read = tomllib.loads((self.folder / "config.toml").read_text())
        small = read.pop(QUICK, {})
        return _merged(read, small) if quick else read

    def results(self, quick: bool = False) -> Path:
        """Where results lie; those of quick runs apart, so that nobody takes them for the real ones."""
        return self.folder / (f"results-{QUICK}" if quick else "results")


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in over.items():
        made[key] = _merged(made[key], value) if isinstance(value, dict) and isinstance(made.get(key), dict) else value
    return made


def one_by_one(
    measure: Callable[[Config, Setting], list[Row]],
) -> Callable[[Config, list[Setting]], Iterator[tuple[Setting, list[Row]]]]:
    """A part's `measure` from one that takes a single setting."""

    def each(config: Config, settings: list[Setting]) -> Iterator[tuple[Setting, list[Row]]]:
        for setting in settings:
            yield setting, measure(config, setting)

    return each


def run(
    experiment: Experiment, folder: Path, config: Config, afresh: bool = False, say: Callable[[str], None] = lambda text: None
) -> None:  # fmt: skip
    """Measure what is missing, then draw."""
    folder.mkdir(parents=True, exist_ok=True)
    keep_config(folder, config, afresh, [p.name for p in experiment.parts])
    for part in experiment.parts:
        path = folder / f"{part.name}.csv"
        settings = [dict(s) for s in part.settings(config)]
        done = {_key(s, row) for row in read(path) for s in settings[:1]}
        missing = [s for s in settings if _key(s, s) not in done]
        say(f"{part.name}: {len(settings)} settings, {len(settings) - len(missing)} there already")
        for at, (setting, rows) in enumerate(part.measure(config, list(missing)), 1):
            append(path, [{**setting, **row} for row in rows])
            if at % 50 == 0 or at == len(missing):
                say(f"{part.name}: {at} of {len(missing)}")
    for figure in experiment.figures(config, tables(experiment, folder), folder):
        say(f"drawn: {figure.name}")


def keep_config(folder: Path, config: Config, afresh: bool, parts: list[str]) -> None:
    """See that results in the folder were made with this config; `afresh`: take them away instead."""
    path, text = folder / "config.json", json.dumps(config, indent=1, sort_keys=True) + "\n"
    if afresh:
        for name in parts:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    elif path.exists() and path.read_text() != text:
        raise WatersmeetError(
            f"the results in {folder.name}/ were made with another config\n  run with --afresh to make them again"
        )
    path.write_text(text)


def tables(experiment: Experiment, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The raw results by part."""
    return {p.name: read(folder / f"{p.name}.csv") for p in experiment.parts}


def _key(setting: Setting, row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in setting)


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV file, numbers as numbers; none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{k: _value(v) for k, v in row.items()} for row in csv.DictReader(file)]


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to a CSV file; the first ones bring its header."""
    if not rows:
        return
    there = path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if not there:
            writer.writeheader()
        writer.writerows({k: _text(v) for k, v in row.items()} for row in rows)


def _text(value: Any) -> Any:
    return f"{value:.7g}" if isinstance(value, float) else value


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

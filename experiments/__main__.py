"""`watersmeet experiment list | run NAME [--quick] [--afresh] | check NAME [--quick]`."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from experiments.experiment import Claim, Experiment, run, tables
from watersmeet.errors import WatersmeetError


def known() -> list[str]:
    return sorted(p.parent.name for p in Path(__file__).parent.glob("*/config.toml"))


def load(name: str) -> Experiment:
    made = import_module(f"experiments.{name}").EXPERIMENT
    assert isinstance(made, Experiment)
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="watersmeet experiment")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="name the experiments")
    for action, text in (
        ("run", "measure what is missing, and draw"),
        ("check", "each claim of the paper, and whether it holds"),
    ):
        sub = actions.add_parser(action, help=text)
        sub.add_argument("name", choices=known())
        sub.add_argument("--quick", action="store_true", help="small numbers, in a folder of their own")
        if action == "run":
            sub.add_argument("--afresh", action="store_true", help="throw earlier results away")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.action == "list":
            for name in known():
                print(f"{name:<22} {load(name).paper}")
            return 0
        experiment = load(chosen.name)
        config, folder = experiment.config(chosen.quick), experiment.results(chosen.quick)
        if chosen.action == "run":
            run(experiment, folder, config, chosen.afresh, lambda text: print(text, flush=True))
            return 0
        return check(experiment, folder, chosen.quick)
    except WatersmeetError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1


def check(experiment: Experiment, folder: Path, quick: bool) -> int:
    """Print every claim; kept as text beside the results."""
    found = tables(experiment, folder)
    missing = [name for name, rows in found.items() if not rows]
    if missing:
        raise WatersmeetError(
            f"no results of {', '.join(missing)}\n  make them: watersmeet experiment run {experiment.name}{' --quick' * quick}"
        )
    claims = list(experiment.claims(experiment.config(quick), found))
    text = told(experiment, claims)
    print(text, end="")
    (folder / "claims.txt").write_text(text)
    return 0


def told(experiment: Experiment, claims: Iterable[Claim]) -> str:
    """The claims as text."""
    word = {True: "holds", False: "DOES NOT HOLD", None: "open"}
    lines = [experiment.paper]
    counts = dict.fromkeys(word, 0)
    for claim in claims:
        counts[claim.holds] += 1
        lines.append(f"\n[{word[claim.holds]}] {claim.place}")
        for label, text in (
            ("says", claim.says), ("found", claim.found), ("note" if claim.holds else "why", claim.why),
        ):  # fmt: skip
            if text:
                lines += textwrap.wrap(text, 110, initial_indent=f"  {label:<6} ", subsequent_indent=" " * 9)
    lines.append(f"\n{counts[True]} hold, {counts[False]} do not, {counts[None]} open")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

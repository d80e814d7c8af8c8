"""`watersmeet calibrate`: the prices of the cost model on this machine, measured and kept."""

from __future__ import annotations

import datetime as dt

from watersmeet.cli import show
from watersmeet.model.prices import NAMES, save_prices

POOR = 0.5  # a typical error from which on the machine was too busy, or the model is wrong


def run_calibrate(rows: int, repeats: int) -> None:
    from watersmeet.engine.calibrate import calibrate

    day = dt.datetime.now(dt.UTC).date().isoformat()
    with show.busy("measuring, about half a minute ..."):
        found = calibrate(rows, repeats, source=f"measured on this machine by `watersmeet calibrate`, {day}")
    path = save_prices(found.costs)
    typical, worst = found.typical_error, max(map(abs, found.errors))
    show.facts(
        [
            *((name, f"{getattr(found.costs, name) * 1e9:.1f} ns") for name in NAMES),
            ("together", f"{found.costs.together:.0%} of that, in a plan of one node, where rows go in groups"),
            ("fit", f"{typical:.0%} off in the typical run, {worst:.0%} in the worst of {len(found.runs)}"),
            ("kept in", str(path)),
        ]
    )
    if typical > POOR:
        show.plain("the fit is poor: was the machine busy? run it again, with more --repeats")

"""The experiments of a checkout: `experiments` is run as a program, so that the package itself carries none of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from watersmeet.errors import WatersmeetError, nearest_name

ACTIONS = ("list", "run", "check")


def run_experiment(action: str, name: str | None, arguments: list[str]) -> int:
    folder = Path("experiments")
    known = sorted(p.parent.name for p in folder.glob("*/config.toml"))
    if not known:
        raise WatersmeetError("there is no folder 'experiments' here\n  they are run from a checkout of the project")
    if action not in ACTIONS:
        raise WatersmeetError(f"there is no 'experiment {action}'\n  {nearest_name(action, ACTIONS)}")
    if action != "list" and name is None:
        raise WatersmeetError(f"which experiment?\n  known: {', '.join(known)}")
    if name is not None and name not in known:
        raise WatersmeetError(f"there is no experiment '{name}'\n  {nearest_name(name, known)}")
    wanted = [name] if name is not None else []
    return subprocess.run([sys.executable, "-m", "experiments", action, *wanted, *arguments], check=False).returncode

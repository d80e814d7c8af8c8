"""The benchmarks of a checkout: `bench/<name>/` is run as a program, so that the package itself carries none of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from watersmeet.errors import WatersmeetError, nearest_name


def run_bench(name: str | None, arguments: list[str]) -> int:
    folder = Path("bench")
    known = sorted(p.parent.name for p in folder.glob("*/__main__.py"))
    if not known:
        raise WatersmeetError("there is no folder 'bench' here\n  benchmarks are run from a checkout of the project")
    if name is None:
        raise WatersmeetError(f"which benchmark?\n  known: {', '.join(known)}")
    if name not in known:
        raise WatersmeetError(f"there is no benchmark '{name}'\n  {nearest_name(name, known)}")
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments], check=False).returncode

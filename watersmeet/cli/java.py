"""Whether there is a Java that Spark can use, looked for where Spark looks: JAVA_HOME, then PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

NEEDED: Final = 17


def java_problem() -> str | None:
    """What is wrong with Java here, in a few words; None if nothing is."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return "there is no Java here"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return f"{java} can't be run"
    found = major(told.stderr + told.stdout)
    return f"{java} is Java {found}, and Spark needs {NEEDED} or later" if found and found < NEEDED else None


def major(told: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> major('openjdk version "17.0.15" 2025-04-15'), major('java version "1.8.0_392"'), major("?")
    (17, 8, None)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None

"""Spark's errors in plain words: our own out of Spark's wrapping, or the cause of Spark's in a line or two."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from watersmeet.errors import DataError, StateError, WatersmeetError

_OURS: Final = {
    "StateError": StateError,
    "DataError": DataError,
    "QueryError": WatersmeetError,
    "WatersmeetError": WatersmeetError,
}
_PACKAGES: Final = {"delta": "io.delta:delta-spark_2.13:VERSION"}


def plain_error(error: Exception) -> WatersmeetError:
    """What went wrong, of an exception that Spark raised."""
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"
    steps: tuple[Callable[[str], WatersmeetError | None], ...] = (_ours, _module, _source, _file, _daemon, _java)
    for step in steps:
        if (found := step(text)) is not None:
            return found
    return DataError(f"Spark: {_short(text)}")


def explain_error(error: Exception) -> Exception:
    """An error of a query on Spark in plain words: one of ours, without Spark's wrapping and tracebacks. To be printed, or raised
    (`raise wm.explain_error(e) from None`). Errors that are not of Spark come back as they are.

    >>> print(explain_error(PySparkException("... watersmeet.errors.StateError: it is another query's\\n  do that\\nmore")))
    it is another query's
      do that
    """
    return plain_error(error) if isinstance(error, PySparkException | Py4JError) else error


def _ours(text: str) -> WatersmeetError | None:
    found = re.search(r"watersmeet\.errors\.(\w+): ", text)
    if found is None or found[1] not in _OURS:
        return None
    first, *rest = text[found.end() :].splitlines()
    more: list[str] = []
    for line in rest:
        if not line.startswith("  ") or len(more) == 12:
            break
        more.append(line)
    return _OURS[found[1]]("\n".join([first, *more]))


def _module(text: str) -> WatersmeetError | None:
    found = re.search(r"No module named '?([\w.]+)", text)
    if found is None:
        return None
    return DataError(
        f"the Python of Spark's executors has no module '{found[1]}'\n"
        "  they need the same packages as this one: ship the environment with the job (docs/deploy.md), or set PYSPARK_PYTHON"
    )


def _source(text: str) -> WatersmeetError | None:
    found = re.search(r"Failed to find (?:the )?data source: (\w+)", text)
    if found is None:
        return None
    package = _PACKAGES.get(found[1].lower(), "GROUP:NAME:VERSION")
    return DataError(
        f"this Spark knows no FORMAT {found[1]}: its package is missing\n"
        f"  Spark downloads it with --conf spark.jars.packages={package}; files that you have go into --conf spark.jars=FILE.jar"
    )


def _file(text: str) -> WatersmeetError | None:
    found = re.search(
        r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\. (.*?)SQLSTATE", text, re.DOTALL
    )
    if found is None:
        return None
    return DataError(f"Spark can't read {found[1].removeprefix('file://')}: {found[2].strip() or _root(text)}")


def _daemon(text: str) -> WatersmeetError | None:
    if "Cannot run program" not in text or "python" not in text:
        return None
    found = re.search(r'Cannot run program "([^"]+)"', text)
    program = found[1] if found else "python3"
    return DataError(
        f"Spark's executors can't start Python: there is no '{program}'\n  set PYSPARK_PYTHON to one that is there"
    )


def _java(text: str) -> WatersmeetError | None:
    if "JAVA_GATEWAY_EXITED" not in text and "JAVA_HOME is not set" not in text:
        return None
    return DataError(
        "Spark's Java process did not start\n  Spark needs Java 17 or later: see that `java -version` works, or set JAVA_HOME"
    )


def _short(text: str) -> str:
    """The cause in the words of Spark, without its wrapping."""
    if "foreach batch sink" in text:  # ours, in Python: what it asked of Spark failed
        inner = re.search(r"^(?:: |pyspark\.errors\S+: )(.*)", text, re.MULTILINE)
        text = inner[1] if inner else text
    body = re.sub(r"^\[STREAM_FAILED\].*?terminated with exception: ", "", text.strip(), flags=re.DOTALL)
    body = re.sub(r"^An error occurred while calling [\w.]+\s*:\s*", "", body)
    body = re.sub(r"^Job aborted due to stage failure: Task .*?Lost task .*?\): ", "", body, flags=re.DOTALL)
    first = next((line for line in body.splitlines() if line.strip()), "failed")
    return _bare(first)


def _root(text: str) -> str:
    """The innermost cause."""
    causes = re.findall(r"^\s*Caused by: (.*)$", text, re.MULTILINE)
    return _bare(causes[-1]) if causes else "it is damaged, or not what FORMAT says"


def _bare(line: str) -> str:
    line = re.sub(r"^(?:[a-z]\w*\.)+\w+(?:Exception|Error): ", "", line.strip())
    line = re.sub(r"^\[[A-Z_.]+\]\s*", "", line)
    return re.sub(r"\s*SQLSTATE: \w+", "", line)[:500].strip()

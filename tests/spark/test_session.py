"""The settings that a session starts with."""

from __future__ import annotations

from pathlib import Path

import pytest

from watersmeet.spark.session import SETTINGS, settings_for

COLLECTOR = "-XX:+UseParallelGC"
DRIVER = "spark.driver.defaultJavaOptions"
EXTRA = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[2,4]", "local-cluster[2,1,2048]"])
def test_a_local_master_gets_java_options_for_throughput(master: str) -> None:
    made = settings_for(master)
    assert COLLECTOR in made[DRIVER]
    assert "Inline" in made[DRIVER]
    assert made[DRIVER].startswith(SETTINGS[DRIVER])
    assert made["spark.shuffle.compress"] == "false"


@pytest.mark.parametrize("master", [None, "yarn", "spark://host:7077", "sc://host"])
def test_other_masters_keep_java_and_shuffle_as_they_are(master: str | None) -> None:
    assert settings_for(master) == dict(SETTINGS)


def test_what_is_given_goes_first() -> None:
    assert settings_for("local[2]", {"spark.shuffle.compress": "true"})["spark.shuffle.compress"] == "true"


@pytest.mark.parametrize("where", ["given", "variable", "file"])
def test_no_second_collector(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java does not start with two."""
    chosen = "-Xss4m -XX:+UseG1GC"
    given = {EXTRA: chosen} if where == "given" else {}
    if where == "variable":
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", chosen)
    if where == "file":
        (tmp_path / "spark-defaults.conf").write_text(f"{EXTRA} {chosen}\n")
    assert COLLECTOR not in settings_for("local[2]", given)[DRIVER]

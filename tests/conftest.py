"""What every test shares: the `--long` switch, workers that may die, one worker for Spark, the profiles of hypothesis."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.workers import pytest_xdist_make_scheduler  # noqa: F401  # a hook, found by its name

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Tests are priced with the defaults, whatever `watersmeet calibrate` found on this machine.
os.environ["WATERSMEET_PRICES"] = str(Path(tempfile.gettempdir()) / "watersmeet-tests-have-none.json")

# A Spark of the tests lives for minutes: what Java's second compiler would make of it is not earned back.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1"

# What a shell starts in the background ignores Ctrl-C, and so would the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked `long`")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "long" in item.keywords and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="long: give --long (make test-all)"))
        if "spark" in item.keywords:
            item.add_marker(pytest.mark.xdist_group("spark"))

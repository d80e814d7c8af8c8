"""How tests are dealt to worker processes: as xdist's `--dist loadgroup` does it, but a worker that dies fails its test and no more.

xdist's own scheduler gives a replacement the units that the dead worker had finished, among others. A unit without open tests
never reports back, so the replacement waits for ever and so does the run. The test that killed the worker is given out again, too.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Scheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist ships no types
    """Groups over workers, any of which may die."""

    def remove_node(self, node: WorkerController) -> str | None:
        """The test that the worker died in, which counts as run; its other open tests go first in the queue."""
        units: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        died_in = next((test for unit in units.values() for test, done in unit.items() if not done), None)
        if died_in is None:
            return None
        for scope, unit in units.items():
            if died_in in unit:
                unit[died_in] = True
            if not all(unit.values()):
                self.workqueue[scope] = unit
                self.workqueue.move_to_end(scope, last=False)
        for other in self.nodes:
            self._reschedule(other)
        return died_in

    def schedule(self) -> None:
        """Twice for a replacement: a worker starts a test when it knows the next one."""
        replaced = self.collection is not None
        super().schedule()
        if replaced:
            super().schedule()

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:  # a replacement that still collects gets its tests from `schedule`
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)  # xdist may be switched off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None

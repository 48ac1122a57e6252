"""What is expensive to set up is set up by one worker: tests of one group or of one file run in one
process.
"""

from types import SimpleNamespace

import pytest


@pytest.mark.xdist_group("workers")
def test_the_group_of_a_test_is_in_the_name_that_workers_are_given(request):
    """With pytest 9.2, pytest-xdist 3.8 writes it where nobody reads it, and groups nothing."""
    if not hasattr(request.config, "workerinput") or not request.config.getvalue("loadgroup"):
        pytest.skip("one process, or no groups")
    assert request.node.nodeid.endswith("@workers")


class Worker:
    """A worker that notes which tests it is sent."""

    shutting_down = False

    def __init__(self):
        self.sent = []

    def send_runtest_some(self, places):
        self.sent.append(places)

    def shutdown(self):
        self.shutting_down = True


def test_workers_get_groups_and_then_files_of_many_tests_first():
    scheduling = pytest.importorskip("scheduling")  # pytest-xdist's
    asked = SimpleNamespace(getvalue=lambda name: ["popen"], option=SimpleNamespace(loadscopereorder=True))
    names = ["a.py::one", "b.py::many[a@1]", "b.py::many[a@2]", "b.py::many[a@3]", "c.py::slow@page", "a.py::slow@page"]
    worker, schedule = Worker(), scheduling.ByFile(asked)
    schedule.add_node(worker)
    schedule.add_node_collection(worker, names)
    schedule.schedule()
    for place in (4, 5, 1, 2, 3, 0):
        assert any(place in unit for unit in worker.sent)
        schedule.mark_test_complete(worker, place)
    assert worker.sent == [[4, 5], [1, 2, 3], [0]]

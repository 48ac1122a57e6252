"""What is expensive to set up is set up by one worker: tests of one group run in one process."""

import pytest


@pytest.mark.xdist_group("workers")
def test_the_group_of_a_test_is_in_the_name_that_workers_are_given(request):
    """With pytest 9.2, pytest-xdist 3.8 writes it where nobody reads it, and groups nothing."""
    if not hasattr(request.config, "workerinput") or not request.config.getvalue("loadgroup"):
        pytest.skip("one process, or no groups")
    assert request.node.nodeid.endswith("@workers")

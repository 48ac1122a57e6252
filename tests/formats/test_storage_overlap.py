"""Who shares which elements, against sets of them."""

from __future__ import annotations

import itertools
import random

import pytest

from tallystick import BadInput
from tallystick.formats.storage_overlap import View, joined, meets_itself, shared


def elements(view: View) -> set[int]:
    """Every element that a view sees, one by one."""
    steps = [[stride * step for step in range(size)] for stride, size in view.layout]
    return {view.start + sum(one) for one in itertools.product(*steps)}


def drawn(draw: random.Random) -> View:
    while True:
        shape = [draw.randint(1, 4) for _ in range(draw.randint(0, 3))]
        layout = joined(shape, [draw.randint(0, 9) for _ in shape])
        if not meets_itself(layout):
            return View(draw.choice("ab"), draw.randint(0, 12), layout)


@pytest.mark.parametrize("seed", range(5))
def test_each_element_belongs_to_the_first_that_sees_it(seed: int):
    draw = random.Random(seed)
    for _ in range(400):
        views = [drawn(draw) for _ in range(draw.randint(1, 6))]
        seen = [{(view.memory, element) for element in elements(view)} for view in views]
        linked = list(range(len(views)))  # the first of those that one can get to by common elements
        for _ in views:
            for one, other in itertools.combinations(range(len(views)), 2):
                if seen[one] & seen[other]:
                    linked[one] = linked[other] = min(linked[one], linked[other])
        for place, told in enumerate(shared(views)):
            assert told.owner == linked[place]
            assert told.new == len(seen[place].difference(*seen[:place]))
            assert views[place].size == len(seen[place])
            assert views[place].end == max(seen[place])[1] + 1


def test_a_view_that_shows_one_element_twice_is_told():
    assert meets_itself(joined((3, 3), (2, 3)))
    assert joined((3, 3), (1, 1)) == ((1, 5),)  # windows are the row that they are cut from
    assert joined((4, 4), (2, 1)) == ((1, 10),)
    assert not meets_itself(joined((4, 4), (4, 1)))
    assert not meets_itself(joined((4, 4), (0, 1)))  # the same row again is one row


def test_neighbours_in_one_memory_cost_nothing_and_share_nothing():
    views = [View("a", 10 * place, ((1, 10),)) for place in range(100_000)]
    assert [told.new for told in shared(views)] == [10] * 100_000
    assert [told.owner for told in shared(views)] == list(range(100_000))


def test_views_that_cross_in_too_many_pieces_are_refused():
    columns = [View("a", start, ((1, 1), (2, 1 << 18))) for start in (0, 1)]
    with pytest.raises(BadInput, match="524,288 pieces"):
        shared(columns)

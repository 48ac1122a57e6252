"""What is said of a derivation does not depend on how it is written: its layout, order, notation,
names, language.

Of each drawn text, right or with one slip that is carried on, and of the same text written
otherwise, the wrong equations, the total, its truth and the corrections are the same.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import derivations
from derivations_changed import TEXTS, below_its_config, renamed, reordered
from written_derivations import STYLES, Written

DRAWN = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


SEEDS = st.integers(0, 10**9)


@DRAWN
@given(seed=SEEDS)
def test_another_layout(seed):
    one = Written(seed)
    assert one.said(one.text(style=one.chance.choice(STYLES))) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_other_signs_and_thousands(seed):
    one = Written(seed)
    other = one.text(
        times=one.chance.choice(derivations.TIMES), thousands=one.chance.choice(sorted(derivations.THOUSANDS))
    )
    assert one.said(other) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_another_language(seed):
    one = Written(seed)
    other = one.text(language=one.chance.choice(sorted(derivations.LANGUAGES)))
    assert one.said(other) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_other_names(seed):
    one = Written(seed)
    assert one.said(one.text(renamed(one.lines, one.chance))) == one.said(one.text())


@DRAWN
@given(seed=SEEDS)
def test_another_order_of_parts(seed):
    one = Written(seed)
    assert one.said(one.text(reordered(one.lines, one.chance))) == one.said(one.text())


@pytest.mark.parametrize("how", sorted(TEXTS))
@DRAWN
@given(seed=SEEDS)
def test_the_same_lines_written_otherwise(how, seed):
    one = Written(seed)
    if how == "copied thrice":
        one.style = one.chance.choice(("display", "sections"))
    text = one.text()
    assert one.said(TEXTS[how](text, one.style, one.chance)) == one.said(text)


@DRAWN
@given(seed=SEEDS)
def test_a_config_on_top(seed):
    one = Written(seed)
    if (
        one.style == "columns"
    ):  # its wrong total stands alone, and the config's numbers would be added to what it should be
        one.style = "table"
    text = one.text()
    assert one.said(below_its_config(text, one.config, one.chance)) == one.said(text)


@DRAWN
@given(seed=SEEDS)
def test_several_changes_at_once(seed):
    one = Written(seed)
    lines = renamed(reordered(one.lines, one.chance), one.chance)
    text = one.text(lines, style=one.chance.choice(STYLES), times=one.chance.choice(derivations.TIMES))
    for how in ("below a heading", "trailing blanks", "from Windows"):
        text = TEXTS[how](text, one.style, one.chance)
    assert one.said(text) == one.said(one.text())

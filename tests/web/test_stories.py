"""The explorer's stories: each figure of their sentences is the library's answer, and is shown."""

import json
import re
from html.parser import HTMLParser

import pytest

import explorer
import tallystick
from repository import ROOT
from tallystick.report.numbers import in_giga
from tallystick.web.answers import answers
from tallystick.web.bootstrap import start
from tallystick.web.by_hand import BY_HAND
from tallystick.web.stories import STORIES

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d%?|(?<![\w.])\d%?(?!\w)")
NAMES = re.compile(r"GPT-2|DeepSeek-V3|Llama 3 8B|Gemma 3 270M|RTX 4090")  # of models and devices
GPT2, DEEPSEEK, LLAMA = (tallystick.count(name) for name in ("gpt2", "deepseek-v3", "llama-3-8b"))
UNGROUPED = tallystick.count("llama-3-8b", num_key_value_heads=32)
GEMMA = tallystick.count("gemma-3-270m")
FIT = tallystick.fit(LLAMA, "rtx4090", sequence=8192)
CHECKED = tallystick.check(BY_HAND, GPT2)
WRONG = next(one for one in CHECKED.equations if not one.correct)


def config_of(ledger):
    return ledger.model.recipe.values


def share(ledger, role):
    return f"{ledger.by('role')[role] / ledger.total:.1%}"


# What each figure of a story's sentences is.
FIGURES = {
    "163m": {
        "124,439,808": GPT2.total,
        "38,597,376": tallystick.ties(GPT2).groups[0].parameters,
        "163,037,184": tallystick.count("gpt2", tie_word_embeddings=False).total,
    },
    "671b": {
        "671,026,404,352": DEEPSEEK.total,
        "653,908,770,816": DEEPSEEK.by("role")["experts"],
        "97.4%": share(DEEPSEEK, "experts"),
        "8": config_of(DEEPSEEK)["num_experts_per_tok"],
        "256": config_of(DEEPSEEK)["n_routed_experts"],
        "37,552,282,624": DEEPSEEK.totals["active"],
    },
    "gqa": {
        "32": config_of(LLAMA)["num_attention_heads"],
        "8": config_of(LLAMA)["num_key_value_heads"],
        "131,072": tallystick.memory(LLAMA).kv_cache_bytes_per_token,
        "805,306,368": UNGROUPED.total - LLAMA.total,
    },
    "head": {
        "268,098,176": GEMMA.total,
        "167,772,160": GEMMA.by("role")["token_embedding"],
        "62.6%": share(GEMMA, "token_embedding"),
        "262,144": config_of(GEMMA)["vocab_size"],
    },
    "fit": {
        "18.1": in_giga(FIT.asked.total_bytes).split()[0],
        "8,192": FIT.asked.sequence,
        "24.7": in_giga(FIT.device.room).split()[0],
        "4": FIT.largest_batch,
        "34,605": FIT.longest_sequence,
    },
    "hand": {
        "17": WRONG.line,
        "84,943,656": WRONG.right,
        "84,934,656": WRONG.should_be,
        "9,000": -CHECKED.arithmetic,
        "124,439,808": GPT2.total,
    },
    "tying": {
        "38,597,376": tallystick.ties(GPT2).groups[0].parameters,
        "308,779,008": tallystick.memory(GPT2, mode="training").backward_buffers_bytes,
    },
}


class Text(HTMLParser):
    """The text of some HTML."""

    def __init__(self, html):
        super().__init__()
        self.words = ""
        self.feed(html)

    def handle_data(self, data):
        self.words += f" {data}"


@pytest.fixture(scope="module")
def shown():
    """What the page answers to each story, by the answers' names."""
    return {name: answers(explorer._request_of(story), None) for name, story in STORIES.items()}


@pytest.mark.parametrize("name", STORIES)
def test_each_figure_of_a_story_is_the_librarys_and_is_shown(name, shown):
    said = NAMES.sub("", " ".join(STORIES[name].sentences))
    assert set(NUMBER.findall(said)) == set(FIGURES[name])
    for figure, value in FIGURES[name].items():
        assert figure == (f"{value:,}" if isinstance(value, int) else value)
    controls = {f"{one['value']:,}" for one in shown[name]["count"]["controls"]}
    words = " ".join(Text(answer["html"]).words for answer in shown[name].values())
    for figure in FIGURES[name]:
        assert re.search(rf"(?<![\d,.]){re.escape(figure)}(?![\d,])", words) or figure in controls, figure


@pytest.mark.parametrize("name", STORIES)
def test_a_story_shows_its_answers(name, shown):
    story = STORIES[name]
    assert all(shown[name][section].get("html") for section in story.sections)
    assert story.state.keys() <= {"model", "set", "other", "other_set", "claim", "text", "run", "serve"}
    assert (ROOT / "docs" / f"{story.page}.md").is_file()
    assert all(len(sentence.split()) <= 20 for sentence in story.sentences)


def test_words_of_comparison_hold():
    """Figures in words: a fourth, four of them, 37B, and what a shallower model has."""
    per_token = [tallystick.memory(one).kv_cache_bytes_per_token for one in (LLAMA, UNGROUPED)]
    assert per_token[1] == 4 * per_token[0]
    assert config_of(LLAMA)["num_attention_heads"] == 4 * config_of(LLAMA)["num_key_value_heads"]
    assert tallystick.reconcile(DEEPSEEK, "37B").explained
    assert "without the experts that a token skips" in tallystick.reconcile(DEEPSEEK, "37B").answer
    shallower = tallystick.count("gemma-3-270m", num_hidden_layers=4)
    assert shallower.by("role")["token_embedding"] / shallower.total > GEMMA.by("role")["token_embedding"] / GEMMA.total
    outside = GEMMA.total - sum(size for name, size in GEMMA.by("layer").items() if "layers." in name)
    assert outside - GEMMA.by("role")["token_embedding"] < GEMMA.total / 1000
    assert "norms" in CHECKED.convention
    assert "biases" in CHECKED.convention


def test_the_page_is_given_the_stories_by_their_addresses():
    given = json.loads(json.dumps(start(None, {})))["stories"]
    assert [one["name"] for one in given] == list(STORIES)
    assert all(re.fullmatch("[a-z0-9]+", name) for name in STORIES)

"""How a judged derivation is shown: the text's own lines with marks, in a terminal and as a page,
whatever the text holds.
"""

import io
import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from rich.cells import cell_len
from rich.console import Console

import tallystick
from outputs import run_again, runs
from repository import ROOT
from tallystick.cli.main import main
from tallystick.report.check import show_check
from tallystick.report.derivation.marked_text import marked_text
from tallystick.report.derivation.marks import marked
from tallystick.report.derivation.number_spans import excerpt, spotted
from tallystick.report.html.page import check_page

BY_HAND = ROOT / "examples" / "gpt2_by_hand.md"
LATEX = r"""
## Attention

- **Queries, keys and values:** three matrices of \(\text{emb\_dim} \times \text{emb\_dim}\):
\[
3 \times (\text{emb\_dim} \times \text{emb\_dim}) = 3 \times (768 \times 768) = 1{,}769{,}473
\]
- **Output:**
$$
768^{2} = 589{,}824
$$
"""


def in_terminal(answer, width=80):
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, soft_wrap=True)
    show_check(answer, out)
    return out.file.getvalue()


def rows(printed):
    """Line number and mark of each line that has them."""
    return re.findall(r"^ *(\d+) ([✓✗→?]) ", printed, re.MULTILINE)


# -- in a terminal --------------------------------------------------------------------------------


def test_each_line_has_its_number_and_its_mark():
    printed = in_terminal(tallystick.check(BY_HAND, against="gpt2"))
    assert rows(printed) == [("5", "✗"), *((str(line), "✓") for line in range(6, 11)), ("12", "→")]


def test_a_wrong_line_says_what_it_should_be_and_a_later_one_where_its_error_is_from():
    printed = in_terminal(tallystick.check(BY_HAND, against="gpt2"), 120).splitlines()
    wrong = next(place for place, line in enumerate(printed) if "✗" in line)
    assert printed[wrong + 1].strip() == (
        f"38,596,416 should be {50257 * 768:,}, off by -960; in the model: token embedding"
    )
    carried = next(place for place, line in enumerate(printed) if "→" in line)
    assert printed[carried + 1].strip() == "right given the earlier error: 960 too small, from line 5"


def test_a_number_is_quoted_as_the_text_has_it():
    assert "38.4M should be 38,597,376" in in_terminal(tallystick.check("50257 × 768 = 38.4M"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Total: 124,439,808 × 4 bytes = 487 MB", "487 MB should be 497.76 MB, off by -10.76 MB"),
        ("Cache: 2 × 28 × 8 × 128 × 32768 × 2 bytes = 917 MiB", "917 MiB should be 3,584 MiB, off by -2,667 MiB"),
        ("Weights: 7B × 2 bytes = 24 GB", "24 GB should be 14 GB, off by +10 GB"),
    ],
)
def test_bytes_are_corrected_in_the_unit_of_the_text(line, said):
    answer = tallystick.check(f"Sizes: 2 × 3 = 6\n{line}\n")
    assert [sentence for one in marked(answer) for sentence in one.sentences] == [said]


def test_a_mistyped_factor_is_no_wrong_result():
    text = BY_HAND.read_text(encoding="utf-8").replace("12 × 7,077,888 =", "12 × 7,078,888 =")
    printed = in_terminal(tallystick.check(text, against="gpt2"), 120)
    assert f"the left side is {12 * 7_078_888:,}, not 84,934,656" in printed
    assert "960 too small, from line 5" in printed  # the result of line 9 is right


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_shows_no_markup(width):
    printed = in_terminal(tallystick.check(LATEX, against="gpt2"), width)
    assert not re.search(r"[\\{}$]|\*\*|##", printed)
    words = " ".join(printed.split())
    assert "3 × (emb_dim × emb_dim) = 3 × (768 × 768) = 1,769,473" in words
    assert "768² = 589,824" in words
    assert "Attention" in words
    assert "Output:" in words
    assert all(cell_len(line) <= width for line in printed.splitlines()[1:])


def test_a_table_is_shown_without_its_empty_cells_and_folded_by_characters_of_two_columns():
    text = "| 部分 | | 参数 |\n|---|---|---|\n| 总计 | | 50257 × 768 = 38,596,416 |\n"
    printed = in_terminal(tallystick.check(text), 30)
    assert "总计 | 50257 × 768 = 38,596,416" in " ".join(printed.split())
    assert all(cell_len(line) <= 30 for line in printed.splitlines()[1:])


def test_a_dash_is_not_shown_as_the_arrow_that_it_is_read_as():
    assert "Positions — 1024 × 768 = 786,432" in in_terminal(tallystick.check("Positions — 1024 × 768 = 786,432"))


def test_of_a_long_line_what_is_wrong_is_shown():
    words = "There is much to say of this model, and all of it stands on one line. " * 8
    text = f"Tokens: 50257 × 768 = 38,597,376. {words}Positions: 1024 × 768 = 786,433 in all. {words}\n"
    printed = " ".join(in_terminal(tallystick.check(text)).split())
    assert "Positions: 1024 × 768 = 786,433" in printed
    assert "786,433 should be 786,432, off by +1" in printed
    assert len(printed) < 600


def test_lines_in_a_row_that_are_not_judged_are_folded():
    text = "1024 × 768 = 786,432\n" + "see 3 * 4 there\n" * 50 + "2 × 768 = 1,536\n"
    printed = in_terminal(tallystick.check(text))
    assert [mark for _, mark in rows(printed)] == ["✓", "?", "?", "?", "✓"]
    assert "47 more lines not judged" in printed


def test_what_a_terminal_obeys_is_escaped():
    printed = in_terminal(
        tallystick.check("\x1b[2JTokens\u202e: 50257 × 768 = 38,597,376\n# \x1b[31m:\n1024 × 768 = 1")
    )
    assert "\x1b[2J" not in printed
    assert "\x1b[31m" not in printed
    assert "\u202e" not in printed


def test_marks_have_a_spelling_in_ascii(monkeypatch):
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", errors="tallystick.legible")
    monkeypatch.setattr("sys.stdout", out)
    main(["check", str(BY_HAND), "--against", "gpt2"])
    out.flush()
    printed = raw.getvalue().decode("ascii")
    assert re.findall(r"^ +(\d+) (ok|x |->) \S", printed, re.MULTILINE) == [
        ("5", "x "), *((str(line), "ok") for line in range(6, 11)), ("12", "->")
    ]  # fmt: skip


def test_the_walk_through_shows_what_the_command_prints():
    cells = json.loads((ROOT / "docs/walkthroughs/derivation.ipynb").read_text(encoding="utf-8"))["cells"]
    (run,) = runs("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"))
    assert run.command.startswith("tallystick check ")
    assert run_again(run.command, ROOT / "examples") == run


# -- as a page ------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """The tags of a page, and the text in each kind of element; of a correction it is no part."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.tags, self.texts = [], [], {}
        self.feed(page)
        self.close()
        assert self.stack == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.stack.append((tag, dict(attributes).get("class", "")))
        if tag == "div":
            self.handle_data("\n")

    def handle_endtag(self, tag):
        assert self.stack.pop()[0] == tag

    def handle_data(self, data):
        inner = self.stack[-1:] if any(tag == "ins" for tag, _ in self.stack) else self.stack
        for key in {key for tag, kind in inner for key in (tag, *kind.split())}:
            self.texts[key] = self.texts.get(key, "") + data

    @property
    def written(self):
        """The words of the derivation in it."""
        return sorted((self.texts.get("text", "") + self.texts.get("passed", "")).split())


def test_a_page_has_the_text_as_written_and_the_right_number_behind_the_wrong_one():
    text = BY_HAND.read_text(encoding="utf-8")
    read = Reader(marked_text(tallystick.check(BY_HAND, against="gpt2")))
    assert read.texts["del"] == "38,596,416"
    assert read.texts["ins"] == " 38,597,376"
    assert read.texts["carries"] == "123,550,272"
    assert read.written == sorted(text.split())
    assert [tag["id"] for _, tag in read.tags if "id" in tag] == [f"line-{line}" for line in (*range(5, 11), 12)]


def test_the_command_prints_a_page_that_needs_nothing_else(capsys):
    assert main(["check", str(BY_HAND), "--against", "gpt2", "--format", "html"]) == 1
    page = capsys.readouterr().out
    assert page.isascii()
    assert page.startswith("<!doctype html>")
    read = Reader(page.partition(">")[2])
    assert not [tag for tag, _ in read.tags if tag in ("script", "link", "img")]
    assert "http" not in page
    assert "124,439,808" in read.texts["tfoot"]
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_latex_is_shown_as_written_and_said_plainly():
    drawn = marked_text(tallystick.check(LATEX, against="gpt2"))
    assert r"<del" in drawn
    assert unescape(re.search(r"<del[^>]*>(.*?)</del>", drawn)[1]) == "1{,}769{,}473"
    assert 'title="3 × (emb_dim × emb_dim) = 3 × (768 × 768) = 1,769,473"' in drawn


HOSTILE = [
    "<script>alert(1)</script> 50257 × 768 = 38,596,416",
    '"><img src=x onerror=alert(1)> 50257 × 768 = 38,596,416',
    "</div></main><style>*{display:none}</style>: 50257 × 768 = 38,596,416",
    "</textarea><iframe src=//a.example></iframe>\n50257 × 768 = 38,596,416 <b>bold</b>",
    "50257 × 768 = 38,596,416 &lt;script&gt; &#60;b&#62;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_text_becomes_markup(text):
    page = check_page(tallystick.check(text + "\n", against="gpt2"))
    read = Reader(page.partition(">")[2])
    ours = {"html", "meta", "title", "style", "main", "h1", "h2", "section", "p", "div", "span", "del", "ins", "table",
            "thead", "tbody", "tfoot", "tr", "th", "td"}  # fmt: skip
    assert {tag for tag, _ in read.tags} <= ours
    assert not [
        one for _, one in read.tags for name in one if name.startswith("on") or name in ("href", "src", "style")
    ]
    assert sum(tag == "style" for tag, _ in read.tags) == 1
    assert read.written == sorted(text.split())


def test_no_character_turns_the_page_around():
    drawn = marked_text(
        tallystick.check("\u202e\u2066Tokens: 50257 × 768 = 38,596,416\x00\x1b[2J\nعدد: 1024 × 768 = 786,432")
    )
    assert "\\u202e\\u2066Tokens" in drawn
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", drawn)
    assert "عدد" in drawn
    assert drawn.count('dir="auto"') == 2


def test_a_line_that_is_not_judged_says_why():
    text = "50257 × 768 = 38,597,376\nx = 2^(3^(4^(5^9)))\nsee 3 * 4 there\n"
    read = Reader(marked_text(tallystick.check(text)))
    unread = [tag for _, tag in read.tags if "unread" in tag.get("class", "").split()]
    assert len(unread) == 2
    assert "not judged: " in read.texts["said"]


def test_statements_that_share_lines_are_drawn_once():
    text = "N = 12 × (768 +\n 5) = 9,276 and 7 × 7 = 50,\nthe rest\n\\[ 2 × 3 = 7 \\\\ 4 × 5 = 21 \\]\n"
    read = Reader(marked_text(tallystick.check(text)))
    assert read.written == sorted(text.split())


def test_blank_lines_around_a_passage_are_left_out():
    drawn = marked_text(tallystick.check("\n \n  some words\n\n more\n\n50257 × 768 = 38,597,376\n\n\n"))
    assert '<div class="passed" dir="auto">  some words\n\n more\n</div>' in drawn
    assert drawn.count("passed") == 1


def test_lines_in_a_row_that_are_not_judged_are_one_block():
    drawn = marked_text(tallystick.check("2 × 3 = 6\n" + "see 3 * 4 there\n" * 30 + "so\nand 5 * 6\n"))
    assert re.findall(r'class="judged (\w+)" id="(line-\d+)"', drawn) == [
        ("right", "line-1"), ("unread", "line-2"), ("unread", "line-33")
    ]  # fmt: skip
    assert drawn.count("see 3 * 4 there") == 30


def test_a_megabyte_is_a_page_of_a_few():
    line = "Something is said here of layers, and of what they hold, with no number in it at all.\n"
    text = line * 5_000 + "".join(f"{n} × 768 = {n * 768 + 1:,}\n" for n in range(2_000, 4_500)) + line * 5_000
    assert 900_000 < len(text) < 1_000_000
    drawn = marked_text(tallystick.check(text))
    assert drawn.count("<del") == 2_500
    assert len(drawn) < 3_000_000


# -- where a number stands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number", "written"),
    [
        (r"= 38{,}596{,}416", 38_596_416, r"38{,}596{,}416"),
        (r"= 38\,596\,416", 38_596_416, r"38\,596\,416"),
        ("= 38 596 416", 38_596_416, "38 596 416"),
        ("= 38_596_416", 38_596_416, "38_596_416"),
        ("768 × 50257 = 38,596,416", 38_596_416, "38,596,416"),
        ("≈ 38.6M", 38_600_000, "38.6M"),
        ("≈ 38.6 million", 38_600_000, "38.6 million"),
        ("≈ 3860 万", 38_600_000, "3860 万"),
        ("= 1.24 亿", 124_000_000, "1.24 亿"),
        ("768 = 768", 768, "768"),
        ("gpt2 has 2", 2, "2"),
        ("= 38,596,416", 38_596_417, None),
        ("nothing", 7, None),
        ("about 28.6 MiB here", 29_989_273.6, "28.6 MiB"),
        ("= 487 MB", 487_000_000, "487 MB"),
        ("= 487 MBit", 487_000_000, None),
        ("= 12,345,678,901,234,567", 12_345_678_901_234_567, "12,345,678,901,234,567"),  # more digits than a float has
    ],
)
def test_where_a_number_stands(text, number, written):
    (span,) = spotted(text, [number])
    assert (span and text[slice(*span)]) == written


def test_equal_numbers_are_each_found_once():
    assert spotted("a = 5, b = 5, 5", [5, 5, 5, 5]) == [(4, 5), (11, 12), (14, 15), None]


def test_an_excerpt_has_more_before_a_number_than_behind_it():
    # What leads to a result stands before it: 80 characters of that, 40 of what follows, less the
    # words that would be cut.
    before, behind = excerpt("word " * 50 + "= 7 " + "word " * 50, [7]).split("7")
    assert {*before.split(), *behind.split()} == {"…", "word", "="}
    assert 75 <= len(before.removeprefix("… ")) <= 80
    assert 35 <= len(behind.removesuffix(" …")) <= 40


@pytest.mark.parametrize("text", ["9" * 5_000, "1," * 5_000, "1 " * 5_000 + "= 1", "{,}" * 5_000])
def test_no_text_takes_long(text):
    spotted(text, [1, 9, 11])


def test_a_product_of_powers_shows_its_size():
    text = "MHA: 4 × d_model² = 4 × 768² = 2.36M\nGQA: d_model² + 2 × (d_model × d_model/4) + d_model² = 1.77M\n"
    wrong = [equation.should_be for equation in tallystick.check(text).equations if not equation.correct]
    assert wrong == [1_474_560]

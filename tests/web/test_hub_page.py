"""The page and the hub: any repository by name, in pieces, from a stand-in that behaves as the hub
does; and files that are dropped. Asked of Python in the browser.
"""

import json
import re
import shutil
from contextlib import contextmanager

import pytest

import tallystick
from checkpoints import gpt2_published, write_config, write_sharded
from chromium import ABSENT, CHROMIUM
from explorer_page import total
from hub_standin import TOKEN, commit_of, hub_standin
from web_server import served

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'tallystick[test]'")
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=ABSENT), pytest.mark.xdist_group("page")]

CONFIG = {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64, "n_embd": 128, "n_layer": 2, "n_head": 4}
SHAPES = gpt2_published(layers=2, width=128, vocabulary=1000, positions=64)
REAL = "https://huggingface.co"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sharded GPT-2 with its config."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    folder.mkdir()
    names = list(SHAPES)
    write_sharded(folder, {name: SHAPES[name] for name in names[:9]}, {name: SHAPES[name] for name in names[9:]})
    write_config(folder, CONFIG)
    (folder / "inner").mkdir()
    (folder / "inner" / "other.safetensors").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def hub(folder):
    with hub_standin() as stand_in:
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        stand_in.repositories = {
            "org/tiny": files,
            "org/mine": files,
            "org/config": {"config.json": files["config.json"], "README.md": b"#"},
            "org/old": {"config.json": json.dumps({**CONFIG, "n_layer": 1}).encode()},
        }
        stand_in.revisions = {"org/tiny@v1": "org/old"}
        stand_in.private = {"org/mine"}
        yield stand_in


@pytest.fixture(scope="module")
def page(browser, static_folder, hub, tmp_path_factory):
    """The static page with the stand-in's addresses in place of the hub's."""
    root = tmp_path_factory.mktemp("site")
    copied = shutil.copytree(static_folder / "explore", root / "explore")
    index = (copied / "index.html").read_text(encoding="utf-8")
    allowed = f"{REAL} https://*.huggingface.co https://*.hf.co"
    assert index.count(allowed) == 1
    (copied / "index.html").write_text(index.replace(allowed, " ".join(hub.addresses)), encoding="utf-8")
    begin = json.loads((copied / "start.json").read_text(encoding="utf-8"))
    assert begin["hub"] == REAL
    (copied / "start.json").write_text(json.dumps({**begin, "hub": hub.addresses[0]}), encoding="utf-8")
    with served(root) as server:
        page = browser.new_page(service_workers="block")
        page.set_default_timeout(30_000)
        page.goto(f"http://127.0.0.1:{server.server_port}/explore/")
        page.wait_for_selector("body[data-shown]")
        yield page
        page.close()


@contextmanager
def settled(page):
    """Waits until what was done in the block is answered."""
    shown = int(page.get_attribute("body", "data-shown"))
    yield
    page.wait_for_function("before => Number(document.body.dataset.shown) > before", arg=shown)


def show(page, name):
    with settled(page):
        page.fill("#name", name)
        page.press("#name", "Enter")


def test_a_repository_is_counted_from_the_headers_of_its_files(page, hub, folder):
    show(page, "org/tiny")
    assert total(page) == tallystick.count(folder).total
    assert page.inner_text('.away[data-name="count"] pre >> nth=0') == "tallystick count org/tiny --by role"
    page.wait_for_function("() => location.hash === '#model=org/tiny'")
    assert hub.sent < 400_000 < sum(map(len, hub.repositories["org/tiny"].values()))
    assert {one.range is not None for one in hub.storage if one.method == "GET"} == {True}
    assert {one.authorization for one in (*hub.hub, *hub.storage)} == {None}
    assert all(commit_of("org/tiny") in one.path for one in hub.hub if "/resolve/" in one.path)
    with settled(page):
        page.fill("#set-n_layer", "5")
        page.press("#set-n_layer", "Enter")
    assert total(page) == tallystick.count(CONFIG, n_layer=5).total


def test_a_repository_is_compared_with_another_and_one_of_its_revisions(page):
    show(page, "org/tiny")
    with settled(page):
        page.fill("#other", "org/tiny@v1")
        page.press("#other", "Enter")
    assert "198,272" in page.inner_text("#compare")  # 12 × 128² + 13 × 128
    show(page, "org/config")
    assert total(page) == tallystick.count(CONFIG).total
    with settled(page):
        page.click("#alone")


def test_a_private_repository_asks_for_a_token_which_stays_in_the_tab(page, hub):
    hub.storage.clear()
    show(page, "org/mine")
    assert "private or gated" in page.inner_text("#error")
    page.fill("#token", "hf_wrong")
    with settled(page):
        page.click("#access button")
    assert "private or gated" in page.inner_text("#error")
    page.fill("#token", TOKEN)
    with settled(page):
        page.click("#access button")
    assert page.is_hidden("#error")
    assert page.is_hidden("#access")
    assert total(page) == tallystick.count(CONFIG).total
    assert {one.authorization for one in hub.storage} == {None}  # the storage is another origin
    assert TOKEN not in page.url
    kept = "() => JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie"
    assert TOKEN not in page.evaluate(kept)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.click("#link")
    assert TOKEN not in page.inner_text("#said")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("org/absent", "there is no org/absent on the hub"),
        ("org/tiny@absent", "there is no org/tiny@absent on the hub"),
        ("nothing", "unknown model 'nothing'"),
    ],
)
def test_a_name_that_nobody_has_is_said(page, name, words):
    show(page, name)
    assert words in page.inner_text("#error")
    show(page, "gpt2")
    assert page.is_hidden("#error")


def test_a_host_that_serves_whole_files_is_refused(page, hub):
    hub.whole = True
    hub.repositories["org/whole"] = dict(hub.repositories["org/tiny"])
    show(page, "org/whole")
    hub.whole = False
    assert "does not serve parts of files" in page.inner_text("#error")


def test_a_hub_that_is_away_is_said(page):
    page.route("**/api/models/org/away/**", lambda route: route.abort())
    show(page, "org/away")
    assert re.search(r"org/away: 127\.0\.0\.1:\d+ cannot be reached", page.inner_text("#error"))


def test_a_large_file_is_read_in_slices(page, tmp_path):
    """A sparse file of 3 GB, more than a browser would take as one piece."""
    text = b'{"a":{"dtype":"F32","shape":[750000000],"data_offsets":[0,3000000000]}}'
    with (tmp_path / "large.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + 3_000_000_000)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with settled(page):
        page.set_input_files("#file", [tmp_path / "large.safetensors", tmp_path / "config.json"])
    assert total(page) == 750_000_000


def test_a_folder_is_opened(page, folder):
    with settled(page):
        page.set_input_files("#folder", folder)
    assert total(page) == tallystick.count(folder).total
    assert page.inner_text('.away[data-name="count"] pre >> nth=0') == "tallystick count ./tiny --by role"
    page.wait_for_function("() => location.hash.includes('dropped')")
    page.reload()  # last, since Python starts again
    page.wait_for_selector("body[data-shown]")
    assert "tiny are not in the link: drop them again" in page.inner_text("#error")

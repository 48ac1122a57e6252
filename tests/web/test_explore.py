"""The explorer's server: it answers as the command line does, to its own page alone, and lives
through what it is given.
"""

import asyncio
import csv
import json
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

import tallystick
from repository import ROOT
from tallystick.cli.main import main
from tallystick.presets import PRESETS
from tallystick.report.derivation.marked_text import marked_text
from tallystick.web import questions
from tallystick.web.answers import answers
from tallystick.web.app import app
from tallystick.web.controls import controls
from tallystick.web.process import Worker
from tallystick.web.request import PageRequest
from tallystick.web.security import MOST_BYTES

TOKEN = "a-token-of-the-tests"
HOME = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def client():
    with TestClient(app(TOKEN), base_url=HOME) as client:
        yield client


def ask(client, model="gpt2", wanted=("count",), **more):
    model = {"name": model} if isinstance(model, str) else model
    reply = client.post(f"/{TOKEN}/answers", json={"model": model, "wanted": list(wanted), **more})
    assert reply.status_code == 200
    return reply.json()


# -- the same answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("count", {}),
        ("count", {"set": {"n_layer": 3, "tie_word_embeddings": False}}),
        ("formula", {"set": {"n_embd": 96}}),
        ("memory", {"run": {"batch": 4, "sequence": 512, "kv_dtype": "fp8"}}),
        ("memory", {"run": {"mode": "training", "optimizer": "sgd", "lora": 8, "dp": 2, "zero": 2}}),
        ("compute", {"run": {"batch": 2, "sequence": 256, "dtype": "float16"}}),
        ("compare", {"set": {"n_layer": 6}, "other": {"name": "gpt2-xl"}, "other_set": {"n_layer": 7}}),
        ("reconcile", {"claim": "163M"}),
        ("ties", {"set": {"tie_word_embeddings": False}}),
        ("fit", {"run": {"device": "rtx4090", "batch": 2}}),
        ("devices", {"run": {"sequence": 512, "device": "h100"}}),
        ("serve", {"run": {"device": "h100"}, "serve": {"tp": 2, "input_tokens": 500, "output_tokens": 20}}),
    ],
)
def test_the_command_line_and_the_python_that_are_shown_give_the_same_answer(name, more, capsys):
    said = answers({"model": {"name": "gpt2"}, "wanted": [name], **more}, None)[name]
    command = shlex.split(said["command"])
    by = command.index("--by") if "--by" in command else len(command)  # adds rows to the JSON
    assert command[0] == "tallystick"
    most = ["--most", "99"] if name == "reconcile" else []
    assert main([*command[1:by], *most, "--format", "json"]) == 0
    answer = json.loads(json.dumps(said["answer"]))
    assert json.loads(capsys.readouterr().out) == answer
    names = {}
    exec(said["python"], names)
    assert json.loads(json.dumps(names["answer"].to_dict())) == answer


@pytest.mark.parametrize("settings", [{}, {"n_positions": 2048}])
def test_a_derivation_is_checked_as_the_command_line_does(settings, capsys, tmp_path, monkeypatch):
    text = (ROOT / "examples" / "gpt2_by_hand.md").read_text(encoding="utf-8")
    (tmp_path / "derivation.md").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    request = {"model": {"name": "gpt2"}, "set": settings, "wanted": ["check"], "text": text}
    said = answers(request, None)["check"]
    assert main([*shlex.split(said["command"])[1:], "--format", "json"]) == 1
    answer = json.loads(json.dumps(said["answer"])) | {"source": "derivation.md"}
    assert json.loads(capsys.readouterr().out) == answer
    assert (answer["total_claimed"], answer["arithmetic"]) == (123_550_272, 960)
    names = {}
    exec(said["python"], names)
    assert json.loads(json.dumps(names["answer"].to_dict())) == answer
    assert "<del" in said["html"]
    drawn = marked_text(tallystick.check(text, against=tallystick.count("gpt2", **settings)))
    assert drawn.removesuffix("</div>") in said["html"]


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "derivation.md", "-", "../x", "", "hello", "\x00", "<script>", 7, None]
)
def test_a_text_of_one_line_is_no_file_of_this_machine(text, tmp_path, monkeypatch):
    (tmp_path / "derivation.md").write_text("50257 × 768 = 38,597,376\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    error = answers({"model": {"name": "gpt2"}, "wanted": ["check"], "text": text}, None)["check"]["error"]
    assert "has no equation in it" in error or "expected text" in error


def test_a_text_that_is_too_long_or_is_markup_gets_a_line_or_is_escaped():
    def asked(text):
        return answers({"model": {"name": "gpt2"}, "wanted": ["check"], "text": text}, None)["check"]

    assert "1,000,001 characters" in asked("x" * 1_000_001)["error"]
    html = asked("<img src=x onerror=alert(1)> \ud800 50257 × 768 = 38,596,416")["html"]
    assert "<img" not in html
    assert "&lt;img" in html
    json.dumps(html).encode()


def test_the_server_gives_the_count(client):
    said = ask(client)["count"]
    assert said["answer"]["totals"]["unique"] == 124_439_808
    assert "124,439,808" in said["html"]


def test_the_csv_is_the_command_lines(capsys):
    main(["count", "gpt2", "--by", "layer", "--format", "csv"])
    given = answers({"model": {"name": "gpt2"}, "wanted": ["csv"], "by": "layer"}, None)
    assert given["csv"]["text"] == capsys.readouterr().out


ASKED = {
    "run": {"device": "h100", "sequence": 2048}, "serve": {"engine": "vllm", "max_model_len": 4096, "input_tokens": 512},
    "other": {"name": "gpt2-xl"}, "claim": "163M", "text": "50257 × 768 = 38,597,376",
}  # fmt: skip


@pytest.mark.parametrize("name", questions.ASKED)
def test_each_answer_is_exported_as_the_library_writes_it(name):
    request = {"model": {"name": "gemma-2-2b"}, "wanted": [name, "json", "csv"], "of": name, **ASKED}
    given = answers(request, None)
    assert json.loads(given["json"]["text"]) == json.loads(json.dumps(given[name]["answer"]))
    table = list(csv.reader(given["csv"]["text"].splitlines()))
    assert len(table) > 1
    assert {len(row) for row in table} == {len(table[0])}


def test_a_count_beyond_a_browsers_integers_is_exported_exactly():
    config = json.dumps({"model_type": "llama", "num_hidden_layers": 2**40 + 1})
    given = answers({"model": {"config": config}, "wanted": ["json"]}, None)["json"]["text"]
    total = tallystick.count(json.loads(config)).total
    assert total > 2**53
    assert float(total) != total  # JavaScript would round it
    assert f'"unique": {total},' in given


def test_of_an_unknown_answer_nothing_is_exported():
    given = answers({"model": {"name": "gpt2"}, "wanted": ["json", "csv"], "of": "weather"}, None)
    assert "expected one of count" in given["json"]["error"]
    assert "expected one of count" in given["csv"]["error"]


@pytest.mark.parametrize("name", ["fit", "serve"])
def test_without_a_device_one_is_asked_for(name):
    given = answers({"model": {"name": "gpt2"}, "wanted": [name], "serve": {"engine": "vllm"}}, None)
    assert given[name]["error"].startswith("choose a device")


def test_an_engine_that_nobody_knows_gets_a_line():
    given = answers(
        {"model": {"name": "gpt2"}, "wanted": ["serve"], "serve": {"engine": "x"}, "run": {"device": "h100"}}, None
    )
    assert "expected one of vllm" in given["serve"]["error"]


def test_a_pasted_config_is_counted():
    config = {"emb_dim": 768, "n_heads": 12, "n_layers": 12, "context_length": 1024, "vocab_size": 50257}
    given = answers({"model": {"config": json.dumps(config)}, "wanted": ["count"]}, None)
    assert given["count"]["answer"]["totals"]["unique"] == 163_009_536
    assert given["count"]["command"] == "tallystick count config.json --by role"


def test_a_header_is_counted_as_the_file_that_it_is_of(tmp_path):
    import torch
    from safetensors.torch import save_file

    tensors = {"model.embed_tokens.weight": torch.zeros(10, 4), "model.layers.0.mlp.up_proj.weight": torch.zeros(8, 4)}
    save_file(tensors, tmp_path / "toy.safetensors")
    content = (tmp_path / "toy.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    model = {"header": content[8 : 8 + length].decode(), "bytes": len(content) - 8 - length, "file": "toy.safetensors"}
    given = answers({"model": model, "wanted": ["count", "memory"]}, None)
    expected = tallystick.count(tmp_path / "toy.safetensors").to_dict() | {"source": "toy.safetensors"}
    assert given["count"]["answer"] == expected
    assert given["count"]["controls"] == []
    assert given["memory"]["answer"]["weights_bytes"] == 72 * 4
    short = answers({"model": {**model, "bytes": 7}, "wanted": ["count"]}, None)
    assert "toy.safetensors: the file is truncated" in short["count"]["error"]


SLID = ["gpt2", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gemma-2-2b", "gpt-neox-20b", "gemma-3-270m", "gpt-oss-20b",
        "gemma-3-4b", "llama-4-scout", "qwen3.5-27b", "olmo-3-7b"]  # fmt: skip


@pytest.mark.parametrize("name", SLID)
def test_a_slider_stops_only_where_there_is_a_model(name):
    asked = PageRequest({"model": {"name": name}}, None)
    found = controls(asked.ledger(), asked.depths)
    assert len({control["key"] for control in found}) == len(found)
    for control in found:
        stops = control["stops"]
        assert control["value"] in stops or isinstance(control["value"], bool)
        for stop in {*stops[:2], *stops[-2:], *stops[5::9]}:
            tallystick.count(name, **{control["key"]: stop})


def test_a_slider_of_an_unset_size_begins_at_its_value():
    for name in ("gpt2", "gpt2-xl"):
        found = {control["key"]: control["value"] for control in controls(tallystick.count(name))}
        assert tallystick.count(name, n_inner=found["n_inner"]).total == tallystick.count(name).total


@pytest.mark.parametrize("name", SLID)
def test_no_two_sliders_have_one_name(name):
    words = [one["word"] for one in controls(tallystick.count(name)) if one["stops"]]
    assert len(set(words)) == len(words)


def test_the_sliders_are_those_that_people_know():
    words = [control["word"] for control in controls(tallystick.count("mixtral-8x7b"))]
    assert words[:6] == ["layers", "width", "heads", "KV heads", "vocabulary", "experts"]
    assert "tying" in words


def test_what_the_page_can_choose_from_is_known(client):
    start = client.get(f"/{TOKEN}/start.json").json()
    assert start["source"] == "gpt2"
    assert start["presets"] == list(PRESETS)
    for mode, key in (
        ("training", "optimizer"),
        ("training", "precision"),
        ("inference", "kv_dtype"),
        ("inference", "device"),
    ):
        for word in start["choices"][key]:
            tallystick.memory("gpt2", **{"mode": mode, key: word, **({"dtype": "float16"} if word == "master" else {})})


# -- who may ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/wrong/", "/wrong/answers", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "//", "/é/", "/static/explore.js"]
)
def test_without_the_token_there_is_nothing(client, path):
    reply = client.get(path)
    assert reply.status_code == 403
    assert "lacks this server's token" in reply.text
    assert TOKEN not in reply.text + str(reply.headers)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "192.168.0.7:8000"]
)
def test_a_host_that_is_not_this_machine_is_refused(client, host):
    reply = client.get(f"/{TOKEN}/", headers={"host": host})
    assert (reply.status_code, TOKEN in reply.text) == (403, False)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9000"])
def test_a_foreign_origin_is_refused(client, origin):
    reply = client.post(f"/{TOKEN}/answers", json={}, headers={"origin": origin})
    assert reply.status_code == 403
    assert "The server answers only its own page, not other sites." in reply.text


def test_its_own_page_is_answered_and_may_load_nothing_else(client):
    reply = client.get(f"/{TOKEN}/", headers={"origin": HOME})
    assert reply.status_code == 200
    assert "default-src 'self'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in reply.headers
    assert client.get(f"/{TOKEN}").url.path == f"/{TOKEN}/"


@pytest.mark.parametrize("path", ["static/../app.py", "static/%2e%2e/app.py", "static/..%2fapp.py", "nothing"])
def test_no_other_file_is_served(client, path):
    assert client.get(f"/{TOKEN}/{path}").status_code == 404


@pytest.mark.parametrize("name", ["os:getcwd", "/etc/passwd", "../config.json", "", "gpt22", "x" * 10_000])
def test_the_page_names_no_file_and_no_code_of_this_machine(name):
    error = answers({"model": {"name": name}, "wanted": ["count"]}, None)["count"]["error"]
    assert "unknown model" in error or "characters" in error


def test_what_the_command_named_is_the_one_exception(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "n_layer": 1}))
    request = {"model": {"name": str(path)}, "wanted": ["count"]}
    assert answers(request, str(path))["count"]["answer"]["totals"]["unique"] == 46_473_216
    assert "error" in answers(request, "gpt2")["count"]


# -- what it is given -----------------------------------------------------------------------------


def test_fifty_megabytes_are_refused_unread_and_the_server_lives(client):
    reply = client.post(f"/{TOKEN}/answers", content=b'{"a":"' + b"x" * 50_000_000 + b'"}')
    assert reply.status_code == 413
    assert "16 MB" in reply.text
    assert ask(client)["count"]["answer"]["totals"]["unique"] == 124_439_808


def test_more_than_is_announced_is_not_read_either(client):
    def chunks():  # has no length of its own
        for _ in range(MOST_BYTES // 1_000_000 + 2):
            yield b"x" * 1_000_000

    assert client.post(f"/{TOKEN}/answers", content=chunks()).status_code == 413
    assert client.post(f"/{TOKEN}/answers", content=b"{}", headers={"content-length": "9" * 30}).status_code == 413


@pytest.mark.parametrize(
    "body",
    [b"", b"rubbish", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"9" * 100_000, b"[]", b"null", b"{}",
     b'{"wanted": ["nothing"]}', b'{"wanted": [[]]}', b'{"wanted": "count"}'],
)  # fmt: skip
def test_rubbish_gets_a_line_and_the_server_lives(client, body):
    reply = client.post(f"/{TOKEN}/answers", content=body)
    assert reply.status_code == 200
    assert "\n" not in reply.json()["error"]
    assert "Traceback" not in reply.text
    assert "count" in ask(client)


GPT2 = {"model_type": "gpt2"}
HOSTILE = {
    "deep": '{"model_type": "gpt2", "x": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "long number": '{"model_type": "gpt2", "n_layer": ' + "9" * 50_000 + "}",
    "many layers": json.dumps({**GPT2, "n_layer": 2**62}),
    "wide": json.dumps({**GPT2, "n_embd": 2**62, "n_head": 1}),
    "beyond": json.dumps({**GPT2, "n_layer": 10**30}),
    "infinite": '{"model_type": "gpt2", "n_layer": Infinity}',
    "words": json.dumps({**GPT2, "n_layer": "<script>alert(1)</script>"}),
    "no object": "[1, 2, 3]",
    "no JSON": "hello",
    "long": json.dumps({**GPT2, "x": "y" * 1_000_001}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_config_gets_an_answer_or_a_line(client, name):
    wanted = ["count", "formula", "memory", "compute", "reconcile", "compare"]
    given = ask(client, {"config": HOSTILE[name]}, wanted, claim="1B", other={"name": "gpt2"}, by="tensor")
    for answer in given.values():
        assert answer.get("html") or "\n" not in answer["error"]
        assert "<script" not in answer.get("html", "")
    assert len(json.dumps(given)) < 5_000_000


@pytest.mark.parametrize(
    "more",
    [{"set": []}, {"set": {"n_layer": {"a": []}}}, {"set": {"nothing": 1}}, {"by": "colour"}, {"by": []}, {"layout": {}},
     {"width": "wide"}, {"width": 10**400}, {"model": 3}, {"model": {}}, {"model": {"header": "{", "bytes": "x"}}],
)  # fmt: skip
def test_a_question_that_makes_no_sense_gets_a_line(more):
    given = answers({"model": {"name": "gpt2"}, "wanted": ["count"], **more}, None)["count"]
    assert "error" in given or more == {"width": 10**400}


@pytest.mark.parametrize(
    "run", [{"batch": "8"}, {"batch": 0}, {"batch": True}, {"dtype": 3}, {"colour": "red"}, {"device": "x"}, {"dp": -1}]
)
def test_a_run_that_makes_no_sense_gets_a_line(run):
    assert "error" in answers({"model": {"name": "gpt2"}, "wanted": ["memory"], "run": run}, None)["memory"]


def test_what_takes_too_long_is_ended_and_the_next_is_answered():
    async def asked():
        worker = Worker(None, seconds=0.001)  # shorter than any process takes to start
        request = json.dumps({"model": {"name": "gpt2"}, "wanted": ["count"]}).encode()
        first = json.loads(await worker.ask(request))
        worker.seconds = 60
        second = json.loads(await worker.ask(request))
        worker._process.kill()
        third, fourth = json.loads(await worker.ask(request)), json.loads(await worker.ask(request))
        await worker.end()
        return first, second, third, fourth

    with ThreadPoolExecutor() as thread:  # the browser of other tests has a loop in this one
        first, second, third, fourth = thread.submit(asyncio.run, asked()).result()
    assert "took more than 0.001 seconds" in first["error"]
    assert second["count"]["answer"]["totals"]["unique"] == 124_439_808
    assert "crashed on this request" in third["error"]
    assert "count" in fourth


@pytest.mark.parametrize(
    ("words", "message"), [(["nothing-such"], "no preset or file"), (["gpt2", "--port", "70000"], "is not a port")]
)
def test_what_cannot_be_shown_is_said_on_the_command_line(words, message, capsys):
    assert main(["explore", *words, "--no-browser"]) == 2
    assert message in capsys.readouterr().err

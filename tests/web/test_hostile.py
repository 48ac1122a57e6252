"""Files and texts that are no model, or a hostile one, on the explorer's page: each gets an answer
or one line that names what is wrong, and the next question is answered.
"""

import base64
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from tallystick.web.page_files import MOST_AT_ONCE
from tallystick.web.reply import reply_to
from tallystick.web.request import forget

BIG = 2**62


@pytest.fixture(autouse=True)
def _forget():
    yield
    forget()


def safetensors(header):
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + bytes(64)


def tensor(**changed):
    return {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **changed}}


def gguf(tensors=0, keys=0, rest=b"", version=3):
    return b"GGUF" + version.to_bytes(4, "little") + tensors.to_bytes(8, "little") + keys.to_bytes(8, "little") + rest


def zipped(**files):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_pkl", ".pkl"), content)
    return written.getvalue()


class Runs:
    def __reduce__(self):
        return (print, ("this must never be printed",))


def saved(array):
    written = io.BytesIO()
    np.savez(written, a=array)
    return written.getvalue()


NESTED = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
FILES = {
    "empty.safetensors": b"",
    "short.safetensors": b"1234",
    "no-json.safetensors": safetensors(b"{not json"),
    "list.safetensors": safetensors([1, 2]),
    "null.safetensors": safetensors(None),
    "not-utf8.safetensors": safetensors(b'{"\xff\xfe": 1}'),
    "deep.safetensors": safetensors(NESTED),
    "nan.safetensors": safetensors(b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 16]}}'),
    "no-shape.safetensors": safetensors({"a": {"dtype": "F32"}}),
    "negative.safetensors": safetensors(tensor(shape=[-4])),
    "fraction.safetensors": safetensors(tensor(shape=[0.5])),
    "words.safetensors": safetensors(tensor(shape="[4]")),
    "huge-shape.safetensors": safetensors(tensor(shape=[BIG, BIG])),
    "backwards.safetensors": safetensors(tensor(data_offsets=[16, 0])),
    "beyond.safetensors": safetensors(tensor(data_offsets=[0, BIG])),
    "overlapping.safetensors": safetensors({**tensor(), "b": tensor()["a"]}),
    "unknown-dtype.safetensors": safetensors(tensor(dtype="F3")),
    "metadata.safetensors": safetensors({"__metadata__": [1], **tensor()}),
    "script.safetensors": safetensors({"<script>alert(1)</script>": tensor()["a"]}),
    "truncated.safetensors": (10_000).to_bytes(8, "little") + b"{",
    "version.gguf": gguf(version=99),
    "tensors.gguf": gguf(tensors=BIG),
    "keys.gguf": gguf(keys=BIG),
    "string.gguf": gguf(keys=1, rest=BIG.to_bytes(8, "little")),
    "type.gguf": gguf(keys=1, rest=(1).to_bytes(8, "little") + b"a" + (99).to_bytes(4, "little")),
    "magic.gguf": b"ggml" + bytes(100),
    "zip.pt": zipped(nothing=b"x"),
    "bomb.pt": zipped(archive__data_pkl=b"\x80\x02" + bytes(20_000_000)),
    "runs.pt": zipped(archive__data_pkl=pickle.dumps(Runs(), protocol=2)),
    "runs.bin": pickle.dumps({"a": Runs()}, protocol=2),
    "rubbish.bin": bytes(range(256)) * 20,
    "object.npz": saved(np.array([{"a": 1}], dtype=object)),
    "cut.npz": saved(np.ones(3))[:50],
    "archive.zip": zipped(a=b"b"),
    "program.exe": b"MZ" + bytes(300),
    "page.html": b"<script>alert(1)</script>",
    "a.safetensors.index.json": b'{"weight_map": []}',
    "b.safetensors.index.json": b'{"weight_map": {"a": "missing.safetensors"}}',
    "c.safetensors.index.json": b'{"weight_map": {"a": "/etc/passwd"}}',
    "config.yaml": b"a: &a [x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n",
    "tag.yaml": b"!!python/object/apply:os.system ['id']\n",
    "broken.yaml": b"{[",
}

GPT2 = {"model_type": "gpt2"}
CONFIGS = {
    "nothing": "",
    "blank": "  \n",
    "null": "null",
    "number": "7",
    "string": '"gpt2"',
    "byte order mark": "\ufeff" + json.dumps(GPT2),
    "lone surrogate": json.dumps({**GPT2, "vocab_size": "\ud800"}),
    "no type": "{}",
    "words": json.dumps({**GPT2, "vocab_size": "<img src=x onerror=alert(1)>"}),
    "type that is a list": json.dumps({"model_type": []}),
    "no layers": json.dumps({**GPT2, "n_layer": 0}),
    "negative": json.dumps({**GPT2, "n_embd": -768}),
    "fraction": json.dumps({**GPT2, "n_layer": 1.5}),
    "flag": json.dumps({**GPT2, "n_layer": True}),
    "object": json.dumps({**GPT2, "n_layer": {"a": 1}}),
    "exponent": '{"model_type": "gpt2", "n_layer": 1e400}',
    "twice": '{"model_type": "gpt2", "n_layer": 1, "n_layer": 2}',
    "heads": json.dumps({**GPT2, "n_head": 7}),
    "quantised by nothing": json.dumps({**GPT2, "quantization_config": 7}),
    "layer types": json.dumps({"model_type": "gemma2", "layer_types": 3}),
    "experts": json.dumps({"model_type": "mixtral", "num_local_experts": -1}),
    "nested in itself": json.dumps(
        {"model_type": "gemma3", "text_config": {"model_type": "gemma3", "text_config": {}}}
    ),
    "call": '__import__("os").system("id")',
    "dictionary with a call": 'GPT_CONFIG = {"vocab_size": open("/etc/passwd").read(), "n_layers": 12}',
    "power": '{"vocab_size": 10**10**10, "emb_dim": 768, "n_layers": 12, "n_heads": 12}',
    "long list": '{"vocab_size": [0] * 10**10, "emb_dim": 768}',
    "comprehension": "{k: 1 for k in range(10**10)}",
    "brackets": "(" * 190,
    "markup": "<html><body onload=alert(1)>",
}

TEXTS = {
    "towers": "2^2^2^2^2^2^9 = 3",
    "power": "9**9**9**9 = 1",
    "division": "1/0 = 3\n0/0 = 0",
    "long number": "9" * 50_000 + " = 1",
    "brackets": "(" * 5_000 + "1" + ")" * 5_000 + " = 1",
    "fractions": r"\frac{" * 500 + "1" + "}{2}" * 500 + " = 1",
    "signs": "-" * 2_000 + "1 = 1",
    "sums": "+".join(["1"] * 2_000) + " = 2000",
    "equations": "1 = 1 = " * 500 + "1",
    "dollars": "$" * 20_000 + " 1 = 2",
    "bidirectional": "\u202e1 + 1 = 3\u202c",
    "nul": "1 + 1 = 3\x00",
    "tables": "|" * 20_000 + "\n1 = 2",
}
CLAIMS = [
    "",
    "0",
    "-5",
    "NaN",
    "inf",
    "1e999M",
    "9" * 200,
    "163M" * 50,
    "<b>7B</b>",
    "\u0661\u0666\u0663M",
    "7 B or so",
    "0x10",
]


def answered(request):
    """The reply to a request, which is sound; the next request is answered as ever."""
    text = reply_to(json.dumps(request)).decode()
    for name, answer in (reply := json.loads(text)).items():
        if name in ("needed", "of"):
            continue
        error = answer if name == "error" else answer.get("error", "")
        assert "\n" not in error
        assert "bug in tallystick" not in error, error
        assert "Traceback" not in error
        assert len(error) < 1_000
        if name != "error":
            assert error or answer["html"]
            assert not any(markup in answer.get("html", "") for markup in ("<script", "<img", "onerror", "<b>7B"))
    return reply


def reply_to_file(contents, name):
    """The reply to a dropped file, once the pieces of it were handed in that are asked for."""
    request = {
        "model": {"files": {"source": name, "sizes": {name: len(contents)}}},
        "wanted": ["count", "ties", "memory"],
    }
    reply, sent = answered(request), 0
    while "needed" in reply:
        pieces = [
            [one, start, base64.b64encode(contents[start : start + size]).decode()]
            for one, start, size in reply["needed"]
        ]
        sent += sum(size for *_, size in reply["needed"])
        assert sent <= max(4 * len(contents), 4 * MOST_AT_ONCE)
        reply = answered({**request, "pieces": {"model": pieces}})
    return reply


def still_answers():
    assert (
        answered({"model": {"name": "gpt2"}, "wanted": ["count"]})["count"]["answer"]["totals"]["unique"] == 124_439_808
    )


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file(name, capfd):
    reply_to_file(FILES[name], name)
    assert capfd.readouterr() == ("", "")
    still_answers()


@pytest.mark.parametrize("name", [name for name in FILES if name != "script.safetensors"])
def test_what_is_no_model_is_said_with_its_name(name):
    count = reply_to_file(FILES[name], name)["count"]
    assert name in count["error"]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_hostile_paste(name, capfd):
    reply = answered({"model": {"config": CONFIGS[name]}, "wanted": ["count", "formula", "memory", "compute", "ties"]})
    assert "count" in reply
    assert capfd.readouterr() == ("", "")
    still_answers()


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_derivation(name):
    answered({"model": {"name": "gpt2"}, "wanted": ["check"], "text": TEXTS[name]})
    still_answers()


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_hostile_claim(claim):
    answered({"model": {"name": "gpt2"}, "wanted": ["reconcile"], "claim": claim})
    still_answers()

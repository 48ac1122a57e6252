"""One reader under atheris, which looks for inputs that take ways through the code that none took
before.

    pip install -e ".[test,fuzz]"
    python tests/support/fuzz.py gguf -runs=1000000

Readers are those of `READERS`; what follows is libFuzzer's. Whatever it is given, a reader counts
it or says in one line why not, within ten seconds and in little memory; an input that it does not
survive is kept in the folder. The tests do the same with fewer inputs, changed at random
(`hostile.py`).
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOM = (
    "-timeout=10",
    "-rss_limit_mb=1000",
    "-max_len=4096",
)  # torch, which makes the first inputs, takes half of the memory


class Reader(NamedTuple):
    """What is read of a file."""

    file: str
    first: Callable[[Path], list[bytes]]  # inputs to begin with; the folder is for what stands beside the file
    member: str = ""  # of an archive, where the input is one: most changes to an archive break its checksum
    beside: str = ""  # another member, that the first speaks of
    of_folder: bool = False  # the folder is counted, not the file
    whole: bool = False  # what is refused by more than the reader of the file: count all of it


def _saved(save: Callable[[Any], Any]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def _safetensors(_: Path) -> list[bytes]:
    from safetensors.torch import save
    from torch import bfloat16, zeros

    return [save({"h.0.w": zeros(2, 3), "lm_head.weight": zeros(2, dtype=bfloat16)}, {"format": "pt"})]


def _torch(*, zipped: bool) -> list[bytes]:
    import torch

    weight = torch.zeros(4, 3)
    state = {"transformer.wte.weight": weight, "lm_head.weight": weight, "transformer.h.0.ln_1.weight": weight[0]}
    arguments = {"n_layer": 1, "n_embd": 3, "n_head": 1, "block_size": 2, "vocab_size": 4, "bias": False}
    values = (state, {"model": state, "model_args": arguments}, {"w": torch.nn.Parameter(weight)})
    return [
        _saved(lambda file, value=value: torch.save(value, file, _use_new_zipfile_serialization=zipped))
        for value in values
    ]


def _pickles(_: Path) -> list[bytes]:
    archives = [zipfile.ZipFile(io.BytesIO(content)) for content in _torch(zipped=True)]
    return [archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl"))) for archive in archives]


def _npz(_: Path) -> list[bytes]:
    import numpy as np

    arrays = {"wte.weight": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.float16)}
    return [_saved(lambda file, save=save: save(file, **arrays)) for save in (np.savez, np.savez_compressed)]


def _npy(_: Path) -> list[bytes]:
    import numpy as np

    arrays = (np.zeros((2, 3), np.float32), np.asfortranarray(np.zeros((2, 3), "<f2")))
    return [_saved(lambda file, array=array: np.save(file, array)) for array in arrays]


def _gguf(_: Path) -> list[bytes]:
    from gguf_files import F32, LLAMA, Q4_0, gguf

    return [gguf({"token_embd.weight": ((2, 8), F32), "blk.0.x": ((32,), Q4_0)}, {**LLAMA, "tokens": ["a", "b"]})]


def _llama2c(_: Path) -> list[bytes]:
    from llama2c_files import TINY, llama2c

    return [llama2c(**TINY)]


def _distributed(folder: Path) -> list[bytes]:
    from distributed_files import ROWS, write

    write(folder, {"model.w": ROWS}, paths={"model.w": ("model", "w")})
    return [(folder / ".metadata").read_bytes()]


def _index(folder: Path) -> list[bytes]:
    from checkpoints import write_sharded

    return [write_sharded(folder, {"a.w": (2, 3)}, {"b.w": (2,)}).read_bytes()]


def _config(_: Path) -> list[bytes]:
    configs: list[dict[str, Any]] = [
        {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9},
        {
            "model_type": "llama",
            "hidden_size": 8,
            "num_attention_heads": 2,
            "architectures": ["LlamaForSequenceClassification"],
        },
        {"model_type": "deepseek_v3", "num_hidden_layers": 2, "first_k_dense_replace": 1, "q_lora_rank": None},
        {
            "model_type": "gemma3",
            "text_config": {"hidden_size": 8, "num_hidden_layers": 2},
            "tie_word_embeddings": True,
        },
        {"model_type": "jamba", "num_hidden_layers": 4, "num_experts": 2},
        {"emb_dim": 8, "n_layers": 2, "n_heads": 2, "vocab_size": 9, "context_length": 4, "qkv_bias": False},
    ]
    return [json.dumps(config).encode() for config in configs]


def _adapter(folder: Path) -> list[bytes]:
    from checkpoints import write

    matrices = {"base_model.model.q_proj.lora_A.weight": (2, 8), "base_model.model.q_proj.lora_B.weight": (4, 2)}
    write(folder / "adapter_model.safetensors", matrices)
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "org/x", "r": 2, "target_modules": ["q_proj"]}
    return [json.dumps({**adapter, "modules_to_save": ["lm_head"], "task_type": "CAUSAL_LM"}).encode()]


READERS = {
    "safetensors": Reader("a.safetensors", _safetensors),
    "torch": Reader("a.pt", lambda _: _torch(zipped=True)),
    "torch-legacy": Reader("a.pt", lambda _: _torch(zipped=False)),
    "pickle": Reader("a.pt", _pickles, member="a/data.pkl", beside="a/data/0"),
    "gguf": Reader("a.gguf", _gguf),
    "npz": Reader("a.npz", _npz),
    "npy": Reader("a.npz", _npy, member="w.npy"),
    "llama2c": Reader("a.bin", _llama2c),
    "distributed": Reader(".metadata", _distributed, of_folder=True),
    "index": Reader("model.safetensors.index.json", _index),
    "config": Reader("config.json", _config, whole=True),
    "adapter": Reader("adapter_config.json", _adapter, of_folder=True, whole=True),
}
WHOLE_EVERY = 20  # of so many inputs one is counted to the end, where the reader alone is sought


def put(reader: Reader, path: Path, content: bytes) -> None:
    """Write an input to where it is read, in an archive where it is a member of one."""
    if reader.member:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(reader.member, content)
            if reader.beside:
                archive.writestr(reader.beside, bytes(64))
    else:
        path.write_bytes(content)


def main() -> None:
    """Fuzz the reader that is named."""
    if len(sys.argv) < 2 or sys.argv[1] not in READERS:
        raise SystemExit(f"say which reader: {', '.join(READERS)}")
    import atheris

    with atheris.instrument_imports(include=["tallystick"]):  # before anything else imports it
        from hostile import refusal
        from tallystick.formats.shards import read_checkpoint
    reader = READERS[sys.argv[1]]
    with TemporaryDirectory() as home:
        folder, corpus = Path(home, "read"), Path(home, "corpus")
        folder.mkdir()
        corpus.mkdir()
        path, done = folder / reader.file, 0
        source = folder if reader.of_folder else path

        def one(content: bytes) -> None:
            nonlocal done
            done += 1
            put(reader, path, content)
            if reader.whole or done % WHOLE_EVERY == 0:
                refusal(source)
            else:
                refusal(path, read_checkpoint)

        for number, content in enumerate(reader.first(folder)):
            put(reader, path, content)
            assert refusal(source) == ""  # else nothing beyond that refusal would be looked at
            (corpus / str(number)).write_bytes(content)

        atheris.Setup([sys.argv[0], *ROOM, *sys.argv[2:], str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

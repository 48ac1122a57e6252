"""Read the command line of an engine: which engine, which model, and the options that cost memory.

>>> pasted(["vllm", "serve", "org/name", "-tp", "2", "--max-model-len", "32k"])[:3]
('vllm', 'org/name', {'tp': 2, 'max_model_len': 32000})
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tallystick.errors import BadInput, quoted
from tallystick.runtimes.command_logs import version_of_log, words_of_log
from tallystick.runtimes.command_options import (
    COSTLY,
    ENGINES,
    FLAGS,
    IMAGES,
    LONGER,
    OLD_NAMES,
    STARTS,
    TAGGED,
    VARIABLES,
)
from tallystick.runtimes.command_texts import words_of


class Pasted(NamedTuple):
    """What a command line says."""

    engine: str
    source: str
    options: dict[str, Any]  # by the names of `tallystick.serve`
    unmodelled: tuple[str, ...]  # options that change the memory, and are not modelled


_LENGTH = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kmgtKMGT]?)")
_POWERS = " kmgt"
_ENDS = re.compile(r"&&|\|\|?|;|&|[12]?>&?[12]?.*|</?\w*|\)|\}")  # words that end a shell's command
_REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
_WHOLE = ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_layers", "max_total_tokens")
_METHODS = {
    "eagle": "eagle", "eagle3": "eagle3", "nextn": "mtp", "mtp": "mtp", "standalone": "draft_model", "ngram": "ngram",
    "draft_model": "draft_model",
}  # fmt: skip
_LONGER = {"factor", "rope_scaling", "rope_parameters", "max_position_embeddings", "text_config"}
_FILES = re.compile(r"exps\s*=\s*CPU", re.IGNORECASE)


def pasted(words: Sequence[str]) -> Pasted:
    """Return what an engine's command line says.

    Args:
        words: the command line, such as ``["vllm", "serve", "org/name"]``; or a text that has it as
            one word: a shell script, a line of ``docker run``, a compose file. Environment
            variables and launchers before the engine's own words are skipped. Or vLLM's log, whose
            line of "non-default args" says the same.

    Raises:
        BadInput: if no engine's command is found, no model is named, or a value cannot be read.
    """
    text = "\n".join(words)
    logged = words_of_log(text)
    spread = logged or [part for word in words for part in (words_of(word) if re.search(r"\s", word) else [word])]
    whole = list(words) if _starts(list(words)) is not None else spread
    engine, rest, before, serves = _command(whole)
    found = _Reader(engine)
    if engine == "llama.cpp":
        if not serves:
            found.options["max_num_seqs"] = 1
        found.read([word for name, value in _variables(before) for word in (VARIABLES[name], value)])
    found.read(rest)
    source, options = found.result()
    if engine == "vllm" and any(word in (f"{LONGER}=1", f"{LONGER}=true") for word in before):
        options["allow_long_max_model_len"] = True
    version = version_of_log(text) if logged else _tagged(engine, whole)
    options |= {"engine_version": version} if version else {}
    return Pasted(engine, source, options, tuple(dict.fromkeys(found.unmodelled)))


class _Reader:
    """Options and model of one command line."""

    def __init__(self, engine: str) -> None:
        self.engine, self.known = engine, ENGINES[engine]
        self.options: dict[str, Any] = {}
        self.unmodelled: list[str] = []
        self.bare: list[str] = []  # words that are no option's value
        self.values: list[str] = []  # values of options that are not known

    def read(self, rest: Sequence[str]) -> None:
        """Read the words behind a command."""
        place = 0
        while place < len(rest):
            word, equals, value = _halves(rest[place])
            place += 1
            if not word.startswith("-"):
                self.bare.append(word)
                continue
            if word in COSTLY[self.engine] or re.fullmatch(r"-O(\d|\..*)", word):
                self.unmodelled.append(word)
            base, dot, key = word.partition(".")
            if dot and base in self.known and self.known[base][1] in ("json", "keys"):
                place = self._dotted(base, key, value if equals else None, rest, place)
            elif word not in self.known:
                place = self._unknown(word, equals, rest, place)
            else:
                place = self._known(word, equals, value, rest, place)

    def _unknown(self, word: str, equals: str, rest: Sequence[str], place: int) -> int:
        if equals or word in FLAGS[self.engine] or place == len(rest) or rest[place].startswith("-"):
            return place
        self.values.append(rest[place])
        return place + 1

    def _dotted(self, base: str, key: str, value: str | None, rest: Sequence[str], place: int) -> int:
        """Read one key of an option that takes JSON: ``--speculative-config.method mtp``."""
        if value is None and place < len(rest):
            value, place = rest[place], place + 1
        name, _ = self.known[base]
        whole = self.options.setdefault(name, {})
        if isinstance(whole, dict):
            whole[key.replace("-", "_")] = _plain(value or "")
        return place

    def _known(self, word: str, equals: str, value: str, rest: Sequence[str], place: int) -> int:
        """Read a known option, and return the place behind its values."""
        name, how = self.known[word]
        if how == "words":
            first = place
            while place < len(rest) and not rest[place].startswith("-"):
                place += 1
            self.options[name] = [value, *rest[first:place]] if equals else list(rest[first:place])
            return place
        if how is True or how is False or type(how) is int:
            self.options[name] = how if value.lower() != "false" else not how
            return place
        if not equals and isinstance(how, dict) and (place == len(rest) or rest[place].startswith("-")):
            self.options[name] = False  # alone, as older builds took it
            return place
        if not equals:
            if place == len(rest):
                raise BadInput(f"{word} has no value", code="bad-value")
            value, place = rest[place], place + 1
        if value.startswith("$") and name != "source":
            self.unmodelled.append(f"{word} {value}")
            return place
        read = "auto" if name == "gpu_layers" and value.lower() == "auto" else _value(word, value, how)
        if name in _WHOLE and isinstance(read, int) and read <= 0 and (name, read) != ("gpu_layers", 0):
            return place  # 0 and -1 stand for the engine's own choice
        self.options[name] = read
        return place

    def result(self) -> tuple[str, dict[str, Any]]:
        """Return the model, and the options by the names of `tallystick.serve`."""
        options = self.options
        source = str(options.pop("source", "")) or next(iter(self.bare), "")
        source = source or next((word for word in self.values if _REPOSITORY.fullmatch(word)), "")
        if not source:
            raise BadInput(f"the {self.engine} command names no model", code="bad-value")
        if source.startswith("$"):
            name = source.strip("${}")
            raise BadInput(
                f"the command's model is {quoted(source)}: set it before, as {name}=org/name", code="bad-value"
            )
        if self.engine == "llama.cpp":
            source = self._of_llama_cpp(source)
        else:
            self._speculative()
            self._adapters()
            self._images()
        if self.engine == "sglang" and not options.pop("dp_attention", False):
            options.pop("dp", None)  # replicas of the whole engine
        return source, options

    def _of_llama_cpp(self, source: str) -> str:
        """Return the repository of ``-hf org/name:Q4_K_M``; experts may be kept on the host."""
        name, colon, form = source.rpartition(":")
        if colon and _REPOSITORY.fullmatch(name):
            self.options["quantization"], source = self._file_type(form.lower()), name
        self._tensors()
        self._devices()
        keys, values = (self.options.pop(name, None) for name in ("kv_cache_dtype", "value_cache_dtype"))
        if keys is not None or values is not None:
            self.options["kv_cache_dtype"] = keys or "f16"
            if (values or "f16") != (keys or "f16"):
                self.options["value_cache_dtype"] = values or "f16"
        return source

    def _tensors(self) -> None:
        """Read where tensors are held, and whether towers are loaded."""
        options = self.options
        override = options.pop("override", None)
        if override is not None and _FILES.search(override) and not re.search(r"\d", override):
            options["cpu_moe_layers"] = 10_000
        elif override is not None:
            options["override_tensor"] = override
        if options.pop("projector", None) is not None and not options.pop("no_projector", False):
            options["mmproj"] = True
        options.pop("no_projector", None)

    def _devices(self) -> None:
        """Read the devices, and how they divide the model."""
        options = self.options
        mode, devices = options.pop("split_mode", "layer"), options.pop("devices", "")
        named = len([name for name in devices.split(",") if name])
        if mode == "none":
            options.pop("tensor_split", None)
        elif named > 1 and "tensor_split" not in options:
            options["pp"] = named
        if mode not in ("layer", "none"):
            self.unmodelled.append(f"-sm {mode}")

    def _file_type(self, form: str) -> str:
        """Return a file type of llama-quantize; Unsloth's own mixes are near one of them."""
        named = form.removeprefix("ud-")
        if not named.endswith("_xl"):
            return named
        self.unmodelled.append(f"{form}, counted as {named.removesuffix('_xl')}_m")
        return f"{named.removesuffix('_xl')}_m"

    def _speculative(self) -> None:
        options = self.options
        config = options.pop("speculative_config", None)
        if config is not None:
            method, draft = str(config.get("method") or ""), config.get("model")
            tokens = config.get("num_speculative_tokens")
            options.update({"speculative": method or ("draft_model" if draft else "ngram")})
            options.update({"draft": str(draft)} if draft else {})
            options.update({"draft_tokens": tokens} if isinstance(tokens, int) else {})
        elif "draft" in options and "speculative" not in options:
            options["speculative"] = "ngram" if "ngram" in str(options["draft"]) else "draft_model"
        word = str(options.get("speculative", "")).lower()
        if not word:
            return
        known = _METHODS.get(word, "mtp" if word.endswith("_mtp") else None)
        if known is None or known == "ngram":
            for name in ("speculative", "draft", "draft_tokens"):
                options.pop(name, None)
            if known is None:
                self.unmodelled.append(f"speculative decoding by {word}")
            return
        if known != "draft_model" and "draft" in options:  # a head, whose sizes follow from the model's
            draft = str(options.pop("draft")).lower()
            known = "eagle3" if "eagle3" in draft else "mtp" if re.search(r"nextn|mtp", draft) else known
        elif known == "eagle" and self.engine == "sglang":  # without a draft, the model's own MTP layers
            known = "mtp"
        elif known == "draft_model" and "eagle" in str(options.get("draft", "")).lower():
            known = "eagle3" if "eagle3" in str(options.pop("draft")).lower() else "eagle"
        options["speculative"] = known

    def _images(self) -> None:
        """Read how many images and videos a prompt may have: none is the language model alone."""
        limits = self.options.pop("images", {})
        counts = [one.get("count") if isinstance(one, dict) else one for one in limits.values()]
        if {"image", "video"} <= set(limits) and not any(counts):
            self.options["language_model_only"] = True
        rope = self.options.pop("rope", {})
        changed = {**rope, **self.options.pop("overridden", {})}
        if set(changed) & _LONGER:
            self.options["allow_long_max_model_len"] = True

    def _adapters(self) -> None:
        options = self.options
        paths = options.pop("lora_paths", None)
        if options.pop("lora", False) or paths:
            options.setdefault("max_loras", 8 if self.engine == "sglang" else 1)
        else:
            options.pop("max_loras", None)
            options.pop("max_lora_rank", None)


def _halves(word: str) -> tuple[str, str, str]:
    """Split ``--option=value``; underscores of a long option are hyphens."""
    if not word.startswith("-"):
        return word, "", ""
    name, equals, value = word.partition("=")
    return (f"--{name[2:].replace('_', '-')}" if name.startswith("--") else name), equals, value


def _starts(words: list[str]) -> tuple[str, int, int] | None:
    """Return the engine whose command begins first, its place, and the place behind it."""
    found = []
    for engine, starts in STARTS.items():
        for start in starts:
            for place in range(len(words) - len(start) + 1):
                named = [_program(word) for word in words[place : place + len(start)]]
                if named == list(start):
                    found.append((place, engine, place + len(start)))
    if found:
        place, engine, behind = min(found)
        return engine, place, behind
    for engine, image in IMAGES.items():
        for place, word in enumerate(words):
            if re.fullmatch(image, word):
                return engine, place, place + 1
    if words and _program(words[0]) in OLD_NAMES and any(word in words for word in ("-m", "--model")):
        return "llama.cpp", 0, 1
    return None


def _program(word: str) -> str:
    """Return the name of a program, whose path may be of Windows."""
    return re.split(r"[/\\]", word)[-1].removesuffix(".exe")


def _command(words: list[str]) -> tuple[str, list[str], list[str], bool]:
    """Return the engine, the words behind its command, those before, and whether it is a server."""
    start = _starts(words)
    if start is None:
        known = ", ".join(" ".join(start) for starts in STARTS.values() for start in starts)
        raise BadInput(f"{quoted(' '.join(words[:3]))} does not start an engine; known: {known}", code="unknown-name")
    engine, place, behind = start
    rest = words[behind:]
    end = next((number for number, word in enumerate(rest) if _ENDS.fullmatch(word)), len(rest))
    serves = any(re.search(r"server|serve$|:full", word) for word in words[place:behind])
    return engine, rest[:end], words[:place], serves


def _tagged(engine: str, words: Sequence[str]) -> str | None:
    """Return the version that a container's image names."""
    tags = (re.fullmatch(TAGGED[engine], word) for word in words) if engine in TAGGED else ()
    return next((found[1] for found in tags if found is not None), None)


def _variables(words: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [word.partition("=")[::2] for word in words if "=" in word]
    return [(name, value) for name, value in pairs if name in VARIABLES]


def _keys(text: str) -> dict[str, Any]:
    """Read JSON, or ``image=2,video=0``; what is neither changes nothing."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        pairs = (part.partition("=") for part in text.split(","))
        return {name.strip(): _plain(value) for name, equals, value in pairs if equals}
    return read if isinstance(read, dict) else {}


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _value(option: str, text: str, how: Any) -> Any:
    try:
        if isinstance(how, dict):
            return how[text.lower()]
        if how == "keys":
            return _keys(text)
        if how == "json":
            read = json.loads(text)
            if not isinstance(read, dict):
                raise ValueError(text)
            return read
        if how is int and text.lower() in ("all", "auto"):
            return -1
        return _length(text) if how == "length" else how(text)
    except (KeyError, ValueError, RecursionError):
        raise BadInput(f"{option} is {quoted(text)}, expected {_expected(how)}", code="bad-value") from None


def _expected(how: Any) -> str:
    if isinstance(how, dict):
        return ", ".join(list(how)[:3])
    words = {int: "a whole number", float: "a number", "length": "a number such as 32768 or 32k", "json": "JSON"}
    return words[how]


def _length(text: str) -> int:
    """Parse a number as vLLM does: 32k is 32,000, and 32K is 32,768 (`human_readable_int`)."""
    if text in ("-1", "auto"):
        return -1
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise ValueError(text)
    step = 1024 if match[2].isupper() else 1000
    return int(float(match[1]) * step ** _POWERS.index(match[2].lower() or " "))

"""Plan how an engine will serve a model: its memory at start, the lines it logs, what limits it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from tallystick.answers.devices import Device
from tallystick.answers.memory.gguf import as_gguf
from tallystick.answers.memory.model_states import is_packed
from tallystick.answers.serve.changes import changes
from tallystick.answers.serve.of_llama_cpp import overrides_of, shares_of, text_and_towers
from tallystick.answers.serve.options import AUTO, Options
from tallystick.answers.serve.placement import placed, with_language
from tallystick.answers.serve.plan import Explained, Serve
from tallystick.answers.serve.ranks import refusal
from tallystick.answers.serve.speed import OUTPUT, PROMPT, Placed, Speed, speed_of
from tallystick.answers.serve.weight_format import QUANTIZATIONS, weight_format
from tallystick.answers.workload import positions
from tallystick.core.dtypes import BITS
from tallystick.core.ledger import Ledger
from tallystick.errors import BadInput, nearest, quoted
from tallystick.runtimes.engines import Card, Engine, LogLine, Rank, Served, Settings
from tallystick.runtimes.llama_cpp import LLAMA_CPP
from tallystick.runtimes.sglang import SGLANG
from tallystick.runtimes.vllm import VLLM

ENGINES: dict[str, Engine] = {one.name: one for one in (VLLM, SGLANG, LLAMA_CPP)}
GIB = 2**30
UNSTATED = 2048  # tokens of the longest request if the config states none: vllm/config/model.py

CACHES = tuple(dict.fromkeys(name for engine in ENGINES.values() for name in engine.caches))
SHORT = {"bf16": "bfloat16", "fp16": "float16", "half": "float16"}


def serve(
    ledger: Ledger,
    *,
    engine: str,
    device: Device,
    advice: bool = True,
    draft: Ledger | None = None,
    **options: Any,
) -> Serve:
    """Return what an engine will hold and log when it serves a model.

    Args:
        ledger: the model.
        engine: one of `ENGINES`.
        device: one device; every rank has one.
        advice: whether to try the options that would help.
        draft: the draft model, or the head, of speculative decoding.
        **options: fields of `Options`.

    Returns:
        The plan of the first device. The pool's tokens are those of the rank with the fewest.

    Raises:
        BadInput: for an unknown engine or format, an impossible number, and a model whose source
            does not describe its attention.
    """
    if engine not in ENGINES:
        raise BadInput(
            f"engine is {quoted(engine)}, expected one of {', '.join(ENGINES)}{nearest(str(engine), ENGINES)}",
            code="unknown-name",
        )
    asked = Options(**options)
    plan = _Plan(ledger, ENGINES[engine], device, asked, draft)
    answer = plan.answer(asked)
    if not advice:
        return answer
    return replace(answer, changes=tuple(changes(asked, answer, partial(plan.answer, speed=False))))


class _Plan:
    """A model on one engine and device."""

    def __init__(
        self, ledger: Ledger, engine: Engine, device: Device, asked: Options, draft: Ledger | None = None
    ) -> None:
        ledger = with_language(ledger)
        if not ledger.model.attending and not ledger.model.recurring:
            why = (
                f"cannot be planned: {ledger.model.irregular}"
                if ledger.model.irregular
                else "does not describe its attention: give its config.json, or a folder that has it"
            )
            raise BadInput(f"{ledger.source} {why}", code="unsupported")
        self.ledger, self.engine, self.device, self.draft = ledger, engine, device, draft
        self.card = Card(device.name, device.memory, device.context)
        engine.release_of(asked.engine_version)

    def answer(self, asked: Options, *, speed: bool = True) -> Serve:
        """Return the engine's plan for some options; without its speed, in half the time."""
        ledger, notes = self.ledger, [*self.ledger.notes, *self.notes(asked)]
        form, computed = weight_format(self.ledger, self.engine, asked)
        projector = 0
        if self.engine is LLAMA_CPP:
            ledger, form = (ledger if form is None else as_gguf(ledger, form)), None
            ledger, projector = text_and_towers(ledger)
        error = refusal(ledger, asked.tp, self.engine.padded_vocabulary) or self._too_long(asked)
        if not error and self.engine is not LLAMA_CPP and asked.pp > 1 and asked.pp > self._layers():
            error = f"ValueError: {self._layers()} layers cannot be divided into {asked.pp} pipeline stages"
        if error:
            return self._refused(asked, error, notes)
        ranks = placed(ledger, self.engine, asked, form, computed, draft=self.draft, learned=self._learned())
        settings = self._settings(asked, computed)._replace(projector=projector if asked.mmproj else 0)
        served = self.engine.serve(ranks, settings, self.card)
        requests = self._requests(ranks, settings, asked) if not served.error else None
        answer = self._serve(asked, served, settings, requests, notes, ranks)
        if served.error or not speed:
            return answer
        where = Placed(self.ledger, ledger, form, settings.kv_width, self.device, asked.tp, asked.pp)
        together = int(answer.options.get("max_num_seqs") or 1)
        return replace(answer, speed=self._speed(where, ranks, settings, asked, requests, together))

    def _speed(
        self,
        where: Placed,
        ranks: list[Rank],
        settings: Settings,
        asked: Options,
        requests: int | None,
        scheduled: int,
    ) -> Speed | None:
        """Return bounds at one request, and at as many as run at the same time."""
        most, given = self._length(asked), requests is not None
        prompt = asked.input_tokens if given else min(PROMPT, most)
        output = asked.output_tokens if given else min(OUTPUT, most - (prompt or 0))
        tokens = max((prompt or 0) + (output or 0), 1)
        together = requests or int(self.engine.per_request(ranks, settings, self.card, tokens))
        return speed_of(where, (1, max(min(together, scheduled), 1)), prompt or 1, output or 0)

    def _serve(
        self,
        asked: Options,
        served: Served,
        settings: Settings,
        requests: int | None,
        notes: list[str],
        ranks: list[Rank],
    ) -> Serve:
        options = {name: value for name, value in asdict(asked).items() if value is not None}
        options.pop("engine_version", None)
        draft = ranks[-1].draft if ranks else None
        return Serve(
            source=self.ledger.source,
            engine=self.engine.name,
            engine_version=self.engine.release_of(asked.engine_version),
            device=self.device,
            options={**options, "max_model_len": settings.max_model_len, **served.used},
            weights_bytes=served.weights,
            activations_bytes=served.activations,
            other_bytes=served.other,
            kv_cache_bytes=served.kv,
            kv_cache_bytes_per_token=served.kv_per_token,
            kv_cache_tokens=served.kv_tokens,
            max_concurrency=served.concurrency,
            starts=not served.error,
            limits=served.limits if not served.error else (served.error, *_lacks(served)),
            lines=tuple(line.text for line in served.lines),
            explained=tuple(Explained(*line) for line in served.lines),
            longest=served.longest,
            requests=requests,
            changes=(),
            notes=(*notes, *served.notes),
            draft_bytes=draft.weights if draft is not None else 0,
            adapters_bytes=ranks[0].adapters if ranks else 0,
            experts_bytes=ranks[0].routed if ranks else 0,
            host_bytes=served.host,
        )

    def _refused(self, asked: Options, error: str, notes: list[str]) -> Serve:
        line = LogLine(error, "", "")
        nothing = Served(0, 0, 0, 0, 0, 0, 0.0, 0, {}, (line,), error)
        return self._serve(asked, nothing, self._settings(asked, "bfloat16"), None, notes, [])

    def notes(self, asked: Options) -> Iterator[str]:
        """Yield what is assumed of the model."""
        model = self.ledger.model
        images = asked.language_model_only or asked.skip_mm_profiling or model.architecture in self.engine.images
        if model.towers and not images and self.engine is not LLAMA_CPP:
            yield "the profile run's images, videos and audio are not modelled: activations of towers are left out"
        if asked.max_model_len is None:
            whose = "the engine's" if self._positions() is None else "the config's"
            yield f"assumed {whose} longest sequence, {self._length(asked):,} tokens; change it with --max-model-len"
        word = asked.quantization
        if word is not None and QUANTIZATIONS.get(word, "") is None and not is_packed(self.ledger):
            yield f"{word} quantises as the checkpoint says: {self.ledger.source} is counted as it is stored"
        if asked.tp > 1 and any(one.heads.latent is not None for one in model.attending):
            yield "each tensor-parallel rank holds the whole latent KV cache"

    def _settings(self, asked: Options, computed: str) -> Settings:
        caches, word = self.engine.caches, asked.kv_cache_dtype
        word = word if word in caches else SHORT.get(word, word)
        if word not in caches:
            raise BadInput(
                f"kv_cache_dtype is {quoted(word)}, expected one of {', '.join(caches)}", code="unknown-name"
            )
        values = asked.value_cache_dtype
        if values is not None and values not in caches:
            raise BadInput(
                f"value_cache_dtype is {quoted(values)}, expected one of {', '.join(caches)}", code="unknown-name"
            )
        return Settings(
            version=asked.engine_version,
            tp=asked.tp,
            pp=asked.pp,
            max_model_len=self._length(asked),
            max_num_seqs=asked.max_num_seqs,
            max_num_batched_tokens=asked.max_num_batched_tokens,
            memory_share=asked.gpu_memory_utilization,
            kv_width=float(caches[word] or BITS[computed] // 8),
            kv_dtype=word,
            value_width=None if values is None else float(caches[values] or BITS[computed] // 8),
            kv_on_host=not asked.kv_offload,
            unified=asked.kv_unified,
            shares=shares_of(asked),
            overrides=overrides_of(asked.override_tensor),
            block_size=asked.block_size,
            eager=asked.enforce_eager,
            hybrid=asked.hybrid_kv_cache,
            kv_bytes=asked.kv_cache_memory_bytes,
            offload=int(asked.cpu_offload_gb * GIB),
            layers_on_device=asked.gpu_layers if isinstance(asked.gpu_layers, int) else None,
            layers_fitted=asked.gpu_layers == AUTO,
            length_fitted=asked.gpu_layers == AUTO and asked.max_model_len is None,
            experts_on_host=asked.cpu_moe_layers or 0,
            free=asked.free_memory,
            tokens=asked.max_total_tokens,
            blocks=asked.num_gpu_blocks_override,
            states=asked.max_mamba_cache_size,
            dp=asked.dp,
            speculative=asked.speculative or "",
            draft_tokens=asked.draft_tokens or 0 if asked.speculative else 0,
            prefix_caching=asked.enable_prefix_caching,
            state_dtype=asked.mamba_ssm_cache_dtype,
            towers=not (asked.language_model_only or asked.skip_mm_profiling),
        )

    def _length(self, asked: Options) -> int:
        return asked.max_model_len or self._positions() or UNSTATED

    def _requests(self, ranks: list[Rank], settings: Settings, asked: Options) -> int | None:
        """Return how many requests of the given lengths run at the same time."""
        if asked.input_tokens is None and asked.output_tokens is None:
            return None
        tokens = (asked.input_tokens or 0) + (asked.output_tokens or 0)
        if tokens > (settings.max_model_len or tokens):
            raise BadInput(
                f"a request of {tokens:,} tokens is longer than max_model_len, {settings.max_model_len:,}",
                code="bad-value",
            )
        return int(self.engine.per_request(ranks, settings, self.card, tokens))

    def _too_long(self, asked: Options) -> str:
        """Return the error of a request that is longer than the model's positions."""
        most = self._positions()
        strict = self.engine.strict and not asked.allow_long_max_model_len
        if not strict or asked.max_model_len is None or most is None or asked.max_model_len <= most:
            return ""
        return (
            f"ValueError: User-specified max_model_len ({asked.max_model_len}) is greater than the derived"
            f" max_model_len (max_position_embeddings={most})."
        )

    def _positions(self) -> int | None:
        """Return the most tokens of a request, with rotary scaling (`_get_and_verify_max_len`)."""
        model = self.ledger.model
        learned, stretch = positions(self.ledger), 1.0 if model.architecture == "gemma3" else model.stretch
        return learned or (None if model.positions is None else int(model.positions * stretch))

    def _learned(self) -> bool:
        return positions(self.ledger) is not None

    def _layers(self) -> int:
        model = self.ledger.model
        return sum(int(one.layers) for one in model.attending) + sum(int(one.layers) for one in model.recurring)


def _lacks(served: Served) -> tuple[str, ...]:
    return (f"the longest request that fits: {served.longest:,} tokens",) if served.longest else ()

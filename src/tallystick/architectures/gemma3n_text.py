"""Gemma 3n's text model: AltUp streams, per-layer embeddings, shared keys and values.

Source: Gemma Team 2025, "Gemma 3n".
"""

from itertools import groupby

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, per_layer
from tallystick.errors import BadInput

FULL = 5  # every fifth layer has full attention, the others a window


@architecture(
    "gemma3n_text",
    "Gemma3nForCausalLM",
    running={"sliding_window": nonnegative(512)},
    vocab_size=262400,
    hidden_size=2048,
    intermediate_size=per_layer(16384),
    num_hidden_layers=35,
    num_attention_heads=8,
    num_key_value_heads=2,
    head_dim=256,
    num_kv_shared_layers=nonnegative(15),
    layer_types=None,
    altup_num_inputs=4,
    laurel_rank=64,
    vocab_size_per_layer_input=262144,
    hidden_size_per_layer_input=256,
    attention_bias=False,
    tie_word_embeddings=True,
)
def gemma3n_text(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers requires it even if head_dim is stated
    d, each = c.hidden_size, c.hidden_size_per_layer_input
    layers, more = c.num_hidden_layers, c.altup_num_inputs - 1
    return kit.decoder(
        c,
        _layers(c),
        _norm(d),
        embed_tokens_per_layer=nn.Embedding(c.vocab_size_per_layer_input, layers * each),
        per_layer_model_projection=nn.Linear(d, layers * each, bias=False),
        per_layer_projection_norm=_norm(each),
        altup_projections=nn.Repeat(more, nn.Linear(d, d, bias=False)),
        altup_unembed_projections=nn.Repeat(more, nn.Linear(d, d, bias=False)),
    )


def _norm(width: int) -> nn.Module:
    return nn.RMSNorm(width, kind="rms32")


def _layers(c: Config) -> nn.ModuleList:
    """Stack whose last `num_kv_shared_layers` reuse keys and values of an earlier layer.

    They reuse the last earlier layer with the same window.
    """
    count, shared, widths = c.num_hidden_layers, c.num_kv_shared_layers, c.intermediate_size
    own = count - shared
    if c.layer_types is not None and (not isinstance(c.layer_types, list) or len(c.layer_types) != count):
        raise c.refuse(f"layer_types must list the kind of each of the {int(count)} layers")
    if own > 0 and not isinstance(widths, tuple):
        if shared and not _lent(c, own):
            raise _without_lender(c)
        return nn.ModuleList((own, _block(c, widths, borrowed=False)), (shared, _block(c, widths, borrowed=True)))
    each = widths if isinstance(widths, tuple) else (widths,) * kit.listable(c)
    if len(each) != count:
        raise c.refuse(f"intermediate_size lists {len(each)} widths for {int(count)} layers")
    listed = c.layer_types if isinstance(c.layer_types, list) else [(n + 1) % FULL == 0 for n in range(kit.listable(c))]
    borrowed = borrowing(c, list(map(str, listed)))
    runs = [list(run) for _, run in groupby(zip(borrowed, each, strict=True), key=lambda kind: (kind[0], int(kind[1])))]
    return nn.ModuleList(*((len(run), _block(c, run[0][1], borrowed=run[0][0])) for run in runs))


def _lent(c: Config, own: int) -> bool:
    """Whether each kind of layer is among the first `own` layers."""
    if isinstance(c.layer_types, list):
        return set(map(str, c.layer_types[: int(own)])) == set(map(str, c.layer_types))
    return own >= FULL or c.num_hidden_layers < FULL


def borrowing(c: Config, kinds: list[str]) -> list[bool]:
    """Return which layers reuse another layer's keys and values, given the kind of each layer.

    As in transformers, if more layers share than there are, all but the lending layers do.
    """
    own = len(kinds) - int(c.num_kv_shared_layers)
    before = kinds[:own]
    if own < len(kinds) and set(before) != set(kinds):
        raise _without_lender(c)
    lending = {len(before) - 1 - before[::-1].index(kind) for kind in set(before)}
    return [layer >= own and layer not in lending for layer in range(len(kinds))]


def _without_lender(c: Config) -> BadInput:
    return c.refuse(
        f"num_kv_shared_layers = {int(c.num_kv_shared_layers)} of {int(c.num_hidden_layers)} layers leaves"
        " no layer of a kind to share keys and values with"
    )


def _block(c: Config, width: int, *, borrowed: bool) -> nn.Module:
    d, each = c.hidden_size, c.hidden_size_per_layer_input
    return nn.Module(
        self_attn=_attention(c, borrowed=borrowed),
        mlp=kit.gated_mlp(d, width),  # activations of AltUp are not modelled
        input_layernorm=_norm(d),
        post_attention_layernorm=_norm(d),
        pre_feedforward_layernorm=_norm(d),
        post_feedforward_layernorm=_norm(d),
        altup=_altup(d, c.altup_num_inputs),
        laurel=nn.Module(
            linear_left=nn.Linear(d, c.laurel_rank, bias=False),
            linear_right=nn.Linear(c.laurel_rank, d, bias=False),
            post_laurel_norm=_norm(d),
        ),
        per_layer_input_gate=nn.Linear(d, each, bias=False),
        per_layer_projection=nn.Linear(each, d, bias=False),
        post_per_layer_input_norm=_norm(d),
    )


def _attention(c: Config, *, borrowed: bool) -> nn.Attention:
    d, size, bias = c.hidden_size, c.head_dim, c.attention_bias
    windows = kit.windows_of(c, ((c.sliding_window, FULL - 1), (None, 1)))
    runs = kit.heads(c, windows=windows, shares_kv=borrowed)
    if not borrowed:
        return kit.attention(c, runs, bias=bias, q_norm=_norm(size), k_norm=_norm(size))
    return nn.Attention(
        runs,
        q_proj=nn.Linear(d, c.num_attention_heads * size, bias=bias),
        q_norm=_norm(size),
        o_proj=nn.Linear(c.num_attention_heads * size, d, bias=bias),
    )


def _altup(d: int, streams: int) -> nn.TokenMixer:
    """AltUp: a layer runs on one stream and corrects all of them.

    All streams predict each stream. The router runs before the layer and again after it.
    Source: Baykal et al. 2023, "Alternating Updates".
    """
    return nn.TokenMixer(
        d * streams * streams + d * streams,
        correct_output_scale=nn.Parameter((d,)),
        correction_coefs=nn.Linear(streams, streams, bias=False),
        prediction_coefs=nn.Linear(streams, streams * streams, bias=False),
        modality_router=nn.Linear(d, streams, bias=False),
        router_norm=_norm(d),
    )

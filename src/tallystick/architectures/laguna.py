"""Laguna (Poolside 2026): gated attention with heads per layer, and a shared expert."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.config import LARGEST
from tallystick.core.registry import Config, architecture, nonnegative
from tallystick.errors import shown


@architecture(
    "laguna",
    "LagunaForCausalLM",
    running={"sliding_window": nonnegative(512), "layer_types": None},
    vocab_size=100352,
    hidden_size=2048,
    intermediate_size=8192,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
    num_hidden_layers=40,
    mlp_layer_types=None,
    num_attention_heads=48,
    num_attention_heads_per_layer=None,
    num_key_value_heads=8,
    head_dim=128,
    gating="per-head",
    num_experts=256,
    num_experts_per_tok=8,
    attention_bias=False,
    tie_word_embeddings=False,
)
def laguna(c: Config) -> nn.Model:
    dense, sparse = kit.gated_mlp(c.hidden_size, c.intermediate_size), _mixture(c)
    queries = _heads_of_layers(c)
    if queries is None:
        kit.key_value_heads(c)  # must divide the query heads
        attends = _attention(c, c.num_attention_heads)
        return kit.decoder(
            c, kit.dense_and_sparse(c, 1, *(kit.pre_norm(attends, mlp, _norm(c)) for mlp in (dense, sparse)))
        )
    mlps = {"dense": dense, "sparse": sparse}
    kinds = kit.listed(c, "mlp_layer_types", kit.FEED_FORWARD, lambda layer: kit.FEED_FORWARD[layer > 0])
    layers = zip(queries, kinds, strict=True)
    return kit.decoder(
        c, kit.in_turns(layers, lambda each, kind: kit.pre_norm(_attention(c, each), mlps[kind], _norm(c)))
    )


def _norm(c: Config) -> nn.Module:
    return nn.RMSNorm(c.hidden_size)


def _heads_of_layers(c: Config) -> list[int] | None:
    """Query heads of each layer; None if all have `num_attention_heads`."""
    count, keys, given = int(c.num_hidden_layers), int(c.num_key_value_heads), c.num_attention_heads_per_layer
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != count or not all(_divides(keys, one) for one in given):
        raise c.refuse(
            f"num_attention_heads_per_layer must list, for each of the {count} layers, a multiple of"
            f" num_key_value_heads = {keys}",
            code="indivisible",
        )
    return None if all(one == c.num_attention_heads for one in given) else given


def _divides(keys: int, queries: object) -> bool:
    return type(queries) is int and 0 < queries <= LARGEST and queries % keys == 0


def _attention(c: Config, queries: int) -> nn.Attention:
    """Attention with an output gate per head or per element; its activations are not modelled."""
    if not isinstance(c.gating, bool | str):
        raise c.refuse(f"gating is {shown(c.gating)}, expected true, false or a word")
    d, size, windows = c.hidden_size, c.head_dim, kit.windows_of(c, nn.EVERYTHING)
    runs = nn.Heads(queries, c.num_key_value_heads, size, windows=windows)
    gates = queries if c.gating in (True, "per-head") else queries * size
    return kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs), g_proj=nn.Linear(d, gates, bias=False))


def _mixture(c: Config) -> nn.Module:
    """Sigmoid-routed experts; the balancing bias is a parameter that receives no gradient."""
    of = c.num_experts
    balance = nn.Parameter((of,), "router", trainable=False)
    shared = kit.gated_mlp(c.hidden_size, c.shared_expert_intermediate_size)
    extras = kit.as_published(c, {"shared_experts": "shared_expert"}, shared_experts=shared)
    if c.published:
        extras["experts.e_score_correction_bias"] = balance
    return kit.mixture(
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "num_experts"),
        of,
        scores={} if c.published else {"e_score_correction_bias": balance},
        **extras,
    )

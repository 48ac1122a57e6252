"""North Micro Vision's text model (Cohere 2026): Command A's blocks, RoPE per kind of layer."""

from collections.abc import Iterable

from tallystick.architectures import kit
from tallystick.architectures.cohere import norm
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional
from tallystick.errors import shown

LAYER_KINDS = ("full_attention", "sliding_attention")


@architecture(
    "cohere_compass_text",
    "CohereCompassForCausalLM",
    running={"sliding_window": nonnegative(4096, nullable=True), "layer_types": None},
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    num_hidden_layers=40,
    num_attention_heads=64,
    num_key_value_heads=optional(),
    head_dim=optional(),
    rope_parameters=None,  # required
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere_compass_text(c: Config) -> nn.Model:
    d, size = c.hidden_size, c.head_dim or kit.rounded(c.hidden_size, c.num_attention_heads)
    kinds = kit.listed(c, "layer_types", LAYER_KINDS, lambda _: "full_attention")
    _require_turning(c, kinds)
    runs = kit.heads(
        c, size, windows=kit.in_runs((kind == "sliding_attention" for kind in kinds), c.sliding_window, None)
    )
    attends = kit.attention(c, runs, bias=c.attention_bias)
    # No `FeedForward`: the activations of three-dimensional RoPE are not modelled.
    block = nn.ParallelBlock(self_attn=attends, mlp=kit.gated_mlp(d, c.intermediate_size), input_layernorm=norm(d))
    return kit.decoder(c, block, norm(d))


def _require_turning(c: Config, kinds: Iterable[str]) -> None:
    """Refuse a config without `rope_parameters` for each of its kinds of layers (null: NoPE)."""
    stated = c.rope_parameters
    if stated is None:
        raise c.refuse("rope_parameters is missing: it must hold the rotary settings of each layer kind, or null")
    for kind in sorted(set(kinds)):
        if not isinstance(stated, dict) or kind not in stated:
            raise c.refuse(f"rope_parameters is {shown(stated)}, expected a dictionary that has {kind}")

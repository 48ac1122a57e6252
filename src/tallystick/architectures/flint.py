"""Flint (Recursive SI 2026): Qwen3's attention with windows and sinks, a shared expert."""

from tallystick.architectures import kit
from tallystick.architectures.qwen3_moe import dense_layers
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "flint",
    "FlintForCausalLM",
    running={"sliding_window": nonnegative(513), "layer_types": None},
    vocab_size=150144,
    hidden_size=2048,
    intermediate_size=6144,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=1024,
    num_hidden_layers=49,
    num_attention_heads=32,
    num_key_value_heads=4,
    head_dim=128,
    num_experts=nonnegative(256),
    num_experts_per_tok=6,
    decoder_sparse_step=1,
    mlp_only_layers=None,
    attention_bias=False,
    tie_word_embeddings=False,
)
def flint(c: Config) -> nn.Model:
    d, runs = c.hidden_size, kit.heads(c, windows=_windows(c), sinks=True)
    # A sink is an additional logit per head that lets it attend to nothing.
    sinks = kit.as_published(c, {"sinks": "softmax_offset"}, sinks=nn.Parameter((c.num_attention_heads,)))
    attends = kit.attention(c, runs, bias=c.attention_bias, **kit.head_norms(runs), **sinks)
    dense = kit.pre_norm(attends, kit.gated_mlp(d, c.intermediate_size), nn.RMSNorm(d))
    if not c.num_experts:
        return kit.decoder(c, dense)
    moe = kit.mixture(  # no `scoring`: activations are not modelled
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "num_experts"),
        c.num_experts,
        shared_expert=kit.gated_mlp(d, c.shared_expert_intermediate_size),
    )
    return kit.decoder(
        c, kit.two_kinds(c, dense_layers(c, otherwise=(0, 1)), dense, kit.pre_norm(attends, moe, nn.RMSNorm(d)))
    )


def _windows(c: Config) -> nn.Windows:
    """Full attention in the first two layers, every fourth and the last; windows elsewhere."""
    last = kit.listable(c) - 1 if c.layer_types is None else 0
    near = (not (layer < 2 or layer % 4 == 1 or layer == last) for layer in range(last + 1))
    return kit.windows_of(c, kit.in_runs(near, c.sliding_window, None))

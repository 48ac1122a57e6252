"""Hunyuan-A13B and Hunyuan-Large: routed experts and a shared MLP.

Source: Sun et al. 2024, "Hunyuan-Large: An Open-Source MoE Model".
"""

from itertools import groupby

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, architecture, optional, per_layer


@architecture(
    "hunyuan_v1_moe",
    "HunYuanMoEV1ForCausalLM",
    aliases={"num_experts_per_tok": "moe_topk", "num_local_experts": "num_experts"},
    vocab_size=290943,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=optional(),
    head_dim=REQUIRED,
    num_experts=1,
    moe_topk=per_layer(1),
    attention_bias=False,
    tie_word_embeddings=False,
)
def hunyuan_v1_moe(c: Config) -> nn.Model:
    d, runs = c.hidden_size, kit.heads(c)
    norms = kit.head_norms(runs, ("query_layernorm", "key_layernorm"), turned=True)
    attends = kit.attention(c, runs, bias=c.attention_bias, **norms)
    each = (
        _listed(c)
        if isinstance(c.moe_topk, tuple)
        else [(kit.experts_used(c, "num_experts", "moe_topk"), c.num_hidden_layers)]
    )
    return kit.decoder(
        c, nn.ModuleList(*((layers, kit.pre_norm(attends, _experts(c, used), nn.RMSNorm(d))) for used, layers in each))
    )


def _listed(c: Config) -> list[tuple[int, int]]:
    """Runs of (experts per token, layers), if `moe_topk` lists one number per layer."""
    listed = [int(used) for used in c.moe_topk[: int(c.num_hidden_layers)]]
    if len(listed) < c.num_hidden_layers or max(listed) > c.num_experts:
        raise c.refuse(
            f"moe_topk must list, for each of the {int(c.num_hidden_layers)} layers, how many experts a token goes"
            f" through, and there are {int(c.num_experts)}"
        )
    return [(used, len(list(run))) for used, run in groupby(listed)]


def _experts(c: Config, used: int) -> nn.Module:
    shared = kit.gated_mlp(c.hidden_size, c.intermediate_size)  # activations are not modelled
    moe = kit.mixture(c, c.intermediate_size, used, c.num_experts, under="wg", shared_mlp=shared)
    return nn.Module(gate=nn.Module(wg=moe.children["wg"]), **moe.with_children(wg=None).children)

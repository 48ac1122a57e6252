"""LongCat-Flash: two attention blocks per layer, shortcut-connected MoE, zero experts.

Zero experts return their input.
Source: Meituan LongCat Team 2025, "LongCat-Flash Technical Report".
"""

from tallystick.architectures import kit
from tallystick.architectures.deepseek_v3 import latent_attention
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "longcat_flash",
    "LongcatFlashForCausalLM",
    aliases={
        "num_local_experts": "n_routed_experts",
        "num_experts_per_tok": "moe_topk",
        "intermediate_size": "ffn_hidden_size",
        "moe_intermediate_size": "expert_ffn_hidden_size",
    },
    vocab_size=131072,
    hidden_size=6144,
    ffn_hidden_size=12288,
    expert_ffn_hidden_size=2048,
    num_layers=28,
    num_hidden_layers=nonnegative(None, nullable=True),
    num_attention_heads=64,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_head_dim=optional(),
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    n_routed_experts=512,
    zero_expert_num=nonnegative(256),
    moe_topk=12,
    router_bias=False,
    attention_bias=False,
    tie_word_embeddings=False,
)
def longcat_flash(c: Config) -> nn.Model:
    d, norms = c.hidden_size, nn.Repeat(2, nn.RMSNorm(c.hidden_size))
    of = c.n_routed_experts + c.zero_expert_num
    if c.moe_topk > of:
        raise c.refuse(f"moe_topk = {int(c.moe_topk)} is more than n_routed_experts + zero_expert_num = {int(of)}")
    # `Heads` describes both attentions of a layer together: the heads and the cache of both.
    heads, kept = 2 * c.num_attention_heads, 2 * (c.kv_lora_rank + c.qk_rope_head_dim)
    both = {"queries": heads, "keys": heads, "latent": kept}
    layer = nn.Module(
        mlp=nn.Module(
            experts=_experts(c, of),
            router=nn.Router(
                None, classifier=nn.Linear(d, of, bias=c.router_bias), e_score_correction_bias=nn.Buffer(of)
            ),
        ),
        self_attn=nn.Repeat(2, latent_attention(c, size=c.qk_head_dim, how=both)),
        mlps=nn.Repeat(2, kit.gated_mlp(d, c.ffn_hidden_size)),
        input_layernorm=norms,
        post_attention_layernorm=norms,
    )
    # num_hidden_layers, if stated, counts cache layers: two per layer.
    model = kit.decoder(
        c, nn.Repeat(c.num_layers if c.num_hidden_layers is None else int(c.num_hidden_layers) // 2, layer)
    )
    if c.zero_expert_num:
        return model.replace(irregular="the number of zero experts varies per token")
    return model


def _experts(c: Config, of: int) -> nn.Node:
    """Experts; `zero_expert_num` of them return their input, but hold gate and up matrices."""
    d, inner, real = c.hidden_size, c.expert_ffn_hidden_size, c.n_routed_experts
    # If all experts are equally likely, a token is routed to moe_topk · real / of real experts
    # with three matrices each. All experts together have 2 · of + real matrices.
    used, matrices = c.moe_topk * real * 3, of * (2 * of + real)
    if not c.published:
        gate_up, down = nn.Parameter((of, 2 * inner, d)), nn.Parameter((real, d, inner))
        return nn.Experts(used, matrices, gate_up_proj=gate_up, down_proj=down)
    sides = {name: nn.Linear(d, inner, bias=False) for name in ("gate_proj", "up_proj")}
    return nn.ModuleList(
        (real, nn.Experts(used, matrices, **sides, down_proj=nn.Linear(inner, d, bias=False))),
        (of - real, nn.Experts(used, matrices, **sides)),
    )

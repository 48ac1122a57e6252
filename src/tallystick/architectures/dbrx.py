"""DBRX (Mosaic Research 2024, "Introducing DBRX"): MoE in every layer, stacked experts."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import REQUIRED, Config, NestedConfig, architecture


@architecture(
    "dbrx",
    "DbrxForCausalLM",
    running={"tie_word_embeddings": False},
    aliases={"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
    vocab_size=32000,
    d_model=2048,
    n_heads=16,
    n_layers=24,
    parts={
        "attn_config": NestedConfig({"kv_n_heads": 1}, running={"rope_theta": REQUIRED}),
        "ffn_config": NestedConfig({"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}),
    },
)
def dbrx(c: Config) -> nn.Model:
    if c.tie_word_embeddings:
        raise c.refuse("tie_word_embeddings is true, which transformers does not support for this type")
    d, norm = c.d_model, nn.LayerNorm(c.d_model, bias=False)
    block = nn.Module(
        norm_attn_norm=nn.Module(norm_1=norm, attn=_attention(c), norm_2=norm),
        ffn=_mixture(c.part("ffn_config"), d),
    )
    return nn.Model(
        transformer=nn.Module(wte=nn.Embedding(c.vocab_size, d), blocks=nn.Repeat(c.n_layers, block), norm_f=norm),
        lm_head=nn.Head(d, c.vocab_size),
    )


def _attention(c: Config) -> nn.Attention:
    """Attention with one fused projection; a config without `rope_theta` is refused."""
    d, count, stated = c.d_model, c.n_heads, c.part("attn_config")
    if stated.in_force(["rope_theta"])["rope_theta"] is None:
        raise stated.refuse("rope_theta is missing, which transformers requires")
    keys, size = stated.kv_n_heads, kit.rounded(d, count)
    if int(count) % int(keys):
        raise c.refuse(
            f"n_heads = {int(count)} is not divisible by attn_config.kv_n_heads = {int(keys)}", code="indivisible"
        )
    return nn.Attention(
        nn.Heads(count, keys, size),
        Wqkv=nn.Linear(d, d + 2 * keys * size, bias=False),
        out_proj=nn.Linear(d, d, bias=False),
    )


def _mixture(c: Config, d: int) -> nn.Module:
    of = c.moe_num_experts
    matrix = nn.Parameter((of * c.ffn_hidden_size, d))
    experts = nn.Experts(kit.experts_used(c, "moe_num_experts", by="moe_top_k"), of, w1=matrix, v1=matrix, w2=matrix)
    return nn.Module(router=nn.Module(layer=kit.router(d, None, of)), experts=nn.Module(mlp=experts))

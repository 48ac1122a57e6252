"""Kolibri (Aleph Alpha 2026): windows, norms before and behind, experts chosen by sigmoids beside one shared."""

from tallystick.architectures._decoder import (
    attention,
    decoder,
    experts_used,
    gated_mlp,
    head_norms,
    heads,
    mixture,
    windows_of,
)
from tallystick.architectures._layers import as_published
from tallystick.blueprint import Buffer, Config, Group, Model, RMSNorm, Router, architecture, natural


@architecture(
    "kolibri1",
    "Kolibri1ForCausalLM",
    running={"sliding_window": natural(513, nullable=True), "layer_types": None},
    aliases={"num_local_experts": "num_experts"},
    vocab_size=128000,
    hidden_size=2560,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
    num_hidden_layers=50,
    num_attention_heads=48,
    num_key_value_heads=4,
    head_dim=128,
    num_experts=384,
    num_experts_per_tok=6,
    tie_word_embeddings=False,
)
def kolibri1(c: Config) -> Model:
    d, of, runs = c.hidden_size, c.num_experts, heads(c, windows=windows_of(c, ((c.sliding_window, 4), (None, 1))))
    balance = Buffer(of)  # added to the scores by which experts are chosen; a rule sets it, no gradient
    moe = mixture(
        c,
        c.moe_intermediate_size,
        experts_used(c, "num_experts"),
        of,
        scores={} if c.published else {"e_score_correction_bias": balance},
        shared_experts=gated_mlp(d, c.shared_expert_intermediate_size),
    )
    after = RMSNorm(d, after=True)
    names = {"post_self_attn_layernorm": "post_attn_norm", "post_mlp_layernorm": "post_ffn_norm"}
    block = Group(
        self_attn=attention(c, runs, **head_norms(runs)),
        mlp=moe,
        moe=Group(router=Router(None, expert_bias=balance)) if c.published else None,
        input_layernorm=RMSNorm(d),
        post_attention_layernorm=RMSNorm(d),
        **as_published(c, names, post_self_attn_layernorm=after, post_mlp_layernorm=after),
    )
    return decoder(c, block)

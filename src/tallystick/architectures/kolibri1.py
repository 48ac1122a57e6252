"""Kolibri (Aleph Alpha 2026): sliding windows, pre- and post-norms, sigmoid routing."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "kolibri1",
    "Kolibri1ForCausalLM",
    running={"sliding_window": nonnegative(513, nullable=True), "layer_types": None},
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
def kolibri1(c: Config) -> nn.Model:
    d, of, runs = (
        c.hidden_size,
        c.num_experts,
        kit.heads(c, windows=kit.windows_of(c, ((c.sliding_window, 4), (None, 1)))),
    )
    balance = nn.Buffer(of)  # added to routing scores; a rule updates it, not a gradient
    moe = kit.mixture(
        c,
        c.moe_intermediate_size,
        kit.experts_used(c, "num_experts"),
        of,
        scores={} if c.published else {"e_score_correction_bias": balance},
        shared_experts=kit.gated_mlp(d, c.shared_expert_intermediate_size),
    )
    after = nn.RMSNorm(d, after=True)
    names = {"post_self_attn_layernorm": "post_attn_norm", "post_mlp_layernorm": "post_ffn_norm"}
    block = nn.Module(
        self_attn=kit.attention(c, runs, **kit.head_norms(runs)),
        mlp=moe,
        moe=nn.Module(router=nn.Router(None, expert_bias=balance)) if c.published else None,
        input_layernorm=nn.RMSNorm(d),
        post_attention_layernorm=nn.RMSNorm(d),
        **kit.as_published(c, names, post_self_attn_layernorm=after, post_mlp_layernorm=after),
    )
    return kit.decoder(c, block)

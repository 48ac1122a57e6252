"""gpt-oss (OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card")."""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative


@architecture(
    "gpt_oss",
    "GptOssForCausalLM",
    running={"sliding_window": nonnegative(128, nullable=True), "layer_types": None},
    aliases={"num_experts": "num_local_experts"},
    vocab_size=201088,
    hidden_size=2880,
    intermediate_size=2880,
    num_hidden_layers=36,
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=64,
    num_local_experts=128,
    num_experts_per_tok=4,
    attention_bias=True,
    tie_word_embeddings=False,
)
def gpt_oss(c: Config) -> nn.Model:
    d, inner, of = c.hidden_size, c.intermediate_size, c.num_local_experts
    used = kit.experts_used(c, "num_local_experts")
    expert = nn.FeedForward(d, inner, "clamped_swiglu", gated=True, fused=True)
    experts = nn.Experts(
        used,
        of,
        gate_up_proj=nn.Parameter((of, d, 2 * inner)),
        gate_up_proj_bias=nn.Parameter((of, 2 * inner)),
        down_proj=nn.Parameter((of, inner, d)),
        down_proj_bias=nn.Parameter((of, d)),
    )
    block = nn.Module(
        # A sink is an additional logit per head that lets it attend to nothing.
        self_attn=kit.attention(
            c,
            kit.heads(
                c,
                windows=kit.windows_of(c, ((c.sliding_window, 1), (None, 1))),
                rotary=int(c.head_dim) // 2,  # one cosine per pair
                sinks=True,
            ),
            bias=c.attention_bias,
            sinks=nn.Parameter((c.num_attention_heads,)),
        ),
        mlp=nn.Module(
            router=kit.router(d, nn.Routing(expert, of, used, "chosen", weights="own"), of, bias=True), experts=experts
        ),
        input_layernorm=nn.RMSNorm(d, kind="rms32"),
        post_attention_layernorm=nn.RMSNorm(d, kind="rms32"),
    )
    return kit.decoder(c, block, nn.RMSNorm(d, kind="rms32"))

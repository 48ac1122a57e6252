"""gpt-oss (OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card")."""

from tallystick.architectures._decoder import attention, decoder, experts_used, heads, router, windows_of
from tallystick.blueprint import Config, Experts, Feed, Group, Model, RMSNorm, Routing, Tensor, architecture, natural


@architecture(
    "gpt_oss",
    "GptOssForCausalLM",
    running={"sliding_window": natural(128, nullable=True), "layer_types": None},
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
def gpt_oss(c: Config) -> Model:
    d, inner, of = c.hidden_size, c.intermediate_size, c.num_local_experts
    used = experts_used(c, "num_local_experts")
    expert = Feed(d, inner, "clamped_swiglu", gated=True, fused=True)
    experts = Experts(
        used,
        of,
        gate_up_proj=Tensor((of, d, 2 * inner)),
        gate_up_proj_bias=Tensor((of, 2 * inner)),
        down_proj=Tensor((of, inner, d)),
        down_proj_bias=Tensor((of, d)),
    )
    block = Group(
        # A sink is one more logit for each head, which lets it attend to nothing.
        self_attn=attention(
            c,
            heads(
                c,
                windows=windows_of(c, ((c.sliding_window, 1), (None, 1))),
                rotary=int(c.head_dim) // 2,  # one cosine for a pair
                sinks=True,
                softmax="own",
            ),
            bias=c.attention_bias,
            sinks=Tensor((c.num_attention_heads,)),
        ),
        mlp=Group(router=router(d, Routing(expert, of, used, "chosen", weights="own"), of, bias=True), experts=experts),
        input_layernorm=RMSNorm(d, kind="rms32"),
        post_attention_layernorm=RMSNorm(d, kind="rms32"),
    )
    return decoder(c, block, RMSNorm(d, kind="rms32"))

"""CPM-Ant (OpenBMB 2022, "CPM-Live"): learned prompts in the embedding, and biases for segments and distances."""

from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Embedding,
    Group,
    Head,
    Heads,
    Linear,
    Model,
    Repeat,
    RMSNorm,
    Tensor,
    architecture,
)


@architecture(
    "cpmant",
    "CpmAntForCausalLM",
    vocab_size=30720,
    hidden_size=4096,
    num_hidden_layers=48,
    num_attention_heads=32,
    dim_head=128,
    dim_ff=10240,
    prompt_types=32,
    prompt_length=32,
    segment_types=32,
    position_bias_num_buckets=512,
)
def cpmant(c: Config) -> Model:
    d, heads, inner = c.hidden_size, c.num_attention_heads, c.dim_ff
    width = heads * c.dim_head
    block = Group(
        self_att=Group(
            layernorm_before_attention=RMSNorm(d),
            self_attention=Attention(
                Heads(heads, heads, c.dim_head, rotary=0, ahead=c.prompt_length),
                **{name: Linear(d, width, bias=False) for name in ("project_q", "project_k", "project_v")},
                attention_out=Linear(width, d, bias=False),
            ),
        ),
        ffn=Group(
            layernorm_before_ffn=RMSNorm(d),
            ffn=MLP(
                w_in=Group(w_0=Linear(d, inner, bias=False), w_1=Linear(d, inner, bias=False)),
                w_out=Linear(inner, d, bias=False),
            ),
        ),
    )
    biases = c.segment_types * c.segment_types + c.position_bias_num_buckets
    return Model(
        f"the layers take the {int(c.prompt_length)} positions of a prompt before each sequence too",
        cpmant=Group(
            input_embedding=Embedding(c.vocab_size + c.prompt_types * c.prompt_length, d),
            segment_embedding=Embedding(c.segment_types, d),
            encoder=Group(layers=Repeat(c.num_hidden_layers, block), output_layernorm=RMSNorm(d)),
            position_bias=Group(relative_attention_bias=Tensor((biases, heads), "attention")),
        ),
        lm_head=Head(d, c.vocab_size),  # never tied: the embedding has rows for the prompts too
    )

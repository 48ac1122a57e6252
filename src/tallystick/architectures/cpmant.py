"""CPM-Ant (OpenBMB 2022, "CPM-Live"): learned prompts, and segment and distance biases."""

from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


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
def cpmant(c: Config) -> nn.Model:
    d, heads, inner = c.hidden_size, c.num_attention_heads, c.dim_ff
    width = heads * c.dim_head
    block = nn.Module(
        self_att=nn.Module(
            layernorm_before_attention=nn.RMSNorm(d),
            self_attention=nn.Attention(
                nn.Heads(heads, heads, c.dim_head, rotary=0, ahead=c.prompt_length),
                **{name: nn.Linear(d, width, bias=False) for name in ("project_q", "project_k", "project_v")},
                attention_out=nn.Linear(width, d, bias=False),
            ),
        ),
        ffn=nn.Module(
            layernorm_before_ffn=nn.RMSNorm(d),
            ffn=nn.MLP(
                w_in=nn.Module(w_0=nn.Linear(d, inner, bias=False), w_1=nn.Linear(d, inner, bias=False)),
                w_out=nn.Linear(inner, d, bias=False),
            ),
        ),
    )
    biases = c.segment_types * c.segment_types + c.position_bias_num_buckets
    return nn.Model(
        f"the layers also process {int(c.prompt_length)} prompt positions per sequence",
        cpmant=nn.Module(
            input_embedding=nn.Embedding(c.vocab_size + c.prompt_types * c.prompt_length, d),
            segment_embedding=nn.Embedding(c.segment_types, d),
            encoder=nn.Module(layers=nn.Repeat(c.num_hidden_layers, block), output_layernorm=nn.RMSNorm(d)),
            position_bias=nn.Module(relative_attention_bias=nn.Parameter((biases, heads), "attention")),
        ),
        lm_head=nn.Head(d, c.vocab_size),  # never tied: the embedding has additional rows for prompts
    )

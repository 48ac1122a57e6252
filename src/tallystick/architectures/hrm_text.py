"""HRM-Text (Sapient 2026): two layer stacks that run repeatedly.

It follows the Hierarchical Reasoning Model (Wang et al. 2025).
"""

from tallystick.architectures import kit
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, nonnegative, optional


@architecture(
    "hrm_text",
    "HrmTextForCausalLM",
    running={"H_cycles": nonnegative(2), "L_cycles": nonnegative(3)},
    vocab_size=151808,
    hidden_size=1536,
    intermediate_size=4096,
    num_hidden_layers=16,
    num_layers_per_stack=optional(),
    num_attention_heads=12,
    head_dim=128,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def hrm_text(c: Config) -> nn.Model:
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers requires it even if head_dim is stated
    d = c.hidden_size
    often = {"L_module": c.H_cycles * c.L_cycles, "H_module": c.H_cycles}
    # If num_layers_per_stack is stated, num_hidden_layers counts all runs of all layers.
    depth = c.num_layers_per_stack or c.num_hidden_layers
    return nn.Model(
        " and ".join(f"the layers of {name} run {int(times)} times" for name, times in often.items()),
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            **{name: nn.Module(layers=nn.Repeat(depth, _block(c, times))) for name, times in often.items()},
            z_L_init=nn.Parameter((d,), trainable=False),
        ),
        lm_head=nn.Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def _block(c: Config, times: int) -> nn.Module:
    """A block that runs `times` times; each run caches keys and values. Norms have no tensors."""
    d, queries, inner = c.hidden_size, c.num_attention_heads * c.head_dim, c.intermediate_size
    bias, names = c.attention_bias, ("gate_proj", "q_proj", "k_proj", "v_proj")
    runs = nn.Heads(times * c.num_attention_heads, times * c.num_attention_heads, c.head_dim)
    output = nn.Linear(queries, d, bias=bias)
    if not c.published:
        reads = {name: nn.Linear(d, queries, bias=bias) for name in names}
        return nn.Module(
            self_attn=nn.Attention(runs, **reads, o_proj=output), mlp=kit.gated_mlp(d, inner, bias=c.mlp_bias)
        )
    # Checkpoints fuse the projections that read a token, but not their biases.
    return nn.Module(
        attn=nn.Attention(runs, gqkv_proj=nn.Linear(d, len(names) * queries, bias=False), o_proj=output),
        self_attn=nn.Attention(**_biases(queries, *names)) if bias else None,
        mlp=nn.MLP(
            gate_up_proj=nn.Linear(d, 2 * inner, bias=False),
            down_proj=nn.Linear(inner, d, bias=c.mlp_bias),
            **(_biases(inner, "gate_proj", "up_proj") if c.mlp_bias else {}),
        ),
    )


def _biases(width: int, *names: str) -> dict[str, nn.Module]:
    return {name: nn.Module(bias=nn.Parameter((width,))) for name in names}

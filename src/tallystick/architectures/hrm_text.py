"""HRM-Text (Sapient 2026), after the Hierarchical Reasoning Model (Wang et al. 2025): two stacks that run again and again."""

from tallystick.architectures._decoder import gated_mlp
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
    Tensor,
    architecture,
    maybe,
    natural,
)


@architecture(
    "hrm_text",
    "HrmTextForCausalLM",
    running={"H_cycles": natural(2), "L_cycles": natural(3)},
    vocab_size=151808,
    hidden_size=1536,
    intermediate_size=4096,
    num_hidden_layers=16,
    num_layers_per_stack=maybe(),
    num_attention_heads=12,
    head_dim=128,
    attention_bias=False,
    mlp_bias=False,
    tie_word_embeddings=False,
)
def hrm_text(c: Config) -> Model:
    c.require_divisible("hidden_size", by="num_attention_heads")  # transformers asks it, though head_dim is stated
    d = c.hidden_size
    often = {"L_module": c.H_cycles * c.L_cycles, "H_module": c.H_cycles}
    # A config that states the depth of a stack counts as num_hidden_layers how often any layer runs.
    depth = c.num_layers_per_stack or c.num_hidden_layers
    return Model(
        " and ".join(f"the layers of {name} run {int(times)} times" for name, times in often.items()),
        model=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            **{name: Group(layers=Repeat(depth, _block(c, times))) for name, times in often.items()},
            z_L_init=Tensor((d,), trainable=False),
        ),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def _block(c: Config, times: int) -> Group:
    """Norms have no tensors. Each time that it runs, keys and values of its own are made and kept: as many heads more."""
    d, queries, inner = c.hidden_size, c.num_attention_heads * c.head_dim, c.intermediate_size
    bias, names = c.attention_bias, ("gate_proj", "q_proj", "k_proj", "v_proj")
    runs = Heads(times * c.num_attention_heads, times * c.num_attention_heads, c.head_dim)
    output = Linear(queries, d, bias=bias)
    if not c.published:
        reads = {name: Linear(d, queries, bias=bias) for name in names}
        return Group(self_attn=Attention(runs, **reads, o_proj=output), mlp=gated_mlp(d, inner, bias=c.mlp_bias))
    # Published with the matrices that read a token in one, but without their biases, if there are any.
    return Group(
        attn=Attention(runs, gqkv_proj=Linear(d, len(names) * queries, bias=False), o_proj=output),
        self_attn=Attention(**_biases(queries, *names)) if bias else None,
        mlp=MLP(
            gate_up_proj=Linear(d, 2 * inner, bias=False),
            down_proj=Linear(inner, d, bias=c.mlp_bias),
            **(_biases(inner, "gate_proj", "up_proj") if c.mlp_bias else {}),
        ),
    )


def _biases(width: int, *names: str) -> dict[str, Group]:
    return {name: Group(bias=Tensor((width,))) for name in names}

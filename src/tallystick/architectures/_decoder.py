"""What the Llama-like decoders share: attention, gated MLP, mixture of experts, and the frame around the blocks."""

from tallystick.blueprint import (
    MLP,
    Attention,
    Config,
    Embedding,
    Experts,
    ExpertStack,
    Group,
    Head,
    Linear,
    Model,
    Node,
    Repeat,
    RMSNorm,
    Stack,
    Tensor,
)


def head_dim(c: Config) -> int:
    """The size of one head: stated, or the width shared out among the heads."""
    return c.head_dim or c.hidden_size / c.num_attention_heads


def key_value_heads(c: Config) -> int:
    """Grouped-query attention's key and value heads; null means one for each query head."""
    return c.num_key_value_heads or c.num_attention_heads


def attention(
    c: Config, size: int, *, bias: bool = False, output_bias: bool | None = None, **more: Node | None
) -> Attention:
    """Separate query, key, value and output projections; heads of `size`, key and value heads grouped."""
    d, queries, keys = c.hidden_size, c.num_attention_heads * size, key_value_heads(c) * size
    return Attention(
        q_proj=Linear(d, queries, bias=bias),
        k_proj=Linear(d, keys, bias=bias),
        v_proj=Linear(d, keys, bias=bias),
        o_proj=Linear(queries, d, bias=bias if output_bias is None else output_bias),
        **more,
    )


def gated_mlp(d: int, inner: int, *, bias: bool = False) -> MLP:
    """SwiGLU and kin: the gate's activation scales the up projection."""
    return MLP(
        gate_proj=Linear(d, inner, bias=bias),
        up_proj=Linear(d, inner, bias=bias),
        down_proj=Linear(inner, d, bias=bias),
    )


def experts(c: Config, d: int, inner: int, *, used: int, of: int, names: tuple[str, str, str]) -> Node:
    """Gated experts without biases; `names` are gate, up and down where they are held one by one."""
    if c.single_experts:
        gate, up, down = names
        projections = {gate: Linear(d, inner, bias=False), up: Linear(d, inner, bias=False)}
        return ExpertStack(used, of, Group(**projections, **{down: Linear(inner, d, bias=False)}))
    return Experts(used, of, gate_up_proj=Tensor((of, 2 * inner, d)), down_proj=Tensor((of, d, inner)))


def decoder(c: Config, layers: Group | Stack, norm: Group | None = None) -> Model:
    """Token embedding, blocks, final norm and a head that can be tied to the embedding."""
    d = c.hidden_size
    return Model(
        model=Group(
            embed_tokens=Embedding(c.vocab_size, d),
            layers=layers if isinstance(layers, Stack) else Repeat(c.num_hidden_layers, layers),
            norm=norm or RMSNorm(d),
        ),
        lm_head=Head(d, c.vocab_size),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )

"""nanochat: norms without parameters, squared ReLU, capped logits.

Source: Karpathy 2025, "nanochat: the best ChatGPT that $100 can buy".
"""

from tallystick.architectures import kit
from tallystick.core import anatomy
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "nanochat",
    "NanoChatForCausalLM",
    running={"hidden_act": "relu2", "final_logit_softcapping": 15.0},
    vocab_size=50304,
    hidden_size=768,
    intermediate_size=8192,
    num_hidden_layers=12,
    num_attention_heads=6,
    num_key_value_heads=optional(),
    head_dim=optional(),
    attention_bias=False,
    tie_word_embeddings=False,
)
def nanochat(c: Config) -> nn.Model:
    d, inner, runs = c.hidden_size, c.intermediate_size, kit.heads(c)
    block = nn.Module(
        self_attn=kit.attention(
            c,
            runs,
            bias=c.attention_bias,
            q_norm=_norm(runs.size, runs.queries),
            k_norm=_norm(runs.size, runs.keys),
        ),
        mlp=kit.plain_mlp(d, inner, c.hidden_act, "fc1", "fc2", bias=False),
        input_layernorm=_norm(d),
        post_attention_layernorm=_norm(d),
    )
    return nn.Model(
        model=nn.Module(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            embed_norm=_norm(d),  # the model's one norm, applied twice; it has no tensor
            layers=nn.Repeat(c.num_hidden_layers, block),
            norm=_norm(d),
        ),
        lm_head=nn.Head(d, c.vocab_size, capped=bool(c.final_logit_softcapping)),
        tie=("lm_head.weight", "model.embed_tokens.weight") if c.tie_word_embeddings else None,
    )


def _norm(width: int, times: int = 1) -> nn.Norm:
    """A norm without parameters."""
    return nn.Norm(anatomy.Norm("bare", width, times))

"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners")."""

from tallystick.architectures import kit
from tallystick.architectures.kit.variants import OLDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture, optional


@architecture(
    "gpt2",
    "GPT2LMHeadModel",
    variants=OLDER,
    aliases={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    running={"activation_function": "gelu_new", "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1},
    vocab_size=50257,
    n_positions=1024,
    n_embd=768,
    n_layer=12,
    n_head=12,
    n_inner=optional(),
    add_cross_attention=False,
    tie_word_embeddings=True,
)
def gpt2(c: Config) -> nn.Model:
    c.require_divisible("n_embd", by="n_head")
    d = c.n_embd
    inner = c.n_inner or 4 * d
    cross = c.add_cross_attention
    block = nn.Module(
        ln_1=nn.LayerNorm(d),
        attn=nn.Attention(
            nn.Heads(c.n_head, c.n_head, d / c.n_head, rotary=0, dropout=c.attn_pdrop > 0),
            c_attn=nn.Conv1D(d, 3 * d),
            c_proj=nn.Conv1D(d, d),
            resid_dropout=nn.Dropout(d, c.resid_pdrop),
        ),
        ln_2=nn.LayerNorm(d),
        # Cross-attention: keys and values from encoder states, queries from the decoder.
        crossattention=nn.Attention(c_attn=nn.Conv1D(d, 2 * d), q_attn=nn.Conv1D(d, d), c_proj=nn.Conv1D(d, d))
        if cross
        else None,
        ln_cross_attn=nn.LayerNorm(d) if cross else None,
        mlp=nn.MLP(
            nn.FeedForward(d, inner, c.activation_function),
            c_fc=nn.Conv1D(d, inner),
            c_proj=nn.Conv1D(inner, d),
            dropout=nn.Dropout(d, c.resid_pdrop),
        ),
    )
    return kit.transformer(c, d, block, depth="n_layer", positions="n_positions", dropout=c.embd_pdrop)

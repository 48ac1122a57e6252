"""GPT-2: learned positions, LayerNorm, and weights stored transposed (Conv1D)."""

from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family

BLOCK = (
    Rule(
        "h.{}.attn.c_attn.weight",
        tuple(f"layers.{{}}.attention.{letter}_proj.weight" for letter in "qkv"),
        transposed=True,
    ),
    Rule("h.{}.attn.c_attn.bias", tuple(f"layers.{{}}.attention.{letter}_proj.bias" for letter in "qkv")),
    Rule("h.{}.attn.c_proj.weight", "layers.{}.attention.o_proj.weight", transposed=True),
    Rule("h.{}.attn.c_proj.bias", "layers.{}.attention.o_proj.bias"),
    Rule("h.{}.mlp.c_fc.weight", "layers.{}.mlp.up_proj.weight", transposed=True),
    Rule("h.{}.mlp.c_fc.bias", "layers.{}.mlp.up_proj.bias"),
    Rule("h.{}.mlp.c_proj.weight", "layers.{}.mlp.down_proj.weight", transposed=True),
    Rule("h.{}.mlp.c_proj.bias", "layers.{}.mlp.down_proj.bias"),
    *(Rule(f"h.{{}}.ln_1.{part}", f"layers.{{}}.attention_norm.{part}") for part in ("weight", "bias")),
    *(Rule(f"h.{{}}.ln_2.{part}", f"layers.{{}}.mlp_norm.{part}") for part in ("weight", "bias")),
)
BODY = (
    Rule("wte.weight", "embedding.weight"),
    Rule("wpe.weight", "positions.weight"),
    *BLOCK,
    *(Rule(f"ln_f.{part}", f"norm.{part}") for part in ("weight", "bias")),
)
RULES = (
    *(rule._replace(theirs=f"transformer.{rule.theirs}") for rule in BODY),
    Rule("lm_head.weight", "head.weight"),
    *BODY,  # OpenAI's own files have no prefix
)


@family(
    "gpt2",
    RULES,
    layer_norm_epsilon=1e-5,
    initializer_range=0.02,
    scale_attn_weights=True,
    scale_attn_by_inverse_layer_idx=False,
)
def gpt2(c: Config) -> DecoderConfig:
    if c.add_cross_attention or c.scale_attn_by_inverse_layer_idx:
        raise c.refuse("tallystick's GPT-2 decoder supports neither cross-attention nor per-layer scaling of scores")
    return DecoderConfig(
        vocab_size=c.vocab_size,
        width=c.n_embd,
        layers=c.n_layer,
        heads=c.n_head,
        inner=c.n_inner or 4 * c.n_embd,
        context=c.n_positions,
        norm="layer",
        norm_bias=True,
        norm_eps=c.layer_norm_epsilon,
        rope=None,
        qkv_bias=True,
        output_bias=True,
        attention_scale=None if c.scale_attn_weights else 1.0,
        activation=c.activation_function,
        gated=False,
        mlp_bias=True,
        tied=c.tie_word_embeddings,
        dropout=c.resid_pdrop,
        embedding_dropout=c.embd_pdrop,
        attention_dropout=c.attn_pdrop,
        init_std=c.initializer_range,
    )

"""PaLM; no checkpoint was released, so tensors have the decoder's own names."""

from tallystick.core.config import Config
from tallystick.models.checkpoints.names import Rule
from tallystick.models.config import DecoderConfig
from tallystick.models.families import family

RULES = (
    Rule("embedding.weight", "embedding.weight"),
    *(Rule(f"layers.{{}}.attention.{one}_proj.weight", f"layers.{{}}.attention.{one}_proj.weight") for one in "qkvo"),
    *(
        Rule(f"layers.{{}}.mlp.{one}_proj.weight", f"layers.{{}}.mlp.{one}_proj.weight")
        for one in ("gate", "up", "down")
    ),
    Rule("layers.{}.norm.weight", "layers.{}.norm.weight"),
    Rule("norm.weight", "norm.weight"),
    Rule("head.weight", "head.weight"),
)


@family("palm", RULES, max_position_embeddings=2048)
def palm(c: Config) -> DecoderConfig:
    """Return the config of section 2.1 of the paper, initialised as in section 5."""
    return DecoderConfig(
        vocab_size=c.vocab_size,
        width=c.d_model,
        layers=c.n_layers,
        heads=c.n_heads,
        inner=c.d_ff or 4 * c.d_model,
        context=c.max_position_embeddings,
        kv_heads=1,
        head_dim=c.head_dim,
        norm="layer",
        norm_scale=c.norm_scale,
        norm_eps=1e-6,
        parallel=True,
        tied=c.tie_word_embeddings,
        logit_scale=int(c.d_model) ** -0.5 if c.tie_word_embeddings else 1.0,
        init_std=None,
    )

"""North Micro Vision without its eyes (Cohere 2026): Command A's blocks, whose kinds of layers each state how positions turn."""

from collections.abc import Iterable

from tallystick.architectures._decoder import attention, decoder, gated_mlp, heads, in_runs, rounded
from tallystick.architectures._layers import listed
from tallystick.architectures.cohere import norm
from tallystick.blueprint import Config, Model, Parallel, architecture, maybe, natural
from tallystick.errors import shown

KINDS = ("full_attention", "sliding_attention")


@architecture(
    "cohere_compass_text",
    "CohereCompassForCausalLM",
    running={"sliding_window": natural(4096, nullable=True), "layer_types": None},
    vocab_size=256000,
    hidden_size=8192,
    intermediate_size=22528,
    num_hidden_layers=40,
    num_attention_heads=64,
    num_key_value_heads=maybe(),
    head_dim=maybe(),
    rope_parameters=None,  # no model is built without them
    attention_bias=False,
    tie_word_embeddings=True,
)
def cohere_compass_text(c: Config) -> Model:
    d, size = c.hidden_size, c.head_dim or rounded(c.hidden_size, c.num_attention_heads)
    kinds = listed(c, "layer_types", KINDS, lambda _: "full_attention")
    _require_turning(c, kinds)
    runs = heads(c, size, windows=in_runs((kind == "sliding_attention" for kind in kinds), c.sliding_window, None))
    attends = attention(c, runs, bias=c.attention_bias)
    # What positions in three directions keep is not told.
    block = Parallel(self_attn=attends, mlp=gated_mlp(d, c.intermediate_size), input_layernorm=norm(d))
    return decoder(c, block, norm(d))


def _require_turning(c: Config, kinds: Iterable[str]) -> None:
    """Refuse a config that does not say, of each kind of layer that it has, how positions turn; null is that they do not."""
    stated = c.rope_parameters
    if stated is None:
        raise c.refuse("rope_parameters is missing: it must say, for each kind of layer, how positions turn, or null")
    for kind in sorted(set(kinds)):
        if not isinstance(stated, dict) or kind not in stated:
            raise c.refuse(f"rope_parameters is {shown(stated)}, expected a dictionary that has {kind}")

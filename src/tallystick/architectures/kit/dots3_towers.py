"""The vision and audio towers of dots3.note: a ViT with MoE layers, a speech encoder.

Source: Dots Studio 2026. Later vision layers have more experts; a convolutional stem reads audio.
"""

from typing import Any

from tallystick.architectures.dots3_note_text import UNSET, stated_sizes
from tallystick.architectures.kit.attention import rounded
from tallystick.architectures.kit.experts import mixture
from tallystick.architectures.kit.frames import listable
from tallystick.architectures.kit.layers import FEED_FORWARD, as_published, in_turns, listed
from tallystick.architectures.kit.mlp import gated_mlp
from tallystick.architectures.kit.towers import conv
from tallystick.core import nodes as nn
from tallystick.core.algebra.dims import ceil
from tallystick.core.registry import Config, NestedConfig, optional
from tallystick.errors import shown

VISION_CONFIG = NestedConfig(
    {
        "hidden_size": 1536,
        "intermediate_size": 4224,
        "num_hidden_layers": 42,
        "num_attention_heads": 24,
        "num_channels": 3,
        "patch_size": 14,
        "moe_intermediate_size": 2112,
        "spatial_merge_size": 2,
        "attention_bias": False,
        "mlp_bias": False,
        "mlp_layer_types": None,
        "num_local_experts": 64,
        "num_experts_per_tok": optional(),
        "capacity_factor": 2,
        "pyramid_num_routed": None,
        "per_layer_config": UNSET,
        "adapter_in_dim": 1536,
        "adapter_out_dim": 5120,
        "adapter_merge_size": 2,
    },
    aliases={"embed_dim": "hidden_size", "num_heads": "num_attention_heads", "use_bias": "attention_bias"},
)
AUDIO_CONFIG = NestedConfig(
    {
        "hidden_size": 1280,
        "intermediate_size": 5120,
        "num_hidden_layers": 32,
        "num_attention_heads": 20,
        "feature_size": 128,
        "downsample_hidden_size": 480,
        "conv_output_size": optional(),
        "attention_bias": True,
        "whisper_config": None,
        "adapter_input_size": 1280,
        "adapter_out_dim": 5120,
    },
    aliases={
        "whisper_adapter_in_dim": "adapter_input_size",
        "whisper_adapter_out_dim": "adapter_out_dim",
        "adapter_output_size": "adapter_out_dim",
    },
)
PYRAMID = [-1] * 25 + list(range(4, 65, 4)) + [64]  # default number of experts per layer; -1: none
FILED = {
    "gate_proj": "fc1", "up_proj": "fc3", "down_proj": "fc2", "norm1": "norm_1", "norm2": "norm_2", "norm": "post_trunk_norm",
    "merger": "adapter",
}  # fmt: skip


def eyes(c: Config, width: int) -> nn.Tower:
    """Return the vision tower: patches, and a merger whose output is as wide as a text token."""
    c.require_divisible("hidden_size", by="num_attention_heads")
    for name, other in (("adapter_in_dim", "hidden_size"), ("adapter_merge_size", "spatial_merge_size")):
        _require_equal(c, name, other, getattr(c, other))
    _require_equal(c, "adapter_out_dim", "text_config.hidden_size", width)
    d, size, bias = c.hidden_size, c.patch_size, c.attention_bias
    of_head = nn.RMSNorm(rounded(d, c.num_attention_heads))
    attends = nn.Attention(
        qkv=nn.Linear(d, 3 * d, bias=bias), proj=nn.Linear(d, d, bias=bias), q_norm=of_head, k_norm=of_head
    )

    def block(experts: int, used: int) -> nn.Module:
        feed = _experts(c, experts, used) if experts else _feed_forward(c)
        return nn.Module(**as_published(c, FILED, norm1=nn.RMSNorm(d), attn=attends, norm2=nn.RMSNorm(d), mlp=feed))

    merged = c.adapter_in_dim * c.adapter_merge_size * c.adapter_merge_size
    merger = nn.Module(
        ln_q=nn.LayerNorm(c.adapter_in_dim),
        mlp=nn.Module(**{"0": nn.Linear(merged, merged), "2": nn.Linear(merged, c.adapter_out_dim)}),
    )
    return nn.Tower(
        patch_embed=nn.Module(proj=conv(c.num_channels, d, size, size), norm=nn.RMSNorm(d)),
        blocks=in_turns(_experts_of_each(c), block, depth=c.num_hidden_layers),
        **as_published(c, FILED, merger=merger, norm=nn.RMSNorm(d)),
    )


def _require_equal(c: Config, name: str, other: str, value: int) -> None:
    if getattr(c, name) != value:
        raise c.refuse(f"{name} = {int(getattr(c, name))} is not {other} = {int(value)}")


def _experts_of_each(c: Config) -> list[tuple[int, int]]:
    """(experts, experts used per patch) of each layer; 0 experts mean a dense MLP."""
    layers = listable(c)
    pyramid = c.pyramid_num_routed
    if pyramid is None and c.mlp_layer_types is None:
        pyramid = PYRAMID
    used = c.num_experts_per_tok or c.capacity_factor
    if pyramid is None:
        kinds = listed(c, "mlp_layer_types", FEED_FORWARD, None, longer=True)
        counts = [c.num_local_experts if kind == "sparse" else 0 for kind in kinds]
    elif isinstance(pyramid, list) and len(pyramid) == layers and all(type(count) is int for count in pyramid):
        counts = [max(count, 0) for count in pyramid]
    else:
        raise c.refuse(f"pyramid_num_routed must list how many experts each of the {layers} layers has, -1 for none")
    if c.mlp_bias and any(counts):
        raise c.refuse("mlp_bias is true, but experts have no bias")
    if c.per_layer_config == UNSET and pyramid is not None:
        return [(count, min(used, count)) for count in counts]
    own = {} if c.per_layer_config == UNSET else stated_sizes(c, layers, ("num_local_experts", "num_experts_per_tok"))
    return [_own(c, own.get(layer, {}), used) if count else (0, 0) for layer, count in enumerate(counts)]


def _own(c: Config, sizes: dict[str, int], used: int) -> tuple[int, int]:
    """Experts of one layer and how many are used: from `per_layer_config`, or the default."""
    count, used = sizes.get("num_local_experts", c.num_local_experts), sizes.get("num_experts_per_tok", used)
    if used > count:
        raise c.refuse(f"num_experts_per_tok = {int(used)} is more than num_local_experts = {int(count)}")
    return count, used


def _feed_forward(c: Config) -> nn.MLP:
    mlp = gated_mlp(c.hidden_size, c.intermediate_size, bias=c.mlp_bias)
    return nn.MLP(**as_published(c, FILED, **mlp.children))


def _experts(c: Config, count: int, used: int) -> nn.Module:
    d, bias = c.hidden_size, nn.Buffer(count, role="router")
    mixed = mixture(c, c.moe_intermediate_size, used, count, names=("fc1", "fc3", "fc2")).children
    if c.published:
        return nn.Module(experts=mixed["experts"], gate_weight=nn.Parameter((count, d), "router"), router_bias=bias)
    return nn.Module(**mixed, e_score_correction_bias=bias)


# -- sound ----------------------------------------------------------------------------------------

FILED_EARS = {
    "o_proj": "out_proj", "input_layernorm": "self_attn_layer_norm", "post_attention_layernorm": "final_layer_norm",
}  # fmt: skip
OF_WHISPER = {
    "d_model": "hidden_size",
    "encoder_attention_heads": "num_attention_heads",
    "encoder_layers": "num_hidden_layers",
    "encoder_ffn_dim": "intermediate_size",
    "num_mel_bins": "feature_size",
}
HALVINGS = 3  # of time and of frequency


def ears(c: Config, width: int) -> nn.Tower:
    """Return the audio tower: a convolutional stem, a transformer, and an adapter to text width."""
    sizes = _sizes(c)
    d, heads, inner, bias = (
        sizes["hidden_size"],
        sizes["num_attention_heads"],
        sizes["intermediate_size"],
        c.attention_bias,
    )
    if int(d) % int(heads):
        raise c.refuse(
            f"hidden_size = {int(d)} is not divisible by num_attention_heads = {int(heads)}", code="indivisible"
        )
    _require_equal(c, "adapter_input_size", "hidden_size", d)
    _require_equal(c, "adapter_out_dim", "text_config.hidden_size", width)
    each = nn.Linear(d, d, bias=bias)
    attends = nn.Attention(
        **as_published(c, FILED_EARS, q_proj=each, k_proj=nn.Linear(d, d, bias=False), v_proj=each, o_proj=each)
    )
    up, down = nn.Linear(d, 2 * inner), nn.Linear(inner, d)
    fed: dict[str, nn.Node] = {"mlp": nn.MLP(gate_up_proj=up, down_proj=down)}
    if c.published:
        fed = {"fc1": nn.MLP(**up.children), "fc2": nn.MLP(**down.children)}
    norms = as_published(c, FILED_EARS, input_layernorm=nn.RMSNorm(d), post_attention_layernorm=nn.RMSNorm(d))
    layers = nn.Repeat(sizes["num_hidden_layers"], nn.Module(self_attn=attends, **fed, **norms))
    adapter = {"norm": nn.LayerNorm(d), "fc1": nn.Linear(d, width), "fc2": nn.Linear(width, width)}
    stem = _stem(c, d, sizes["feature_size"])
    if c.published:
        proj = nn.Module(**{"0": adapter["norm"], "1": adapter["fc1"], "3": adapter["fc2"]})
        encoder = nn.Module(**stem, layers=layers, layer_norm=nn.RMSNorm(d))
        return nn.Tower(dots_encoder=nn.Module(speech_encoder=encoder), audio_adapter=nn.Module(proj=proj))
    return nn.Tower(conv_stem=nn.Module(**stem), layers=layers, layer_norm=nn.RMSNorm(d), adapter=nn.Module(**adapter))


def _stem(c: Config, d: int, frequencies: int) -> dict[str, nn.Node]:
    channels = c.downsample_hidden_size
    first, further = conv(1, channels, 3, 3), conv(channels, channels, 3, 3)
    out = nn.Linear(c.conv_output_size or channels * ceil(frequencies, 2**HALVINGS), d, bias=False)
    if c.published:
        return {"conv2d1": first, "conv2d2": further, "conv2d3": further, "conv_out": out}
    return {"convs": nn.ModuleList((1, first), (HALVINGS - 1, further)), "conv_out": out}


def _sizes(c: Config) -> dict[str, int]:
    """Sizes of the encoder; published configs hold some in `whisper_config`, by Whisper's names."""
    stated: Any = c.whisper_config or {}
    if not isinstance(stated, dict):
        raise c.refuse(f"whisper_config is {shown(stated)}, expected an object")
    own = {key: f"whisper_config.{name}" for name, key in OF_WHISPER.items() if name in stated}
    return {key: c.size(own[key], stated[name]) if key in own else getattr(c, key) for name, key in OF_WHISPER.items()}

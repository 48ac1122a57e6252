"""Build SVG elements as text.

Colours are in attributes, so that a picture saved alone looks the same. A page's style sheet
overrides them in dark mode.
"""

from __future__ import annotations

from html import escape

from tallystick.errors import visible

LETTER = 6.4  # average pixels of a letter at this font size
INK = "#1c1e21"
COLOURS = {
    # roles of tensors
    "token_embedding": "#9fc3e6", "position_embedding": "#c4dbef", "attention": "#f2c48d", "mlp": "#b4d6a6",
    "experts": "#cdd68c", "router": "#dfc4a0", "ssm": "#d5bce4", "conv": "#e6bfd2", "norm": "#cbcbcb",
    "head": "#b3afe6", "other": "#dcdcdc",
    # parts of memory
    "weights": "#9fc3e6", "gradients": "#f2c48d", "buckets": "#dfc4a0", "optimizer": "#b4d6a6",
    "activations": "#d5bce4", "logits": "#b3afe6", "recomputed": "#e6bfd2", "kv_cache": "#cdd68c",
    "gathered": "#c4dbef", "reduced": "#dcdcdc", "backward_buffers": "#cbcbcb", "step_buffers": "#cbcbcb",
    # steps from one count to another
    "whole": "#b9c2cc", "more": "#f2c48d", "fewer": "#9fc3e6",
}  # fmt: skip


def element(name: str, content: str = "", **attributes: str | float) -> str:
    """Return one element; `content` is markup; `_` in an attribute's name becomes `-`."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def box(kind: str, x: float, y: float, width: float, height: float, title: str = "", **more: str | float) -> str:
    """Return a filled rectangle.

    Args:
        kind: a name in `COLOURS`, also used as the class.
        x: left edge, in pixels.
        y: top edge, in pixels.
        width: pixels.
        height: pixels.
        title: tooltip.
        more: further attributes.
    """
    tooltip = element("title", escape(visible(title))) if title else ""
    return element("rect", tooltip, class_=kind, x=x, y=y, width=width, height=height, fill=COLOURS[kind], **more)


def words(text: str, x: float, y: float, **more: str | float) -> str:
    """Return a line of text with its left end at `x` and its baseline at `y`."""
    return element("text", escape(visible(text)), x=x, y=y, **more)


def cut(text: str, width: float) -> str:
    """Cut a text to a width in pixels; "" if less than a word would remain."""
    most = int(width / LETTER)
    if len(text) <= most:
        return text
    return text[: most - 1] + "…" if most > 4 else ""


def picture(content: str, width: float, height: float, *, label: str, name: str, pointed: bool = False) -> str:
    """Return a whole picture.

    Args:
        content: its marks.
        width: pixels.
        height: pixels.
        label: what it shows, for screen readers.
        name: class.
        pointed: whether the page lets the keyboard move through its parts.
    """
    how = {"role": "group", "tabindex": "0"} if pointed else {"role": "img"}
    return element(
        "svg",
        content,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"picture {name}",
        **how,
        aria_label=label,
        width=width,
        height=height,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        fill=INK,
        font_family="system-ui, sans-serif",
        font_size=12,
    )


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return escape(visible(value))
    return f"{value:.1f}".removesuffix(".0")

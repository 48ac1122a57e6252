"""Draw a tying experiment: losses, neighbourhoods, and the gradients of the two uses."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from tallystick.extras import needed
from tallystick.report.charts.plot import STYLE

if TYPE_CHECKING:
    from tallystick.training.experiment.results import Comparison, Experiment, Variant

# Okabe and Ito's colours, which readers with any colour vision can distinguish.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKS = ("o", "s", "^", "D")


def drawable() -> None:
    """Raise an error without matplotlib, before anything is computed for a picture."""
    needed("matplotlib", "the picture")


def drawn(answer: Experiment, kind: str = "svg") -> bytes:
    """Draw six panels: three of losses, two of neighbourhoods, one of gradients.

    Args:
        answer: the experiment's results.
        kind: ``"svg"`` or ``"png"``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(15, 9), layout="constrained")
        panels = figure.subplots(2, 3).flatten()
        middle = answer.comparisons[len(answer.comparisons) // 2]
        _losses(panels[0], middle, answer)
        _differences(panels[1], answer)
        _sizes(panels[2], answer)
        _neighbourhoods(panels[3], answer)
        _over_time(panels[4], answer)
        _gradients(panels[5], middle)
        content = io.BytesIO()
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def _losses(panel: Any, one: Comparison, answer: Experiment) -> None:
    for variant, colour in zip(one.variants, COLOURS, strict=False):
        steps, means, halves = _over_steps(variant, "loss")
        panel.plot(steps, means, color=colour, label=variant.name)
        if answer.seeds > 1:
            low, high = ([mean + sign * half for mean, half in zip(means, halves, strict=True)] for sign in (-1, 1))
            panel.fill_between(steps, low, high, color=colour, alpha=0.2)
    panel.set(
        title=f"Loss over steps, embedding {one.share:.0%} of the tied model",
        xlabel="steps",
        ylabel="validation loss, nats per token",
    )
    panel.legend()


def _differences(panel: Any, answer: Experiment) -> None:
    panel.axhline(0, color="black", linewidth=1)
    for place, variant in enumerate(answer.comparisons[0].variants[1:], start=1):
        gaps = [one.variants[place].beyond(one.variants[0]) for one in answer.comparisons]
        shares = [100 * one.share + (place - 2) for one in answer.comparisons]  # side by side, not on top of each other
        panel.errorbar(
            shares, [gap.value for gap in gaps], yerr=[_bar(gap.half) for gap in gaps], capsize=4,
            fmt=MARKS[place], color=COLOURS[place], label=variant.name,
        )  # fmt: skip
    panel.set(
        title="Above 0 the tied decoder is better",
        xlabel="embedding, % of the tied model's parameters",
        ylabel="loss less the tied one's, nats per token",
    )
    panel.legend()


def _sizes(panel: Any, answer: Experiment) -> None:
    from matplotlib.ticker import EngFormatter

    for place, one in enumerate(answer.comparisons):
        for variant, colour in zip(one.variants, COLOURS, strict=False):
            mean = variant.bits_per_byte
            label = f"{one.tokenizer}, {one.share:.0%}" if variant is one.variants[0] else None
            panel.errorbar(
                [variant.parameters], [mean.value], yerr=[_bar(mean.half)], fmt=MARKS[place % 4], color=colour, capsize=4,
                label=label,
            )  # fmt: skip
    panel.set(
        title="Loss over parameters (colours as on the left)", xlabel="parameters", ylabel="validation bits per byte"
    )
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.legend(title="vocabulary, its share if tied")


def _neighbourhoods(panel: Any, answer: Experiment) -> None:
    names = list(answer.comparisons[0].agreements)
    high = 0.8 / len(answer.comparisons)
    for place, one in enumerate(answer.comparisons):
        means = [_mean(one.agreements[name]) for name in names]
        at = [row + (place - (len(answer.comparisons) - 1) / 2) * high for row in range(len(names))]
        panel.barh(at, means, height=high, color=COLOURS[place], label=f"{one.share:.0%} (chance {one.chance:.0%})")
    panel.set(title="Nearest tokens in common, at the end", xlabel="share of the k nearest", xlim=(0, 1.25))
    panel.set_yticks(range(len(names)), [name.replace(", ", "\n") for name in names], fontsize=8)
    panel.invert_yaxis()
    panel.legend(title="embedding's share")


def _over_time(panel: Any, answer: Experiment) -> None:
    for place, one in enumerate(answer.comparisons):
        steps, means, _ = _over_steps(one.variants[1], "agreement")
        panel.plot(steps, means, color=COLOURS[place], marker=MARKS[place % 4], label=f"{one.share:.0%}")
        panel.axhline(one.chance, color=COLOURS[place], linestyle=":")
    panel.set(
        title="Untied: neighbours shared by embedding and head",
        xlabel="steps (dotted: chance)",
        ylabel="share of the k nearest",
        ylim=(0, None),
    )
    panel.legend(title="embedding's share")


def _gradients(panel: Any, one: Comparison) -> None:
    for variant, line in zip(one.variants[:2], ("-", "--"), strict=True):
        for key, what, colour in (("head_gradient", "head", COLOURS[1]), ("embedding_gradient", "lookup", COLOURS[0])):
            steps, means, _ = _over_steps(variant, key)
            panel.plot(steps, means, line, color=colour, label=f"{variant.name}: {what}")
    panel.set(
        title=f"Gradients of the two uses, embedding {one.share:.0%}",
        xlabel="steps",
        ylabel="norm, one batch",
        ylim=(0, None),
    )
    panel.legend()


def _over_steps(variant: Variant, key: str) -> tuple[list[int], list[float], list[float]]:
    steps = [moment.step for moment in variant.runs[0]]
    means = [variant.mean(key, place) for place in range(len(steps))]
    return steps, [mean.value for mean in means], [mean.half for mean in means]


def _bar(half: float) -> float:
    return 0.0 if half == float("inf") else half


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)

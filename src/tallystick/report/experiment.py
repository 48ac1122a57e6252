"""An experiment as a table, a page and a picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tallystick.errors import BadInput
from tallystick.report.numbers import in_bytes
from tallystick.report.plot import STYLE

if TYPE_CHECKING:
    from tallystick.training.experiment import Experiment


def page(answer: Experiment, picture: str) -> str:
    """Markdown: what was run, the table, the picture, what it shows and what it cannot.

    Args:
        answer: what came out.
        picture: the name of the picture beside the page.
    """
    config, first = answer.config, answer.variants[0]
    rows = [
        f"| {one.name} | {one.width} | {one.parameters:,} | {in_bytes(one.training_bytes)} | {one.loss:.4f} ± {one.points[-1].spread:.4f}"
        f" | {one.points[-1].cosine:.3f} |"
        for one in answer.variants
    ]
    told = [
        f"- {other.name}: {other.loss - first.loss:+.4f} nats per token beside the tied one at equal steps,"
        f" with {other.parameters - first.parameters:+,} parameters."
        for other in answer.variants[1:]
    ]
    spread = max(one.points[-1].spread for one in answer.variants)
    return "\n".join(
        [
            "# What does tying do?",
            "",
            "One small decoder three times: tied; with a head of its own; and with a head of its own but narrower, so that it"
            " has as many parameters as the tied one. The same text in the same order, the same number of steps"
            f" ({answer.steps:,} of {config.batch} × {config.sequence} tokens), {answer.seeds} seeds each.",
            "",
            f"`tallystick experiment tying --steps {answer.steps} --seeds {answer.seeds}` made this page and its picture, on text from"
            f" `{config.data}`, read with the tokenizer `{config.tokenizer}`.",
            "",
            "| | width | parameters | memory to train | validation loss (nats per token) | cosine of embedding and head |",
            "| --- | --: | --: | --: | --: | --: |",
            *rows,
            "",
            f"![validation loss, and the likeness of embedding and head, over the steps]({picture})",
            "",
            "## What it shows",
            "",
            *told,
            f"- The seeds of one variant are spread by up to {spread:.4f} (standard deviation): a smaller difference means nothing.",
            "- The memory is predicted: weights, gradients, AdamW's two moments, activations.",
            "",
            "## What it cannot show",
            "",
            "This is a small model, a small vocabulary and a short run. Here the embedding is a larger share of the parameters than"
            " in a large model, and the run ends long before anything has converged: neither the sign nor the size of the"
            " difference carries over to a large model trained for long. Published large models go both ways.",
            "",
        ]
    )


def drawn(answer: Experiment, kind: str = "svg") -> bytes:
    """The picture: loss over steps and over parameters, likeness over steps; means, and a band of one deviation."""
    try:
        import matplotlib
    except ImportError:
        raise BadInput("the picture is drawn with matplotlib: pip install 'tallystick[plot]'") from None
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 4), layout="constrained")
        losses, sizes, likeness = figure.subplots(1, 3)
        for one in answer.variants:
            steps = [point.step for point in one.points]
            means = [point.loss for point in one.points]
            low = [point.loss - point.spread for point in one.points]
            high = [point.loss + point.spread for point in one.points]
            (line,) = losses.plot(steps, means, label=one.name)
            losses.fill_between(steps, low, high, alpha=0.2, color=line.get_color())
            sizes.errorbar([one.parameters], [one.loss], yerr=[one.points[-1].spread], fmt="o", color=line.get_color())
            likeness.plot(steps, [point.cosine for point in one.points], color=line.get_color())
        tokens = answer.config.batch * answer.config.sequence
        above = losses.secondary_xaxis("top", functions=(lambda step: step * tokens, lambda count: count / tokens))
        above.set_xlabel("tokens")
        losses.set(xlabel="steps", ylabel="validation loss, nats per token")
        losses.legend()
        sizes.set(xlabel="parameters", ylabel="validation loss at the end")
        likeness.set(xlabel="steps", ylabel="cosine of embedding and head", ylim=(-0.1, 1.05))
        content = io.BytesIO()
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()

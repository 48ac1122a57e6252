"""Write a tying experiment as a Markdown page with tables and a picture."""

from __future__ import annotations

import io
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from tallystick.extras import needed
from tallystick.report.charts.plot import STYLE
from tallystick.report.numbers import in_bytes

if TYPE_CHECKING:
    from tallystick.training.experiment import Experiment, Variant

STDLIB = " (the sources of Python's own library)"


def page(answer: Experiment, picture: str, *, command: str, made_with: str) -> str:
    """Return the page as Markdown: the runs, tables, the picture, conclusions and limits.

    Args:
        answer: the experiment's results.
        picture: file name of the picture in the same folder.
        command: the command that made the page.
        made_with: versions and threads, on which the numbers depend.
    """
    config, first, untied = answer.config, *answer.variants[:2]
    last, share = first.points[-1], untied.parameters / first.parameters - 1  # a head is as large as an embedding
    scored = config.eval_batches * config.batch * config.sequence
    seeds = len(first.ends)
    rows = [
        f"| {one.name} | {one.width} | {one.parameters:,} | {in_bytes(one.training_bytes)}"
        f" | {one.loss:.4f} ± {one.points[-1].spread:.4f} | {one.points[-1].cosine:.3f} |"
        for one in answer.variants
    ]
    return "\n".join(
        [
            "# What does tying do?",
            "",
            "One small decoder in three variants: tied; untied; and untied but narrower, with the tied one's"
            f" parameter count. All read the same text in the same order for {last.step:,} steps of"
            f" {config.batch} × {config.sequence} tokens ({last.tokens:,} in total), with"
            f" {_counted(seeds, 'seed')} each. The seed sets the initial weights and the order of the text.",
            "",
            f"`{command}` made this page and its picture, on text from"
            f" `{config.data}`{STDLIB if config.data == 'stdlib' else ''}, read with the tokenizer"
            f" `{config.tokenizer}`, with {made_with}: another version or number of threads gives slightly"
            " different numbers.",
            "",
            "## At the end",
            "",
            "| | width | parameters | memory to train | validation loss (nats per token) | cosine of embedding and head |",
            "| --- | --: | --: | --: | --: | --: |",
            *rows,
            "",
            f"The loss is measured on the same tokens for all variants, at most {scored:,}, from files held"
            " out of training. ± is the standard deviation between seeds. Memory is predicted, not measured:"
            " weights, gradients, optimizer state, activations. The cosine compares each token's row in the"
            " embedding with its row in the head, on average.",
            "",
            (
                "![validation loss over steps, tokens and parameters, and cosine of embedding and head over"
                f" steps]({picture})"
            ),
            "",
            "## During training",
            "",
            *_on_the_way(answer),
            "",
            "## Result",
            "",
            *(_beside(one, first) for one in answer.variants[1:]),
            *(_likeness(one) for one in answer.variants[1:]),
            "",
            "## Limits",
            "",
            "This is a small model with a small vocabulary, one text, one learning rate and a short run. Here"
            f" the embedding is {share:.0%} of the tied model's parameters; in most large models it is a few"
            " percent. Each variant might do better at its own learning rate, and no run has converged."
            " Neither the sign nor the size of a difference carries over to large models trained for long;"
            " published large models do both. If all seeds agree, the difference does not come from the seed;"
            " it shows no more than that.",
            "",
        ]
    )


def _on_the_way(answer: Experiment) -> list[str]:
    """Return the losses of all variants side by side, one row per evaluation."""
    names = [one.name for one in answer.variants]
    apart = answer.variants[1:]  # the tied variant's cosine is 1
    lines = [
        f"| step | tokens | {' | '.join(names)} | {' | '.join(f'cosine, {one.name}' for one in apart)} |",
        f"| --: | --: |{' --: |' * (len(names) + len(apart))}",
    ]
    for moment in zip(*(one.points for one in answer.variants), strict=True):
        losses = " | ".join(f"{point.loss:.4f} ± {point.spread:.4f}" for point in moment)
        likeness = " | ".join(f"{point.cosine:.3f}" for point in moment[1:])
        lines.append(f"| {moment[0].step:,} | {moment[0].tokens:,} | {losses} | {likeness} |")
    return lines


def _beside(one: Variant, first: Variant) -> str:
    """Compare a variant's final loss with the tied one's, seed by seed, on equal text."""
    gaps = [mine - other for mine, other in zip(one.ends, first.ends, strict=True)]
    higher, seeds = sum(gap > 0 for gap in gaps), len(gaps)
    spread = f" ± {stdev(gaps):.4f}" if seeds > 1 else ""
    if higher in (0, seeds):
        word = "lower" if higher else "higher"
        verdict = f"the tied one ends {word} in {'every one of them' if seeds > 1 else 'the one seed'}"
    else:
        verdict = f"the tied one ends lower in {higher} of {seeds}: no clear difference"
    size = one.parameters - first.parameters
    return (
        f"- {one.name}: {fmean(gaps):+.4f}{spread} nats per token relative to the tied one at equal steps"
        f" and tokens (difference per seed, over {_counted(seeds, 'seed')}), with {size:+,} parameters"
        f" ({size / first.parameters:+.2%}); {verdict}."
    )


def _likeness(one: Variant) -> str:
    begun, ended = one.points[0], one.points[-1]
    return (
        f"- {one.name}: each token's rows in embedding and head have a cosine of {begun.cosine:.3f} after {begun.step:,} steps"
        f" and of {ended.cosine:.3f} after {ended.step:,}; tied, it is 1."
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def drawn(answer: Experiment, kind: str = "svg") -> bytes:
    """Draw loss over steps, tokens and parameters, and cosine over steps, with deviations.

    Args:
        answer: the experiment's results.
        kind: ``"svg"`` or ``"png"``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    with rc_context(STYLE):
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
        above.xaxis.set_major_formatter(EngFormatter(sep=""))
        losses.set(xlabel="steps", ylabel="validation loss, nats per token")
        losses.legend()
        sizes.set(xlabel="parameters", ylabel="validation loss at the end")
        sizes.xaxis.set_major_formatter(EngFormatter(sep=""))
        likeness.set(xlabel="steps", ylabel="cosine of embedding and head", ylim=(-0.1, 1.05))
        content = io.BytesIO()
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def drawable() -> None:
    """Raise an error without matplotlib, before anything is computed for a picture."""
    needed("matplotlib", "the picture")

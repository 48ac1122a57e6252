"""Write a tying experiment as a Markdown page: every table, and what follows from it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from tallystick.report.experiment.verdicts import claims, signed, verdict, with_half

if TYPE_CHECKING:
    from tallystick.training.experiment.results import Comparison, Experiment

STDLIB = " (the sources of Python's own library)"


def page(answer: Experiment, picture: str, *, command: str, made_with: str) -> str:
    """Return the page as Markdown.

    Args:
        answer: the experiment's results.
        picture: file name of the picture in the same folder.
        command: the command that made the page.
        made_with: versions, on which the numbers depend.
    """
    parts = [
        _question(answer),
        *_run(answer, command, made_with),
        "## Result",
        *_result(answer),
        f"![losses, neighbourhoods and gradients, tied and untied]({picture})",
        "## What the lecture and the papers say",
        *claims(answer),
        "## Limits",
        *_limits(answer),
        "## Sizes and settings",
        *_settings(answer),
        "## Losses",
        *_losses(answer),
        "## Neighbourhoods",
        *_neighbourhoods(answer),
        "## Gradients of the two uses",
        *_gradients(answer),
    ]
    return "\n\n".join(["# What does tying do?", *parts]) + "\n"


def _question(answer: Experiment) -> str:
    low, high = (answer.comparisons[place].share for place in (0, -1))
    spread = f"{low:.0%} to {high:.0%}" if len(answer.comparisons) > 1 else f"{low:.0%}"
    return (
        "Does one matrix for embedding and head cost or gain? And do the two matrices learn the same neighbourhoods?"
        f" Small decoders answer, whose embedding is {spread} of the tied model. [Why tie?](why-tie.md) has the reasons."
    )


def _run(answer: Experiment, command: str, made_with: str) -> list[str]:
    config, seeds = answer.config, answer.seeds
    tokens = config.batch * config.sequence
    return [
        "- **tied**: embedding and head are one matrix.\n"
        "- **untied**: two matrices, all else equal. Equal steps are equal FLOPs: a lookup costs none.\n"
        "- **untied, smaller**: shrunk to the tied one's parameters, in equal steps.\n"
        "- **untied, smaller, longer**: the same in equal FLOPs, hence in more steps and on more text.",
        f"All read the same text in the same order: {config.steps:,} steps of {config.batch} × {config.sequence} tokens"
        f" ({config.steps * tokens:,} in total), from {_counted(seeds, 'seed')}, {config.seed} to"
        f" {config.seed + seeds - 1}. The seed sets the initial weights and the order. Each variant runs at its own best"
        " learning rate and initial deviation. A search found them with another seed: it doubles or halves the rate, and"
        " multiplies or divides the deviation by 2.5, until all neighbours are worse. The longest variant takes the"
        " smaller one's settings.",
        f"`{command}` made this page and its picture, with {made_with}. The text is"
        f" `{config.data}`{STDLIB if config.data == 'stdlib' else ''}. Other versions give slightly different"
        " numbers.",
    ]


def _result(answer: Experiment) -> list[str]:
    names = [variant.name for variant in answer.comparisons[0].variants[1:]]
    lines = [
        f"| embedding's share | vocabulary | {' | '.join(f'{name}, less tied' for name in names)} |",
        f"| --: | --: |{' --: |' * len(names)}",
    ]
    for one in answer.comparisons:
        gaps = [variant.beyond(one.variants[0]) for variant in one.variants[1:]]
        cells = [f"{signed(gap)}{' **' + verdict(gap) + '**' if isfinite(gap.half) else ''}" for gap in gaps]
        lines.append(f"| {one.share:.0%} | {one.vocabulary:,} | {' | '.join(cells)} |")
    interval = (
        "± is the 95% interval of the mean over seeds, by Student's t."
        if answer.seeds > 1
        else "One seed gives no interval."
    )
    return [
        "Difference in final validation loss, nats per token, seed by seed. Above 0 the tied decoder is better."
        f" {interval}",
        "\n".join(lines),
    ]


def _limits(answer: Experiment) -> list[str]:
    config = answer.config
    most = max(variant.parameters for one in answer.comparisons for variant in one.variants)
    return [
        f"- The largest model has {most:,} parameters. Nothing here shows what tying does to a large model.",
        f"- {config.steps:,} steps are short, and no run has converged. A longer run may end otherwise.",
        "- One text, one architecture and one optimizer. The share of the embedding was set by the vocabulary alone, so"
        " a larger share also means rarer tokens and longer ones.",
        "- The search moved two numbers, in steps, with one seed. Weight decay, batch and the scale of the embedding"
        " alone were not searched; nor was the √d factor, as in Gemma.",
        "- An interval says how far other seeds would differ, not how far another text would.",
    ]


def _settings(answer: Experiment) -> list[str]:
    lines = [
        "| share | variant | width, MLP | parameters | FLOPs per token | steps | learning rate | initial deviation"
        " | runs of the search |",
        "| --: | --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for one in answer.comparisons:
        lines += [
            f"| {one.share:.0%} | {variant.name} | {variant.width}, {variant.inner} | {variant.parameters:,}"
            f" | {variant.flops:,} | {variant.steps:,} | {variant.learning_rate:g} | {variant.init_std:g}"
            f" | {len(variant.trials) or '–'} |"
            for variant in one.variants
        ]
    return ["\n".join(lines), *_trials(answer)]


def _trials(answer: Experiment) -> list[str]:
    """Return the effect of the search: the loss at the first setting, and at the best."""
    lines = ["| share | variant | first setting: rate, deviation | loss | best setting: rate, deviation | loss |"]
    lines.append("| --: | --- | --: | --: | --: | --: |")
    for one in answer.comparisons:
        for variant in one.variants:
            if variant.trials:
                first, best = variant.trials[0], min(variant.trials, key=lambda trial: trial.loss)
                lines.append(
                    f"| {one.share:.0%} | {variant.name} | {first.learning_rate:g}, {first.init_std:g} | {first.loss:.4f}"
                    f" | {best.learning_rate:g}, {best.init_std:g} | {best.loss:.4f} |"
                )
    return ["What the search gained, with its own seed:", "\n".join(lines)]


def _losses(answer: Experiment) -> list[str]:
    parts = []
    for one in answer.comparisons:
        steps = [moment.step for moment in one.variants[0].runs[0]]
        rows = [f"| step | {' | '.join(variant.name for variant in one.variants)} |"]
        rows.append(f"| --: |{' --: |' * len(one.variants)}")
        for place, step in enumerate(steps[:-1]):
            cells = (
                with_half(variant.mean("loss", place)) if _has(variant.runs[0], place, step) else "–"
                for variant in one.variants
            )
            rows.append(f"| {step:,} | {' | '.join(cells)} |")
        rows.append(f"| end | {' | '.join(with_half(variant.mean('loss')) for variant in one.variants)} |")
        bits = " | ".join(with_half(variant.bits_per_byte) for variant in one.variants)
        rows.append(f"| end, bits per byte | {bits} |")
        parts += [f"Embedding {one.share:.0%}, vocabulary {one.vocabulary:,} (`{one.tokenizer}`):", "\n".join(rows)]
    config = answer.config
    scored = config.eval_batches * config.batch * config.sequence
    return [
        f"Validation loss in nats per token, on at most {scored:,} tokens from files held out of training.",
        *parts,
    ]


def _has(run: tuple[object, ...], place: int, step: int) -> bool:
    return place < len(run) and getattr(run[place], "step", None) == step


def _neighbourhoods(answer: Experiment) -> list[str]:
    from tallystick.training.experiment.results import Mean

    shares = [f"embedding {one.share:.0%}" for one in answer.comparisons]
    head = [f"| | {' | '.join(shares)} |", f"| --- |{' --: |' * len(shares)}"]
    names = list(answer.comparisons[0].agreements)
    rows = [
        f"| {name} | {' | '.join(with_half(Mean.of(one.agreements[name]), 3) for one in answer.comparisons)} |"
        for name in names
    ]
    rows.append(f"| chance | {' | '.join(f'{one.chance:.3f}' for one in answer.comparisons)} |")
    rows.append(f"| tokens compared | {' | '.join(f'{one.compared:,}' for one in answer.comparisons)} |")
    parts = [
        "Share of a token's 10 nearest tokens that two matrices have in common, at the end. Near is by cosine, around"
        " the mean row. Compared are tokens that the run read at least 20 times.",
        "\n".join([*head, *rows]),
    ]
    paired = [one for one in answer.comparisons if one.pairs]
    if paired:
        kinds = list(paired[0].near)
        lines = [f"| | {' | '.join(f'embedding {one.share:.0%}' for one in paired)} |"]
        lines.append(f"| --- |{' --: |' * len(paired)}")
        for kind in kinds:
            cells = " | ".join(with_half(Mean.of(one.near[kind]), 3) for one in paired)
            lines.append(f"| {kind} | {cells} |")
        lines.append(f"| chance | {' | '.join(f'{one.chance:.3f}' for one in paired)} |")
        lines.append(f"| pairs | {' | '.join(f'{one.pairs:,}' for one in paired)} |")
        parts += [
            'Share of the pairs such as "Error" and " error", which differ in case or space alone, whose second is among'
            " the 10 nearest of the first:",
            "\n".join(lines),
        ]
    return parts


def _gradients(answer: Experiment) -> list[str]:
    lines = [
        "| share | variant | step | through the logits | through the lookup | rows that the lookup reaches | cosine |",
        "| --: | --- | --: | --: | --: | --: | --: |",
    ]
    lines += [line for one in answer.comparisons for line in _gradient_rows(one)]
    return [
        "Norms of the gradient of one validation batch, through each use of the matrix apart. Through the logits every"
        " row has a gradient; through the lookup only the batch's tokens have. The last column is the cosine of the two.",
        "\n".join(lines),
    ]


def _gradient_rows(one: Comparison) -> list[str]:
    rows = []
    for variant in one.variants[:2]:
        for place in (0, -1):
            values = {key: variant.mean(key, place).value for key in ("head_gradient", "embedding_gradient", "rows")}
            rows.append(
                f"| {one.share:.0%} | {variant.name} | {variant.runs[0][place].step:,} | {values['head_gradient']:.4f}"
                f" | {values['embedding_gradient']:.4f} | {values['rows']:.0%}"
                f" | {variant.mean('cosine', place).value:+.3f} |"
            )
    return rows


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

"""The paper's three experiments as parts of the page: run, drawn, and held against its claims."""

from __future__ import annotations

from collections.abc import Callable

from lastarm.papers.jamieson2015 import claims, figures
from lastarm.papers.jamieson2015.claims import Rows
from lastarm.papers.jamieson2015.experiments import COMPLETION, RIDGE, SVM, Experiment
from lastarm.papers.jamieson2015.parts import Claim, Part, Settings, command, write
from lastarm.papers.jamieson2015.trials import run

JUDGES: dict[str, Callable[[Rows, str], list[Claim]]] = {
    RIDGE.name: claims.of_ridge,
    SVM.name: claims.of_svm,
    COMPLETION.name: claims.of_completion,
}
NOTES = {
    RIDGE.name: (
        "The step is .01/√(2 + T), T the pulls of the arm before it. A policy that is sure before "
        "its budget is spent gives the rest to the arm that it found."
    ),
    SVM.name: (
        "With every dimension at variance 1, squared distances are near 2d, and γ ≥ 1 would make "
        "the kernel an identity: so rows are divided by √(2d). Splits keep the classes in "
        "proportion. A machine that gives 0 is wrong."
    ),
    COMPLETION.name: (
        "The step is .01 in the first epoch and shrinks by a factor of .9 from each to the next; "
        "the penalty of a user or an item counts once an epoch, spread over its ratings. "
        "Recommended is the arm as it is, not the best state that it was in: one that is trained "
        "for too long overfits, and the error goes up again."
    ),
}


def ridge(settings: Settings) -> Part:
    """§5.1."""
    return compared(RIDGE, settings)


def svm(settings: Settings) -> Part:
    """§5.2, arms trained one at a time, as in the paper."""
    return compared(SVM, settings)


def svm_together(settings: Settings) -> Part:
    """§5.2, all arms of a round in one kernel."""
    return compared(SVM, settings, together=True)


def completion(settings: Settings) -> Part:
    """§5.3."""
    return compared(COMPLETION, settings)


def compared(experiment: Experiment, settings: Settings, *, together: bool = False) -> Part:
    """Run an experiment, draw it and judge the paper's claims by it."""
    experiment = experiment.quick() if settings.quick else experiment
    data, rows = run(experiment, settings, together=together)
    trials = settings.trials or experiment.trials
    how = "many at a time, in one kernel" if together else "one at a time"
    title = f"{experiment.title} on {data.name}{', arms together' * together}"
    key = f"{experiment.name}-{data.name}{'-together' * together}"
    figure = figures.comparison(
        rows, title=title, unit=f"{experiment.pull} each", ylabel=experiment.error
    )
    figures.save(figure, settings.out, key)
    repeated = f"{trials} trial{'s' * (trials > 1)}"
    held = f"{data.name}, {repeated}" + ", arms together" * together
    part = Part(
        key=key,
        title=title,
        text=(
            f"{data.about} {experiment.arms} arms, {repeated}; a pull is {experiment.pull}. "
            "90/10 TEST, then 80/20 TRAIN and VAL, drawn afresh for each trial like the arms. One "
            "search for each policy and budget, and the error on TEST of J_t, the arm whose "
            f"latest loss on VAL is the lowest; arms are trained {how}, and seconds are those of "
            f"training and looking, with {settings.workers} "
            f"trial{'s' * (settings.workers > 1)} at a time. {NOTES[experiment.name]}"
        ),
        claims=JUDGES[experiment.name](rows, held),
        figures=[key],
        command=command(experiment.name, settings),
    )
    write(part, rows, settings.out)
    return part

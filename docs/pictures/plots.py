"""Draws plots.png from what `lastarm demo` does. Run by `make pictures`."""

from pathlib import Path

from lastarm import ASHA, SuccessiveHalving, UniformAllocation, search
from lastarm.cli.demo import ARMS, BUDGET, SPACE, DigitsNetwork
from lastarm.report.figures.drawing import Figure, house


def main() -> None:
    """Play three policies, and draw four figures side by side."""
    halving, uniform, asha = (
        search(DigitsNetwork(), SPACE, policy=policy)
        for policy in (
            SuccessiveHalving(ARMS, BUDGET),
            UniformAllocation(ARMS, BUDGET),
            ASHA(ARMS, BUDGET, max_pulls=81),
        )
    )
    with house():
        figure = Figure(figsize=(10, 6.8))
        (upper_left, upper_right), (lower_left, lower_right) = figure.subplots(2, 2)
        halving.plot.rungs(upper_left)
        halving.plot.spending(upper_right)
        halving.plot.importance(lower_left)
        halving.plot.policies({"uniform": uniform, "ASHA": asha}, ax=lower_right)
        figure.savefig(Path(__file__).with_suffix(".png"), dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()

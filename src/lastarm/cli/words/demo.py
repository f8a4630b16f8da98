"""The words of `lastarm demo`."""

from __future__ import annotations

import click

from lastarm.cli.options import json_option, seed_option
from lastarm.cli.words import deed


@click.command()
@seed_option
@json_option
@deed
def demo() -> None:
    """Tune a small network on handwritten digits.

    There are 64 settings of learning rate, momentum, weight decay, width, batch size and initial
    scale. A pull is one pass over the training data. Successive Halving and uniform allocation get
    768 passes each. The demo takes some seconds and needs nothing but lastarm.
    """

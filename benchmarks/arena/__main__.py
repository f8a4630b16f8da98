"""The command: play what is missing, then write the page.

PYTHONPATH=benchmarks .venv-bench/bin/python -m arena --help
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from arena.contenders.entered import ENTERED
from arena.page import write_page
from arena.playing import missing, play
from arena.problems.found import Folders, families, free_of_noise
from arena.problems.noisy import NOISY
from arena.results import BUDGETS, file_of, tidy
from arena.scales import scales

ARENA = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    """Play and write."""
    parser = argparse.ArgumentParser(prog="arena", description=__doc__.partition("\n")[0])
    for name, what in (
        ("surrogates", "tasks.json and lcbench.onnx"),
        ("curves", ".npz tables with `losses`, `config` and `hp_names`"),
        ("data", ".npz files with `X` and `y`"),
    ):
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"of {what}.")
    parser.add_argument(
        "--arena",
        type=Path,
        metavar="FOLDER",
        default=ARENA,
        help="where results, scales, page and figure are kept. [default: benchmarks/arena]",
    )
    parser.add_argument("--seeds", type=int, default=5, help="[default: 5]")
    parser.add_argument("--most", type=int, default=BUDGETS[-1], help="full trainings.")
    parser.add_argument("--families", nargs="+", help="only these.")
    parser.add_argument("--contenders", nargs="+", help="only these, by a part of their name.")
    parser.add_argument("--again", action="store_true", help="forget what these have played.")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes.")
    parser.add_argument("--tasks", nargs="+", help="only these, by a part of their name.")
    parser.add_argument(
        "--apart",
        action="store_true",
        help="only those who need another environment, and no page; this has to be run there.",
    )
    parser.add_argument("--list", action="store_true", help="say what is missing, and end.")
    given = parser.parse_args(arguments)

    def asked(name: str, parts: list[str] | None) -> bool:
        return not parts or any(part in name for part in parts)

    arena: Path = given.arena
    folders = Folders(arena, given.surrogates, given.curves, given.data)
    chosen = {
        family: problems
        for family, problems in families(free_of_noise(folders)).items()
        if not given.families or family in given.families
    }
    contenders = [
        one for one in ENTERED if one.apart == given.apart and asked(one.name, given.contenders)
    ]
    if given.again:
        for family in chosen:
            tidy(file_of(arena, family), [one.name for one in contenders])
    names = {
        family: [
            one.name + NOISY * family.endswith(NOISY)
            for one in problems
            if asked(one.name, given.tasks)
        ]
        for family, problems in chosen.items()
    }
    todo = list(missing(names, contenders, given.seeds, given.most, arena))
    if given.list:
        print(*todo, f"{len(todo)} searches are missing", sep="\n")
        return
    for family, problems in chosen.items():
        if family.endswith(NOISY):  # how much noise there is depends on the scale
            scales(problems, arena)
    play(folders, todo, given.workers, given.most)
    for family, problems in chosen.items():
        tidy(file_of(arena, family))
        scales(problems, arena)
    if not given.apart:
        write_page(arena)


if __name__ == "__main__":
    main()

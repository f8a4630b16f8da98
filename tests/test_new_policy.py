"""A policy is one file: with one line more in the registry, all of the house knows it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lastarm

TOY = '''
"""Look at every arm twice, and let the best go on."""

from dataclasses import dataclass, field
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.plan import Plan
from lastarm.policy import Algorithm, ranking


@dataclass(eq=False)
class TwoLooks(InRounds):
    """All arms get `patience` pulls; the best gets what is left."""

    name: ClassVar[str] = "two-looks"
    who_goes_on: ClassVar[str] = "Only the very best goes on, in two looks."
    patience: int = field(default=2, metadata={"help": "How many pulls every arm gets."})

    def algorithm(self) -> Algorithm:
        losses = yield [Pull(arm, self.patience) for arm in range(self.arms)]
        best = ranking(losses)[0]
        yield [Pull(best, self.budget - (self.arms - 1) * self.patience)]
        return best

    def plan_remarks(self, plan: Plan) -> list[str]:
        return ["It is a toy."]
'''
LINE = "from lastarm.policies.two_looks import TwoLooks as TwoLooks\n"
# The commands, one after the other in one process, and what each prints.
EACH = """
import io, json, sys
from contextlib import redirect_stdout
from lastarm.cli import main
told = {}
for name, words in json.loads(sys.argv[1]).items():
    with redirect_stdout(io.StringIO()) as out:
        try:
            main([str(word) for word in words])
        except SystemExit as leaving:
            assert leaving.code == 0, name
    told[name] = out.getvalue()
print(json.dumps(told))
"""


def test_a_policy_needs_one_file_and_one_line(tmp_path: Path) -> None:
    house, other = Path(lastarm.__file__).parent, tmp_path / "lastarm"
    for folder in (house, house / "policies"):  # as it is, but for these two changes
        (other / folder.relative_to(house)).mkdir()
        for entry in folder.iterdir():
            if entry.name not in ("policies", "__pycache__"):
                (other / entry.relative_to(house)).symlink_to(entry)
    (other / "policies" / "two_looks.py").write_text(TOY)
    registry = other / "policies" / "__init__.py"
    written = registry.read_text()
    registry.unlink()
    registry.write_text(written.replace("# isort: on\n", LINE + "# isort: on\n"))

    numbers = ("--budget", 64, "--policy", "two-looks", "--patience", 3)
    program = ("--param", "x=uniform:0:1", "--journal", "j.jsonl", "--", "echo", "{x}")
    commands = {
        "plan": ("plan", "--arms", 8, *numbers, "--json"),
        "plan for people": ("plan", "--arms", 8, *numbers),
        "replay": ("replay", "t.csv", *numbers, "--json"),
        "compare": ("replay", "t.csv", "--compare", "--budget", 64, "--json"),
        "tune": ("tune", "--arms", 8, *numbers, *program),
        "show": ("show", "j.jsonl"),
        "report": ("report", "j.jsonl", "--output", "page.html"),
        "extend": ("resume", "j.jsonl", "--budget", 90, "--json"),
    }
    rows = [",".join(f"{9 - row}" for _ in range(5)) for row in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    done = subprocess.run(
        [sys.executable, "-c", EACH, json.dumps(commands)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    plan = json.loads(told["plan"])
    assert (plan["patience"], plan["pulls"], plan["observations"]) == (3, 64, 9)
    assert "It is a toy." in told["plan for people"]
    assert json.loads(told["replay"])["arm"] == 7
    assert json.loads(told["compare"])["policies"][-1]["policy"] == "two-looks"
    assert "budget of 64" in told["tune"]
    assert "two-looks, arms=8, budget=64, patience=3, seed=0: complete" in told["show"]
    assert "in two looks" in (tmp_path / "page.html").read_text()
    assert json.loads(told["extend"])["pulls"] == 90

"""The command, as a person meets it."""

import importlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from lastarm.cli import main
from lastarm.journal import read
from lastarm.policies import POLICIES
from lastarm.policies.named import takes

LASTARM = [str(Path(sys.executable).with_name("lastarm"))]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.npz"
    losses = np.random.default_rng(0).choice([0.25, 0.5, 0.75, 1.0], (30, 20))
    losses[::7, 3:] = np.nan
    np.savez(path, losses=losses)
    return path


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert run(*arguments, "--json") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.count("\n") == 1
    return json.loads(printed.out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    assert run(*arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1, "one line"
    assert printed.err.startswith("lastarm: ")
    return printed.err


def test_plan_of_halving(capsys: pytest.CaptureFixture[str]) -> None:
    plan = asked(capsys, "plan", "--arms", 10, "--budget", 1000)
    assert plan["rungs"] == [
        {"arms": 10, "pulls": 25, "upto": 25},
        {"arms": 5, "pulls": 50, "upto": 75},
        {"arms": 2, "pulls": 125, "upto": 200},
        {"arms": 1, "pulls": 250, "upto": 450},
    ]
    assert (plan["pulls"], plan["observations"]) == (1000, 18)
    assert [entry["rank"] for entry in plan["settling"]] == list(range(2, 11))
    assert [entry["before"] for entry in plan["settling"]] == [
        1000 / (2 * i * 4) - 1 for i in range(2, 11)
    ]
    assert plan["safe"] == [
        {"arms": 10, "rank": 6, "upto": 25},
        {"arms": 5, "rank": 3, "upto": 75},
        {"arms": 2, "rank": 2, "upto": 200},
    ]


@pytest.mark.parametrize(("budget", "guarantees"), [(160, False), (161, True)])
def test_a_rank_that_is_not_covered_means_that_nothing_is_guaranteed(
    capsys: pytest.CaptureFixture[str], budget: int, guarantees: bool
) -> None:
    assert run("plan", "--arms", 10, "--budget", budget) == 0
    printed = capsys.readouterr().out
    assert ("not covered" in printed) != guarantees
    assert ("Theorem 1 then guarantees\nnothing" in printed) != guarantees
    assert ("more than 160." in printed) != guarantees


def test_plan_foresees_the_time_on_workers(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--arms", 16, "--budget", 256, "--seconds-per-pull", 3)
    times = {
        workers: asked(capsys, "plan", *options, "--workers", workers) for workers in (1, 4, 16)
    }
    assert times[1]["seconds"] == times[1]["busy_seconds"] == 256 * 3
    # Rungs of 16, 8, 4 and 2 arms, of 4, 8, 16 and 32 pulls each.
    assert times[4]["seconds"] == 3 * (4 * 4 + 2 * 8 + 16 + 32)
    assert times[16]["seconds"] == 3 * (4 + 8 + 16 + 32)
    assert times[16]["utilisation"] == pytest.approx(256 / (16 * 60))
    looking = asked(capsys, "plan", *options, "--seconds-per-look", 0.5)
    assert looking["seconds"] == 256 * 3 + 30 * 0.5
    assert "seconds" not in asked(capsys, "plan", *options[:4])


def test_asha_keeps_workers_busy(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--arms", 1000, "--budget", 3000, "--workers", 16, "--policy")
    asha = asked(capsys, "plan", *options, "asha", "--max-pulls", 9)
    halving = asked(capsys, "plan", *options, "successive-halving", "--budget", 11000)
    assert asha["utilisation"] > 0.9 > halving["utilisation"]
    assert run("plan", *options, "asha", "--max-pulls", 9) == 0
    assert "16 workers" in capsys.readouterr().out


def test_tune_says_how_busy_its_workers_were(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tune = ("tune", "--arms", 4, "--budget", 16, "--param", "x=uniform:0:1", "--workers", 2)
    assert run(*tune, "--", "echo", "{x}") == 0
    assert "\n2 workers were busy " in capsys.readouterr().out
    journal = ("--journal", tmp_path / "j.jsonl", "--json")
    assert run(*tune, *journal, "--", "echo", "{x}") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["workers"] == 2
    assert answer["utilisation"] == answer["busy_seconds"] / (2 * answer["seconds"])
    assert run(*tune, *journal, "--", "echo", "{x}") == 0
    assert "workers" not in json.loads(capsys.readouterr().out), "all of it was done before"


@pytest.mark.parametrize(
    ("option", "value"), [("workers", "0"), ("workers", "x"), ("seconds-per-pull", "-1")]
)
def test_workers_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    message = refused(capsys, "plan", "--arms", 4, "--budget", 64, f"--{option}", value)
    assert option in message
    assert value in message


def test_plan_of_rejects(capsys: pytest.CaptureFixture[str]) -> None:
    plan = asked(capsys, "plan", "--arms", 10, "--budget", 1000, "--policy", "successive-rejects")
    assert [rung["upto"] for rung in plan["rungs"]] == [41, 46, 51, 59, 68, 82, 102, 136, 204]
    assert (plan["pulls"], plan["observations"]) == (993, 54)
    assert plan["settling"] == []


def longest(policy: str) -> tuple[object, ...]:
    return ("--max-pulls", 9) if takes(policy, "max_pulls") else ()


@pytest.mark.parametrize("policy", POLICIES)
def test_plan_for_people(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    options = ("--arms", 20, "--budget", 1000, "--policy", policy, *longest(policy))
    assert run("plan", *options) == 0
    printed = capsys.readouterr().out
    assert "pulls of a budget of 1,000" in printed
    assert ("brought to" in printed) != ("decides by what it sees" in printed)
    assert ("Theorem 1" in printed) == (policy == "successive-halving")
    assert ("rung by rung" in printed) == (policy == "successive-halving")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_planned_is_what_happened_or_the_most_that_could(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, policy: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(",".join(str((r * c) % 7) for c in range(9)) for r in range(20)))
    options = ("--budget", 321, "--policy", policy, *longest(policy))
    plan = asked(capsys, "plan", "--arms", 20, *options)
    played = asked(capsys, "replay", path, *options)
    planned, spent = (
        (plan["pulls"], plan["observations"]),
        (played["pulls"], played["observations"]),
    )
    if plan["exact"]:
        assert spent == planned
    else:
        assert spent[0] <= planned[0]
        assert spent[1] <= planned[1]


def test_plan_of_halving_up_to_a_horizon(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--arms", 64, "--max-pulls", 51)  # which makes it the default
    plan = asked(capsys, "plan", *options, "--budget", 652, "--eta", "3/2")
    assert plan["policy"] == "horizon-halving"
    assert (plan["eta"], plan["drawn"], plan["pulls"]) == ("3/2", 64, 652)
    assert [rung["arms"] for rung in plan["rungs"][:4]] == [64, 42, 28, 18]
    assert run("plan", *options, "--budget", 65) == 0
    assert "17 of 64" in capsys.readouterr().out
    assert run("plan", *options, "--budget", 4000) == 0
    assert "736 pulls stay unspent" in capsys.readouterr().out
    assert "eta=1 " in refused(capsys, "plan", *options, "--budget", 652, "--eta", "1")


def test_plan_where_looks_are_paid_for(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--arms", 64, "--max-pulls", 51, "--budget", 1000, "--policy", "priced-halving")
    for look_cost in ("0", "1/2", "10"):
        plan = asked(capsys, "plan", *options, "--look-cost", look_cost)
        assert 990 < plan["pulls"] + Fraction(look_cost) * plan["observations"] <= 1000
    assert "look_cost=-1 " in refused(capsys, "plan", *options, "--look-cost=-1")


@pytest.mark.parametrize(
    ("max_pulls", "pulls", "number"), [(9, 69, 3), (27, 357, 4), (81, 1581, 5), (243, 6831, 6)]
)
def test_plan_of_hyperband(
    capsys: pytest.CaptureFixture[str], max_pulls: int, pulls: int, number: int
) -> None:
    whole = asked(capsys, "plan", "--policy", "hyperband", "--max-pulls", max_pulls, "--eta", 3)
    assert (whole["pulls"], len(whole["brackets"])) == (pulls, number)
    options = ("--policy", "hyperband", "--max-pulls", max_pulls)
    again = asked(capsys, "plan", *options, "--budget", 3 * pulls + 1)
    assert (again["pulls"], len(again["brackets"])) == (3 * pulls + 1, 3 * number)
    less = asked(capsys, "plan", *options, "--budget", pulls - 1)
    assert less["pulls"] == pulls - 1
    assert less["brackets"][number - 1] != whole["brackets"][number - 1], "it does not fit"
    few = asked(capsys, "plan", *options, "--budget", 10**6, "--arms", 30)
    assert (few["pulls"], few["exact"]) == (30 * max_pulls, False)


def test_compare_plays_every_policy_in_one_table(
    capsys: pytest.CaptureFixture[str], table: Path
) -> None:
    answer = asked(capsys, "replay", table, "--budget", 500, "--compare")
    assert [row["policy"] for row in answer["policies"]] == list(POLICIES)
    assert all(row["pulls"] <= 500 for row in answer["policies"])
    assert all(row["observations"] <= row["pulls"] for row in answer["policies"])
    assert run("replay", table, "--budget", 500, "--compare") == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in POLICIES)
    assert run("replay", table, "--budget", 60, "--compare") == 0
    assert "successive-halving: budget=60 " in capsys.readouterr().out
    for option in (("--journal", "x"), ("--audit",)):
        message = refused(capsys, "replay", table, "--budget", 500, "--compare", *option)
        assert message.startswith(f"lastarm: {option[0]}=")


def test_compare_gives_the_same_table_again_however_long_look_ups_take(
    capsys: pytest.CaptureFixture[str], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(seed: int, *options: object) -> Any:
        random, now = Random(seed), [0.0]

        def clock() -> float:
            now[0] += random.choice([1e-6, 1e-3, 1.0])
            return now[0]

        monkeypatch.setattr("lastarm.runners.performer.perf_counter", clock)
        return asked(capsys, "replay", table, "--budget", 300, *options)

    assert compared(1, "--compare") == compared(2, "--compare")
    dear = ("--compare", "--look-cost", 20)
    assert compared(1, *dear) == compared(2, *dear)
    alone = [compared(seed, "--policy", "timed-halving") for seed in (1, 2)]
    assert alone[0] == alone[1]
    assert alone[0]["utilisation"] == 1


def test_compare_where_every_arm_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", losses=np.full((5, 4), math.nan))
    message = refused(capsys, "replay", tmp_path / "t.npz", "--budget", 100, "--compare", code=1)
    assert "5 of 5: its loss became nan" in message


def test_what_only_one_policy_takes(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    options = ("--budget", 500, "--policy", "doubling", "--of", "uniform")
    assert asked(capsys, "replay", table, *options)["complete"]
    options = ("--budget", 500, "--policy", "lil-ucb", "--constants", "proven")
    assert asked(capsys, "replay", table, *options)["complete"]
    assert "of='x' " in refused(
        capsys, "plan", "--arms", 9, "--budget", 500, "--policy", "doubling", "--of", "x"
    )


def test_a_pace_that_is_not_a_time(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    for pace in ("-1", "nan", "inf"):
        message = refused(capsys, "replay", table, "--budget", 500, "--seconds-per-pull", pace)
        assert message.startswith("lastarm: seconds_per_pull=")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_audit_says_how_close_it_was_and_what_is_true(
    capsys: pytest.CaptureFixture[str], table: Path, policy: str
) -> None:
    answer = asked(capsys, "replay", table, "--budget", 400, "--policy", policy, "--audit")
    audit = answer["audit"]
    assert audit["close_calls"] == sum(row["close"] for row in audit["eliminations"])
    with np.load(table) as arrays:
        ends = arrays["losses"][:, -1]
    better = {int(row) for row in np.flatnonzero(ends < ends[answer["arm"]])}
    assert set(audit["truth"]["better_arms"]) == better
    assert run("replay", table, "--budget", 400, "--policy", policy, "--audit") == 0
    assert "an estimate and never a proof" in capsys.readouterr().out


def test_replay_answers_with_the_files_row(
    capsys: pytest.CaptureFixture[str], table: Path
) -> None:
    answer = asked(capsys, "replay", table, "--budget", 600)
    assert answer["complete"] is True
    assert answer["pulls"] <= 600
    assert answer["policy"] == "successive-halving"
    with np.load(table) as arrays:
        losses = arrays["losses"]
    assert answer["loss"] in losses[answer["arm"]]
    for seed in range(5):
        drawn = asked(capsys, "replay", table, "--budget", 600, "--arms", 4, "--seed", seed)
        assert drawn["config"] == {"row": drawn["arm"]}
        assert drawn["loss"] == losses[drawn["arm"], -1]


def test_replay_for_people(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    assert run("replay", table, "--budget", 600, "--policy", "successive-rejects") == 0
    printed = capsys.readouterr().out
    assert "Recommended: arm " in printed
    assert "pulls of a budget of 600" in printed


def test_a_test_loss_that_is_not_a_number_is_null(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    np.savez(tmp_path / "t.npz", losses=np.ones((3, 3)), test=np.full(3, np.nan))
    assert asked(capsys, "replay", tmp_path / "t.npz", "--budget", 30)["test_loss"] is None


def test_a_level_past_the_last_column_repeats_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n3,2\n2,3\n")
    answer = asked(capsys, "replay", path, "--budget", 1000)
    assert (answer["arm"], answer["loss"], answer["pulls"]) == (0, 2.0, 1000)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--arms", "0", "--budget", "9"), ("arms=0 ",)),
        (("--arms", "4", "--budget", "0"), ("budget=0 ",)),
        (("--arms", "4", "--budget", "-1"), ("budget=-1 ",)),
        (("--arms", "4", "--budget", "1.5"), ("budget='1.5' ",)),
        (("--arms", "4", "--budget", "3x"), ("budget='3x' ",)),
        (("--arms", "4", "--budget", "inf"), ("budget='inf' ",)),
        (("--arms", "4", "--budget", "9" * 5000), ("budget=(a very large", "at most")),
        (("--arms", "4", "--budget", "7"), ("budget=7 ", " 8", " 3 ")),  # what would do
        (
            ("--arms", "4", "--budget", "1", "--policy", "asha", "--max-pulls", "8"),
            ("budget=1 ", " 2.\n"),
        ),
        (("--arms", "4", "--budget", "99", "--eta", "1"), ("eta=1 ",)),
        (("--arms", "4", "--budget", "9", "--policy", "best"), ("'best'", "successive-rejects")),
        (("--arms", "4", "--budget", "9", "--policy", "uniform", "--eta", "2"), ("eta=2",)),
        (("--arms", "4"), ("successive-halving", "--budget")),
        (("--budget", "4"), ("successive-halving", "--arms")),
        (("--arms", "4", "--budget", "9", "--policy", "asha"), ("asha", "--max-pulls")),
        (("--arms", "4", "--budget", "9", "--delta", "0.1"), ("delta=0.1", "lucb")),
        (("--arms", "4", "--budget", "9", "--policy", "lucb", "--delta", "2"), ("delta=2 ",)),
        (("--arms", "4", "--budget", "9", "--policy", "lucb", "--delta", "x"), ("delta='x'",)),
        (("--arms", "1" + "0" * 21, "--budget", "5"), ("arms=1000",)),
        (("--arms", "4", "--budget", "1" + "0" * 400), ("budget=1000",)),
        (("--arms", "4", "--budget", "9", "--what"), ("--what", "--help")),
    ],
)
def test_bad_arguments(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: tuple[str, ...]
) -> None:
    message = refused(capsys, "plan", *arguments)
    assert all(word in message for word in says), message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.npz", None, "missing.npz"),
        ("missing.csv", None, "missing.csv"),
        (".", None, "directory"),
        ("empty.npz", b"", "empty.npz"),
        ("empty.csv", b"", "empty.csv"),
        ("text.csv", b"hello\nworld\n", "line 2"),
        ("hole.csv", b"0.5,,0.25\n0.5,0.5,0.5\n", "line 1"),
        ("text.npz", b"hello", "text.npz"),
        ("ragged.csv", b"1,2\n3\n", "ragged.csv"),
        ("binary.csv", bytes(range(256)), "binary.csv"),
        ("cut.npz", b"PK\x03\x04 something", "cut.npz"),
    ],
)
def test_a_file_that_is_not_a_table(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    content: bytes | None,
    says: str,
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    message = refused(capsys, "replay", path, "--budget", 100)
    assert says in message


def test_arrays_that_are_not_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arrays: list[dict[str, Any]] = [
        {"curves": np.zeros((2, 2))},
        {"losses": np.zeros(3)},
        {"losses": np.array([["a", "b"]])},
        {"losses": np.array([[{}]], dtype=object)},
        {"losses": np.zeros((2, 3)), "test": np.zeros(5)},
    ]
    for content in arrays:
        np.savez(tmp_path / "t.npz", allow_pickle=True, **content)
        refused(capsys, "replay", tmp_path / "t.npz", "--budget", 100)


def test_more_arms_than_rows(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    message = refused(capsys, "replay", table, "--budget", 9999, "--arms", 31)
    assert "arms=31 " in message


def test_a_table_of_nan_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", losses=np.full((5, 4), math.nan))
    for journal in ((), ("--journal", tmp_path / "j.jsonl"), ("--journal", tmp_path / "j.jsonl")):
        message = refused(capsys, "replay", tmp_path / "t.npz", "--budget", 100, *journal, code=1)
        assert "5 of 5: its loss became nan" in message


def test_a_journal_is_resumed_and_a_changed_search_refused(
    capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "j.jsonl"
    options = ("--arms", 20, "--journal", journal)
    first = asked(capsys, "replay", table, "--budget", 600, *options)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    again = asked(capsys, "replay", table, "--budget", 600, *options)
    assert again["digest"] == first["digest"]
    assert "599" in refused(capsys, "replay", table, "--budget", 599, *options, code=3)
    assert "seed" in refused(
        capsys, "replay", table, "--budget", 600, "--seed", 1, *options, code=3
    )
    other = ("--policy", "uniform")
    assert "'uniform'" in refused(
        capsys, "replay", table, "--budget", 600, *other, *options, code=3
    )
    np.savez(table, losses=np.zeros((30, 20)))
    assert "table" in refused(capsys, "replay", table, "--budget", 600, *options, code=3)


def test_a_torn_end_is_told_and_a_damaged_journal_refused(
    capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "j.jsonl"
    command = ("replay", table, "--budget", 600, "--journal", journal)
    first = asked(capsys, *command)
    content = journal.read_bytes()
    journal.write_bytes(content[:-5])
    assert run(*command, "--json") == 0
    again = capsys.readouterr()
    assert str(journal) in again.err
    assert json.loads(again.out)["digest"] == first["digest"]
    journal.write_bytes(content.replace(b'"pull"', b'"pill"', 1))
    assert "line 2" in refused(capsys, *command, code=3)


def test_killed_in_the_middle_it_carries_on_as_if_nothing_had_happened(
    capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "j.jsonl"
    command = ["replay", str(table), "--budget", "300", "--journal", str(journal)]
    slow = [*LASTARM, *command, "--seconds-per-pull", "0.02"]
    for _ in range(2):
        with subprocess.Popen(slow) as process:
            size = journal.stat().st_size if journal.exists() else 0
            while not (journal.exists() and journal.stat().st_size > size + 3000):
                assert process.poll() is None
                time.sleep(0.01)
            assert f"{process.pid}" in refused(capsys, *command, code=3)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
    resumed = asked(capsys, *command)
    assert resumed["complete"]
    assert resumed["repeated"] > 0
    whole = asked(capsys, "replay", table, "--budget", 300)
    assert resumed["digest"] == whole["digest"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_the_recommendation_so_far(
    capsys: pytest.CaptureFixture[str],
    table: Path,
    tmp_path: Path,
    number: signal.Signals,
    code: int,
) -> None:
    journal = tmp_path / "j.jsonl"
    command = ["replay", str(table), "--budget", "300", "--journal", str(journal), "--json"]
    slow = [*LASTARM, *command, "--seconds-per-pull", "0.02"]
    with subprocess.Popen(slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (journal.exists() and len(read(journal)) > 20):
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert err == b""
    answer = json.loads(out)
    assert answer["complete"] is False
    assert answer["arm"] is not None
    assert asked(capsys, *command[:-1])["complete"] is True


def test_help_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    whole = capsys.readouterr().out
    assert all(name in whole for name in ("demo", "plan", "replay"))
    assert run() == 0
    assert capsys.readouterr().out == whole
    for name in ("plan", "replay", "demo"):
        assert run(name, "--help") == 0
        printed = capsys.readouterr().out
        assert "--json" in printed
        assert f"lastarm {name}" in printed
    assert run("--version") == 0
    assert "0.1.0" in capsys.readouterr().out


def test_a_shell_is_told_how_words_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def completed(*words: str) -> set[str]:
        monkeypatch.setenv("_LASTARM_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["lastarm", *words]))
        monkeypatch.setenv("COMP_CWORD", f"{len(words)}")
        assert run() == 0
        return set(capsys.readouterr().out.split())

    assert completed("rep") == {"plain,replay", "plain,report", "plain,reproduce"}
    assert completed("tune", "--pol") == {"plain,--policy"}
    assert completed("tune", "--policy", "as") == {"plain,asha"}
    assert completed("show", "") == {"file,"}


def test_the_demo_tunes_something_real(capsys: pytest.CaptureFixture[str]) -> None:
    answer = asked(capsys, "demo")
    halving, uniform = answer["successive-halving"], answer["uniform"]
    assert halving["pulls"] <= answer["budget"]
    assert uniform["pulls"] <= answer["budget"]
    assert halving["loss"] < uniform["loss"]
    assert halving["test_error"] < 0.05


def test_the_demo_for_people(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("lastarm.cli.demo")
    monkeypatch.setattr(module, "ARMS", 16)
    monkeypatch.setattr(module, "BUDGET", 64)
    assert run("demo") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    for words in ("Recommended: arm", "times as many", "uniform", "learning_rate"):
        assert words in shown.out


def test_output_into_a_closed_pipe_is_no_traceback() -> None:
    plan = [
        *LASTARM,
        "plan",
        "--arms",
        "200",
        "--budget",
        "99999",
        "--policy",
        "successive-rejects",
    ]
    with subprocess.Popen(plan, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        assert process.stderr.read() == b""


def test_the_package_needs_only_its_core_to_be_imported() -> None:
    code = (
        "import sys, lastarm; print([m for m in ('rich', 'click', 'pytest') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert shown.stdout.strip() == "[]"

"""The command in a shell: closed outputs, readers that leave, other encodings, limits, signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = f"'{sys.executable}' -m lastarm"
MODULE = "def größe(config):\n    while True:\n        yield config['größe']\n"
TUNE = "tune trainers:größe --arms 4 --budget 24 --param größe=uniform:0:1"
WORDS = {
    "help": "--help",
    "version": "--version",
    "demo": "demo --help",
    "export": "export größe.jsonl -o arms.csv",
    "plan": "plan --arms 64 --budget 4096",
    "replay": "replay curves.csv --budget 24",
    "report": "report größe.jsonl",
    "reproduce": "reproduce --help",
    "resume": "resume größe.jsonl",
    "show": "show größe.jsonl",
    "tune": TUNE,
}
CURVES = "\n".join(",".join(f"{arm / 8 + 1 / level}" for level in range(1, 9)) for arm in range(4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("terminal")
    (made / "trainers.py").write_text(MODULE, encoding="utf-8")
    (made / "curves.csv").write_text(CURVES)
    ran = in_shell(f"{COMMAND} {TUNE} --journal größe.jsonl", made)
    assert ran.returncode == 0, ran.stderr
    return made


def in_shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def require_one_line(said: str) -> None:
    """An error is one line, which begins with our name."""
    assert said.startswith("lastarm: "), said
    assert said.count("\n") == 1, said


# Outputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_without_an_output_nothing_is_done(folder: Path, words: str) -> None:
    ran = in_shell(f"{COMMAND} {words} >&-", folder)
    assert ran.returncode == 2
    require_one_line(ran.stderr)
    assert in_shell(f"{COMMAND} {words} >&- 2>&- <&-", folder).returncode == 2


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_a_reader_that_leaves_ends_it_without_a_word(folder: Path, words: str) -> None:
    # What the reader does not read does not fit into the pipe, which is closed before the command
    # begins.
    line = f"{COMMAND} {words} 2>said; echo $? >code"
    in_shell(f"{{ cat <&3 3<&-; {line}; }} 3< <(sleep 0.1) | true", folder)
    code, said = ((folder / name).read_text().strip() for name in ("code", "said"))
    assert code == "141"
    assert "lastarm: " not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "2>/dev/full"])
def test_it_does_without_the_other_streams(folder: Path, closed: str) -> None:
    ran = in_shell(f"{COMMAND} resume größe.jsonl --json {closed}", folder)  # it says more there
    assert ran.returncode == 0
    assert ran.stdout
    assert "Traceback" not in ran.stderr


def test_a_file_that_is_opened_is_not_taken_for_a_closed_stream(folder: Path) -> None:
    speaks = "import os; os.write(2, b'words of a library'); os.write(0, b'more of them')"
    (folder / "speaks.py").write_text(f"{speaks}\n{MODULE}", encoding="utf-8")
    tune = TUNE.replace("trainers:", "speaks:")
    ran = in_shell(f"{COMMAND} {tune} --journal spoken.jsonl 2>&- <&-", folder)
    assert ran.returncode == 0
    assert b"words" not in (folder / "spoken.jsonl").read_bytes()


def test_a_full_disk_is_told(folder: Path) -> None:
    ran = in_shell(f"{COMMAND} show größe.jsonl >/dev/full", folder)
    assert ran.returncode == 2
    require_one_line(ran.stderr)


# Encodings and limits ---------------------------------------------------------------------------

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, ASCII])
def test_letters_that_the_terminal_does_not_know_are_no_traceback(
    folder: Path, environment: dict[str, str]
) -> None:
    for words in ("show größe.jsonl", "resume größe.jsonl", "show fehlt-größe.jsonl"):
        ran = in_shell(f"{COMMAND} {words}", folder, **environment)
        assert ran.returncode in (0, 2, 3)
        assert "Traceback" not in ran.stderr
        if ran.returncode:
            require_one_line(ran.stderr.splitlines(keepends=True)[-1])
        if environment is not ASCII:
            assert ran.returncode == 3 * ("fehlt" in words)


@pytest.mark.parametrize(
    ("words", "megabytes"), [("--version", 30), ("plan", 80), ("demo", 120), ("report", 900)]
)
def test_too_little_memory_is_told(folder: Path, words: str, megabytes: int) -> None:
    line = f"ulimit -v {megabytes * 1000}; {COMMAND} {WORDS.get(words, words)}"
    if words == "demo":
        line = line.replace("--help", "")
    ran = in_shell(line, folder)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    require_one_line(ran.stderr.splitlines(keepends=True)[-1])


# Signals ----------------------------------------------------------------------------------------

# Sends a signal when a module is looked for: so it comes at this instant, whatever the load.
AT_AN_IMPORT = """
import os, sys
class Signalled:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Signalled())
from lastarm.cli import main
sys.argv[1:] = {words!r}
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    "module", ["lastarm.cli.command", "click", "numpy", "lastarm.cli.tune", "rich", "trainers"]
)
def test_a_signal_at_any_instant_gives_one_line_and_its_exit_code(
    folder: Path, module: str, number: int
) -> None:
    words = TUNE.split()
    code = AT_AN_IMPORT.format(module=module, number=int(number), words=words)
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (128 + number, "")
    require_one_line(ran.stderr)


def test_little_is_loaded_before_signals_are_listened_to() -> None:
    code = "import sys; had = {*sys.modules}; import lastarm.cli; print(*{*sys.modules} - had)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert not loaded & {"typing", "re", "click", "numpy", "rich", "lastarm.errors", "threading"}


ENDING = """
import gc, os, signal, sys, weakref
from lastarm.cli.ending import Signals
signals = Signals()
signals.interrupt()
class Thing: pass
def lost(_):
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000): pass
thing = Thing()
kept = weakref.ref(thing, lost)
del thing
print("it went on")
"""


def test_a_signal_that_python_would_lose_ends_it_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (128 + signal.SIGTERM, "")
    require_one_line(ran.stderr)


def test_a_child_that_was_forked_ends_by_the_signal_itself() -> None:
    code = (
        "import os, signal, time\n"
        "from lastarm.cli.ending import Signals\n"
        "signals, (ready, begun) = Signals(), os.pipe()\n"
        "if child := os.fork():\n"
        "    os.read(ready, 1)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    print(os.waitpid(child, 0)[1])\n"
        "else:\n"
        "    os.write(begun, b'.')\n"
        "    time.sleep(60)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout.strip(), ran.stderr) == (f"{int(signal.SIGTERM)}", "")

"""The documents: every block of code in them runs, and the site builds without a warning.

A page is a story: its blocks run in their order, in an empty folder of its own.

- `python` has prompts, and is a doctest; later blocks know the names of earlier ones.
- `sh` is run as it is (but `make` only says what it would do). A `text` straight after it is what
  it prints, as in doctests: `...` stands for anything. In a `text about` every number stands for
  any number, since losses and times are not the same everywhere. Any other `text` is a drawing.
- `{code-block}` with a `:caption:` puts a file of that name into the folder.
- `python` or `sh` with the name of a file of examples/, which tests/test_examples.py runs, shows
  lines of it, in its order, and puts it into the folder.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

import lastarm

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OF_SPHINX = {"{eval-rst}", "{include}", "{toctree}"}  # building the site tries them
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: the words after its fence, its options, what is in it, and where it is."""

    kind: str
    argument: str
    options: dict[str, str]
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page."""
    found = []
    for token in MarkdownIt().parse(page):
        if token.type == "fence":
            kind, _, argument = token.info.partition(" ")
            text, options = token.content, {}
            if kind.startswith("{"):
                head = re.match(r"(:[\w-]+:.*\n)*\n?", text)
                assert head
                options = dict(re.findall(r":([\w-]+): ?(.*)\n", head[0]))
                text = text[head.end() :]
            assert token.map
            found.append(Block(kind, argument.strip(), options, text, token.map[0] + 1))
    return found


def run(page: Path, found: list[Block], folder: Path) -> None:
    """Run the blocks of a page; the first that fails says where it is."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block, following in zip_longest(found, found[1:]):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        match block.kind:
            case "python" | "sh" if block.argument:
                shutil.copy(exemplified(block, where), folder)
            case "python":
                doctested(block.text, names, where)
            case "sh":
                adjacent = following and following.line == block.line + block.text.count("\n") + 3
                commanded(block.text, following if adjacent else None, folder, where)
            case "text":
                pass
            case "{code-block}" if "caption" in block.options:
                (folder / block.options["caption"]).write_text(block.text)
            case kind if kind not in OF_SPHINX:
                pytest.fail(f"{where}: nobody knows how to run a block of the kind {kind!r}")


def exemplified(block: Block, where: str) -> Path:
    """The example that a block shows lines of; some may be left out, and all moved to the left."""
    shown = (ROOT / block.argument).resolve()
    assert shown.is_relative_to(ROOT / "examples"), f"{where}: nobody runs {shown}"
    assert shown.is_file(), f"{where}: there is no {shown}"

    def within(margin: str) -> bool:
        rest = iter(shown.read_text().splitlines())
        return all(line in rest for line in indent(block.text, margin).splitlines())

    assert block.text.strip(), f"{where}: it shows nothing of {shown}"
    assert within("") or within("    "), f"{where}: these are not lines of {shown}"
    return shown


def doctested(text: str, names: dict[str, Any], where: str) -> None:
    """Its prompts give what is below them."""
    name, _, line = where.partition(":")
    test = doctest.DocTestParser().get_doctest(text, names, where, name, int(line))
    assert test.examples, f"{where}: a block of Python without prompts is not run. Give it some."
    test.globs = names  # not a copy: what is defined here is known below
    said: list[str] = []
    doctest.DocTestRunner(optionflags=LENIENT).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


def commanded(text: str, expected: Block | None, folder: Path, where: str) -> None:
    """The commands succeed, and print what is below them, if there is anything."""
    make = f'make() {{ command make --dry-run --directory="{ROOT}" "$@"; }}\n'
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-eu", "-c", make + text],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "99"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, f"{where}: exit code {ran.returncode}\n{ran.stdout}"
    if expected is not None:
        texts = expected.text, ran.stdout
        if expected.argument == "about":
            texts = without_numbers(expected.text), without_numbers(ran.stdout)
        same = doctest.OutputChecker().check_output(*texts, LENIENT)
        assert same, f"{where}: expected\n{expected.text}\nbut it printed\n{ran.stdout}"


def without_numbers(text: str) -> str:
    """The same for all numbers, and for lines as wide as they are."""
    return re.sub(r"─+", "─", re.sub(r"\d[\d.,]*(e[+-]\d+)?", "0", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, blocks(page.read_text()), tmp_path)


@pytest.mark.parametrize(
    "broken",
    [
        "```python\n>>> 1 + 1\n3\n```",
        "```python\nprint(1)\n```",
        "- in a list:\n\n  ```sh\n  false\n  ```",
        "```sh\nlastarm tune\n```",
        "```sh\necho one\n```\n\n```text\ntwo\n```",
        "```sh\necho 1\n```\n\n```text\n2\n```",
        "```sh\nmake no-such-target\n```",
        "```ruby\n1\n```",
        "```\n1\n```",
        "```{code-block} python\nprint(1)\n```",
        "```python pyproject.toml\n[project]\n```",
        "```python examples/no_such_file.py\n1\n```",
        "```python examples/cluster.py\nimport no_such_line\n```",
        "```python examples/cluster.py\n```",
        "```{literalinclude} ../examples/cluster.py\n```",
        ":::{note}\n```python\n>>> 1 + 1\n3\n```\n:::",
    ],
)
def test_a_block_that_does_not_run_is_noticed(broken: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run(ROOT / "docs" / "index.md", blocks(broken), tmp_path)


def test_a_page_is_a_story(tmp_path: Path) -> None:
    story = (
        "```{code-block} python\n:caption: say.py\n\nprint('one two three')\n```\n"
        "```python\n>>> word = 'two'\n```\n"
        "```sh\npython say.py\n```\n\n```text\none ... three\n```\n"
        "```sh\necho 1.5e-07 s\n```\n\n```text about\n2 s\n```\n"
        "```text\na drawing\n```\n"
        "```python\n>>> word\n'two'\n```\n"
    )
    run(ROOT / "docs" / "index.md", blocks(story), tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ROOT / "docs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


def test_the_site_has_every_page_and_asks_nobody_for_anything(site: Path) -> None:
    for page in PAGES[2:]:
        html = (site / page.relative_to(ROOT / "docs")).with_suffix(".html").read_text()
        assert not re.findall(r"<(?:script|link|img)\b[^>]*(?:src|href)=.(?:https?:)?//", html)
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()[^;)]*//", sheet.read_text())


def test_the_site_tells_of_every_public_name(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    assert [name for name in lastarm.__all__ if f'id="lastarm.{name}"' not in pages] == []


RESULTS, FAULTS = "benchmarks/RESULTS.md", "docs/faults.md"
RANK = r"rank, all 16 files\*\*.*?\| {} \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|"
LOOKS = r"rank, taskset\*\*.*?\| {} (?:\| [\d.]+ ){{5}}\| ([\d,]+) \|"
ARENA = "benchmarks/arena/README.md"
REGRET = r"lcbench, 24 tasks: mean regret.*?\| {} (?:\| [\d.]+ ± [\d.]+ ){{2}}\| ([\d.]+) ±"
NUMBER = r"\b\d[\d,.]*\b"
# Row of the README → its numbers in their order: given, or found in a file by a pattern.
MEASURED: dict[str, list[str | tuple[str, str]]] = {
    "The budget is exact": [
        (FAULTS, rf"\| F12 \|.*?({NUMBER}) searches, ({NUMBER}) crashes,.*?({NUMBER}) broken"),
    ],
    "Killed is not lost": [
        (FAULTS, rf"\| F1 \|.*?({NUMBER}) kills,.*?({NUMBER}) \w+ losses lost"),
        (FAULTS, rf"\| F1 \|[^\n]*?({NUMBER}) other digests"),
    ],
    "Any runner, one answer": [
        (FAULTS, rf"\| F11 \|.*?({NUMBER}) schedules,[^\n]*?({NUMBER}) other digests"),
    ],
    "Deciding is cheap": [
        (RESULTS, rf"among 10,000 arms, in memory.*?ASHA, an ask and a tell \| ({NUMBER}) µs"),
        (RESULTS, rf"among 10,000 arms, in memory.*?our slower policy \| ({NUMBER}) times"),
    ],
    "Arms train together": [
        (RESULTS, r"Ridge regression: ([\d,]+) arms,[^\n]*float64"),
        (RESULTS, rf"Ridge regression:[^\n]*float64.*?\| numba / lastarm \| ({NUMBER}) times"),
        (RESULTS, r"Kernel SVM by Pegasos:[^\n]*float64.*?lastarm, ([\d,]+) arms together"),
        (RESULTS, rf"Kernel SVM by Peg[^\n]*float64.*?\| numba / lastarm \| ({NUMBER}) times"),
    ],
    "64 settings take less time than training the best one": [
        (RESULTS, rf"a9a: scikit-learn's one full training / lastarm \| ({NUMBER}) times"),
        (RESULTS, r"the best on VAL alone, by scikit-learn \|  \| [\d.]+ \| (\d+) \|"),
        (RESULTS, rf"make_class\w+: scikit-learn's one full [^\n]*?\| ({NUMBER}) times"),
        (RESULTS, rf"a9a: fastest peer that gets there / lastarm \| ({NUMBER}) times"),
        (RESULTS, rf"make_class\w+: fastest peer that gets [^\n]*?\| ({NUMBER}) times"),
    ],
    "The same budget finds better arms": [
        *("0", "1", "10"),
        (RESULTS, r"Mean normalised rank, all (\d+) files"),
        (RESULTS, RANK.format("horizon-halving")),
        (RESULTS, RANK.format("Syne Tune's ASHA")),
        (RESULTS, RANK.format("Optuna's SuccessiveHalvingPruner")),
        (RESULTS, RANK.format("Ray Tune's ASHA")),
    ],
    "Arms are chosen as the search goes": [
        *("0", "1", "20"),
        (ARENA, r"lcbench, (\d+) tasks: mean regret"),
        (ARENA, REGRET.format("lastarm: brackets, GaussianProcess")),
        (ARENA, REGRET.format("lastarm: random arms, horizon-halving")),
        (ARENA, REGRET.format("Optuna: TPE")),
        (ARENA, REGRET.format("random search")),
    ],
    "Looking has a price": [
        (RESULTS, LOOKS.format("successive-halving")),
        "64",
        (RESULTS, LOOKS.format("lil-ucb")),
    ],
    "What it did can be judged": [
        ("docs/jamieson2015/README.md", r"is at \d+% to (\d+)% of z"),
        "1",
        ("docs/jamieson2015/README.md", r"and (\d+)% of z for n = \d+; one pull"),
        ("docs/jamieson2015/README.md", r"and \d+% of z for n = (\d+); one pull"),
    ],
}


def test_the_numbers_of_the_readme_are_those_that_were_measured() -> None:
    written = (ROOT / "README.md").read_text()
    claimed = written.partition("<!-- numbers")[2].partition("<!-- end of numbers -->")[0]
    rows = dict(re.findall(r"^\| \*\*(.*?)\.?\*\*[^|]*\| (.*) \|$", claimed, re.M))
    assert rows.keys() == MEASURED.keys()
    for row, sources in MEASURED.items():
        numbers: list[str] = []
        for source in sources:
            if isinstance(source, str):
                numbers.append(source)
            else:
                found = re.search(source[1], (ROOT / source[0]).read_text(), re.S)
                assert found, f"{source[0]} does not say what {row!r} claims"
                numbers += found.groups()
        assert re.findall(NUMBER, rows[row]) == numbers, row
    also = re.search(LOOKS.format("exp3"), (ROOT / RESULTS).read_text(), re.S)
    assert also
    assert also[1] in rows["Looking has a price"], "lil'UCB and EXP3 take as many"

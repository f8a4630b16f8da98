"""F25: networks and trees of real libraries on worker processes, killed in every way, and resumed.

A Pipeline that ends in a network, and a LightGBM model, each by several policies and by
`HalvingSearch`. The coordinator, a worker or both are killed, also while workers are frozen and
after Ctrl-C; some searches are stopped by SIGTERM. Each comes to the digest of a serial search
that nothing happened to; what ASHA has decided stays decided. Nothing is left behind: no process,
no temporary file, no trained state that an undisturbed search would not keep.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any, NamedTuple

from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from faults.disk import in_memory
from faults.processes import (
    SECONDS_TO_HANG,
    came_true,
    forked,
    in_shared_memory,
    orphans,
    outcome,
    settle_in,
)
from faults.reference import Seen, check_finished, note, seen_in
from faults.strikes import (
    AT_ANY_TIME,
    BOTH,
    COORDINATOR,
    GOES_ON,
    KINDS,
    SIGTERM,
    signalled,
    strike,
)
from lastarm import (
    ASHA,
    Forest,
    HorizonHalving,
    Hyperband,
    Integer,
    LogUniform,
    Policy,
    Result,
    SuccessiveHalving,
    search,
)
from lastarm.errors import CheckpointReplaced, JournalRepaired
from lastarm.events import Event, Failure, Loss, Pull
from lastarm.journal import read
from lastarm.sklearn import HalvingSearch
from lastarm.trainers import arm_seed
from lastarm.trainers.estimators import Estimator

WORKERS = 2
STRIKES = 6  # at most, in a search
LOSSES = 2  # at most, that come in a life before it is struck
LOADING = 3.0  # seconds at most into a life that is struck before it has come to anything
PAUSE = 0.05  # seconds at most between what is awaited and the strike
NOTES = "LASTARM_FAULTS_NOTES"  # the file in which looks at a model are noted


# What is searched ------------------------------------------------------------------------------


class Model(NamedTuple):
    """An estimator, what may vary, and how many steps make a pull of some milliseconds."""

    estimator: Any
    space: Mapping[str, Any]
    steps: int


MODELS = {
    "network": Model(
        Pipeline([("scale", StandardScaler()), ("network", MLPClassifier((12,)))]),
        {
            "network__learning_rate_init": LogUniform(1e-4, 1e-1),
            "network__alpha": LogUniform(1e-6, 1),
        },
        steps=4,
    ),
    "trees": Model(
        LGBMClassifier(min_child_samples=5, verbose=-1),
        {"learning_rate": LogUniform(0.01, 0.5), "num_leaves": Integer(2, 6)},
        steps=1,
    ),
}


class Way(NamedTuple):
    """How to search: a policy for the first budget, and the budgets that follow."""

    policy: Callable[[int], Policy]
    budgets: Sequence[int]
    arguments: Mapping[str, Any] = {}
    folds: int | None = None


WAYS: dict[str, Way] = {
    "Hyperband": Way(lambda budget: Hyperband(16, budget, max_pulls=9), [78]),
    "a sampler": Way(
        lambda budget: HorizonHalving(16, budget, max_pulls=9), [72], {"sampler": Forest()}
    ),
    "ASHA": Way(lambda budget: ASHA(14, budget, max_pulls=9), [72]),
    "the best state": Way(
        lambda budget: SuccessiveHalving(12, budget), [96], {"recommend": "best"}
    ),
    "folds": Way(lambda budget: SuccessiveHalving(10, budget), [80], folds=2),
    "extended midway": Way(lambda budget: SuccessiveHalving(10, budget), [40, 110]),
}
IN_ANY_ORDER = "ASHA"  # decides by who is first
FITTED, RESUMED = "HalvingSearch", "HalvingSearch with a journal"  # which have no `on_event`
SEARCHES = [(model, way) for way in (*WAYS, FITTED, RESUMED) for model in MODELS]


def ends(way: str) -> list[bool]:
    """Whether each of its ends is the last."""
    return [False, True] if way in WAYS and len(WAYS[way].budgets) > 1 else [True]


@cache
def digits() -> tuple[Any, Any]:
    """A few of them, of three kinds."""
    rows, kinds = load_digits(n_class=3, return_X_y=True)
    return rows[:180], kinds[:180]


def noted_score(model: Any, rows: Any, kinds: Any) -> float:
    """A score, which is noted."""
    if NOTES in os.environ:
        note(Path(os.environ[NOTES]), "looked")
    return -float(log_loss(kinds, model.predict_proba(rows), labels=model.classes_))


@cache
def trainer(model: str, folds: int | None) -> Estimator:
    """The arms."""
    estimator, _, steps = MODELS[model]
    return Estimator(estimator, *digits(), cv=folds, scoring="neg_log_loss", pulls_per_step=steps)


def play(
    model: str,
    way: str,
    *,
    last: bool = True,
    workers: int | None = None,
    journal: Path | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Result:
    """Begin a search, or go on with it, with its first budget or the last."""
    chosen = MODELS[model]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointReplaced)  # what counted is not trained again
        warnings.simplefilter("ignore", JournalRepaired)
        if way in (FITTED, RESUMED):
            halving = HalvingSearch(
                chosen.estimator,
                chosen.space,
                n_arms=8,
                budget=72 * chosen.steps,
                scoring=noted_score,
                n_jobs=workers,
                random_state=0,
                journal=journal if way == RESUMED else None,
            )
            return halving.fit(*digits()).result_
        policy, budgets, arguments, folds = WAYS[way]
        return search(
            trainer(model, folds),
            chosen.space,
            policy=policy(budgets[-1 if last else 0]),
            runner="processes" if workers else "serial",
            workers=workers,
            journal=journal,
            on_event=on_event,
            **arguments,
        )


class Undisturbed:
    """What serial searches come to that nothing happens to, each of which is run once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], tuple[str, list[Event]]] = {}

    def __call__(self, model: str, way: str) -> tuple[str, list[Event]]:
        """The digest, and what is in the journal.

        It is run in a child, so that no library starts a thread in this process, which forks.
        """
        if (model, way) not in self._known:
            journal = self._folder / f"{model} {way}.jsonl"

            def digest() -> str:
                return [play(model, way, last=last, journal=journal) for last in ends(way)][
                    -1
                ].digest

            said = outcome(digest)
            self._known[model, way] = said, read(journal) if journal.exists() else []
        return self._known[model, way]


class Strike(NamedTuple):
    """What is done, and when: so many seconds into a life, or after so many losses of it."""

    kind: str
    seconds: float | None
    losses: int
    pause: float

    @classmethod
    def drawn(cls, kind: str, random: Random) -> Strike:
        """At a random moment."""
        early = kind in AT_ANY_TIME and random.random() < 0.25
        seconds = random.uniform(0, LOADING) if early else None
        return cls(kind, seconds, random.randint(1, LOSSES), random.uniform(0, PAUSE))


# A search that is struck -----------------------------------------------------------------------


class Struck:
    """A search that lives as often as it takes, and what is known about it from outside."""

    def __init__(self, model: str, way: str, folder: Path, random: Random) -> None:
        self.strikes: Counter[str] = Counter()
        self.journal = folder / "search.jsonl"
        self._model, self._way, self._random = model, way, random
        self._temporary, self._said = folder / "tmp", folder / "said"
        self._counted, self._digest = folder / "counted", folder / "digest"
        self._mark = str(folder)

    @property
    def digest(self) -> str:
        """What it came to; nothing as long as it has not come to its end."""
        return self._digest.read_text() if self._digest.exists() else ""

    def live(self, strikes: list[Strike]) -> None:
        """Live until one of the strikes ends it, or to the end; those that fell are taken out."""
        before = self._events()
        life = Life(forked(self._play_all))
        kinds: list[str] = []
        while strikes and not set(kinds) - GOES_ON and self._has_come(strikes[0], life):
            kinds.append(self._fair(strikes.pop(0).kind, kinds))
            strike(kinds[-1], life.process, self._random)
        code = life.end()
        self.strikes.update(kinds)
        left = orphans(self._mark)
        signalled(signal.SIGKILL, *left)
        said = self._said.read_text(errors="replace") if self._said.exists() else ""
        fault = f"after {kinds}"
        by = {0, *(-signal.SIGTERM if kind == SIGTERM else -signal.SIGKILL for kind in kinds)}
        assert code in by, f"{fault}: it ended with {code}: {said}"
        assert not left, f"{fault}: processes {left} were left behind"
        assert "Traceback" not in said, f"{fault}: {said}"
        events = self._events()
        assert events[: len(before)] == before, f"{fault}: what was written has changed"
        lost = self._seen() - {seen_in(event) for event in events if isinstance(event, Loss)}
        assert not lost, f"{fault}: it lost {lost}"

    def _play_all(self) -> None:
        """In a child: begin or go on, to the end; then no more is open than before."""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        os.dup2(os.open(self._said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        settle_in(self._temporary, self._mark)
        os.environ[NOTES] = str(self._counted)
        before = _descriptors()
        try:
            result = self._played()
        except KeyboardInterrupt:  # it was ending
            return
        assert came_true(lambda: _descriptors() <= before, 5), f"{_descriptors()}, not {before}"
        if result.complete:
            self._digest.write_text(result.digest)

    def _played(self) -> Result:
        known = self._seen()

        def count(event: Event) -> None:
            if isinstance(event, Loss) and (seen := seen_in(event)) not in known:
                note(self._counted, " ".join(map(str, seen)))

        for last in [True] if known else ends(self._way):  # so it is extended midway
            result = play(
                self._model,
                self._way,
                last=last,
                workers=WORKERS,
                journal=self.journal,
                on_event=count,
            )
            if not result.complete:
                break
        return result

    def _has_come(self, strike: Strike, life: Life) -> bool:
        """Wait for the moment of a strike; whether there is something to be struck."""
        began, at_first = monotonic(), self._progress()

        def come() -> bool:
            if strike.seconds is not None:
                return monotonic() >= began + strike.seconds
            return self._progress() >= at_first + strike.losses

        came = came_true(lambda: come() or life.has_ended, SECONDS_TO_HANG)
        if came and not life.has_ended:
            sleep(strike.pause)
        return came and not life.has_ended

    def _fair(self, kind: str, before: Sequence[str]) -> str:
        """A strike that no arm is blamed for: three that died with their workers are too many.

        So in a life one worker is killed at most, and none while a pull was lost twice.
        """
        lost: Counter[Pull] = Counter()
        for event in self._events():
            if isinstance(event, Failure) and event.lost:
                lost[event.pull] += 1
            elif isinstance(event, Loss):
                del lost[event.pull]
        if kind in (*GOES_ON, BOTH) and (before or max(lost.values(), default=0) > 1):
            return COORDINATOR
        return kind

    def _events(self) -> list[Event]:
        return read(self.journal) if self.journal.exists() else []

    def _seen(self) -> set[Seen]:
        """What counted, as far as it is told."""
        if self._way not in WAYS or not self._counted.exists():
            return set()
        lines = map(str.split, self._counted.read_text().splitlines())
        return {(int(arm), int(upto), loss) for arm, upto, loss in lines}

    def _progress(self) -> int:
        return self._counted.read_bytes().count(b"\n") if self._counted.exists() else 0

    # In the end

    def check(self, digest: str, undisturbed: Sequence[Event]) -> None:
        """It came to the answer of the undisturbed search, and has left no more than that."""
        left = [str(path.relative_to(self._temporary)) for path in self._temporary.rglob("*")]
        assert not left, f"left in the temporary folder: {left[:5]}"
        if self._way == FITTED:
            assert self.digest == digest, "another digest"
            return
        events = self._events()
        if self._way == IN_ANY_ORDER:
            undisturbed, digest = events, self.digest
            outcome(self._compare_with_arms_alone)
        check_finished(self.journal, Result.of(undisturbed), "in the end")
        assert self.digest == digest, "another digest"
        levels: dict[int, int] = {}
        for event in events:
            if isinstance(event, Loss):
                arm, upto = event.pull.arm, event.pull.upto
                steps = upto - levels.get(arm, 0)
                assert event.work.trained == steps, f"{event.work.trained} pulls, not {steps}"
                levels[arm] = upto
        best = self._way in WAYS and "recommend" in WAYS[self._way].arguments
        kept = {path.name: path for path in Path(f"{self.journal}.states").iterdir()}
        expected = wanted_states(undisturbed, best=best)
        assert kept.keys() == expected.keys(), f"states {kept.keys() ^ expected.keys()}"
        for name, loss in wanted_states(events, best=best).items():
            digest = hashlib.sha256(kept[name].read_bytes()).hexdigest()
            assert loss.saved, f"{name} is not known"
            assert digest == loss.saved.digest, f"{name} is not what the journal says"
        self._resume_once_more()

    def _resume_once_more(self) -> None:
        """A search that has ended is only read."""
        before = self.journal.read_bytes()
        again = outcome(lambda: play(self._model, self._way, journal=self.journal).digest)
        assert again == self.digest, "resumed once more, it has another digest"
        assert self.journal.read_bytes() == before, "resumed once more, it has changed"

    def _compare_with_arms_alone(self) -> str:
        """Whatever was decided, each loss is that of the arm if it is trained alone."""
        alone, states = trainer(self._model, None), dict[int, Any]()
        for event in self._events():
            if isinstance(event, Pull) and event.config is not None:
                states[event.arm] = alone.start(event.config, arm_seed(0, event.arm))
            elif isinstance(event, Loss):
                state = states[event.pull.arm]
                alone.train(state, event.pull.upto - state.pulls)
                assert alone.loss(state) == event.value, f"another loss of {event.pull}"
        return ""


class Life:
    """A process in which a search goes on."""

    def __init__(self, process: int) -> None:
        self.process = process
        self._code: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it has."""
        if self._code is None:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def end(self) -> int | None:
        """Wait for its end; its exit code. None, if it had to be killed."""
        came_true(lambda: self.has_ended, SECONDS_TO_HANG)
        code = self._code
        if code is None:
            signalled(signal.SIGKILL, self.process)
            os.waitpid(self.process, 0)
        return code


def wanted_states(events: Iterable[Event], *, best: bool) -> dict[str, Loss]:
    """The files of states that a search keeps: the latest of each arm, and perhaps the best."""
    curves: dict[int, list[Loss]] = {}
    for event in events:
        if isinstance(event, Loss):
            curves.setdefault(event.pull.arm, []).append(event)
    kept = [curve[-1] for curve in curves.values()]
    if best:
        kept += [min(curve, key=lambda loss: loss.value) for curve in curves.values()]
    return {f"arm-{loss.pull.arm}-at-{loss.pull.upto}.state": loss for loss in kept}


def _descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# The campaign ----------------------------------------------------------------------------------


def struck(number: int, folder: Path, undisturbed: Undisturbed, strikes: int = STRIKES) -> Struck:
    """One search, struck that often at random moments, and what it came to."""
    model, way = SEARCHES[number % len(SEARCHES)]
    random = Random(number)
    kinds = [KINDS[(number * STRIKES + k) % len(KINDS)] for k in range(strikes)]
    random.shuffle(kinds)
    awaiting = [Strike.drawn(kind, random) for kind in kinds]
    one = Struck(model, way, folder, random)
    while not one.digest:
        one.live(awaiting)
    one.check(*undisturbed(model, way))
    return one


def run(tries: range, folder: Path) -> Figures:
    """That many searches; a few of them are struck less often, because each life takes seconds."""
    strikes: Counter[str] = Counter()
    shared = in_shared_memory(joblib=False)
    with in_memory(folder) as place:
        undisturbed = Undisturbed(place)
        for number in tries:
            own = place / str(number)
            own.mkdir()
            again = f"faults.real_arms.struck({number}, …), though at other instants"
            with replayable(again):
                often = STRIKES if len(tries) > SHORT else FEW_STRIKES
                strikes += struck(number, own, undisturbed, often).strikes
            shutil.rmtree(own)
        came_true(lambda: not in_shared_memory(joblib=False) - shared, 5)
        assert not (left := in_shared_memory(joblib=False) - shared), (
            f"left in shared memory: {left}"
        )
    stops = strikes.pop(SIGTERM, 0)
    return {
        "kills": strikes.total(),
        **{f"of {kind}": strikes[kind] for kind in KINDS if kind in strikes},
        "times SIGTERM": stops,
        "searches": len(tries),
        "kinds of search": Most(len(SEARCHES)),
        "acknowledged losses lost": 0,
        "acknowledged pulls repeated": 0,
        "other digests": 0,
        "orphans after 5 s": 0,
        "files left in TMPDIR and in shared memory": 0,
        "other states than undisturbed": 0,
        "descriptors left": 0,
        "untyped errors": 0,
    }


SHORT, FEW_STRIKES = 1, 2
REAL_ARMS = Campaign(
    "F25",
    "real models on worker processes, killed in every way",
    run,
    full=8 * len(SEARCHES),
    short=SHORT,
    paths=(
        *SEARCHING,
        "src/lastarm/compiled.py",
        "src/lastarm/policies/asha.py",
        "src/lastarm/policies/horizon_halving.py",
        "src/lastarm/policies/hyperband.py",
        "src/lastarm/policies/named.py",
        "src/lastarm/policies/parts/as_many.py",
        "src/lastarm/policies/parts/expectation.py",
        "src/lastarm/policies/parts/rungs.py",
        "src/lastarm/policies/parts/trust.py",
        "src/lastarm/samplers/forest.py",
        "src/lastarm/samplers/protocol.py",
        "src/lastarm/samplers/sampled_policy.py",
        "src/lastarm/sklearn/batched_sgd_support.py",
        "src/lastarm/sklearn/cv_results.py",
        "src/lastarm/sklearn/halving_search.py",
        "src/lastarm/trainers/estimators/*.py",
        "src/lastarm/trainers/splits.py",
        "faults/disk.py",
        "faults/processes.py",
        "faults/real_arms.py",
        "faults/reference.py",
        "faults/strikes.py",
    ),
    parts=4,
)

"""The thread in which a loop runs, and waits at each report until its arm is pulled again."""

from __future__ import annotations

import contextvars
import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

from lastarm.errors import Dropped, LastarmError
from lastarm.system.offspring import ThisProcess
from lastarm.trainers.reporting.global_random import (
    States,
    adopt,
    belonging_to,
    has_anothers_turn,
    is_arms_thread,
)

THREAD = "lastarm arm"  # the name of such a thread
PATIENCE = 10.0  # seconds that a loop has to clean up after itself when it is dropped
LEAVING = 1.0  # seconds that it has when Ctrl-C was pressed a second time


class BadReport(LastarmError, TypeError):
    """A loop did not report what is needed. That arm has failed.

    `function` is the name of the function with the loop.
    """

    def __init__(self, function: str, problem: str) -> None:
        self.function = function
        super().__init__(f"{function} {problem}")


class Reporter:
    """What a loop is given to report by, once for every pull.

    >>> from lastarm import Reporting
    >>> def descent(config, report):
    ...     x = report.restore() or 1.0
    ...     while True:
    ...         x -= config["rate"] * 2 * x
    ...         report(x * x, state=x, x=x)
    >>> trainer = Reporting(descent)
    >>> trainer.loss(trainer.train(trainer.start({"rate": 0.25}, seed=0), pulls=3))
    {'loss': 0.015625, 'x': 0.125}
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def __call__(self, loss: Any, *step: Any, state: Any = None, **metrics: Any) -> None:
        """Report the loss after one more pull. It returns when the arm is pulled again.

        If the arm is not, `Dropped` is raised here: when the search ends, or when others need the
        memory. Let it pass.

        :param loss: the loss, a function that computes it (it is called when the policy looks), or
            a mapping with "loss" and other metrics.
        :param state: all that the loop needs to continue from here, or a function that makes it,
            which is called when the state is saved. It is given with every report, or with none:
            then an arm that has to leave its process is trained again from zero.
        :param metrics: other figures to keep beside the loss.
        """
        if step:
            self._loop.refuse(
                f"called report with {1 + len(step)} figures. One report is one pull, so that no "
                "step has to be named: use report(loss), and name other metrics, "
                "report(loss, accuracy=0.9)"
            )
        self._loop.take(_observed(loss, metrics), state)

    def restore(self) -> Any:
        """The state to continue from, or None at the arm's beginning.

        It is the one of the arm's last report, if the loop was ended since: by a crash, a move to
        another process, or because others needed the memory. Call it once all is made that the
        loop needs, and before the first report: from here on the global generators of random
        numbers are where they were at that report.
        """
        return self._loop.restore()

    def should_prune(self) -> NoReturn:
        """Optuna's question. Here nothing has to be asked."""
        self._loop.refuse(
            "asked `should_prune`. There is nothing to ask: `report` returns when the arm is "
            "pulled again, and else it raises lastarm.Dropped. Leave these lines out"
        )


def _observed(loss: Any, metrics: Mapping[str, Any]) -> Any:
    """What is to be looked at: the loss, or a function for it, with the metrics beside it."""
    if not metrics:
        return loss
    if callable(loss):
        return lambda: _observed(loss(), metrics)
    return {**(loss if isinstance(loss, Mapping) else {"loss": loss}), **metrics}


class Loop:
    """A function that reports, in a thread of its own.

    - `call`: calls the function, with what it reports by
    - `name`: its name, for errors
    - `seed`: that of the arm
    - `reports`: how many reports it made before the state that it continues from
    - `restored`: that state
    - `generators`: the global generators as they were there

    One thread waits while the other works: whoever calls `advance` or `drop`, and the loop. What
    was reported last is in `reports`, `observed` and `state`, to be read while the loop waits.
    """

    def __init__(
        self,
        call: Callable[[Reporter], Any],
        name: str,
        seed: int,
        *,
        reports: int = 0,
        restored: Any = None,
        generators: States | None = None,
    ) -> None:
        self.reports, self.observed, self.state = reports, None, None
        self.generators: States = {}
        self.over = False  # whether the function has ended, in whichever way
        self.returned = False  # whether it has come to its own end
        self.ignores = False  # whether it catches Dropped and goes on
        self._works = False  # whether it has its turn, and so may report
        self._call, self._name, self._seed = call, name, seed
        self._restored, self._restored_generators = restored, generators or {}
        self._gave_states = None if restored is None else True
        self._asked = False  # whether it asked for the state to continue from
        self._wanted = reports
        self._error: BaseException | None = None
        self._leaving = self._alone = False
        self._caught = 0  # times that Dropped was
        self._own_turn = ExitStack()
        self._here, self._process = ThisProcess(), os.getpid()
        self._woken, self._back = threading.Lock(), threading.Lock()
        self._woken.acquire()
        self._back.acquire()
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name=THREAD, daemon=True)

    # For whoever waits for it ------------------------------------------------------------------

    def advance(self, pulls: int) -> None:
        """Let it run until it has reported so many times more, or has ended.

        What it raises is raised here. What is raised here while it runs, such as by Ctrl-C, is
        raised in the loop as well.
        """
        self._wanted += pulls
        with belonging_to(self.generators, self._seed):
            self._works = True
            try:
                if self._thread.ident is None:
                    self._thread.start()
                else:
                    self._woken.release()
                while not self._back.acquire(timeout=0.2):
                    pass  # a signal that came to another thread is handled in between
            except BaseException as error:
                self._leave_at_once(error)
                raise
        failure, self._error = self._error, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # it holds on to all that its functions had

    def drop(self) -> bool:
        """End it: raise `Dropped` where it waits. Whether it has ended."""
        if self._is_away():
            return True
        self._leaving = True
        with belonging_to(self.generators, self._seed):
            self._woken.release()
            self._back.acquire(timeout=PATIENCE)
        if self.over:
            self._thread.join(PATIENCE)
        return self.over

    def abandon(self) -> None:
        """End it as soon as it has its turn, and do not wait for that."""
        if not self._is_away():
            self._leaving = self._alone = True
            with suppress(RuntimeError):  # it does not wait
                self._woken.release()

    def wait_until_over(self) -> bool:
        """Wait for one that was abandoned, if it can have its turn meanwhile. Whether it ended."""
        if self._is_away() or has_anothers_turn():
            return True
        self._back.acquire(timeout=PATIENCE)
        if self.over:
            self._thread.join(PATIENCE)
        return self.over

    def _is_away(self) -> bool:
        """Whether there is no thread to end: none yet, none any more, or none in this process."""
        return self.over or self._thread.ident is None or os.getpid() != self._process

    def _leave_at_once(self, error: BaseException) -> None:
        self._leaving = True
        kind = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else Dropped
        thread = self._thread.ident
        if thread is not None and not self.over:
            raised = ctypes.py_object(kind)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
            self._back.acquire(timeout=LEAVING)

    # In its thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        is_arms_thread()
        try:
            with self._here:
                self._call(Reporter(self))
            if not (self.reports or self._leaving):
                self.refuse("returned before it reported a loss: report one for every pull")
            self.returned = not self._leaving
        except BaseException as error:
            if not self._leaving:
                self._error = error
        finally:
            self.over = True
            with suppress(BaseException):
                self._own_turn.close()
            self._give_back()

    def take(self, observed: Any, state: Any) -> None:
        """Take a report, and wait if no other is wanted."""
        with self._here:
            pass  # a child that was forked ends here
        self._require_its_turn()
        if self._leaving:
            self._leave_once_more()
        if self._gave_states is None:
            self._gave_states = state is not None
        if self._gave_states is not (state is not None):
            given, before = ("no", "did") if state is None else ("a", "did not")
            self.refuse(
                f"gave {given} state with report {self.reports + 1}, and {before} with the one "
                "before: give one with every report, or with none. A function that makes it, "
                "`state=lambda: …`, is called only when the state is saved"
            )
        if state is not None and not self._asked:
            self.refuse(
                "gave report a state, and never asked for it: call report.restore() before the "
                "first report. It returns the state to continue from, or None at the beginning"
            )
        self.reports += 1
        self.observed, self.state = observed, state
        self._restored = None
        if self.reports >= self._wanted:
            self._wait()

    def restore(self) -> Any:
        """The state to continue from, with the generators as they were there."""
        self._asked = True
        if self._restored is not None:
            adopt(self._restored_generators)
        return self._restored

    def refuse(self, problem: str) -> NoReturn:
        """Fail, whatever the function makes of it."""
        self._require_its_turn()
        if self._leaving:
            self._leave_once_more()
        error = BadReport(self._name, problem)
        self._leaving, self._error = True, error
        raise error

    def _require_its_turn(self) -> None:
        """Fail whoever reports for a loop that waits or has ended, and would wait for ever."""
        if self.over or not (self._works or self._leaving):
            where = "whose loop has ended" if self.over else "whose loop waits for its next pull"
            problem = (
                f"called the `report` of an arm {where}. Each call of the function gets one of "
                "its own: use it in that call alone, and not in a function that computes a loss"
            )
            raise BadReport(self._name, problem)

    def _wait(self) -> None:
        self._works = False
        self._give_back()
        self._woken.acquire()
        if self._leaving:
            if self._alone:  # so there is no other thread that waits, and has the turn for both
                is_arms_thread(yes=False)
                self._own_turn.enter_context(belonging_to(self.generators, self._seed))
            raise Dropped

    def _leave_once_more(self) -> NoReturn:
        self._caught += 1
        if self._caught > 1:
            self.ignores = True
            self._error = self._error or DropIgnored(self._name)
            self._own_turn.close()
            self._give_back()
            while True:  # for ever: it cannot be ended from outside
                self._woken.acquire()
        raise Dropped

    def _give_back(self) -> None:
        with suppress(RuntimeError):  # whoever waited has left
            self._back.release()


class DropIgnored(LastarmError):
    """A loop caught `Dropped`, more than once, and went on. That arm has failed.

    `function` is the name of the function with the loop.
    """

    def __init__(self, function: str) -> None:
        self.function = function
        super().__init__(
            f"{function} caught lastarm.Dropped and went on, so its thread is still there. Let it "
            "pass: use `except Exception`, or raise it again"
        )

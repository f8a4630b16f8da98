"""Signals: the first stops a search, the second acts as it always did, whenever it comes."""

import os
import signal
from contextlib import ExitStack, nullcontext
from threading import Event
from typing import Any

import pytest

from lastarm.cli.ending import Signals
from lastarm.signals import end_children_by_sigterm, stop_on_signals


def test_the_first_signal_is_noted_and_the_second_acts_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        assert stop.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("nested", "moment"), [(False, 0), (False, 1), (True, 0), (True, 1), (True, 2), (True, 3)]
)
def test_a_second_signal_while_the_first_is_handled_acts_as_before(
    monkeypatch: pytest.MonkeyPatch, nested: bool, moment: int
) -> None:
    set_handler = signal.signal
    moments = iter(range(100))

    def interrupted(number: int, handler: Any) -> Any:
        """Set a handler; at one moment, Ctrl-C is pressed just before."""
        if next(moments) == moment:
            signal.raise_signal(signal.SIGINT)
        return set_handler(number, handler)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with ExitStack() as stack:
        stops = [stack.enter_context(stop_on_signals()) for _ in range(1 + nested)]
        monkeypatch.setattr(signal, "signal", interrupted)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert next(moments) > moment
        monkeypatch.undo()
        assert {stop.signal for stop in stops} == {signal.SIGINT}
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_handler_that_was_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.signal is None
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("in_the_command", [False, True])
def test_a_forked_child_ends_by_sigterm_also_if_no_handler_can_run_in_it(
    in_the_command: bool,
) -> None:
    with ExitStack() as stack:
        if in_the_command:
            stack.callback(Signals().restore)
        for _ in range(2):
            stack.enter_context(stop_on_signals())
        child = os.fork()
        if not child:
            ends = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            goes_on = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            os._exit(10 * ends + goes_on)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("nested", [False, True])
def test_a_forked_child_ends_by_sigterm_from_its_first_moment_on(nested: bool) -> None:
    """A pool that is ended sends it to children that have just begun, and waits for them."""
    with stop_on_signals() as stop, stop_on_signals() if nested else nullcontext():
        for _ in range(20):
            if (child := os.fork()) == 0:
                Event().wait(60)  # for a lock; a handler may not be called meanwhile
                os._exit(0)
            os.kill(child, signal.SIGTERM)
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert ended == -signal.SIGTERM
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        signal.raise_signal(signal.SIGTERM)
        assert stop.signal == signal.SIGTERM


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_so_does_a_child_of_an_engines_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastarm.signals._engines", [])
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        end_children_by_sigterm()
        for _ in range(20):
            if (child := os.fork()) == 0:
                Event().wait(60)
                os._exit(0)
            os.kill(child, signal.SIGTERM)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)

"""The word to stop comes at any moment, also while the main thread is about to wait for it."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from millstream.cli.signals import STOPPING, Interrupted, Stop


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_ends_the_waiting(number: signal.Signals) -> None:
    stop = Stop()
    stop.ready()
    assert stop.wait(0) is False
    timer = threading.Timer(0.05, os.kill, (os.getpid(), number))
    timer.start()
    assert stop.wait(30) is True
    assert stop.wait(30) is True, "and every later one"
    timer.join()


def test_before_there_is_something_to_stop_it_interrupts_once() -> None:
    stop = Stop()
    with pytest.raises(Interrupted):
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.is_set


def test_many_signals_do_not_block() -> None:
    stop = Stop()
    stop.ready()
    for _ in range(70_000):  # more than a pipe takes
        signal.raise_signal(signal.SIGTERM)
    assert stop.wait(0) is True

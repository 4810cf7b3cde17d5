"""fsync and other blocking work, away from the event loop's thread; and group commit.

A `Worker` runs pieces of work one after the other and calls back on the loop's thread. `GroupCommit` collects the logs
whose appends asked for a flush (`flush.messages`): while one round of fsyncs runs, all further requests gather and
share the next round, so many acknowledgements cost one fsync for each log. Records become visible, and their requests
are answered, after the round.
"""

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from millstream.wire.errors import ErrorCode, KafkaError

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]
CallSoon = Callable[[Callable[[], None]], object]


class Worker(Protocol):
    def submit(self, work: Work, done: Done) -> None:
        """Run `work` somewhere, then `done` with its exception or None on the loop's thread."""


class InlineWorker:
    """Runs everything at once, in the caller's thread: for tests and for tools that have no loop."""

    def submit(self, work: Work, done: Done) -> None:
        error: BaseException | None = None
        try:
            work()
        except Exception as caught:
            error = caught
        done(error)


class ThreadWorker:
    """One daemon thread, started with the first piece of work. `call_soon` is the loop's `call_soon_threadsafe`."""

    def __init__(self, call_soon: CallSoon, name: str = "millstream-log") -> None:
        self._call_soon = call_soon
        self._name = name
        self._queue: queue.SimpleQueue[tuple[Work, Done] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Work, done: Done) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put((work, done))

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            error: BaseException | None = None
            try:
                work()
            except Exception as caught:
                error = caught
            try:
                self._call_soon(partial(done, error))
            except RuntimeError:
                return  # the loop is closed: nobody waits any more


class FlushPlan(Protocol):
    """What is to be synced, fixed on the loop's thread; `sync` runs in the worker."""

    def sync(self) -> None: ...


class Flushable(Protocol):
    def begin_flush(self) -> FlushPlan: ...

    def end_flush(self, plan: FlushPlan, error: BaseException | None) -> None: ...


class GroupCommit:
    """`request` from the loop's thread; the callback gets None, or the error to answer with."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._waiting: dict[Flushable, list[Callable[[KafkaError | None], None]]] = {}
        self._running = False

    def request(self, log: Flushable, callback: Callable[[KafkaError | None], None]) -> None:
        self._waiting.setdefault(log, []).append(callback)
        if not self._running:
            self._start()

    def _start(self) -> None:
        self._running = True
        round_of_logs = [(log, log.begin_flush(), callbacks) for log, callbacks in self._waiting.items()]
        self._waiting = {}
        errors: dict[int, BaseException] = {}

        def sync() -> None:
            for index, (_, plan, _) in enumerate(round_of_logs):
                try:
                    plan.sync()
                except OSError as error:
                    errors[index] = error

        def done(failure: BaseException | None) -> None:
            self._running = False
            for index, (log, plan, callbacks) in enumerate(round_of_logs):
                error = failure or errors.get(index)
                log.end_flush(plan, error)
                answer = None
                if error is not None:
                    answer = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"fsync failed: {error}")
                    # What was appended meanwhile is taken back with the rest: no later fsync can vouch for it.
                    callbacks += self._waiting.pop(log, [])
                for callback in callbacks:
                    callback(answer)
            if self._waiting and not self._running:
                self._start()

        self._worker.submit(sync, done)

"""Pipelines for as long as an example runs, started with `millstream pipeline run` as a person would.

They keep their state in `pipelines` of the run's folder. They end with the example, however that ends; usually in
order, each after the batch it is at. Trouble on the way is said, and so is its end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from example_kit.errors import ExampleError
from example_kit.processes import guarded
from example_kit.run import Run

START_SECONDS = 180.0
STOP_SECONDS = 120.0
LOOK_SECONDS = 0.1


class Pipelines:
    """Pipelines that run. `status` has, by name, what `millstream pipeline run --json` said last of each."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes], log: Path) -> None:
        self.status: dict[str, dict[str, Any]] = {}
        self.log = log
        self._run = run
        self._troubled: set[str] = set()
        self._process = process
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def check(self) -> None:
        """ExampleError if one has failed, or they do not run any more."""
        failed = [f"{name}: {status['error']}" for name, status in self.status.items() if status["state"] == "failed"]
        if not failed and not self._reader.is_alive():
            said = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            failed = [said[-1].removeprefix("millstream: ") if said else "the pipelines ended by themselves"]
        if failed:
            raise ExampleError(f"{'; '.join(failed)} (see {self.log})")

    def are_running(self) -> bool:
        """Those that run once may have ended already."""
        self.check()
        return bool(self.status) and all(status["state"] in ("running", "stopped") for status in self.status.values())

    def stop(self) -> None:
        """Each after the batch it is at; then all that they said has been heard."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()

    def kill(self) -> None:
        """SIGKILL for all that is part of it, Spark as well, as if the machine had gone."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self.stop()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                said = json.loads(line)
                if "state" in said:
                    self.status[said["name"]] = said
                    self._say_trouble(said["name"], said["state"], said["error"])

    def _say_trouble(self, name: str, state: str, error: str | None) -> None:
        """Once, when a pipeline that was started again has not yet done a batch since; and when it has."""
        if state == "restarting" and name not in self._troubled:
            self._troubled.add(name)
            self._run.say(f"pipeline {name} is interrupted and tries again: {error}", "red")
        elif state == "running" and error is None and name in self._troubled:
            self._troubled.remove(name)
            self._run.say(f"pipeline {name} works again", "green")


@contextmanager
def running_pipelines(
    run: Run, files: Sequence[Path], environment: Mapping[str, str] | None = None, *, fresh: bool = True
) -> Iterator[Pipelines]:
    """The pipelines of these files, when they all run. `fresh`: from the beginning, whatever was done before."""
    home = run.out / "pipelines"
    if fresh:
        shutil.rmtree(home, ignore_errors=True)
    arguments = ["--bootstrap", run.bootstrap, "--home", str(home), "--json"]
    command = [sys.executable, "-m", "millstream", "pipeline", "run", *map(str, files), *arguments]
    log = run.out / "pipelines.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            guarded(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    pipelines = Pipelines(run, process, log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not pipelines.are_running():
            if time.monotonic() > deadline:
                raise ExampleError(f"the pipelines do not run after {START_SECONDS:.0f} s (see {log})")
            time.sleep(LOOK_SECONDS)
        yield pipelines
    finally:
        pipelines.stop()

"""Where pipelines keep what must outlive them on this machine, and how commands and a running pipeline find each other.

    <home>/<pipeline>/
      run/lock             an advisory lock, held by the process that runs it: whether it runs is asked of the system
      run/run.json         who runs it, how it was started, in which state it is
      run/progress.json    its last figures
      run/control          what somebody wants of it: `stop` or `restart`; taken by the runner
      checkpoints/<query>  Spark's checkpoints, unless they are elsewhere
      checkpoints.json     where they are then
      start.json           where to begin, written by `reset`, until the first checkpoint exists

The home is `--home`, `MILLSTREAM_PIPELINES`, or `millstream-pipelines` under the user's data home. Files are replaced
in one step, so a reader sees the old content or the new. A file that a crash left behind says nothing wrong: without
the lock, a pipeline that was never said to have ended counts as killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from millstream.cluster import local
from millstream.folders import data_home
from millstream.pipelines import status as status_
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.status import ENDED, PipelineStatus

HOME_VARIABLE = "MILLSTREAM_PIPELINES"
KILLED = "killed"
"""The state of a pipeline whose process ended without a word."""
SIGN_OF_LIFE_SECONDS = 5.0
Request = Literal["stop", "restart"]
Start = str | Mapping[str, Mapping[int, int]]
"""A position in the terms of a topic source's `start`."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


class QueryMode(NamedTuple):
    """One of a pipeline's queries, how it runs and why so."""

    name: str
    mode: str
    why: str


class Run(NamedTuple):
    """The last time that a pipeline was started."""

    pid: int
    host: str
    started: float
    file: str | None
    """The absolute path of the file that describes it; None if a program does."""
    argv: list[str]
    arguments: list[str] | None
    """What `millstream pipeline run` needs beside the file to do the same again; None if it was started otherwise."""
    master: str | None
    bootstrap: str
    state: str
    error: str | None = None
    queries: tuple[QueryMode, ...] = ()


def default_root(environ: Mapping[str, str] = os.environ) -> Path:
    given = environ.get(HOME_VARIABLE)
    return Path(given) if given else data_home(environ) / "millstream-pipelines"


class PipelineHome:
    """All pipelines of one home. `arguments` are remembered with the pipelines that are started from here."""

    def __init__(self, root: Path, arguments: Sequence[str] | None = None) -> None:
        self.root = root.absolute()
        self._arguments = None if arguments is None else list(arguments)

    def pipeline(self, name: str) -> PipelineFolder:
        """The folder of a pipeline, whether it is there or not."""
        return PipelineFolder(self.root / name, self._arguments)

    def all(self) -> list[PipelineFolder]:
        """Those that were started here at least once, by name."""
        found = sorted(file.parent.parent for file in self.root.glob("*/run/run.json"))
        return [PipelineFolder(path, self._arguments) for path in found]


class PipelineFolder:
    """What one pipeline keeps."""

    def __init__(self, path: Path, arguments: list[str] | None = None) -> None:
        self.path = path
        self._arguments = arguments
        self._recorded: PipelineStatus | None = None
        self._recorded_at = 0.0

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def log(self) -> Path:
        """What a process in the background says."""
        return self._file("run.log")

    # --- who runs it ---

    def acquire(self) -> int | None:
        """The lock, as a file descriptor that must stay open while it runs; None if another process has it."""
        return local.take_lock(self.path)

    def is_held(self) -> bool:
        """Whether a process has the pipeline: it runs, or it ended beside others that still run."""
        return local.is_locked(self.path)

    def is_running(self) -> bool:
        run = self.run()
        return self.is_held() and (run is None or run.state not in ENDED)

    def state(self) -> str:
        """As it is now, whatever was written down last."""
        run = self.run()
        if run is None:
            return "starting" if self.is_held() else "stopped"
        return run.state if run.state in ENDED or self.is_held() else KILLED

    def begin(
        self,
        *,
        pid: int,
        host: str,
        file: str | None,
        argv: Sequence[str],
        master: str | None,
        bootstrap: str,
        checkpoints: str | None = None,
    ) -> None:
        """Says that it starts; the caller has the lock. PipelineError if its checkpoints are said to be elsewhere."""
        self.use_checkpoints(checkpoints)
        self.take_request()  # of a run that is over
        self._file("progress.json").unlink(missing_ok=True)
        self._recorded = None
        where = None if file is None else str(Path(file).absolute())
        self._write_run(Run(pid, host, time.time(), where, list(argv), self._arguments, master, bootstrap, "starting"))

    def record(self, status: PipelineStatus) -> None:
        """Keeps how it is, for others to read; also when nothing changed, every now and then, as a sign of life."""
        if status == self._recorded and time.monotonic() < self._recorded_at + SIGN_OF_LIFE_SECONDS:
            return
        run = self.run()
        queries = tuple(QueryMode(query.name, query.mode, query.why) for query in status.queries)
        if run is not None and (run.state, run.error, run.queries) != (status.state, status.error, queries):
            self._write_run(run._replace(state=status.state, error=status.error, queries=queries))
        self._write("progress.json", {**status_.as_json(status), "time": time.time()})
        self._recorded, self._recorded_at = status, time.monotonic()

    def run(self) -> Run | None:
        data = self._read("run.json")
        with contextlib.suppress(KeyError, TypeError):
            queries = tuple(QueryMode(**query) for query in data.pop("queries"))
            return Run(**data, queries=queries)
        return None

    def progress(self) -> PipelineStatus | None:
        """Its last figures."""
        with contextlib.suppress(ValueError):
            return status_.from_json(self._read("progress.json"))
        return None

    def last_sign(self) -> float:
        """When the process that runs it was last heard of, in seconds since 1970."""
        return float(self._read("progress.json").get("time", 0.0))

    # --- what others want of it ---

    def request(self, kind: Request) -> None:
        """Asks the process that runs it; the last word counts."""
        self._replace(self._file("control"), kind)

    def take_request(self) -> Request | None:
        """What was asked for since the last time."""
        taken = self._file("control.taken")
        try:
            self._file("control").replace(taken)
            word = taken.read_text().strip()
            os.utime(taken, (time.time(), time.time()))
        except OSError:
            return None
        return "stop" if word == "stop" else "restart" if word == "restart" else None

    def request_done(self) -> bool:
        """Whether what was asked for was taken, and the runner has told how it is since."""
        try:
            return not self._file("control").exists() and self.last_sign() > self._file("control.taken").stat().st_mtime
        except OSError:
            return False

    # --- checkpoints, and where to begin without one ---

    def checkpoint(self, query: str) -> str:
        """The checkpoint of a query: a path, or a URL of a file system that Spark reaches."""
        return f"{self.checkpoint_root()}/{_folder_name(query)}"

    def checkpoint_root(self) -> str:
        elsewhere = self._checkpoints_elsewhere()
        return str(self.path / "checkpoints") if elsewhere is None else f"{elsewhere.rstrip('/')}/{self.name}"

    def use_checkpoints(self, uri: str | None) -> None:
        """Keeps checkpoints under `uri` from now on; None: where they have been.

        PipelineError if they have been elsewhere: without them it would begin anew and do everything twice.
        """
        if uri is None:
            return
        wanted = uri.rstrip("/") if _SCHEME.match(uri) else str(Path(uri).absolute())
        known = self._checkpoints_elsewhere()
        if wanted == known:
            return
        if known is not None or any(self.path.glob("checkpoints/*/metadata")):
            raise PipelineError(
                f"the checkpoints of {self.name} are in {self.checkpoint_root()}, not in {wanted}: leave --checkpoints "
                f"out to go on with them, or begin anew with `millstream pipeline reset {self.name} --to ... --execute`"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self._replace(self.path / "checkpoints.json", json.dumps({"uri": wanted}) + "\n", durable=True)

    def forget_checkpoints(self) -> None:
        """After they were removed: the next run may keep them elsewhere."""
        (self.path / "checkpoints.json").unlink(missing_ok=True)

    def start_override(self) -> dict[str, Start]:
        """Source -> where to begin instead of where the pipeline's file says; empty if `reset` asked for nothing."""
        try:
            data = json.loads((self.path / "start.json").read_text())
        except (OSError, ValueError):
            return {}
        return {name: _start(position) for name, position in data.items()}

    def set_start_override(self, positions: Mapping[str, Start]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self._replace(self.path / "start.json", json.dumps(positions, indent=2) + "\n", durable=True)

    def clear_start_override(self) -> None:
        """When the first checkpoint exists: from then on it says where to go on."""
        (self.path / "start.json").unlink(missing_ok=True)

    def _checkpoints_elsewhere(self) -> str | None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            return str(json.loads((self.path / "checkpoints.json").read_text())["uri"])
        return None

    # --- files ---

    def _file(self, name: str) -> Path:
        return local.run_folder(self.path) / name

    def _write_run(self, run: Run) -> None:
        self._write("run.json", {**run._asdict(), "queries": [query._asdict() for query in run.queries]})

    def _write(self, name: str, data: Any) -> None:
        self._replace(self._file(name), json.dumps(data, indent=2) + "\n")

    def _read(self, name: str) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(self._file(name).read_text())
            return data if isinstance(data, dict) else {}
        return {}

    def _replace(self, file: Path, text: str, *, durable: bool = False) -> None:
        """Only its owner may read it: what was typed to start a pipeline can hold a secret."""
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f"{file.name}.{os.getpid()}.new")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
            if durable:
                out.flush()
                os.fsync(out.fileno())
        temporary.replace(file)


def _start(position: Any) -> Start:
    if isinstance(position, str):
        return position
    return {topic: {int(part): int(offset) for part, offset in parts.items()} for topic, parts in position.items()}


def _folder_name(query: str) -> str:
    """The query's name, or what is left of it on a file system, told apart from others by a hash."""
    plain = _UNSAFE.sub("-", query)
    return plain if plain == query else f"{plain}-{hashlib.sha256(query.encode()).hexdigest()[:8]}"

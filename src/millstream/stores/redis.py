"""Redis, from the system's package. Every write goes to the append-only file, which outlives the process."""

from __future__ import annotations

from millstream.jvm.progress import Progress
from millstream.stores.programs import find_program
from millstream.stores.store import Store


class Redis(Store):
    """A Redis server, without a password."""

    title = "Redis"
    log_marks = ("Fatal error, ", "Fatal: ", " # ")

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def _prepare(self, progress: Progress) -> None:
        self._server = find_program("Redis", ("redis-server",), package="redis-server", formula="redis")

    def _launch(self) -> None:
        self._run([
            self._server, "--bind", self.host, "--port", str(self.port), "--dir", str(self.folder),
            "--save", "", "--appendonly", "yes", "--appendfsync", "no",
            "--set-proc-title", "no",  # or the folder would not be on its command line
        ])  # fmt: skip

    def _answers(self) -> bool:
        return self._ask(b"PING\r\n").startswith(b"+PONG")  # one that still reads its file says -LOADING

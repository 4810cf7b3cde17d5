"""Where the stores of a run are, and how they are taken away and brought back: to see what happens then."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from example_kit import ExampleError, Run

if TYPE_CHECKING:
    from millstream.stores import Store


class Places:
    """The stores' URLs; `Outages` needs to know what is behind them."""

    def __init__(self, persistor: str, mysql: str, servers: dict[str, Store] | None = None) -> None:
        self.persistor = persistor
        self.mysql = mysql
        self.servers = servers or {}

    @classmethod
    def embedded(cls, folder: Path) -> Places:
        """Files in a folder that is emptied first."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return cls(f"parquet:{folder / 'parquet'}", f"sqlite:{folder / 'clicks.db'}")

    @classmethod
    @contextlib.contextmanager
    def real(cls, run: Run) -> Iterator[Places]:
        """A Cassandra and a MariaDB, started for the run."""
        from millstream.stores import Cassandra, MariaDB, StoreError

        with ExitStack() as stack:
            run.say("starting Cassandra and MariaDB")
            try:
                cassandra = stack.enter_context(Cassandra())
                mariadb = stack.enter_context(MariaDB())
            except StoreError as error:
                raise ExampleError(f"--real: {error}") from error
            run.say(f"Cassandra listens on {cassandra.host}:{cassandra.port}, MariaDB on {mariadb.host}:{mariadb.port}")
            url = f"cassandra://{cassandra.host}:{cassandra.port}/clicks"
            yield cls(url, mariadb.url, {url: cassandra, mariadb.url: mariadb})


class Outages:
    """Takes stores away."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._ends: dict[str, ExitStack] = {}

    def begin(self, url: str) -> str:
        """Takes the store at this URL away; what was done, in words."""
        scheme, _, address = url.partition(":")
        end = self._ends[url] = ExitStack()
        if url in self._places.servers:
            server = self._places.servers[url]
            server.kill()
            end.callback(server.start)
            return f"{server.title} is killed"
        if scheme == "parquet":
            folder = Path(address)
            hidden = folder.with_name("away")
            folder.rename(hidden)
            end.callback(hidden.rename, folder)
            return "the folder of the Parquet files is gone, like a disk that was unplugged"
        connection = sqlite3.connect(address, isolation_level=None)
        end.callback(connection.close)
        connection.execute("BEGIN EXCLUSIVE")
        return "somebody locks the SQLite database"

    def finish(self, url: str) -> None:
        """Brings it back."""
        self._ends.pop(url).close()

    def end(self) -> None:
        for url in list(self._ends):
            self.finish(url)

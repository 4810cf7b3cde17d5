"""The stores that can hold the fraud ranges. Whichever it is, the pipelines ask it by their look-up step."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from example_kit import ExampleError, Run
from example_kit.presence import ANSWER_SECONDS, watched

RANGES = Path(__file__).parent / "pipelines" / "ranges.csv"


def fraud_ranges() -> set[str]:
    """The first octets of the addresses that are in a fraud range."""
    with RANGES.open() as file:
        return {row["range"] for row in csv.DictReader(file) if row["fraud"] == "true"}


@contextmanager
def store(kind: str, run: Run) -> Iterator[str]:
    """The address of a store with the ranges in it; empty for those that need none."""
    if kind == "sql":
        yield f"sqlite:///{_sqlite(run.out / 'ranges.db')}"
    elif kind == "redis":
        with _redis(run) as url:
            yield url
    else:
        yield ""


def _sqlite(path: Path) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE ranges (range TEXT PRIMARY KEY, fraud BOOLEAN)")
        connection.executemany("INSERT INTO ranges VALUES (?, true)", [(octet,) for octet in fraud_ranges()])
    return path


@contextmanager
def _redis(run: Run) -> Iterator[str]:
    from redis import Redis

    from millstream import stores

    try:
        with stores.Redis() as server, closing(Redis.from_url(server.url, socket_timeout=ANSWER_SECONDS)) as client:
            run.say(f"Redis listens on {server.url}")
            for octet in fraud_ranges():
                client.hset(f"range:{octet}", "fraud", "true")
            with watched(run.say, "Redis", client.ping):
                yield server.url
    except stores.StoreError as error:
        raise ExampleError(f"--lookup redis: {error}") from error

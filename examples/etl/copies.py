"""Where the files go, on this machine or on HDFS, and what is in them; and the export to CSV."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet

from etl.databases import Order
from example_kit import ExampleError, Run
from example_kit.presence import ANSWER_SECONDS, watched

NULL = r"\N"
"""How a null is told from an empty text in CSV, as databases do."""


class Copy:
    """A folder of Parquet files. `web`: HDFS by HTTP, if it is there."""

    def __init__(self, url: str, web: str = "") -> None:
        self.url = url
        self._web = web

    def orders(self) -> list[Order]:
        """All rows, by id."""
        tables = [pyarrow.parquet.read_table(file) for file in (self._remote() if self._web else self._local())]
        return sorted(Order(**row) for table in tables for row in table.to_pylist())

    def _local(self) -> Iterator[Path]:
        return Path(self.url).glob("*.parquet")

    def _remote(self) -> Iterator[io.BytesIO]:
        folder = f"{self._web}/copy"
        with urlopen(f"{folder}?op=LISTSTATUS") as answer:
            names = [file["pathSuffix"] for file in json.load(answer)["FileStatuses"]["FileStatus"]]
        for name in names:
            if name.endswith(".parquet"):
                with urlopen(f"{folder}/{name}?op=OPEN") as answer:
                    yield io.BytesIO(answer.read())


@contextmanager
def copy(run: Run) -> Iterator[Copy]:
    """An empty place for the copy: a folder, or with `--real` an HDFS that is started for the run."""
    if not run.options.real:
        folder = run.out / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        yield Copy(str(folder))
        return
    from millstream.stores import Hdfs, StoreError

    try:
        with Hdfs() as hdfs:
            run.say(f"HDFS listens on {hdfs.url}")
            ping = f"{hdfs.web_url}/?op=GETFILESTATUS"
            with watched(run.say, "HDFS", lambda: urlopen(ping, timeout=ANSWER_SECONDS).close()):
                yield Copy(f"{hdfs.url}/copy", hdfs.web_url)
    except StoreError as error:
        raise ExampleError(f"--real: {error}") from error


def export(orders: Iterable[Order], file: Path) -> None:
    """The orders as CSV, with a header."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(Order._fields)
        writer.writerows([NULL if value is None else value for value in order] for order in orders)


def exported(file: Path) -> list[Order]:
    """The orders of an export."""
    with file.open(newline="") as lines:
        return [
            Order(
                int(row["id"]),
                row["customer"],
                row["item"],
                int(row["quantity"]),
                int(row["cents"]),
                None if row["note"] == NULL else row["note"],
            )
            for row in csv.DictReader(lines)
        ]

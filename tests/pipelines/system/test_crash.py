"""kill -9 of the process that runs a pipeline, in the middle of its work, several rounds: each row once in every sink.

The pipeline writes each record to two databases, to files, to Cassandra and, in transactions, to a topic. It is killed
as soon as the sinks hold a number of rows drawn by lot, so that the others are at any stage of the same batch.
"""

import json
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Cluster as CassandraClient

from millstream.stores import Cassandra, MariaDB
from support.cli import COMMAND
from support.cluster import Cluster, unique
from support.databases import SqlDatabase
from support.running_pipelines import Topics

ROUNDS = 3
RECORDS = 900
PATIENCE = 180.0

PIPELINE = """
pipeline: {name}
source: {{topic: {source}, value: json, schema: "id bigint, text string", start: earliest}}
sinks:
  - {{database: "sqlite:///{folder}/out.db", table: rows}}
  - {{database: "{mariadb}", table: {table}}}
  - {{files: "{folder}/files", format: json}}
  - {{cassandra: "{cassandra}", keyspace: crash, table: {table}, key: id}}
  - {{topic: {target}, key: id, delivery: exactly-once, partitions: 2}}
back_pressure: {{max_records: 300, adaptive: false}}
"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Those that a test started; what is left is killed."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def rows_in(file: Path) -> list[int]:
    if not file.exists():
        return []
    connection = sqlite3.connect(file)
    try:
        return [row[0] for row in connection.execute("SELECT id FROM rows")]
    except sqlite3.OperationalError:  # the table is not there yet
        return []
    finally:
        connection.close()


def ids_in(folder: Path) -> list[int]:
    files = [file for file in folder.glob("*.json") if not file.name.startswith(("_", "."))]
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


def in_cassandra(store: Cassandra, table: str) -> list[int]:
    with CassandraClient([store.host], port=store.port) as client, client.connect("crash") as session:
        return [row.id for row in session.execute(f"SELECT id FROM {table}")]


@pytest.mark.timeout(400)
def test_every_row_is_in_every_sink_once(
    cluster: Cluster,
    mariadb: MariaDB,
    cassandra: Cassandra,
    tmp_path: Path,
    processes: list[subprocess.Popen[bytes]],
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target, table = topics.new(2), unique("target"), unique("t").replace("-", "_")
    file = tmp_path / "crash.yaml"
    file.write_text(
        PIPELINE.format(
            name=unique("crash"), source=source, target=target, table=table, folder=tmp_path,
            mariadb=mariadb.url,
            cassandra=f"{cassandra.host}:{cassandra.port}",
        )
    )  # fmt: skip
    command = [*COMMAND, "pipeline", "run", str(file), "--bootstrap", cluster.bootstrap_servers]
    command += ["--home", str(tmp_path / "home"), "--metrics", "off"]
    chance = random.Random(7)
    expected = 0
    for _ in range(ROUNDS):
        topics.fill(source, [{"id": number, "text": f"row {number}"} for number in range(expected, expected + RECORDS)])
        expected += RECORDS
        before = len(rows_in(tmp_path / "out.db")) + len(ids_in(tmp_path / "files"))
        enough = before + chance.randrange(1, RECORDS)
        with (tmp_path / "run.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        processes.append(process)
        deadline = time.monotonic() + PATIENCE
        while len(rows_in(tmp_path / "out.db")) + len(ids_in(tmp_path / "files")) < enough:
            assert process.poll() is None, (tmp_path / "run.log").read_text()[-3000:]
            assert time.monotonic() < deadline, (tmp_path / "run.log").read_text()[-3000:]
            time.sleep(0.1)  # often enough: a batch takes longer, and asking costs what the pipeline needs
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = subprocess.run([*command, "--once"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-2000:]

    everything = Counter(range(expected))
    assert Counter(rows_in(tmp_path / "out.db")) == everything
    assert Counter(ids_in(tmp_path / "files")) == everything
    assert Counter(row[0] for row in SqlDatabase(mariadb.url).run(f"SELECT id FROM {table}")) == everything
    assert Counter(in_cassandra(cassandra, table)) == everything
    assert Counter(json.loads(message.value() or b"")["id"] for message in topics.all(target)) == everything

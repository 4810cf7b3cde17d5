"""What tests of pipelines need that never start Spark: checkpoints as Spark writes them, dead letters, topics."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from millstream.cluster.connection import Connection
from millstream.cluster.topics import create_topic
from millstream.pipelines import dead_letters
from millstream.pipelines.home import PipelineFolder
from support.cluster import unique

ABOUT = {"batchWatermarkMs": 0, "batchTimestampMs": 1794754945164, "conf": {"spark.sql.shuffle.partitions": "2"}}
Offsets = Mapping[str, Mapping[int, int]]


def new_topic(connection: Connection, partitions: int = 1, **configs: str) -> str:
    name = unique("topic")
    given = {name.replace("_", "."): value for name, value in configs.items()}
    create_topic(connection, name, partitions=partitions, configs=given)
    return name


def fill(connection: Connection, topic: str, count: int, partition: int = 0, timestamp: int | None = None) -> None:
    """Records with the values 0, 1, 2, ..."""
    producer = Producer({"bootstrap.servers": connection.bootstrap, "linger.ms": 0})
    more: Any = {} if timestamp is None else {"timestamp": timestamp}
    for number in range(count):
        producer.produce(topic, str(number), partition=partition, **more)
    assert producer.flush(30) == 0


def write_checkpoint(
    path: Path,
    began: Sequence[Offsets],
    batches: Sequence[Sequence[Offsets | None]] = (),
    *,
    committed: int | None = None,
    first: int = 0,
    state: bool = False,
) -> None:
    """A checkpoint of topic sources: where each began, and each batch's end; `committed` of the batches are done."""
    path.mkdir(parents=True)
    (path / "metadata").write_text('{"id":"05887557-435a-4b1e-b82e-34bccb981516"}')
    for folder in ("offsets", "commits"):
        (path / folder).mkdir()
    for index, offsets in enumerate(began):
        (path / "sources" / str(index)).mkdir(parents=True)
        (path / "sources" / str(index) / "0").write_text("\0v1\n" + _text(offsets))
    for number, batch in enumerate(batches, first):
        lines = ["-" if offsets is None else _text(offsets) for offsets in batch]
        (path / "offsets" / str(number)).write_text("\n".join(["v1", json.dumps(ABOUT), *lines]))
        (path / "offsets" / f".{number}.crc").write_bytes(b"crc\0")
        if committed is None or number < first + committed:
            (path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    if state:
        (path / "state" / "0").mkdir(parents=True)


def _text(offsets: Offsets) -> str:
    return json.dumps({topic: {str(p): o for p, o in parts.items()} for topic, parts in offsets.items()})


def begin(folder: PipelineFolder, file: Path | None, bootstrap: str = "127.0.0.1:9092", pid: int = 1) -> None:
    """As a runner does; the lock is the caller's affair."""
    where = None if file is None else str(file)
    folder.begin(pid=pid, host="here", file=where, argv=["millstream"], master=None, bootstrap=bootstrap)


def letter_headers(
    pipeline: str,
    origin: tuple[str, int | None, int | None],
    *,
    stage: str = "step 1 (parse)",
    error: str = "parse",
    message: str = "line 1: 'x' is not a date",
    time: int = 1_700_000_000_000,
) -> list[tuple[str, bytes]]:
    """The headers that a pipeline adds to a record that it could not process."""
    topic, partition, offset = origin
    found = {
        dead_letters.PIPELINE: pipeline,
        dead_letters.STAGE: stage,
        dead_letters.ERROR: error,
        dead_letters.MESSAGE: message,
        dead_letters.ORIGIN_TOPIC: topic,
        dead_letters.ORIGIN_PARTITION: partition,
        dead_letters.ORIGIN_OFFSET: offset,
        dead_letters.ORIGIN_TIMESTAMP: time - 5,
        dead_letters.TIME: time,
    }
    return [(name, str(value).encode()) for name, value in found.items() if value is not None]


class Letters:
    """A dead-letter topic that is written to."""

    def __init__(self, connection: Connection, pipeline: str, partitions: int = 1) -> None:
        self.connection = connection
        self.pipeline = pipeline
        self.topic = new_topic(connection, partitions)
        self.origin = new_topic(connection, 2)
        self._producer = Producer({"bootstrap.servers": connection.bootstrap, "linger.ms": 0})
        self._count = 0

    def add(
        self,
        count: int = 1,
        *,
        partition: int = 0,
        headers: Sequence[tuple[str, bytes]] = (),
        origin: tuple[str, int | None, int | None] | None = None,
        pipeline: str | None = None,
        **reason: Any,
    ) -> None:
        """Letters with the values `0`, `1`, ... and keys `k0`, `k1`, ..., of partition 1 of their origin."""
        for _ in range(count):
            number = self._count
            self._count += 1
            place = origin or (self.origin, 1, number)
            reason.setdefault("time", int(time.time() * 1000))
            own = letter_headers(pipeline or self.pipeline, place, **{**reason, "time": reason["time"] + number})
            self._producer.produce(self.topic, str(number), f"k{number}", partition=partition, headers=[*headers, *own])
        assert self._producer.flush(30) == 0

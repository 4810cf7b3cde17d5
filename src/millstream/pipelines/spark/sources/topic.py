"""Topics as a source: Spark's Kafka source, with its options made from what the user wrote.

Where to begin counts for the first run only; afterwards the checkpoint knows. Partitions, and topics that fit a
pattern, are looked for before each micro-batch, and new ones are read from their beginning. Records that were deleted
before they were read stop the query (`failOnDataLoss`). An end is a filter: nothing beyond it is ever delivered,
whatever Spark reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.cluster.connection import Connection
from millstream.cluster.errors import NotFound
from millstream.cluster.positions import parse_time, topic_partitions
from millstream.pipelines import offsets
from millstream.pipelines.description.sources import Table, TopicSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.schemas import Schema, given, inferred
from millstream.pipelines.spark.schemas.inferred import SAMPLE, columns_of_texts
from millstream.pipelines.spark.values import decode, spark_options, value_options

EARLIEST = -2
"""Spark's number for the beginning of a partition."""
LARGE_FETCHES = {"kafka.max.poll.records": "10000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
"""Spark reads a partition with one task, which waits for each fetch: larger ones, and more of each at a time."""
Offsets = Mapping[str, Mapping[int, int]]


class TopicReader:
    """See `sources.reader`."""

    def __init__(self, source: TopicSource, name: str, context: Context) -> None:
        self._source = source
        self._name = name
        self._context = context
        self._connection = context.cluster(source.bootstrap)
        _check_topics(source, self._connection)
        self._schema = schema_of(source, name, context, self._topics)
        self._end = self._find_end()
        self.can_fail = source.value != "raw"

    def raw_stream(self, limit: int | None = None) -> DataFrame:
        options = {**_where(self._source), **self._start(), **kafka_options(self._source, self._context)}
        if limit is not None:
            options["maxOffsetsPerTrigger"] = str(limit)
        return self._before_end(self._context.spark.readStream.format("kafka").options(**options).load())

    def initial_offset(self) -> str | None:
        return None

    def raw_batch(self, start: str, end: str) -> DataFrame:
        return self._before_end(read_between(self._source, self._context, _offsets(start), _offsets(end)))

    def rows(self, raw: DataFrame) -> DataFrame:
        return decode(raw, self._source, self._schema)

    def end_offsets(self) -> dict[str, dict[int, int]] | None:
        return self._end

    def finished(self, offset: str) -> bool:
        if self._end is None:
            return False
        reached = _offsets(offset)
        return all(
            reached.get(topic, {}).get(partition, 0) >= end
            for topic, partitions in self._end.items()
            for partition, end in partitions.items()
        )

    def _topics(self) -> list[str]:
        return offsets.topic_names(self._connection, self._source.topics, self._source.pattern)

    def _start(self) -> dict[str, str]:
        start = self._source.start
        if isinstance(start, str):
            if start in ("earliest", "latest"):
                return {"startingOffsets": start}
            # Partitions without a record at or after the moment begin with the next that comes.
            return {"startingTimestamp": str(parse_time(start)), "startingOffsetsByTimestampStrategy": "latest"}
        there = offsets.beginning_and_end(self._connection, self._topics())
        self._check_partitions(start, there, "start")
        # Spark wants to be told of every partition; one that the user does not name begins at its beginning.
        whole = {
            topic: {partition: start.get(topic, {}).get(partition, EARLIEST) for partition in partitions}
            for topic, partitions in there.items()
        }
        return {"startingOffsets": json.dumps(whole)}

    def _find_end(self) -> dict[str, dict[int, int]] | None:
        """The offset before which each partition ends, as it is now; None if there is no end."""
        end = self._source.end
        if end is None:
            return None
        topics = self._topics()
        if isinstance(end, str) and end != "latest":
            return offsets.resolve_time(self._connection, topics, parse_time(end) or 0)
        there = offsets.beginning_and_end(self._connection, topics)
        given = {} if isinstance(end, str) else end
        self._check_partitions(given, there, "end")
        return {
            topic: {partition: given.get(topic, {}).get(partition, last) for partition, (_, last) in partitions.items()}
            for topic, partitions in there.items()
        }

    def _check_partitions(self, position: Offsets, there: offsets.TopicBounds, field: str) -> None:
        for topic, partitions in position.items():
            if topic not in there:
                raise PipelineError(
                    f"`{field}` names the topic {topic}, which this source does not read", self._source.place
                )
            for partition in partitions:
                if partition not in there[topic]:
                    raise PipelineError(
                        f"`{field}` names partition {partition} of {topic}, which has 0 to {len(there[topic]) - 1}",
                        self._source.place,
                    )

    def _before_end(self, raw: DataFrame) -> DataFrame:
        if self._end is None:
            return raw
        ends: list[Column] = []
        for topic, partitions in self._end.items():
            for partition, end in partitions.items():
                ends += [F.lit(f"{topic}/{partition}"), F.lit(end)]
        if not ends:
            return raw.where(F.lit(False))
        end_of_partition = F.try_element_at(F.create_map(*ends), F.concat_ws("/", "topic", "partition"))
        # A partition that was added later is behind the end as a whole.
        return raw.where(F.col("offset") < F.coalesce(end_of_partition, F.lit(0)))


def _check_topics(source: TopicSource, connection: Connection) -> None:
    try:
        with connection.admin() as admin:
            for topic in source.topics:
                topic_partitions(admin, topic)
    except NotFound as error:
        raise PipelineError(str(error), source.place) from error


def kafka_options(source: TopicSource | Table, context: Context) -> dict[str, str]:
    """What a stream and a batch of a topic have in common. What the user set comes last."""
    bootstrap = source.bootstrap if isinstance(source, TopicSource) else None
    return {
        **context.kafka_options(bootstrap),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        **LARGE_FETCHES,
        **spark_options(source.options),
    }


def read_between(source: TopicSource | Table, context: Context, start: Offsets, end: Offsets) -> DataFrame:
    """The records of the partitions in `end`, from `start` (or the beginning of a partition that is not in it) on."""
    begin = {
        topic: {partition: start.get(topic, {}).get(partition, EARLIEST) for partition in partitions}
        for topic, partitions in end.items()
    }
    options = {
        **kafka_options(source, context),
        "assign": json.dumps({topic: list(partitions) for topic, partitions in end.items()}),
        "startingOffsets": json.dumps(begin),
        "endingOffsets": json.dumps(end),
    }
    return context.spark.read.format("kafka").options(**options).load()


def schema_of(
    source: TopicSource | Table, name: str, context: Context, topics: Callable[[], list[str]]
) -> Schema | None:
    """The schema of the values: given, kept, or found in a sample; None for formats that have none."""
    if source.value in ("text", "raw"):
        return None
    if source.schema_ != "infer":
        return given(source.schema_, source.place)
    return inferred(context.folder, name, lambda: _columns_of_sample(source, context, topics()), source.place)


def _columns_of_sample(source: TopicSource | Table, context: Context, topics: list[str]) -> StructType:
    """What the first and the last records of each partition have: what was written long ago may differ from now."""
    bootstrap = source.bootstrap if isinstance(source, TopicSource) else None
    there = offsets.beginning_and_end(context.cluster(bootstrap), topics)
    count = sum(len(partitions) for partitions in there.values())
    if not any(end > first for partitions in there.values() for first, end in partitions.values()):
        raise PipelineError(
            f"{', '.join(topics) or 'the pattern'} has no records to infer a schema from: give `schema`", source.place
        )
    each = max(2, SAMPLE // count)
    heads, middles, tails, ends = (_nowhere(there) for _ in range(4))
    for topic, partitions in there.items():
        for partition, (first, end) in partitions.items():
            heads[topic][partition], ends[topic][partition] = first, end
            middles[topic][partition] = min(end, first + each // 2)
            tails[topic][partition] = max(middles[topic][partition], end - each // 2)
    sample = read_between(source, context, heads, middles).union(read_between(source, context, tails, ends))
    texts = sample.where("value IS NOT NULL").select(F.col("value").cast("string"))
    kind = "csv" if source.value == "csv" else "json"
    return columns_of_texts(context.spark, texts, kind, value_options(source.options), source.place)


def _nowhere(topics: Iterable[str]) -> dict[str, dict[int, int]]:
    return {topic: {} for topic in topics}


def _where(source: TopicSource) -> dict[str, str]:
    return {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}


def _offsets(text: str) -> dict[str, dict[int, int]]:
    """Spark's JSON of offsets."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in json.loads(text).items()
    }

"""Rows into a topic, one micro-batch at a time: at least once by Spark's own writer, or exactly once (`transactions`).

At least once: a batch that comes again is written again. A row that makes no record that the topic takes (it is too
large, or the Avro schema does not allow it) is refused alone. Measuring every record costs a tenth of the speed, so at
least once it begins only when a record was too large.
"""

from __future__ import annotations

from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.cluster import configs
from millstream.cluster.topics import create_topic
from millstream.pipelines.description.sinks import TopicSink
from millstream.pipelines.description.sources import TopicSource
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, ERROR_TYPE, without_hidden
from millstream.pipelines.spark.schemas import Schema, avro, given
from millstream.pipelines.spark.sinks.names import owner_of
from millstream.pipelines.spark.sinks.transactions import LEDGER, Transaction, send
from millstream.pipelines.spark.sinks.writer import Batch
from millstream.pipelines.spark.values import decode, encode, producer_options
from millstream.pipelines.spark.values.encoding import record_columns, refusal
from millstream.pipelines.spark.values.options import KAFKA

RECORD_OVERHEAD = 128
"""Bytes of a record batch beside key, value and headers: generous."""
LARGE_BATCHES = {"kafka.linger.ms": "20", "kafka.batch.size": str(256 << 10)}
"""A micro-batch is flushed at its end, so nothing waits longer; Java's own 16 kB make a request of a few records."""
TOO_LARGE = "RecordTooLarge"
_RECORD = "_millstream_record"


class TopicWriter:
    """One topic sink of one pipeline."""

    def __init__(self, sink: TopicSink, context: Context) -> None:
        self._sink = sink
        self._context = context
        self._largest = 0
        self._measures = sink.delivery == "exactly-once"
        self._written = ""
        """The query whose last batch this process has written itself."""

    def open(self, schema: StructType) -> None:
        connection = self._context.cluster(self._sink.bootstrap)
        create_topic(connection, self._sink.topic, partitions=self._sink.partitions, if_not_exists=True)
        if self._sink.delivery == "exactly-once":
            compact = {"cleanup.policy": "compact"}
            create_topic(connection, LEDGER, partitions=1, configs=compact, if_not_exists=True)
        self._largest = _largest_message(self._context, self._sink) - RECORD_OVERHEAD

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        if not self._measures and refusal(rows, self._sink) is None:
            try:
                self._append(encode(rows, self._sink))
                return None
            except (PySparkException, Py4JJavaError) as error:
                if TOO_LARGE not in str(error):
                    raise
                self._measures = True
        return self._write_measured(rows, batch)

    def close(self) -> None:
        """Nothing is kept open between batches."""

    def _write_measured(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        record = F.struct(*record_columns(rows, self._sink))
        checked = rows.withColumn(_RECORD, record).withColumn(ERROR, self._problem(rows, batch.sink))
        bad = Observation()
        counted = checked.observe(bad, F.count_if(F.col(ERROR).isNotNull()).alias("bad"))
        records = counted.where(F.col(ERROR).isNull()).select(f"{_RECORD}.*")
        if self._sink.delivery == "at-least-once":
            self._append(records)
        else:
            self._commit(records, batch)
        return checked.where(F.col(ERROR).isNotNull()).drop(_RECORD) if bad.get["bad"] else None

    def _append(self, records: DataFrame) -> None:
        options = {
            **self._context.kafka_options(self._sink.bootstrap),
            "kafka.max.request.size": str(self._largest + RECORD_OVERHEAD),
            **LARGE_BATCHES,
            **producer_options(self._sink.options),
        }
        records.write.mode("append").format("kafka").options(**options).option("topic", self._sink.topic).save()

    def _commit(self, records: DataFrame, batch: Batch) -> None:
        """One task writes all of them: a transaction has one producer."""
        connection = self._context.cluster(self._sink.bootstrap)
        given = {name.removeprefix(KAFKA): value for name, value in producer_options(self._sink.options).items()}
        transaction = Transaction(
            id=f"millstream-{self._context.pipeline.name}-{owner_of(self._context.pipeline, self._sink)}",
            topic=self._sink.topic,
            key=f"{batch.pipeline}/{batch.sink}/{batch.query}",
            number=batch.number,
            properties={
                **connection.properties,
                "bootstrap.servers": connection.bootstrap,
                "message.max.bytes": self._largest + RECORD_OVERHEAD,
                **given,
            },
            look=self._written != batch.query,
        )
        records.coalesce(1).mapInArrow(partial(send, transaction), "records bigint").collect()
        self._written = batch.query

    def _problem(self, rows: DataFrame, sink: str) -> Column:
        """The error of a row that makes no record; null for others."""
        size = _size(F.col(_RECORD))
        message = F.concat(
            F.lit("the record has "), size, F.lit(f" bytes, and {self._sink.topic} takes {self._largest} at most")
        )
        too_large = F.struct(
            F.lit(f"sink {sink}").alias("stage"),
            F.lit("record-too-large").alias("error"),
            message.alias("message"),
        ).cast(ERROR_TYPE)
        found = F.when(size > self._largest, too_large)
        misfit = refusal(rows, self._sink)
        return found if misfit is None else F.coalesce(misfit, found)


def read_topic(sink: TopicSink, context: Context, schema: StructType) -> DataFrame | None:
    """All committed records of the topic, decoded as they were encoded."""
    options = {
        **context.kafka_options(sink.bootstrap),
        "subscribe": sink.topic,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
    }
    raw = context.spark.read.format("kafka").options(**options).load()
    source = TopicSource.model_validate({"topic": sink.topic, "value": sink.value, "schema": schema.simpleString()})
    rows = without_hidden(decode(raw, source, _schema(sink, schema)))
    if sink.value in ("text", "raw") and schema.names != ["value"] and len(schema.names) == 1:
        rows = rows.withColumnRenamed("value", schema.names[0])
    return rows.select(*schema.names) if set(schema.names) <= set(rows.columns) else None


def _schema(sink: TopicSink, columns: StructType) -> Schema | None:
    """What the records were written with."""
    if sink.value in ("text", "raw"):
        return None
    if sink.value != "avro":
        return Schema(columns)
    return given(sink.schema_, sink.place) if sink.schema_ else Schema(columns, avro.derived(columns, sink.topic))


def _size(record: Column) -> Column:
    """Bytes of a record: key, value and headers."""
    headers = F.aggregate(
        F.coalesce(record["headers"], F.array().cast("array<struct<key: string, value: binary>>")),
        F.lit(0),
        lambda total, header: total + F.length(header["key"]) + F.coalesce(F.length(header["value"]), F.lit(0)),
    )
    lengths = [F.coalesce(F.length(record[name]), F.lit(0)) for name in ("key", "value")]
    return lengths[0] + lengths[1] + headers


def _largest_message(context: Context, sink: TopicSink) -> int:
    """What the topic takes, or the sink's own limit if that is less."""
    (found,) = configs.get(context.cluster(sink.bootstrap), "topic", sink.topic, ["max.message.bytes"])
    largest = int(found.value or 0)
    return min(largest, int(sink.options.get("kafka.max.request.size", largest)))

"""One query of a running pipeline: how Spark is asked for it, how it goes on, how it stops between two batches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from millstream.pipelines.checkpoints import Checkpoint, TopicOffsets, behind, topic_offsets
from millstream.pipelines.description.sinks import TopicSink
from millstream.pipelines.description.spans import span_text
from millstream.pipelines.description.steps import WatermarkStep
from millstream.pipelines.pressure import Pressure
from millstream.pipelines.spark.bad_records import write_dead_letters
from millstream.pipelines.spark.flow import seen_to_be_bad
from millstream.pipelines.spark.hadoop_files import files_of
from millstream.pipelines.spark.micro_batch import HURRY_SECONDS, BatchHandler, Gate, part_for
from millstream.pipelines.spark.plan import DEAD_LETTERS, MAIN, Plan, QueryPlan
from millstream.pipelines.spark.steps import FALLIBLE
from millstream.pipelines.spark.values import encode, producer_options
from millstream.pipelines.status import QueryStatus

STOP_SECONDS = 120.0
COMMIT_SECONDS = 10.0


class Query:
    """A query that can be started, watched and stopped, and started again."""

    def __init__(self, plan: Plan, query: QueryPlan, checkpoint: str) -> None:
        self._plan = plan
        self.query = query
        self._checkpoint = checkpoint
        self._pressure = Pressure(plan.context.pipeline.back_pressure)
        self._streaming: StreamingQuery | None = None
        self._handler: BatchHandler | _BadRecordsHandler | None = None
        self._dead_letters = 0
        self._at_end = False
        self._progress = threading.Condition()
        self._finished: int | None = None
        self.status = QueryStatus(query.name, query.mode, query.why)
        self.positions: TopicOffsets = {}
        """Topic -> partition -> the offset up to which all is done."""

    @property
    def id(self) -> str | None:
        """Spark's id of the run, by which events find their query."""
        return None if self._streaming is None else str(self._streaming.runId)

    @property
    def is_active(self) -> bool:
        return self._streaming is not None and self._streaming.isActive

    def start(self) -> None:
        self._finished = None
        self._dead_letters = self.dead_letters
        self.positions = self._state().done() or self.positions  # the last batch may have ended unheard
        real_time = self.query.mode == "real-time"
        limit = None if real_time else self._pressure.limit
        self.status = self.status._replace(mode=self.query.mode, why=self.query.why, limit=limit)
        rows, self._handler = self._rows(limit)
        writer = rows.writeStream.queryName(f"{self._plan.context.pipeline.name}/{self.query.name}")
        writer = writer.option("checkpointLocation", self._checkpoint)
        pipeline = self._plan.context.pipeline
        if real_time:
            sink = self._topic_sink()
            where = self._plan.context.kafka_options(sink.bootstrap)
            options = {**where, "kafka.linger.ms": "0", **producer_options(sink.options)}
            writer = writer.format("kafka").options(**options).option("topic", sink.topic).outputMode("update")
            # The stubs do not know real-time mode yet.
            writer = writer.trigger(realTime=span_text(pipeline.real_time_batch))  # type: ignore[call-overload]
        else:
            assert self._handler is not None
            writer = writer.foreachBatch(self._handler)
            writer = writer.outputMode(self._plan.output_mode if self.query.name == MAIN else "append")
            every = {"processingTime": span_text(pipeline.every)}
            writer = writer.trigger(**({"availableNow": True} if pipeline.mode == "once" else every))
        self._streaming = writer.start()

    @property
    def dead_letters(self) -> int:
        """Since the pipeline was started."""
        return self._dead_letters + (0 if self._handler is None else self._handler.dead_letters)

    def error(self) -> Exception | None:
        """Why it ended; None if it runs, or ended well."""
        return None if self._streaming is None else self._streaming.exception()

    def progressed(self, progress: Mapping[str, Any]) -> int | None:
        """Takes note of a finished batch. The limit under which it should be started again, if it should."""
        self.positions |= topic_positions(progress)
        rows = rows_of(progress, self._state().initial)
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        state = progress.get("stateOperators") or []
        watermark = progress.get("eventTime", {}).get("watermark")
        self.status = self.status._replace(
            batch=progress["batchId"],
            rows=self.status.rows + rows,
            rows_per_second=round(rows / seconds, 1) if seconds else None,
            lag=lag_of(progress),
            batch_seconds=round(seconds, 3),
            watermark=None if watermark is None or watermark.startswith("1970-01-01") else watermark,
            state_rows=sum(int(operator["numRowsTotal"]) for operator in state) if state else None,
            late_rows=self.status.late_rows + sum(int(operator["numRowsDroppedByWatermark"]) for operator in state),
            dead_letters=self.dead_letters,
        )
        self._at_end = self._are_ends([_text(source.get("endOffset")) for source in progress["sources"]])
        with self._progress:
            self._finished = progress["batchId"]
            self._progress.notify_all()
        if self.query.mode == "real-time" or not self.status.lag:
            return None
        return self._pressure.batch_done(rows, seconds)

    def finished(self) -> bool:
        """Whether it has read up to the end of its sources, if they have one."""
        ended = self._streaming is not None and not self.is_active and self.error() is None
        return self._at_end or ended or (self._finished is None and self._has_nothing_to_do())

    def _has_nothing_to_do(self) -> bool:
        """Whether it stood at the end of its sources from the start, so that no batch will come and tell."""
        if any(reader.end_offsets() is None for reader in self._plan.readers.values()):
            return False
        state = self._state()
        done = state.last_committed()
        if done != state.last_planned():
            return False
        batch = None if done is None else state.batch(done)
        found = [None] * len(self._plan.readers) if batch is None else batch.offsets
        return self._are_ends([state.initial(index) if text is None else text for index, text in enumerate(found)])

    def _are_ends(self, positions: Sequence[str | None]) -> bool:
        """Of all sources, in their order, as they stand in a checkpoint."""
        readers = self._plan.readers.values()
        return len(positions) == len(readers) and all(
            position is not None and reader.finished(position)
            for reader, position in zip(readers, positions, strict=True)
        )

    def stop(self, hurry: threading.Event) -> None:
        """Between two batches; `hurry` breaks off, at any moment, and what was not finished is done again."""
        streaming = self._streaming
        if streaming is None:
            return
        if streaming.isActive:
            if self._handler is not None:
                last = self._handler.gate.close(hurry, STOP_SECONDS)
                self._await_batch(last, hurry, COMMIT_SECONDS)
            else:
                # A real-time batch goes on until its time is over. Broken off, all its records would be sent again.
                running = 0 if self.status.batch is None else self.status.batch + 1
                self._await_batch(running, hurry, self._plan.context.pipeline.real_time_batch + COMMIT_SECONDS)
        elif self._handler is not None and streaming.exception() is None:
            self._await_batch(self._handler.gate.last, hurry, COMMIT_SECONDS, ended=True)  # the news of it may be late
        streaming.stop()
        if isinstance(self._handler, BatchHandler):
            self._handler.close()

    def _await_batch(self, number: int | None, hurry: threading.Event, seconds: float, *, ended: bool = False) -> None:
        """Until Spark has said that the batch is done and written down."""
        if number is None:
            return
        deadline = time.monotonic() + seconds
        with self._progress:
            while (self._finished is None or self._finished < number) and time.monotonic() < deadline:
                if hurry.is_set() or not (ended or self.is_active):
                    return
                self._progress.wait(HURRY_SECONDS)

    def _rows(self, limit: int | None) -> tuple[DataFrame, BatchHandler | _BadRecordsHandler | None]:
        plan = self._plan
        if self.query.mode == "real-time":
            sink = self._topic_sink()
            return encode(part_for(sink, plan.all_steps()), sink), None
        if self.query.name == DEAD_LETTERS:
            return self._raw(limit), _BadRecordsHandler(plan, self._bad_of)
        handler = BatchHandler(plan, self.query.sinks, self._watermark_before)
        if plan.head or len(plan.readers) > 1:
            return plan.head_rows(limit), handler
        return self._raw(limit), handler

    def _topic_sink(self) -> TopicSink:
        """The one sink of a real-time query."""
        sink = self._plan.context.pipeline.sinks[self.query.sinks[0]]
        assert isinstance(sink, TopicSink)
        return sink

    def _watermark_before(self, number: int) -> int:
        """The watermark of the batch before, in milliseconds; 0: none yet."""
        before = self._state().batch(number - 1) if number else None
        return 0 if before is None else before.watermark

    def _state(self) -> Checkpoint:
        return Checkpoint(self._checkpoint, files_of(self._checkpoint, self._plan.context.spark))

    def _raw(self, limit: int | None) -> DataFrame:
        return self._plan.readers[self._plan.flow.main].raw_stream(limit)

    def _bad_of(self, raw: DataFrame) -> list[DataFrame]:
        """The bad rows up to the last step that can fail, before any step that keeps state."""
        pipeline, flow = self._plan.context.pipeline, self._plan.flow
        steps = self._plan.head or pipeline.steps
        last = max((index + 1 for index, step in enumerate(steps) if type(step) in FALLIBLE), default=0)
        safe = [step for step in steps[:last] if not isinstance(step, WatermarkStep)]
        flowed = flow.apply(flow.begin({flow.main: raw}), safe)
        flowed.rows.write.format("noop").mode("overwrite").save()  # one pass finds out where there are any
        return seen_to_be_bad(flowed)


class _BadRecordsHandler:
    """foreachBatch of a query that only looks for bad records."""

    def __init__(self, plan: Plan, find: Callable[[DataFrame], list[DataFrame]]) -> None:
        self._plan = plan
        self._find = find
        self.gate = Gate()
        self.dead_letters = 0

    def __call__(self, rows: DataFrame, number: int) -> None:
        with self.gate:
            bad = self._find(rows)
            if bad:
                self.dead_letters += write_dead_letters(self._plan.context, bad)
            self.gate.last = number


def topic_positions(progress: Mapping[str, Any]) -> TopicOffsets:
    """The end offsets of a batch, of those sources that are topics."""
    return behind(_offsets(source.get("endOffset")) or {} for source in progress["sources"])


def rows_of(progress: Mapping[str, Any], initial: Callable[[int], str | None]) -> int:
    """How many rows a batch had. Spark counts what was read, and a batch may be read more than once: for topics the
    offsets tell. `initial`: where a source began, by its place in the plan."""
    total = 0
    for index, source in enumerate(progress["sources"]):
        end = _offsets(source.get("endOffset"))
        start = _offsets(source.get("startOffset") or initial(index))
        if end is None:
            total += int(source["numInputRows"])
            continue
        for topic, partitions in end.items():
            for partition, offset in partitions.items():
                total += offset - (start or {}).get(topic, {}).get(partition, 0)
    return total


def lag_of(progress: Mapping[str, Any]) -> int | None:
    """Records behind the end of the topics; None if no source is a topic."""
    lag = None
    for source in progress["sources"]:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is not None and latest is not None:
            lag = lag or 0
            for topic, partitions in latest.items():
                for partition, offset in partitions.items():
                    lag += max(0, offset - end.get(topic, {}).get(partition, 0))
    return lag


def _text(offset: Any) -> str | None:
    """An offset of Spark's progress as it stands in a checkpoint."""
    return offset if offset is None or isinstance(offset, str) else json.dumps(offset)


def _offsets(offset: Any) -> TopicOffsets | None:
    """By topic and partition; None if it is another source's."""
    text = _text(offset)
    return None if text is None else topic_offsets(text)

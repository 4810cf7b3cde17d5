"""What Spark is asked to do for a pipeline: which queries, in which mode, and why.

A pipeline is one or more queries over the same source:

- `main`: all sinks that take micro-batches; they share one read of the source. If a step keeps state, the steps up to
  the last such one are part of the streaming plan (`head`) and the rest is done for each micro-batch (`tail`); else
  all is.
- one query for each topic sink that can have real-time mode, under the sink's name.
- `dead-letters`: the bad records, where no query above sees them one batch at a time: with real-time queries only, or
  when records fail before a step that keeps state.

Rows that come after the watermark and shall be sent aside travel through `main` beside its results (`steps.late`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import CassandraSink, ConsoleSink, DatabaseSink, Sink, TopicSink
from millstream.pipelines.description.steps import StateStep, Step, WatermarkStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark import modes
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.flow import Flow, Flowed
from millstream.pipelines.spark.rows import visible_schema
from millstream.pipelines.spark.sinks import sink_name
from millstream.pipelines.spark.sources import READERS
from millstream.pipelines.spark.sources.reader import Reader
from millstream.pipelines.spark.steps import FALLIBLE, late
from millstream.pipelines.spark.tables import RefreshingTable

Mode = Literal["real-time", "micro-batch"]
MAIN, DEAD_LETTERS = "main", "dead-letters"


@dataclass(frozen=True)
class QueryPlan:
    """One query: its name (which names its checkpoint), how it runs and why, and the sinks it serves by their index."""

    name: str
    mode: Mode
    why: str
    sinks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All that is known before anything runs."""

    context: Context
    readers: Mapping[str, Reader]
    flow: Flow
    queries: tuple[QueryPlan, ...]
    head: tuple[Step, ...]
    """Steps of the streaming plan of `main`; empty: it streams the raw records."""
    tail: tuple[Step, ...]
    output_mode: str
    schema: StructType
    text: str
    """Spark's logical plan, for people."""

    def all_steps(self) -> DataFrame:
        """The streaming rows after all steps."""
        return self.flow.apply(self._begin(None), self.context.pipeline.steps).rows

    def head_rows(self, limit: int | None) -> DataFrame:
        """The streaming rows after the head; late rows beside them, where they shall be sent aside."""
        before = self.flow.apply(self._begin(limit), self.head[:-1])
        rows = self.flow.apply(before, self.head[-1:]).rows
        if self.head and sends_late_aside(self.context.pipeline):
            return late.beside(rows, before.rows, self.head[-1])
        return rows

    def _begin(self, limit: int | None) -> Flowed:
        return self.flow.begin({name: reader.raw_stream(limit) for name, reader in self.readers.items()})


def make_plan(context: Context) -> Plan:
    """The plan of a pipeline; PipelineError says what cannot be done."""
    pipeline = context.pipeline
    readers: dict[str, Reader] = {
        name: READERS[type(source)](source, name, context) for name, source in pipeline.named_sources.items()
    }
    tables = {name: RefreshingTable(table, name, context) for name, table in pipeline.tables.items()}
    flow = Flow(context, readers, tables)
    flowed = flow.begin({name: reader.raw_stream(None) for name, reader in readers.items()})
    stages = [flowed.rows]
    for step in pipeline.steps:
        flowed = flow.apply(flowed, [step])
        stages.append(flowed.rows)
    rows = stages[-1]
    head = _head_length(stages, several=len(readers) > 1)
    if sends_late_aside(pipeline) and len(modes.stateful_nodes(stages[head])) > 1:
        raise PipelineError("`late: dead-letter` goes with one step that keeps state, not with several", pipeline.place)
    queries = tuple(_queries(pipeline, readers, rows, head))
    return Plan(
        context=context,
        readers=readers,
        flow=flow,
        queries=queries,
        head=pipeline.steps[:head],
        tail=pipeline.steps[head:],
        output_mode=_output_mode(pipeline, stages[head]),
        schema=visible_schema(rows),
        text=str(rows._jdf.queryExecution().analyzed().toString()),
    )


def _head_length(stages: list[DataFrame], several: bool) -> int:
    """How many steps must be part of the streaming plan: up to the last that adds state; with several sources, all."""
    counts = [len(modes.stateful_nodes(rows)) for rows in stages]
    length = max((index for index in range(1, len(counts)) if counts[index] > counts[index - 1]), default=0)
    return len(stages) - 1 if several and length == 0 else length


def _queries(pipeline: Pipeline, readers: Mapping[str, Reader], rows: DataFrame, head: int) -> list[QueryPlan]:
    real_time, batched, reasons = [], [], []
    for index, sink in enumerate(pipeline.sinks):
        why = modes.refusal(pipeline, sink, rows)
        if why is None:
            name = sink_name(pipeline, index)
            real_time.append(
                QueryPlan(name, "real-time", "it goes from topics to a topic and no step keeps state", (index,))
            )
        elif pipeline.mode == "real-time":
            raise PipelineError(f"`mode: real-time` is not possible: {why}", sink.place or pipeline.place)
        else:
            batched.append(index)
            reasons.append(why)
    queries = []
    if batched:
        queries.append(QueryPlan(MAIN, "micro-batch", "; ".join(dict.fromkeys(reasons)), tuple(batched)))
    queries += real_time
    fallible_head = [index for index, step in enumerate(pipeline.steps[:head]) if type(step) in FALLIBLE]
    can_fail = any(reader.can_fail for reader in readers.values())
    fallible = can_fail or any(type(step) in FALLIBLE for step in pipeline.steps)
    if not batched and fallible:
        queries.append(QueryPlan(DEAD_LETTERS, "micro-batch", "finds bad records beside the real-time queries"))
    elif batched and head and (fallible_head or can_fail):
        queries.append(QueryPlan(DEAD_LETTERS, "micro-batch", "finds bad records before the state does"))
    return queries


def sends_late_aside(pipeline: Pipeline) -> bool:
    return any(isinstance(step, WatermarkStep) and step.late == "dead-letter" for step in pipeline.steps)


def _output_mode(pipeline: Pipeline, rows: DataFrame) -> str:
    """Which rows of a result that changes are written."""
    if pipeline.output != "auto":
        return pipeline.output
    stateful = [step for step in pipeline.steps if isinstance(step, StateStep)]
    if stateful:
        return stateful[-1].output
    if not modes.has_aggregate(rows):
        return "append"
    append_only = [sink for sink in pipeline.sinks if not takes_updates(sink)]
    if not append_only:
        return "update"
    if modes.has_watermark(rows):
        return "append"
    raise PipelineError(
        "this sink only adds rows, and the results of the aggregation change: give the stream a watermark, so that "
        "results are written once, when they are final; or a sink that can replace them (a database with `key`)",
        append_only[0].place or pipeline.place,
    )


def takes_updates(sink: Sink) -> bool:
    """Whether a later row can stand for an earlier one there."""
    return isinstance(sink, TopicSink | CassandraSink | ConsoleSink) or (
        isinstance(sink, DatabaseSink) and bool(sink.key)
    )


def as_micro_batch(query: QueryPlan, why: str) -> QueryPlan:
    """The same query after Spark refused real-time mode."""
    return replace(query, mode="micro-batch", why=why)

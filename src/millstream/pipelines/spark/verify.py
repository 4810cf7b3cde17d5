"""Compares what a pipeline's sinks hold with what its source says they should hold.

The pipeline's own steps are run once more, as a batch, over exactly the records that it has finished (its checkpoint
says which); the result is compared, row by row, with what is read back from each sink. Rows that a sink replaces by
key are compared as they should be in the end. The source must still have the records, and the sink nothing from
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from millstream.cluster.connection import Connection
from millstream.pipelines.checkpoints import Checkpoint
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import CassandraSink, DatabaseSink, Sink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.micro_batch import part_for
from millstream.pipelines.spark.plan import Plan, QueryPlan, make_plan
from millstream.pipelines.spark.rows import ORIGIN, visible, visible_schema, without_hidden
from millstream.pipelines.spark.session import running_session
from millstream.pipelines.spark.sinks import READ_BACK, sink_name
from millstream.pipelines.spark.start import checkpoint_of

EXAMPLES = 5
_EXPECTED, _FOUND, _ROW = "expected", "found", "row"


class SinkReport(NamedTuple):
    """One sink: rows that should be there and are; `doubled` are there more often than they should."""

    sink: str
    expected: int
    found: int
    missing: int
    doubled: int
    unexpected: int
    examples: Sequence[str] = ()
    note: str = ""

    @property
    def agrees(self) -> bool:
        return not (self.missing or self.doubled or self.unexpected)


def verify(
    pipeline: Pipeline,
    connection: Connection,
    home: PipelineHome,
    *,
    master: str | None = None,
    memory: str = "1g",
    conf: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
) -> list[SinkReport]:
    """A report for each sink. PipelineError if there is nothing to compare."""
    with running_session([pipeline], home.root, session, master=master, memory=memory, conf=conf) as spark:
        folder = home.pipeline(pipeline.name)
        plan = make_plan(Context(spark, pipeline, connection, folder.path))
        reports = []
        for query in plan.queries:
            if query.sinks:
                rows = _expected_rows(plan, query, checkpoint_of(plan.context, folder, query.name))
                reports += [_report(plan, index, rows) for index in query.sinks]
        return reports


def _expected_rows(plan: Plan, query: QueryPlan, checkpoint: Checkpoint) -> DataFrame:
    """What the query's finished records give when all steps are run as a batch."""
    committed = checkpoint.last_committed()
    batch = None if committed is None else checkpoint.batch(committed)
    if batch is None:
        name = plan.context.pipeline.name
        raise PipelineError(f"query {query.name} of {name} has finished no batch yet: there is nothing to compare")
    raw = {}
    for index, (source, reader) in enumerate(plan.readers.items()):
        start, end = checkpoint.initial(index) or reader.initial_offset(), batch.offsets[index]
        if start is None or end is None:
            raise PipelineError(f"the checkpoint {checkpoint.path} does not say what was read of {source}")
        raw[source] = reader.raw_batch(start, end)
    return plan.flow.apply(plan.flow.begin(raw), plan.context.pipeline.steps).rows


def _report(plan: Plan, index: int, rows: DataFrame) -> SinkReport:
    pipeline = plan.context.pipeline
    sink, name = pipeline.sinks[index], sink_name(pipeline, index)
    part = part_for(sink, rows)
    schema = visible_schema(part)
    found = READ_BACK[type(sink)](sink, plan.context, schema) if type(sink) in READ_BACK else None
    if found is None:
        return SinkReport(name, 0, 0, 0, 0, 0, note="this sink cannot be read back")
    key = _key(sink, plan)
    expected = without_hidden(_last_of_each(part, key) if key else part)
    found = found.select(*(F.col(field.name).cast(field.dataType) for field in schema.fields))
    return _compare(name, expected, found)


def _key(sink: Sink, plan: Plan) -> list[str]:
    """The columns by which later rows replace earlier ones."""
    if isinstance(sink, DatabaseSink):
        return list(sink.key)
    if isinstance(sink, CassandraSink):
        return [*sink.key, *(name.split()[0] for name in sink.clustering)]
    return []


def _last_of_each(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The last row of each key, in the order of the source."""
    if ORIGIN not in rows.columns:
        return rows
    order = Window.partitionBy(*key).orderBy(
        F.desc(F.col(ORIGIN)["timestamp"]), F.desc(F.col(ORIGIN)["partition"]), F.desc(F.col(ORIGIN)["offset"])
    )
    return rows.withColumn("_rank", F.row_number().over(order)).where("_rank = 1").drop("_rank")


def _compare(name: str, expected: DataFrame, found: DataFrame) -> SinkReport:
    counted = _counted(expected, _EXPECTED).join(_counted(found, _FOUND), _ROW, "full_outer").na.fill(0).persist()
    try:
        should, there = F.col(_EXPECTED), F.col(_FOUND)
        known = should > 0
        figures = counted.agg(
            F.coalesce(F.sum(should), F.lit(0)).alias("expected"),
            F.coalesce(F.sum(there), F.lit(0)).alias("found"),
            F.coalesce(F.sum(F.greatest(should - there, F.lit(0))), F.lit(0)).alias("missing"),
            F.coalesce(F.sum(F.when(known, F.greatest(there - should, F.lit(0)))), F.lit(0)).alias("doubled"),
            F.coalesce(F.sum(F.when(~known, there)), F.lit(0)).alias("unexpected"),
        ).first()
        assert figures is not None
        wrong = counted.where(should != there).orderBy(_ROW).limit(EXAMPLES).collect()
        examples = [f"{row[_EXPECTED]} expected, {row[_FOUND]} found: {row[_ROW]}" for row in wrong]
        return SinkReport(name, **figures.asDict(), examples=examples)
    finally:
        counted.unpersist()


def _counted(rows: DataFrame, name: str) -> DataFrame:
    """Each different row, as JSON with nulls, and how often it is there."""
    row = F.to_json(F.struct(*(F.col(column) for column in visible(rows))), {"ignoreNullFields": "false"})
    return rows.select(row.alias(_ROW)).groupBy(_ROW).agg(F.count(F.lit(1)).alias(name))

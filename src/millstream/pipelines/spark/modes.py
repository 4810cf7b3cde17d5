"""Which of a pipeline's sinks Spark can serve in real time, which step keeps state, and why: read off Spark's own
plans.

Real-time mode takes projections, filters, generators, unions and joins with static tables, from topics to a topic.
Which nodes of a logical plan these are is written down here once; should Spark be of another opinion when the query
starts, it is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import Sink, TopicSink
from millstream.pipelines.description.sources import TopicSource

STATEFUL = {
    "Aggregate": "an aggregation",
    "Deduplicate": "de-duplication",
    "DeduplicateWithinWatermark": "de-duplication",
    "Distinct": "DISTINCT",
    "FlatMapGroupsWithState": "state",
    "FlatMapGroupsInPandasWithState": "state",
    "TransformWithState": "state",
    "TransformWithStateInPandas": "state",
    "TransformWithStateInPySpark": "state",
    "GlobalLimit": "LIMIT",
}
"""Logical node -> what a person calls it."""
REAL_TIME = {
    "CTERelationDef", "CTERelationRef", "CollectMetrics", "EventTimeWatermark", "Expand", "Filter", "Generate", "Join",
    "Project", "ResolvedHint", "StreamingRelation", "StreamingRelationV2", "SubqueryAlias", "Union", "View", "WithCTE",
}  # fmt: skip
"""Logical nodes that real-time mode can run."""


def stateful_nodes(rows: DataFrame) -> list[str]:
    """What keeps state in a streaming plan, the last step's first."""
    found = []
    for node in _streaming_nodes(_analyzed(rows)):
        name = str(node.nodeName())
        if name in STATEFUL:
            found.append(STATEFUL[name])
        elif name == "Join" and node.left().isStreaming() and node.right().isStreaming():
            found.append("a join of two streams")
    return found


def has_aggregate(rows: DataFrame) -> bool:
    return any(str(node.nodeName()) in ("Aggregate", "Distinct") for node in _streaming_nodes(_analyzed(rows)))


def has_watermark(rows: DataFrame) -> bool:
    return any(str(node.nodeName()) == "EventTimeWatermark" for node in _streaming_nodes(_analyzed(rows)))


def refusal(pipeline: Pipeline, sink: Sink, rows: DataFrame) -> str | None:
    """Why this sink cannot have real-time mode; None if it can."""
    return _asked_for(pipeline) or _refusal_of_sink(sink) or _refusal_of_sources(pipeline) or _refusal_of_plan(rows)


def _asked_for(pipeline: Pipeline) -> str | None:
    return f"`mode: {pipeline.mode}` asks for it" if pipeline.mode in ("micro-batch", "once") else None


def _refusal_of_sink(sink: Sink) -> str | None:
    if not isinstance(sink, TopicSink):
        return f"a {type(sink).__name__.removesuffix('Sink').lower()} sink takes batches"
    if sink.delivery == "exactly-once":
        return "exactly-once delivery needs a transaction for each batch"
    if sink.value == "avro" and sink.schema_ is not None:
        return "rows that the Avro schema does not allow must be found before they are sent"
    return None


def _refusal_of_sources(pipeline: Pipeline) -> str | None:
    sources = list(pipeline.named_sources.values())
    if len(sources) > 1:
        return "there are several sources"
    if not isinstance(sources[0], TopicSource):
        return "real-time mode reads topics only"
    if sources[0].end is not None:
        return "the source has an end"
    return None


def _refusal_of_plan(rows: DataFrame) -> str | None:
    plan = _analyzed(rows)
    state = stateful_nodes(rows)
    if state:
        return f"{state[0]} keeps state"
    patterns = rows.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    if plan.containsPattern(patterns.PYTHON_UDF()):
        return "a Python function runs on the rows"
    for node in _streaming_nodes(plan):
        name = str(node.nodeName())
        if name not in REAL_TIME:
            return "Python runs on the rows" if "Pandas" in name or "Arrow" in name else f"{name} is not possible in it"
    return None


def _analyzed(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()


def _streaming_nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a plan through which the stream flows; static tables beside it do not count."""
    if plan.isStreaming():
        yield plan
        children = plan.children()
        for index in range(children.size()):
            yield from _streaming_nodes(children.apply(index))

"""What would run, and how: the plan of each pipeline as Spark sees it, without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.failures import explain
from millstream.pipelines.spark.plan import QueryPlan, make_plan
from millstream.pipelines.spark.session import running_session


@dataclass(frozen=True)
class Checked:
    """One pipeline: the columns its sinks get, its queries, Spark's plan; or what is wrong."""

    pipeline: Pipeline
    schema: str = ""
    queries: Sequence[QueryPlan] = ()
    plan: str = ""
    error: str | None = None


def check(
    pipelines: Sequence[Pipeline],
    connection: Connection,
    home: PipelineHome,
    *,
    master: str | None = None,
    memory: str = "1g",
    conf: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
) -> list[Checked]:
    """All of them, each with its own error if it has one. `session`: one that is there already, which stays."""
    with running_session(pipelines, home.root, session, master=master, memory=memory, conf=conf) as spark:
        return [
            _check(Context(spark, pipeline, connection, home.pipeline(pipeline.name).path)) for pipeline in pipelines
        ]


def _check(context: Context) -> Checked:
    try:
        plan = make_plan(context)
    except Exception as error:
        message = str(error) if isinstance(error, ClusterError) else explain(error).message
        return Checked(context.pipeline, error=message)
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in plan.schema.fields)
    return Checked(context.pipeline, columns, plan.queries, plan.text)

"""Pipelines on Spark: what a user writes in Python.

    from millstream.pipelines import FilterStep, Pipeline, TopicSink, TopicSource, pipeline

    errors = Pipeline(
        name="errors",
        source=TopicSource(topic="accesslog", value="text"),
        steps=[FilterStep(where="value LIKE '% 500 %'")],
        sinks=[TopicSink(topic="errors", value="text")],
    )

    @pipeline("loud", source=TopicSource(topic="words", value="text"), sinks=[TopicSink(topic="loud", value="text")])
    def loud(stream: DataFrame) -> DataFrame:
        return stream.selectExpr("upper(value) AS value")

These are descriptions: nothing here imports Spark, and nothing runs until `millstream pipeline run`. `read` gives the
pipelines of a YAML or Python file; a YAML file and Python that say the same give equal pipelines. The names and fields
are those of YAML (`docs/pipelines/reference.md`).
"""

from millstream.pipelines.description.checks import check
from millstream.pipelines.description.decorator import pipeline
from millstream.pipelines.description.element import Place
from millstream.pipelines.description.pipeline import BackPressure, Pipeline
from millstream.pipelines.description.reader import read
from millstream.pipelines.description.sinks import (
    CassandraSink,
    ConsoleSink,
    DatabaseSink,
    FilesSink,
    Sink,
    TableSink,
    TopicSink,
)
from millstream.pipelines.description.sources import (
    DatabaseSource,
    FilesSource,
    GeneratorSource,
    Source,
    Table,
    TailSource,
    TopicSource,
)
from millstream.pipelines.description.steps import (
    AddStep,
    AggregateStep,
    CastStep,
    DeduplicateStep,
    DropStep,
    FilterStep,
    JoinStep,
    LookupStep,
    MapStep,
    ParseStep,
    PythonStep,
    SelectStep,
    SqlStep,
    StateStep,
    Step,
    WatermarkStep,
    Window,
)
from millstream.pipelines.description.summary import describe
from millstream.pipelines.errors import PipelineError, PipelineErrors

__all__ = [
    "pipeline", "Pipeline", "BackPressure", "read", "check", "describe", "Place", "PipelineError", "PipelineErrors",
    "Source", "TopicSource", "DatabaseSource", "FilesSource", "TailSource", "GeneratorSource", "Table",
    "Step", "SqlStep", "ParseStep", "CastStep", "FilterStep", "SelectStep", "AddStep", "DropStep", "WatermarkStep",
    "DeduplicateStep", "AggregateStep", "Window", "JoinStep", "LookupStep", "PythonStep", "MapStep", "StateStep",
    "Sink", "TopicSink", "DatabaseSink", "CassandraSink", "TableSink", "FilesSink", "ConsoleSink",
]  # fmt: skip

"""What must be so before a pipeline's queries start: topics exist, nothing was lost meanwhile, and where to begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from millstream.cluster.connection import Connection
from millstream.cluster.topics import create_topic
from millstream.pipelines import offsets
from millstream.pipelines.checkpoints import Checkpoint, TopicOffsets
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import TopicSink
from millstream.pipelines.description.sources import TopicSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineFolder, Start
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.hadoop_files import files_of
from millstream.pipelines.spark.plan import Plan, QueryPlan, make_plan


def make_topics(context: Context) -> None:
    """The topics that are written to, where they are missing; those that are read must be there."""
    pipeline = context.pipeline
    wanted: dict[str | None, dict[str, int]] = {None: {pipeline.dead_letter_topic: 1}}
    for sink in pipeline.sinks:
        if isinstance(sink, TopicSink):
            wanted.setdefault(sink.bootstrap, {})[sink.topic] = sink.partitions
    for bootstrap, topics in wanted.items():
        connection = context.cluster(bootstrap)
        there = set(offsets.topic_names(connection, (), ".*"))
        for topic, partitions in topics.items():
            if topic not in there:
                create_topic(connection, topic, partitions=partitions)


def check_nothing_gone(context: Context, folder: PipelineFolder, queries: Sequence[QueryPlan]) -> None:
    """PipelineError, with the choices there are, if records were deleted that a checkpoint has not seen."""
    for query in queries:
        checkpoint = checkpoint_of(context, folder, query.name)
        if checkpoint.exists:
            gaps = offsets.gone(source_cluster(context), checkpoint.done())
            if gaps:
                raise PipelineError(offsets.gone_text(context.pipeline.name, gaps))


def with_start(context: Context, positions: Mapping[str, Start]) -> Context:
    """The same pipeline with other starting points for its topics, by the source's name."""
    pipeline = context.pipeline
    changed = {
        name: source.model_copy(update={"start": positions[name]}) if name in positions else source
        for name, source in pipeline.named_sources.items()
    }
    update = {"sources": changed} if pipeline.sources else {"source": next(iter(changed.values()))}
    return replace(context, pipeline=pipeline.model_copy(update=update))


def plans_of(context: Context, folder: PipelineFolder) -> list[tuple[QueryPlan, Plan]]:
    """Every query with the plan it runs by.

    A query whose checkpoint is there goes on where it was, whatever the plan's start is. One that is new in a
    pipeline which has run before (its mode was changed, a sink was added) begins where the pipeline is, not where the
    pipeline once began.
    """
    plan = make_plan(with_start(context, _start_override(context, folder)))
    check_nothing_gone(context, folder, plan.queries)
    fresh = [query for query in plan.queries if not checkpoint_of(context, folder, query.name).exists]
    reached = _group_positions(context) if fresh and _has_run(context, folder) else {}
    late_plan = make_plan(with_start(context, reached)) if reached else plan
    return [(query, late_plan if query in fresh else plan) for query in plan.queries]


def checkpoint_of(context: Context, folder: PipelineFolder, query: str) -> Checkpoint:
    location = folder.checkpoint(query)
    return Checkpoint(location, files_of(location, context.spark))


def source_cluster(context: Context) -> Connection:
    """The cluster of the pipeline's topics."""
    sources = context.pipeline.named_sources.values()
    return context.cluster(next((s.bootstrap for s in sources if isinstance(s, TopicSource) and s.bootstrap), None))


def real_time_slots(pipelines: Sequence[Pipeline], connection: Connection) -> int:
    """How many tasks the real-time queries of these pipelines hold at most, for as long as they run."""
    slots = 0
    for pipeline in pipelines:
        sinks = sum(isinstance(sink, TopicSink) and sink.delivery == "at-least-once" for sink in pipeline.sinks)
        for source in pipeline.named_sources.values():
            if sinks and pipeline.mode in ("auto", "real-time") and isinstance(source, TopicSource):
                cluster = connection if source.bootstrap is None else Connection(source.bootstrap)
                slots += sinks * offsets.partition_count(cluster, source.topics, source.pattern)
    return slots


def _start_override(context: Context, folder: PipelineFolder) -> dict[str, Start]:
    """Where `reset` wants it to begin; a partition that was added since then begins at its beginning."""
    given, connection = folder.start_override(), source_cluster(context)
    return {
        name: position if isinstance(position, str) else _complete(position, connection)
        for name, position in given.items()
    }


def _has_run(context: Context, folder: PipelineFolder) -> bool:
    root = folder.checkpoint_root()
    return bool(files_of(root, context.spark).names(root))


def _group_positions(context: Context) -> dict[str, Start]:
    """Where the pipeline's group is, for those sources all of whose topics it has read."""
    connection = source_cluster(context)
    found: dict[str, Start] = {}
    with offsets.GroupPositions(connection, context.pipeline.group) as group:
        for name, source in context.pipeline.named_sources.items():
            if isinstance(source, TopicSource):
                topics = offsets.topic_names(connection, source.topics, source.pattern)
                positions = group.committed(topics)
                if all(topic in positions for topic in topics):
                    found[name] = _complete(positions, connection)
    return found


def _complete(positions: Mapping[str, Mapping[int, int]], connection: Connection) -> TopicOffsets:
    """Spark wants a position for every partition; one that the group does not know begins at its beginning."""
    bounds = offsets.beginning_and_end(connection, positions)
    return {
        topic: {partition: positions[topic].get(partition, first) for partition, (first, _) in partitions.items()}
        for topic, partitions in bounds.items()
    }

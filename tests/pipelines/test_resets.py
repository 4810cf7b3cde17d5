"""A pipeline begins anew somewhere else: what is said first, and what is done then."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, ClusterError
from millstream.cluster.positions import Position, parse_position
from millstream.cluster.topics import plan_truncate, truncate
from millstream.pipelines import resets
from millstream.pipelines.checkpoints import LOCAL_FILES, Checkpoint
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import AnySink, DatabaseSink, TopicSink
from millstream.pipelines.description.sources import GeneratorSource, TopicSource
from millstream.pipelines.home import PipelineFolder, PipelineHome
from millstream.pipelines.offsets import GroupPositions
from millstream.pipelines.resets import Move, Removed, parse_to
from millstream.pipelines.status import PipelineStatus
from support.cluster import Cluster, unique
from support.pipelines import begin, fill, new_topic, write_checkpoint

EARLIEST, LATEST = Position("beginning"), Position("end")


class Case:
    """A pipeline that has read a part of a topic of two partitions: 10 and 4 records."""

    def __init__(self, connection: Connection, home: PipelineHome) -> None:
        self.connection = connection
        self.topic = new_topic(connection, 2, retention_ms="-1")
        fill(connection, self.topic, 6, partition=0, timestamp=1_000_000)
        fill(connection, self.topic, 4, partition=0, timestamp=2_000_000)
        fill(connection, self.topic, 4, partition=1, timestamp=2_000_000)
        sinks: list[AnySink] = [TopicSink(topic="out"), DatabaseSink(database="sqlite:////x.db", table="t", key=["id"])]
        self.source = TopicSource(topic=self.topic, value="text")
        self.pipeline = Pipeline(name=unique("clicks"), source=self.source, sinks=sinks)
        self.folder = home.pipeline(self.pipeline.name)

    def checkpoint(self, query: str, zero: int, one: int, *, state: bool = False) -> Path:
        path = Path(self.folder.checkpoint(query))
        ends = [[{self.topic: {0: 1, 1: 0}}], [{self.topic: {0: zero, 1: one}}]]
        write_checkpoint(path, [{self.topic: {0: 0, 1: 0}}], ends, state=state)
        return path

    def plan(self, target: resets.Target) -> resets.ResetPlan:
        return resets.plan(self.connection, self.pipeline, self.folder, target)

    def execute(self, target: resets.Target) -> resets.ResetPlan:
        plan = self.plan(target)
        resets.execute(plan, self.pipeline, self.folder)
        return plan

    def committed(self) -> dict[int, int]:
        with GroupPositions(self.connection, self.pipeline.group) as group:
            return group.committed([self.topic]).get(self.topic, {})


@pytest.fixture
def case(cluster: Cluster, tmp_path: Path) -> Case:
    return Case(Connection(cluster.bootstrap_servers), PipelineHome(tmp_path / "home"))


@contextmanager
def held(folder: PipelineFolder) -> Iterator[None]:
    lock = folder.acquire()
    assert lock is not None
    begin(folder, None)
    try:
        yield
    finally:
        os.close(lock)


def test_to_the_beginning(case: Case) -> None:
    path = case.checkpoint("main", 7, 2, state=True)
    plan = case.plan(EARLIEST)
    assert plan.removed == [Removed("main", str(path), 1, True)]
    assert plan.moves == [Move("main", case.topic, 0, 7, 0, 7, 0), Move("main", case.topic, 1, 2, 0, 2, 0)]
    assert (plan.again, plan.skipped, plan.repeats, plan.blocker) == (9, 0, True, None)
    assert [output.sink for output in plan.outputs] == ["topic out", "database table t (sqlite:////x.db)"]
    assert any("its state goes too" in note for note in plan.notes)
    assert any(f"go to {case.pipeline.name}-dead-letters again" in note for note in plan.notes)
    assert path.exists()
    assert case.folder.start_override() == {}


def test_doing_it(case: Case) -> None:
    path = case.checkpoint("main", 7, 2)
    case.checkpoint("topic-out", 5, 2)
    case.execute(EARLIEST)
    assert not path.exists()
    assert LOCAL_FILES.names(case.folder.checkpoint_root()) == []
    assert case.folder.start_override() == {"stream": "earliest"}
    assert case.committed() == {0: 0, 1: 0}


def test_to_the_end_is_settled_now(case: Case) -> None:
    case.checkpoint("main", 7, 2)
    plan = case.execute(LATEST)
    fill(case.connection, case.topic, 3)
    assert (plan.again, plan.skipped, plan.repeats) == (0, 5, False)
    assert "records that are skipped never reach the outputs" in plan.notes
    assert case.folder.start_override() == {"stream": {case.topic: {0: 10, 1: 4}}}
    assert case.committed() == {0: 10, 1: 4}


def test_to_a_moment(case: Case) -> None:
    case.checkpoint("main", 7, 0)
    plan = case.execute(parse_to("@1500000"))
    assert [(move.before, move.after, move.again, move.skipped) for move in plan.moves] == [(7, 6, 1, 0), (0, 0, 0, 0)]
    assert case.folder.start_override() == {"stream": {case.topic: {0: 6, 1: 0}}}


def test_to_offsets_the_other_partitions_stay(case: Case) -> None:
    case.checkpoint("main", 7, 3)
    case.checkpoint("topic-out", 9, 2)
    plan = case.execute(parse_to(f"{case.topic}:0=8"))
    assert [(move.query, move.partition, move.before, move.after, move.again, move.skipped) for move in plan.moves] == [
        ("main", 0, 7, 8, 0, 1),
        ("main", 1, 3, 2, 1, 0),
        ("topic-out", 0, 9, 8, 1, 0),
        ("topic-out", 1, 2, 2, 0, 0),
    ]
    assert case.folder.start_override() == {"stream": {case.topic: {0: 8, 1: 2}}}
    assert case.committed() == {0: 8, 1: 2}


def test_what_was_deleted_is_skipped_and_said(case: Case) -> None:
    case.checkpoint("main", 2, 2)
    truncate(
        case.connection, case.topic, plan_truncate(case.connection, case.topic, parse_position("5", "--before"), [0])
    )
    plan = case.plan(parse_to(f"{case.topic}:0=5"))
    assert [(move.before, move.after, move.again, move.skipped) for move in plan.moves] == [(2, 5, 0, 3), (2, 2, 0, 0)]
    assert case.plan(EARLIEST).moves[0] == Move("main", case.topic, 0, 2, 5, 0, 3)


def test_before_the_first_run(case: Case) -> None:
    plan = case.execute(parse_to(f"{case.topic}:1=3"))
    assert plan.removed == []
    assert [(move.before, move.after) for move in plan.moves] == [(None, 0), (None, 3)]
    assert case.folder.start_override() == {"stream": {case.topic: {0: 0, 1: 3}}}


def test_not_while_it_runs(case: Case) -> None:
    path = case.checkpoint("main", 7, 2)
    with held(case.folder):
        plan = case.plan(EARLIEST)
        assert plan.blocker is not None
        assert "stop it first" in plan.blocker
        with pytest.raises(ClusterError, match=f"`millstream pipeline stop {case.pipeline.name}`"):
            resets.execute(plan, case.pipeline, case.folder)
        assert path.exists()
        assert case.folder.start_override() == {}


def test_while_only_others_of_its_process_run(case: Case) -> None:
    path = case.checkpoint("main", 7, 2)
    with held(case.folder):
        case.folder.record(PipelineStatus(case.pipeline.name, "failed", "no column ip"))
        case.execute(EARLIEST)
    assert not path.exists()


def test_after_its_process_was_killed(case: Case) -> None:
    path = case.checkpoint("main", 7, 2)
    with held(case.folder):
        pass
    assert case.folder.state() == "killed"
    case.execute(EARLIEST)
    assert not path.exists()


def test_checkpoints_elsewhere_may_move_after_it(case: Case, tmp_path: Path) -> None:
    case.folder.use_checkpoints(str(tmp_path / "one"))
    path = case.checkpoint("main", 7, 2)
    assert str(path).startswith(str(tmp_path / "one"))
    case.execute(EARLIEST)
    assert not path.exists()
    case.folder.use_checkpoints(str(tmp_path / "two"))


def test_another_file_system_than_this_machines(case: Case) -> None:
    class Elsewhere:
        """Only what is under elsewhere:// is there."""

        def __init__(self) -> None:
            self.removed: list[str] = []

        def names(self, folder: str) -> list[str]:
            root = f"elsewhere://a/{case.pipeline.name}"
            return {root: ["main"], f"{root}/main": ["metadata"]}.get(folder, [])

        def read_text(self, file: str) -> str:
            raise FileNotFoundError(file)

        def remove(self, folder: str) -> None:
            self.removed.append(folder)

    case.folder.use_checkpoints("elsewhere://a")
    files = Elsewhere()
    plan = resets.plan(case.connection, case.pipeline, case.folder, EARLIEST, files)
    resets.execute(plan, case.pipeline, case.folder, files)
    assert files.removed == [f"elsewhere://a/{case.pipeline.name}/main"]


def test_sources_that_are_no_topics_begin_anew(case: Case) -> None:
    pipeline = Pipeline(
        name=case.pipeline.name,
        sources={"clicks": case.source, "ticks": GeneratorSource(generate={"n": "id"})},
        sinks=case.pipeline.sinks,
    )
    plan = resets.plan(case.connection, pipeline, case.folder, EARLIEST)
    assert plan.begin_anew == ["ticks"]
    assert plan.repeats
    assert "source ticks begins anew, at its own `start`: all its rows come again" in plan.notes
    with pytest.raises(BadInput, match=r"source ticks is no topic and can only begin anew: --to earliest"):
        resets.plan(case.connection, pipeline, case.folder, LATEST)


@pytest.mark.parametrize(
    ("where", "wrong"),
    [("T:5=1", "has no partition 5, it has 0 to 1"), ("T:0=99", "is outside of what is there, which is 0 to 10")],
)
def test_offsets_that_are_not_there(case: Case, where: str, wrong: str) -> None:
    with pytest.raises(BadInput, match=wrong):
        case.plan(parse_to(where.replace("T", case.topic)))


def test_a_topic_that_it_does_not_read(case: Case) -> None:
    with pytest.raises(BadInput, match=f"the pipeline does not read other; it reads {case.topic}"):
        case.plan(parse_to("other:0=1"))


def test_places_as_people_write_them() -> None:
    assert parse_to("earliest") == EARLIEST
    assert parse_to(" latest ") == LATEST
    assert parse_to("@1500000") == Position("time", 1500000)
    assert parse_to("1970-01-01T00:00:01Z") == Position("time", 1000)
    assert parse_to("a.b:0=3, a.b:1=4,c:0=0") == {"a.b": {0: 3, 1: 4}, "c": {0: 0}}


@pytest.mark.parametrize("text", ["", "somewhere", "a:0", "a:0=", "a=3", "a:0=1,b", "17"])
def test_places_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match=r"--to: .* is not a place to begin: it can be earliest, latest"):
        parse_to(text)


def test_a_plan_for_machines(case: Case) -> None:
    case.checkpoint("main", 7, 2)
    data = resets.as_json(case.plan(EARLIEST), executed=False)
    assert (data["again"], data["skipped"], data["executed"]) == (9, 0, False)
    assert data["partitions"][0]["after"] == 0
    assert data["checkpoints"][0]["query"] == "main"
    assert Checkpoint(data["checkpoints"][0]["path"]).exists

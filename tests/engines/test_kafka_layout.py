"""The plan of a local cluster: who is a controller, what may change, and the properties of each node."""

from pathlib import Path

import pytest

from millstream.engines import kafka_layout
from millstream.engines.errors import EngineError, EngineInputError


@pytest.mark.parametrize(("brokers", "controllers"), [(1, (1,)), (2, (1,)), (3, (1, 2, 3)), (5, (1, 2, 3))])
def test_the_quorum_is_one_or_three(brokers: int, controllers: tuple[int, ...]) -> None:
    layout = kafka_layout.new(brokers, own_controller=False)
    assert layout.controllers == controllers
    assert layout.nodes == list(range(1, brokers + 1))
    assert layout.roles(1) == "broker,controller"
    assert layout.roles(4) == ("broker" if brokers >= 4 else "")


def test_a_controller_of_its_own_is_started_first_and_is_no_broker() -> None:
    layout = kafka_layout.new(3, own_controller=True)
    assert layout.nodes == [100, 1, 2, 3]
    assert layout.roles(100) == "controller"
    assert layout.roles(1) == "broker"
    listeners = layout.properties(100, Path("/x"), {})["listeners"]
    assert listeners.startswith("CONTROLLER://")
    assert "PLAINTEXT" not in listeners


@pytest.mark.parametrize(("brokers", "factor", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_replication_of_internal_topics(brokers: int, factor: str, in_sync: str) -> None:
    properties = kafka_layout.new(brokers, own_controller=False).properties(1, Path("/x"), {})
    assert properties["offsets.topic.replication.factor"] == factor
    assert properties["transaction.state.log.replication.factor"] == factor
    assert properties["transaction.state.log.min.isr"] == in_sync


def test_settings_win_except_over_what_makes_the_cluster_one() -> None:
    settings = {"num.partitions": "7", "default.replication.factor": "1", "node.id": "9", "log.dirs": "/elsewhere"}
    properties = kafka_layout.new(3, own_controller=False).properties(2, Path("/x"), settings)
    assert properties["num.partitions"] == "7"
    assert properties["default.replication.factor"] == "1"
    assert properties["node.id"] == "2"
    assert properties["log.dirs"] == "/x"


def test_kept_in_a_file(tmp_path: Path) -> None:
    layout = kafka_layout.new(2, own_controller=True)._replace(
        broker_ports={1: 9092, 2: 9093}, controller_ports={100: 5}
    )
    layout.save(tmp_path / "cluster.json")
    assert kafka_layout.load(tmp_path / "cluster.json") == layout
    assert layout.bootstrap == "127.0.0.1:9092,127.0.0.1:9093"
    assert kafka_layout.load(tmp_path / "none.json") is None
    (tmp_path / "cluster.json").write_text("{}")
    with pytest.raises(EngineError, match="not the plan of a cluster"):
        kafka_layout.load(tmp_path / "cluster.json")


def test_brokers_can_be_added_but_not_dropped(tmp_path: Path) -> None:
    layout = kafka_layout.new(2, own_controller=False)
    more = kafka_layout.grown(layout, 4, tmp_path)
    assert more.brokers == [1, 2, 3, 4]
    assert more.controllers == layout.controllers
    assert more.cluster_id == layout.cluster_id
    with pytest.raises(EngineInputError, match=r"--brokers 1: the cluster in .* has 2"):
        kafka_layout.grown(layout, 1, tmp_path)


@pytest.mark.parametrize("count", [0, 10])
def test_a_count_that_cannot_be(count: int) -> None:
    with pytest.raises(EngineInputError, match=f"--brokers {count}: one machine can have 1 to 9"):
        kafka_layout.new(count, own_controller=False)

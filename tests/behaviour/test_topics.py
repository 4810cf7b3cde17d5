"""CreateTopics, DeleteTopics and CreatePartitions."""

from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import create_topic, describe_topic, eventually, produce, topic_is_ready, unique
from support.raw import RawClient

DEFAULT_CONFIG, DYNAMIC_TOPIC_CONFIG = 5, 1


def create(raw: RawClient, *specs: dict[str, Any], version: int = 7, **options: Any) -> list[Any]:
    topics = [{"num_partitions": 1, "replication_factor": 1, **spec} for spec in specs]
    answer: list[Any] = raw.call("create_topics", version, topics=topics, timeout=30000, **options).topics
    return answer


@pytest.mark.parametrize("version", range(2, 8))
def test_create_in_every_version(raw: RawClient, version: int) -> None:
    name = unique("made")
    (answer,) = create(raw, {"name": name, "num_partitions": 3}, version=version)
    assert (answer.error_code, answer.name) == (E.none, name)
    assert answer.error_message is None
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (3, 1)
        configs = {c.name: (c.value, c.config_source, c.read_only, c.is_sensitive) for c in answer.configs}
        assert configs["cleanup.policy"] == ("delete", DEFAULT_CONFIG, False, False)
        assert configs["retention.ms"] == ("604800000", DEFAULT_CONFIG, False, False)
        assert len(configs) >= 30
    if version >= 7:
        assert answer.topic_id is not None
    assert eventually(lambda: topic_is_ready(raw, name, 3))


def test_minus_one_takes_the_defaults(raw: RawClient) -> None:
    (answer,) = create(raw, {"name": unique("defaults"), "num_partitions": -1, "replication_factor": -1})
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (E.none, 1, 1)


def test_configs_are_stored_and_returned(raw: RawClient) -> None:
    configs = [{"name": "cleanup.policy", "value": "compact"}, {"name": "retention.ms", "value": "1234"}]
    (answer,) = create(raw, {"name": unique("configured"), "configs": configs})
    found = {c.name: (c.value, c.config_source) for c in answer.configs}
    assert found["cleanup.policy"] == ("compact", DYNAMIC_TOPIC_CONFIG)
    assert found["retention.ms"] == ("1234", DYNAMIC_TOPIC_CONFIG)


def test_validate_only_makes_nothing(raw: RawClient) -> None:
    name = unique("validated")
    (answer,) = create(raw, {"name": name, "num_partitions": 4}, validate_only=True)
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (E.none, 4, 1)
    assert describe_topic(raw, name).error_code == E.unknown_topic_or_partition


def test_manual_assignment(raw: RawClient) -> None:
    name = unique("assigned")
    assignments = [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 1, "broker_ids": [1]}]
    spec = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    (answer,) = create(raw, spec)
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (E.none, 2, 1)
    assert eventually(lambda: topic_is_ready(raw, name, 2))


def assignment(*brokers: list[int], start: int = 0) -> dict[str, Any]:
    parts = [{"partition_index": start + n, "broker_ids": ids} for n, ids in enumerate(brokers)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": parts}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        pytest.param({"num_partitions": 0}, E.invalid_partitions, id="no partitions"),
        pytest.param({"num_partitions": -2}, E.invalid_partitions, id="negative partitions"),
        pytest.param({"replication_factor": 0}, E.invalid_replication_factor, id="replication factor 0"),
        pytest.param({"replication_factor": 2}, E.invalid_replication_factor, id="more replicas than brokers"),
        pytest.param({"replication_factor": -2}, E.invalid_replication_factor, id="negative replication factor"),
        pytest.param({"configs": [{"name": "no.such", "value": "1"}]}, E.invalid_config, id="unknown config"),
        pytest.param({"configs": [{"name": "retention.ms", "value": "x"}]}, E.invalid_config, id="not a number"),
        pytest.param({"configs": [{"name": "retention.ms", "value": None}]}, E.invalid_config, id="null value"),
        pytest.param({"configs": [{"name": "cleanup.policy", "value": "burn"}]}, E.invalid_config, id="bad choice"),
        pytest.param({"configs": [{"name": "segment.bytes", "value": "1"}]}, E.invalid_config, id="below the minimum"),
        pytest.param(assignment([1, 1]), E.invalid_replica_assignment, id="a broker twice"),
        pytest.param(assignment([2]), E.invalid_replica_assignment, id="unknown broker"),
        pytest.param(assignment([]), E.invalid_replica_assignment, id="nobody assigned"),
        pytest.param(assignment([1], start=1), E.invalid_replica_assignment, id="assignment does not start at 0"),
        pytest.param({**assignment([1]), "num_partitions": 1}, E.invalid_request, id="assignment and a count"),
        pytest.param({**assignment([1]), "replication_factor": 1}, E.invalid_request, id="assignment and a factor"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_refused_specifications(raw: RawClient, spec: dict[str, Any], error: E, validate_only: bool) -> None:
    name = unique("refused")
    (answer,) = create(raw, {"name": name, **spec}, validate_only=validate_only)
    assert (answer.name, answer.error_code) == (name, error)
    assert answer.error_message
    assert describe_topic(raw, name).error_code == E.unknown_topic_or_partition


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "ü", "a/b"])
def test_refused_names(raw: RawClient, name: str) -> None:
    (answer,) = create(raw, {"name": name})
    assert answer.error_code == E.invalid_topic_exception
    assert answer.error_message


def test_names_that_differ_in_dot_and_underscore_collide(raw: RawClient) -> None:
    name = unique("colliding").replace("-", "_")
    create_topic(raw, name=name)
    (answer,) = create(raw, {"name": name.replace("_", ".")})
    assert answer.error_code == E.invalid_topic_exception


def test_the_longest_name(raw: RawClient) -> None:
    name = unique("long").ljust(249, "x")
    (answer,) = create(raw, {"name": name})
    assert answer.error_code == E.none


def test_an_existing_topic(raw: RawClient) -> None:
    topic = create_topic(raw)
    (answer,) = create(raw, {"name": topic.name})
    assert (answer.error_code, answer.topic_id) == (E.topic_already_exists, None)
    (validated,) = create(raw, {"name": topic.name}, validate_only=True)
    assert validated.error_code == E.topic_already_exists


def test_the_same_name_twice_in_one_request(raw: RawClient) -> None:
    twice, once = unique("twice"), unique("once")
    answers = create(raw, {"name": twice}, {"name": twice}, {"name": once})
    assert {(a.name, a.error_code) for a in answers} == {(twice, E.invalid_request), (once, E.none)}
    assert len(answers) == 2


def test_each_topic_succeeds_or_fails_for_itself(raw: RawClient) -> None:
    good, bad = unique("good"), unique("bad")
    answers = {a.name: a.error_code for a in create(raw, {"name": bad, "num_partitions": 0}, {"name": good})}
    assert answers == {good: E.none, bad: E.invalid_partitions}


class TestDeleteTopics:
    def gone(self, raw: RawClient, name: str) -> bool:
        return bool(describe_topic(raw, name).error_code == E.unknown_topic_or_partition)

    @pytest.mark.parametrize("version", range(1, 6))
    def test_by_name(self, raw: RawClient, version: int) -> None:
        topic = create_topic(raw)
        response = raw.call("delete_topics", version, topic_names=[topic.name], timeout=30000)
        assert [(r.name, r.error_code) for r in response.responses] == [(topic.name, E.none)]
        assert eventually(lambda: self.gone(raw, topic.name))

    def test_by_name_or_id_in_the_newest_version(self, raw: RawClient) -> None:
        first, second = create_topic(raw), create_topic(raw)
        request = [{"name": first.name}, {"name": None, "topic_id": second.id}]
        response = raw.call("delete_topics", 6, topics=request, timeout=30000)
        found = {(r.name, r.topic_id, r.error_code) for r in response.responses}
        assert found == {(first.name, first.id, E.none), (second.name, second.id, E.none)}
        assert eventually(lambda: self.gone(raw, first.name) and self.gone(raw, second.name))

    def test_unknown_ones(self, raw: RawClient) -> None:
        name, topic_id = unique("nowhere"), uuid4()
        request = [{"name": name}, {"name": None, "topic_id": topic_id}]
        response = raw.call("delete_topics", 6, topics=request, timeout=30000)
        found = {(r.name, r.topic_id, r.error_code) for r in response.responses}
        assert found == {(name, None, E.unknown_topic_or_partition), (None, topic_id, E.unknown_topic_id)}

    def test_name_and_id_together_or_neither(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        both = raw.call("delete_topics", 6, topics=[{"name": topic.name, "topic_id": topic.id}], timeout=30000)
        assert [r.error_code for r in both.responses] == [E.invalid_request]
        neither = raw.call("delete_topics", 6, topics=[{"name": None}], timeout=30000)
        assert [r.error_code for r in neither.responses] == [E.invalid_request]
        assert topic_is_ready(raw, topic.name, 1)

    def test_the_same_topic_twice(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        request = [{"name": topic.name}, {"name": None, "topic_id": topic.id}]
        response = raw.call("delete_topics", 6, topics=request, timeout=30000)
        assert {r.error_code for r in response.responses} == {E.invalid_request}

    def test_a_topic_made_again_is_empty_and_has_another_id(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert produce(raw, topic, b"old").base_offset == 0
        raw.call("delete_topics", 6, topics=[{"name": topic.name}], timeout=30000)
        eventually(lambda: self.gone(raw, topic.name))
        again = create_topic(raw, name=topic.name)
        assert again.id != topic.id
        assert eventually(lambda: produce(raw, again, b"new").error_code == E.none)


class TestCreatePartitions:
    def call(self, raw: RawClient, spec: dict[str, Any], validate_only: bool = False, version: int = 3) -> Any:
        (answer,) = raw.call(
            "create_partitions", version, topics=[spec], timeout=30000, validate_only=validate_only
        ).results
        return answer

    @pytest.mark.parametrize("version", range(4))
    def test_more_partitions(self, raw: RawClient, version: int) -> None:
        topic = create_topic(raw)
        spec = {"name": topic.name, "count": 3, "assignments": None}
        assert self.call(raw, spec, version=version).error_code == E.none
        assert eventually(lambda: topic_is_ready(raw, topic.name, 3))

    def test_with_assignments(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        spec = {"name": topic.name, "count": 2, "assignments": [{"broker_ids": [1]}]}
        assert self.call(raw, spec).error_code == E.none
        assert eventually(lambda: topic_is_ready(raw, topic.name, 2))

    def test_validate_only(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert self.call(raw, {"name": topic.name, "count": 2, "assignments": None}, True).error_code == E.none
        assert topic_is_ready(raw, topic.name, 1)

    @pytest.mark.parametrize(
        ("spec", "error"),
        [
            ({"count": 2, "assignments": None}, E.invalid_partitions),
            ({"count": 1, "assignments": None}, E.invalid_partitions),
            ({"count": 0, "assignments": None}, E.invalid_partitions),
            ({"count": -1, "assignments": None}, E.invalid_partitions),
            ({"count": 3, "assignments": [{"broker_ids": [9]}]}, E.invalid_replica_assignment),
            ({"count": 3, "assignments": [{"broker_ids": [1, 1]}]}, E.invalid_replica_assignment),
            ({"count": 4, "assignments": [{"broker_ids": [1]}]}, E.invalid_replica_assignment),
            ({"count": 3, "assignments": []}, E.invalid_replica_assignment),
        ],
    )
    def test_refused(self, raw: RawClient, spec: dict[str, Any], error: E) -> None:
        topic = create_topic(raw, partitions=2)
        answer = self.call(raw, {"name": topic.name, **spec})
        assert answer.error_code == error
        assert answer.error_message

    def test_unknown_topic(self, raw: RawClient) -> None:
        spec = {"name": unique("nowhere"), "count": 2, "assignments": None}
        assert self.call(raw, spec).error_code == E.unknown_topic_or_partition

    def test_the_same_topic_twice(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        spec = {"name": topic.name, "count": 2, "assignments": None}
        response = raw.call("create_partitions", 3, topics=[spec, spec], timeout=30000)
        assert [r.error_code for r in response.results] == [E.invalid_request]

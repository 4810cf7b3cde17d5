"""What an administrator does, with confluent-kafka's AdminClient: whole journeys rather than single fields."""

from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from support.cluster import Cluster, create_topic, eventually, produce, unique
from support.raw import RawClient

# Its names are not exported in the way that type checkers ask for.
api: Any = confluent_kafka.admin


@pytest.fixture
def admin(cluster: Cluster) -> Any:
    return api.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def result(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(20)


def test_topics_are_created_grown_and_deleted(admin: Any) -> None:
    name = unique("admin")
    result(admin.create_topics([api.NewTopic(name, 2, 1, config={"retention.ms": "1000"})]))
    assert eventually(lambda: len(admin.list_topics(name, 10).topics[name].partitions) == 2)
    result(admin.create_partitions([api.NewPartitions(name, 3)]))
    assert eventually(lambda: len(admin.list_topics(name, 10).topics[name].partitions) == 3)
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        result(admin.create_topics([api.NewTopic(name, 2, 1)]))
    assert failure.value.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS
    result(admin.delete_topics([name]))
    assert eventually(lambda: name not in admin.list_topics(timeout=10).topics)


def test_configs_are_described_and_altered(admin: Any, raw: RawClient) -> None:
    topic = create_topic(raw)

    def described() -> Any:
        return result(admin.describe_configs([api.ConfigResource(api.ResourceType.TOPIC, topic.name)]))

    assert described()["retention.ms"].value == "604800000"
    assert described()["retention.ms"].is_default
    entry = api.ConfigEntry("retention.ms", "5000", incremental_operation=api.AlterConfigOpType.SET)
    resource = api.ConfigResource(api.ResourceType.TOPIC, topic.name, incremental_configs=[entry])
    result(admin.incremental_alter_configs([resource]))
    assert eventually(lambda: described()["retention.ms"].value == "5000")
    assert not described()["retention.ms"].is_default


def test_offsets_are_listed_and_records_deleted(admin: Any, raw: RawClient) -> None:
    topic = create_topic(raw)
    produce(raw, topic, *[b"x"] * 8)
    partition = TopicPartition(topic.name, 0)

    def offset(spec: Any) -> int:
        found: int = result(admin.list_offsets({partition: spec})).offset
        return found

    assert (offset(api.OffsetSpec.earliest()), offset(api.OffsetSpec.latest())) == (0, 8)
    assert offset(api.OffsetSpec.max_timestamp()) == 0
    assert result(admin.delete_records([TopicPartition(topic.name, 0, 3)])).low_watermark == 3
    assert offset(api.OffsetSpec.earliest()) == 3


def test_a_group_is_listed_described_altered_and_deleted(cluster: Cluster, admin: Any, raw: RawClient) -> None:
    topic, group = create_topic(raw), unique("group")
    produce(raw, topic, *[b"x"] * 5)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic.name])
    assert len(consumer.consume(5, 20)) == 5
    consumer.commit(asynchronous=False)
    described = result(admin.describe_consumer_groups([group]))
    assert described.state == confluent_kafka.ConsumerGroupState.STABLE
    (member,) = described.members
    assert [(part.topic, part.partition) for part in member.assignment.topic_partitions] == [(topic.name, 0)]
    consumer.close()
    listed = admin.list_consumer_groups().result(20)
    assert group in [found.group_id for found in listed.valid]
    offsets = result(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    assert [(part.topic, part.offset) for part in offsets.topic_partitions] == [(topic.name, 5)]
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic.name, 0, 2)])
    result(admin.alter_consumer_group_offsets([wanted]))
    offsets = result(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    assert [part.offset for part in offsets.topic_partitions] == [2]
    result(admin.delete_consumer_groups([group]))
    assert group not in [found.group_id for found in admin.list_consumer_groups().result(20).valid]


def test_the_cluster_is_described(admin: Any) -> None:
    described = admin.describe_cluster(include_authorized_operations=True).result(20)
    assert [node.id for node in described.nodes] == [1]
    assert described.controller.id == 1
    assert described.cluster_id == admin.list_topics(timeout=10).cluster_id
    assert described.authorized_operations


def test_topics_are_described(admin: Any, raw: RawClient) -> None:
    topic = create_topic(raw, partitions=2)
    described = result(admin.describe_topics(confluent_kafka.TopicCollection([topic.name])))
    assert (described.name, described.is_internal, len(described.partitions)) == (topic.name, False, 2)
    assert [[node.id for node in part.replicas] for part in described.partitions] == [[1], [1]]

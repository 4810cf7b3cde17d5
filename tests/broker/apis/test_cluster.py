"""The APIs that tell about the cluster, and those that need a second broker to do anything."""

import pytest

from millstream.broker.configs.dynamic import ResourceType
from millstream.wire.batches import Record, build_batch
from millstream.wire.errors import ErrorCode
from millstream.wire.messages import alter_partition_reassignments as reassigning
from millstream.wire.messages import describe_log_dirs as log_dirs
from millstream.wire.messages import describe_quorum as quorum
from millstream.wire.messages import elect_leaders as electing
from millstream.wire.messages import update_features as features
from millstream.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from millstream.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from millstream.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from support.admin_broker import AdminBroker

METADATA = "__cluster_metadata"


@pytest.fixture(autouse=True)
def _topic(broker: AdminBroker) -> None:
    broker.topics.create("t", 2)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_one_broker(broker: AdminBroker, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = broker.call(request, DescribeClusterResponse, version)
    assert (response.cluster_id, response.controller_id) == ("cluster", 1)
    assert [(b.broker_id, b.host, b.port, b.is_fenced) for b in response.brokers] == [(1, "host", 9092, False)]
    assert response.cluster_authorized_operations == 8096
    plain = broker.call(DescribeClusterRequest(), DescribeClusterResponse, version)
    assert plain.cluster_authorized_operations == -(2**31)


@pytest.mark.parametrize(
    ("endpoint_type", "expected"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_there_is_no_endpoint_of_controllers(broker: AdminBroker, endpoint_type: int, expected: ErrorCode) -> None:
    response = broker.call(DescribeClusterRequest(endpoint_type=endpoint_type), DescribeClusterResponse)
    assert (response.error_code, response.brokers) == (expected, [])


def describe_quorum(broker: AdminBroker, topic: str, *partitions: int, version: int) -> quorum.DescribeQuorumResponse:
    wanted = [quorum.RequestPartitionData(partition_index=index) for index in partitions]
    request = quorum.DescribeQuorumRequest(topics=[quorum.RequestTopicData(topic_name=topic, partitions=wanted)])
    return broker.call(request, quorum.DescribeQuorumResponse, version)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_one_voter_who_leads(broker: AdminBroker, version: int) -> None:
    response = describe_quorum(broker, METADATA, 0, version=version)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, 1)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, partition.high_watermark)
    assert voter.last_caught_up_timestamp == (broker.timer.now_ms() if version else -1)
    assert [node.node_id for node in response.nodes] == ([1] if version >= 2 else [])


@pytest.mark.parametrize(("topic", "partitions"), [("t", [0]), (METADATA, [1]), (METADATA, [0, 1])])
def test_nothing_else_has_a_quorum(broker: AdminBroker, topic: str, partitions: list[int]) -> None:
    response = describe_quorum(broker, topic, *partitions, version=2)
    codes = [partition.error_code for partition in response.topics[0].partitions]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(partitions)


def elect(broker: AdminBroker, kind: int, version: int, *partitions: int) -> electing.ElectLeadersResponse:
    wanted = [electing.TopicPartitions(topic="t", partitions=list(partitions))] if partitions else None
    request = electing.ElectLeadersRequest(election_type=kind, topic_partitions=wanted)
    return broker.call(request, electing.ElectLeadersResponse, version)


@pytest.mark.parametrize("version", range(3))
def test_no_election_is_needed(broker: AdminBroker, version: int) -> None:
    response = elect(broker, 0, version, 0, 7)
    (result,) = response.replica_election_results
    assert [(p.partition_id, p.error_code) for p in result.partition_result] == [
        (0, ErrorCode.ELECTION_NOT_NEEDED),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_an_election_of_all_leaves_out_what_needs_none(broker: AdminBroker) -> None:
    (result,) = elect(broker, 1, 2).replica_election_results
    assert (result.topic, result.partition_result) == ("t", [])


def test_an_unknown_kind_of_election(broker: AdminBroker) -> None:
    response = elect(broker, 7, 2, 0)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST
    assert elect(broker, 7, 2).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("index", "replicas", "expected"),
    [
        (0, [1], ErrorCode.NONE),
        (0, [1, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (9, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_partitions_cannot_move(
    broker: AdminBroker, index: int, replicas: list[int] | None, expected: ErrorCode
) -> None:
    partition = reassigning.ReassignablePartition(partition_index=index, replicas=replicas)
    topic = reassigning.ReassignableTopic(name="t", partitions=[partition])
    request = reassigning.AlterPartitionReassignmentsRequest(topics=[topic])
    for version in (0, 1):
        response = broker.call(request, reassigning.AlterPartitionReassignmentsResponse, version)
        assert response.responses[0].partitions[0].error_code == expected


def test_nothing_is_on_the_move(broker: AdminBroker) -> None:
    response = broker.call(ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse)
    assert (response.error_code, response.topics) == (0, [])


def describe_log_dirs(broker: AdminBroker, version: int, **wanted: list[int]) -> log_dirs.DescribeLogDirsResult:
    topics = [log_dirs.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in wanted.items()]
    request = log_dirs.DescribeLogDirsRequest(topics=topics or None)
    (result,) = broker.call(request, log_dirs.DescribeLogDirsResponse, version).results
    return result


@pytest.mark.parametrize("version", range(1, 6))
def test_the_data_folder(broker: AdminBroker, version: int) -> None:
    partition = broker.topics.partition("t", 1)
    assert partition is not None
    partition.log.append(build_batch([Record(0, 0, None, b"x" * 100)]))
    result = describe_log_dirs(broker, version)
    assert result.log_dir == broker.logs.root
    sizes = {p.partition_index: p.partition_size for p in result.topics[0].partitions}
    assert sizes[0] == 0
    assert sizes[1] == partition.log.size > 100
    assert (result.total_bytes > 0) == (version >= 4)


def test_only_the_partitions_asked_for(broker: AdminBroker) -> None:
    result = describe_log_dirs(broker, 5, t=[1, 7], no=[0])
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in result.topics] == [("t", [1])]


def test_a_folder_that_is_gone(broker: AdminBroker) -> None:
    broker.logs.root += "-gone"
    assert describe_log_dirs(broker, 5).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def list_resources(broker: AdminBroker, *types: int, version: int = 1) -> list[tuple[int, str]]:
    response = broker.call(ListConfigResourcesRequest(resource_types=list(types)), ListConfigResourcesResponse, version)
    assert response.error_code == 0
    return [(resource.resource_type, resource.resource_name) for resource in response.config_resources]


def test_what_there_are_configs_of(broker: AdminBroker) -> None:
    broker.configs.replace(ResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"})
    broker.configs.replace(ResourceType.CLIENT_METRICS, "m", {"interval.ms": "1000"})
    assert list_resources(broker) == [(32, "g"), (16, "m"), (8, "1"), (4, "1"), (2, "t")]
    assert list_resources(broker, ResourceType.TOPIC) == [(2, "t")]
    assert list_resources(broker, version=0) == [(16, "m")]


def test_a_kind_of_resource_that_does_not_exist(broker: AdminBroker) -> None:
    response = broker.call(ListConfigResourcesRequest(resource_types=[1]), ListConfigResourcesResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


def update(
    broker: AdminBroker, name: str, level: int, upgrade_type: int = 1, *, version: int = 2, validate_only: bool = False
) -> features.UpdateFeaturesResponse:
    key = features.FeatureUpdateKey(
        feature=name, max_version_level=level, upgrade_type=upgrade_type, allow_downgrade=upgrade_type != 1
    )
    request = features.UpdateFeaturesRequest(feature_updates=[key], validate_only=validate_only)
    return broker.call(request, features.UpdateFeaturesResponse, version)


@pytest.mark.parametrize("version", range(3))
def test_a_feature_is_lowered_and_raised_again(broker: AdminBroker, version: int) -> None:
    before = broker.features.epoch
    response = update(broker, "transaction.version", 1, 2, version=version)
    assert (response.error_code, len(response.results)) == (0, 1 if version <= 1 else 0)
    assert broker.features.level("transaction.version") == 1
    assert update(broker, "transaction.version", 2, version=version).error_code == 0
    assert broker.features.epoch == before + 2


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type"),
    [
        ("transaction.version", 1, 1),
        ("transaction.version", 3, 1),
        ("transaction.version", -1, 2),
        ("transaction.version", 2, 9),
        ("group.version", 1, 9),
        ("metadata.version", 29, 2),
        ("metadata.version", 29, 3),
        ("metadata.version", 0, 2),
        ("kraft.version", 1, 1),
        ("no.such", 0, 1),
        ("no.such", 1, 1),
    ],
)
def test_levels_that_are_refused(broker: AdminBroker, name: str, level: int, upgrade_type: int) -> None:
    before = dict(broker.features.finalized())
    response = update(broker, name, level, upgrade_type)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message
    assert broker.features.finalized() == before


def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    assert update(broker, "group.version", 0, 2, validate_only=True).error_code == 0
    assert broker.features.level("group.version") == 1

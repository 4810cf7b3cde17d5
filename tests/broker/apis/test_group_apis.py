"""The handlers of the group APIs: what differs by version, and what they check before the coordinator is asked."""

import asyncio
from collections.abc import Collection
from typing import Any, cast

import pytest

from millstream.broker import authorized_operations
from millstream.broker.apis.delete_groups import delete_groups
from millstream.broker.apis.describe_groups import describe_groups
from millstream.broker.apis.find_coordinator import find_coordinator
from millstream.broker.apis.heartbeat import heartbeat
from millstream.broker.apis.join_group import join_group
from millstream.broker.apis.leave_group import leave_group
from millstream.broker.apis.list_groups import list_groups
from millstream.broker.apis.offset_commit import offset_commit
from millstream.broker.apis.offset_delete import offset_delete
from millstream.broker.apis.offset_fetch import offset_fetch
from millstream.broker.apis.sync_group import sync_group
from millstream.broker.apis.txn_offset_commit import txn_offset_commit
from millstream.broker.broker import Broker
from millstream.broker.context import RequestContext
from millstream.broker.transactions.verification import TransactionSupportedOperation
from millstream.wire.codec import decode, encode
from millstream.wire.errors import ErrorCode
from millstream.wire.message import ZERO_UUID, Message
from millstream.wire.messages.delete_groups import DeleteGroupsRequest
from millstream.wire.messages.describe_groups import DescribeGroupsRequest
from millstream.wire.messages.find_coordinator import FindCoordinatorRequest
from millstream.wire.messages.heartbeat import HeartbeatRequest
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from millstream.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.wire.messages.list_groups import ListGroupsRequest
from millstream.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from millstream.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from millstream.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.group_coordinator import Groups

UNKNOWN_ID = b"no such topic id"


class FakeTransactions:
    """The transaction coordinator, asked whether a producer may write."""

    def __init__(self) -> None:
        self.error: ErrorCode | None = None
        self.asked: list[tuple[Any, ...]] = []

    def partition_for(self, transactional_id: str) -> int:
        return 0

    def verify_partition(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[tuple[str, int]],
        operation: TransactionSupportedOperation,
    ) -> dict[tuple[str, int], ErrorCode]:
        self.asked.append((transactional_id, producer_id, producer_epoch, tuple(partitions), operation))
        return {} if self.error is None else dict.fromkeys(partitions, self.error)


class FakeBroker:
    """What these handlers use of a broker."""

    def __init__(self) -> None:
        self.world = Groups()
        self.groups = self.world.coordinator
        self.topics = self.world.topics
        self.transactions = FakeTransactions()
        self.node_id = 7

    def endpoint(self, context: RequestContext) -> tuple[str, int]:
        return f"{context.listener}.example", 9092


@pytest.fixture
def fake() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
def broker(fake: FakeBroker) -> Broker:
    return cast(Broker, fake)


def v(version: int) -> RequestContext:
    return RequestContext(api_version=version, client_id="c", listener="PLAINTEXT")


def on_the_wire(message: Message, version: int) -> Message:
    """Every response must be one that its version can say."""
    return decode(type(message), encode(message, version), version)


def join_request(**changes: Any) -> JoinGroupRequest:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


async def join(fake: FakeBroker, version: int, **changes: Any) -> JoinGroupResponse:
    broker = cast(Broker, fake)
    response = join_group(broker, join_request(**changes), v(version))
    assert isinstance(response, asyncio.Future)
    if not response.done():
        fake.world.timer.advance(3_000)
    return cast(JoinGroupResponse, await response)


# --- the classic protocol --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(10))
def test_join_sync_heartbeat_and_leave_in_every_version(fake: FakeBroker, broker: Broker, version: int) -> None:
    async def run() -> None:
        joined = await join(fake, version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            joined = await join(fake, version, member_id=joined.member_id)
        assert joined.error_code == ErrorCode.NONE
        assert joined.leader == joined.member_id
        on_the_wire(joined, version)
        sync_version = min(version, 5)
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
        if sync_version == 5:
            request.protocol_type, request.protocol_name = "consumer", "range"
        synced = await sync_group(broker, request, v(sync_version))
        assert synced.error_code == ErrorCode.NONE
        on_the_wire(synced, sync_version)
        alive = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
        assert heartbeat(broker, alive, v(min(version, 4))).error_code == ErrorCode.NONE
        alive.generation_id = 9
        assert heartbeat(broker, alive, v(min(version, 4))).error_code == ErrorCode.ILLEGAL_GENERATION

    asyncio.run(run())


def test_join_version_0_has_no_rebalance_timeout_of_its_own(fake: FakeBroker) -> None:
    async def run() -> None:
        await join(fake, 0, rebalance_timeout_ms=-1)

    asyncio.run(run())
    assert fake.world.state() == "CompletingRebalance"
    fake.world.timer.advance(10_000)
    assert fake.world.state() == "Empty"


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_a_missing_protocol_name_is_empty_before_version_7(fake: FakeBroker, version: int, name: str | None) -> None:
    async def run() -> JoinGroupResponse:
        fake.world.stable("a")
        return await join(fake, version, member_id="ghost")

    response = asyncio.run(run())
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.protocol_name == name
    on_the_wire(response, version)


def test_a_join_whose_connection_is_gone_does_no_harm(fake: FakeBroker, broker: Broker) -> None:
    async def run() -> None:
        waiting = join_group(broker, join_request(), v(3))
        waiting.cancel()
        fake.world.timer.advance(3_000)

    asyncio.run(run())
    assert fake.world.state() == "CompletingRebalance"


def test_sync_version_5_must_say_its_protocol(broker: Broker) -> None:
    response = sync_group(broker, SyncGroupRequest(group_id="g", protocol_type="consumer"), v(5))
    assert isinstance(response, SyncGroupResponse)
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_leaving_one_member_in_old_versions_and_several_in_new_ones(fake: FakeBroker, broker: Broker) -> None:
    a, b = fake.world.stable("a", "b")
    old = leave_group(broker, LeaveGroupRequest(group_id="g", member_id=a.member_id), v(2))
    assert old.error_code == ErrorCode.NONE
    again = leave_group(broker, LeaveGroupRequest(group_id="g", member_id=a.member_id), v(2))
    assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    members = [MemberIdentity(member_id=a.member_id), MemberIdentity(member_id=b.member_id)]
    new = leave_group(broker, LeaveGroupRequest(group_id="g", members=members), v(5))
    assert new.error_code == ErrorCode.NONE
    assert [member.error_code for member in new.members] == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert leave_group(broker, LeaveGroupRequest(), v(2)).error_code == ErrorCode.INVALID_GROUP_ID


# --- offsets ---------------------------------------------------------------------------------------------------------


def commit_request(*partitions: int, name: str = "t", topic_id: bytes = ZERO_UUID) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=10 + index)
                    for index in partitions
                ],
            )
        ],
    )


def errors(response: OffsetCommitResponse) -> dict[int, ErrorCode]:
    (topic,) = response.topics
    return {partition.partition_index: ErrorCode(partition.error_code) for partition in topic.partitions}


@pytest.mark.parametrize("version", range(2, 10))
def test_commit_by_name_checks_topics_and_partitions(fake: FakeBroker, broker: Broker, version: int) -> None:
    response = offset_commit(broker, commit_request(0, 9, -1), v(version))
    assert errors(response) == {
        0: ErrorCode.NONE,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        -1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert fake.world.offset() == 10
    on_the_wire(response, version)
    unknown = offset_commit(broker, commit_request(0, name="nope"), v(version))
    assert errors(unknown) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_commit_by_topic_id(fake: FakeBroker, broker: Broker) -> None:
    topic_id = fake.topics.ids["t"]
    response = offset_commit(broker, commit_request(0, 9, name="", topic_id=topic_id), v(10))
    assert response.topics[0].topic_id == topic_id
    assert errors(response) == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    unknown = offset_commit(broker, commit_request(0, name="", topic_id=UNKNOWN_ID), v(10))
    assert errors(unknown) == {0: ErrorCode.UNKNOWN_TOPIC_ID}
    assert unknown.topics[0].topic_id == UNKNOWN_ID
    on_the_wire(unknown, 10)


def test_a_refusal_of_the_group_is_the_error_of_every_partition(fake: FakeBroker, broker: Broker) -> None:
    request = commit_request(0, 1, 9)
    request.generation_id_or_member_epoch = 3
    assert errors(offset_commit(broker, request, v(9))) == {
        0: ErrorCode.GROUP_ID_NOT_FOUND,
        1: ErrorCode.GROUP_ID_NOT_FOUND,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def single(version: int, broker: Broker, topics: list[OffsetFetchRequestTopic] | None) -> OffsetFetchResponse:
    request = OffsetFetchRequest(group_id="g")
    request.topics = topics
    response: OffsetFetchResponse = offset_fetch(broker, request, v(version))
    on_the_wire(response, version)
    return response


@pytest.mark.parametrize("version", range(1, 8))
def test_fetch_of_one_group(fake: FakeBroker, broker: Broker, version: int) -> None:
    fake.world.commit({("t", 0): 5})
    response = single(version, broker, [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])])
    assert [partition.committed_offset for partition in response.topics[0].partitions] == [5, -1]
    if version >= 2:
        everything = single(version, broker, None)
        assert [topic.name for topic in everything.topics] == ["t"]


def test_an_error_of_the_group_is_one_of_the_partitions_in_version_1(fake: FakeBroker, broker: Broker) -> None:
    fake.groups.close()
    wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    old = single(1, broker, wanted)
    assert old.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    new = single(2, broker, wanted)
    assert new.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert new.topics == []


def fetch_group(group_id: str, topics: list[OffsetFetchRequestTopics] | None) -> OffsetFetchRequestGroup:
    group = OffsetFetchRequestGroup(group_id=group_id)
    group.topics = topics
    return group


def test_fetch_of_several_groups(fake: FakeBroker, broker: Broker) -> None:
    fake.world.commit({("t", 0): 5})
    fake.world.commit({("t", 0): 6}, group="h")
    wanted = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[fetch_group("g", wanted), fetch_group("h", None), fetch_group("none", wanted)])
    response = offset_fetch(broker, request, v(9))
    assert [group.topics[0].partitions[0].committed_offset for group in response.groups] == [5, 6, -1]
    assert [group.group_id for group in response.groups] == ["g", "h", "none"]
    on_the_wire(response, 9)


def test_fetch_by_topic_id(fake: FakeBroker, broker: Broker) -> None:
    fake.world.commit({("t", 0): 5, ("u", 0): 6})
    topic_id = fake.topics.ids["t"]
    wanted = [
        OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
        OffsetFetchRequestTopics(topic_id=UNKNOWN_ID, partition_indexes=[0]),
    ]
    del fake.topics.counts["u"]
    request = OffsetFetchRequest(groups=[fetch_group("g", wanted), fetch_group("g", None)])
    response = offset_fetch(broker, request, v(10))
    known, unknown = response.groups[0].topics
    assert (known.topic_id, known.partitions[0].committed_offset) == (topic_id, 5)
    assert (unknown.topic_id, unknown.partitions[0].error_code) == (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    assert [topic.topic_id for topic in response.groups[1].topics] == [topic_id]
    on_the_wire(response, 10)


def test_unstable_offsets_are_reported_if_asked(fake: FakeBroker, broker: Broker) -> None:
    fake.world.commit_in_transaction({("t", 0): 5})
    wanted = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[fetch_group("g", wanted)], require_stable=True)
    partition = offset_fetch(broker, request, v(8)).groups[0].topics[0].partitions[0]
    assert partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_offset_delete_checks_topics_and_group(fake: FakeBroker, broker: Broker) -> None:
    fake.world.commit({("t", 0): 5})

    def delete(group: str) -> Any:
        return offset_delete(
            broker,
            OffsetDeleteRequest(
                group_id=group,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=name,
                        partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)],
                    )
                    for name in ("t", "nope")
                ],
            ),
            v(0),
        )

    response = delete("g")
    answers = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == {("t", 0): 0, ("t", 9): unknown, ("nope", 0): unknown, ("nope", 9): unknown}
    assert fake.world.offsets() == {}
    assert delete("nobody").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def transactional(*partitions: int, name: str = "t", group: str = "g") -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=group,
        producer_id=3,
        producer_epoch=1,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=index)
                    for index in partitions
                ],
            )
        ],
    )


@pytest.mark.parametrize(
    ("version", "operation"),
    [
        (3, TransactionSupportedOperation.DEFAULT_ERROR),
        (4, TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED),
        (5, TransactionSupportedOperation.ADD_PARTITION),
    ],
)
def test_a_transactional_commit_is_verified_first(
    fake: FakeBroker, broker: Broker, version: int, operation: TransactionSupportedOperation
) -> None:
    response = txn_offset_commit(broker, transactional(0, 9), v(version))
    codes = [partition.error_code for partition in response.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    partition = ("__consumer_offsets", fake.groups.partition_for("g"))
    assert fake.transactions.asked == [("x", 3, 1, (partition,), operation)]
    assert fake.world.fetched(require_stable=True)[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    on_the_wire(response, version)


def test_a_transaction_that_may_not_write_is_refused(fake: FakeBroker, broker: Broker) -> None:
    fake.transactions.error = ErrorCode.INVALID_TXN_STATE
    response = txn_offset_commit(broker, transactional(0), v(3))
    assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_TXN_STATE
    assert fake.groups.group_ids() == []
    empty = txn_offset_commit(broker, transactional(0, group=""), v(3))
    assert empty.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID
    unknown = txn_offset_commit(broker, transactional(0, name="nope"), v(3))
    assert unknown.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- administration --------------------------------------------------------------------------------------------------


def test_list_and_describe(fake: FakeBroker, broker: Broker) -> None:
    fake.world.stable("a")
    listed = list_groups(broker, ListGroupsRequest(states_filter=["Stable"], types_filter=["classic"]), v(5))
    assert [group.group_id for group in listed.groups] == ["g"]
    on_the_wire(listed, 5)
    request = DescribeGroupsRequest(groups=["g", "nobody"], include_authorized_operations=True)
    described = describe_groups(broker, request, v(6))
    assert [group.authorized_operations for group in described.groups] == [
        authorized_operations.GROUP,
        authorized_operations.OMITTED,
    ]
    on_the_wire(described, 6)
    on_the_wire(describe_groups(broker, request, v(0)), 0)
    fake.groups.close()
    assert list_groups(broker, ListGroupsRequest(), v(0)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_delete_answers_for_each_group_once(fake: FakeBroker, broker: Broker) -> None:
    fake.world.commit({("t", 0): 1}, group="gone")
    fake.world.stable("a", group="busy")
    request = DeleteGroupsRequest(groups_names=["gone", "busy", "nobody", "gone"])
    response = delete_groups(broker, request, v(2))
    assert {result.group_id: result.error_code for result in response.results} == {
        "gone": ErrorCode.NONE,
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(response.results) == 3


@pytest.mark.parametrize("version", range(4))
def test_find_coordinator_of_one_key(broker: Broker, version: int) -> None:
    for key_type in (0, 1):
        found = find_coordinator(broker, FindCoordinatorRequest(key="k", key_type=key_type), v(version))
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 7, "PLAINTEXT.example", 9092)
        on_the_wire(found, version)
    share = find_coordinator(broker, FindCoordinatorRequest(key="k", key_type=2), v(version))
    assert (share.error_code, share.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    on_the_wire(share, version)


@pytest.mark.parametrize("version", range(4, 7))
def test_find_coordinator_of_several_keys(broker: Broker, version: int) -> None:
    found = find_coordinator(broker, FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "b"]), v(version))
    assert [(each.key, each.node_id, each.error_code) for each in found.coordinators] == [("a", 7, 0), ("b", 7, 0)]
    on_the_wire(found, version)

"""The handlers of the transaction APIs: from request to response, with a broker that has only what they ask for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from millstream.broker.apis import load_all
from millstream.broker.apis.registry import APIS
from millstream.broker.context import RequestContext
from millstream.broker.transactions.metadata import TopicPartition
from millstream.log.producer_state import ProducerEntry
from millstream.wire.codec import decode, encode
from millstream.wire.errors import ErrorCode
from millstream.wire.message import Message
from millstream.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from millstream.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from millstream.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from millstream.wire.messages.describe_transactions import DescribeTransactionsRequest
from millstream.wire.messages.end_txn import EndTxnRequest
from millstream.wire.messages.init_producer_id import InitProducerIdRequest
from millstream.wire.messages.list_transactions import ListTransactionsRequest
from millstream.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.transactions import Harness, Marker

load_all()
RANGES = {22: (0, 5), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 61: (0, 0), 65: (0, 0), 66: (0, 2)}


class FakeBroker:
    def __init__(self) -> None:
        self.harness = Harness()
        self.transactions = self.harness.coordinator
        self.groups = SimpleNamespace(partition_for=lambda group_id: len(group_id))
        producer = ProducerEntry(7)
        producer.epoch, producer.coordinator_epoch, producer.txn_first_offset = 3, 1, 42
        log = SimpleNamespace(active_producers=lambda: [producer])
        self.known: dict[TopicPartition, object] = {
            ("a", 0): SimpleNamespace(log=log),
            ("a", 1): SimpleNamespace(log=log),
            ("__consumer_offsets", 0): SimpleNamespace(log=log),
        }
        self.topics = SimpleNamespace(partition=lambda topic, index: self.known.get((topic, index)))

    def call(self, request: Message, version: int) -> Any:
        """As the server does it, over the wire: so fields that a version does not have are lost."""
        decoded = decode(type(request), encode(request, version), version)
        broker: Any = self
        response = APIS[request.API_KEY].handler(broker, decoded, RequestContext(api_version=version))
        assert isinstance(response, Message)
        return decode(type(response), encode(response, version), version)

    def init(self, version: int = 5) -> Any:
        return self.call(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000), version)

    def add(self, version: int = 3, *topics: AddPartitionsToTxnTopic, epoch: int = 0) -> dict[TopicPartition, int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=list(topics or [AddPartitionsToTxnTopic(name="a", partitions=[0])]),
        )
        return _codes(self.call(request, version).results_by_topic_v3_and_below)

    def end(self, version: int, *, epoch: int = 0, committed: bool = True) -> Any:
        request = EndTxnRequest(transactional_id="t", producer_id=0, producer_epoch=epoch, committed=committed)
        return self.call(request, version)


def _codes(topics: Any) -> dict[TopicPartition, int]:
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for topic in topics
        for result in topic.results_by_partition
    }


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


def test_the_versions_are_those_of_apache_kafka() -> None:
    assert {key: (APIS[key].min_version, APIS[key].max_version) for key in RANGES} == RANGES


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(broker: FakeBroker, version: int) -> None:
    response = broker.init(version)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 0, 0)
    idempotent = broker.call(InitProducerIdRequest(transactional_id=None), version)
    assert (idempotent.producer_id, idempotent.producer_epoch) == (1, 0)


def test_init_producer_id_with_half_an_expectation(broker: FakeBroker) -> None:
    for producer_id, epoch in ((5, -1), (-1, 5)):
        request = InitProducerIdRequest(
            transactional_id="t", transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=epoch
        )
        response = broker.call(request, 5)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (
            ErrorCode.INVALID_REQUEST,
            -1,
            -1,
        )


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
def test_init_producer_id_of_a_fenced_producer(broker: FakeBroker, version: int, code: ErrorCode) -> None:
    broker.init()
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000, producer_id=9, producer_epoch=9)
    assert broker.call(request, version).error_code == code


@pytest.mark.parametrize("version", range(4))
def test_add_partitions(broker: FakeBroker, version: int) -> None:
    broker.init()
    assert broker.add(version) == {("a", 0): 0}
    assert broker.harness.state().partitions == {("a", 0)}
    assert broker.harness.state().client_transaction_version == 0
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.add(version, epoch=4) == {("a", 0): fenced}


def test_add_partitions_is_all_or_nothing(broker: FakeBroker) -> None:
    broker.init()
    codes = broker.add(
        3,
        AddPartitionsToTxnTopic(name="a", partitions=[0, 9]),
        AddPartitionsToTxnTopic(name="none", partitions=[0]),
        AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=[0]),
    )
    assert codes == {
        ("a", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("a", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("__consumer_offsets", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert broker.harness.state().partitions == frozenset()


@pytest.mark.parametrize("version", [4, 5])
def test_add_partitions_for_brokers(broker: FakeBroker, version: int) -> None:
    broker.init()

    def transaction(name: str, *, verify_only: bool, partition: int) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=0,
            producer_epoch=0,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="a", partitions=[partition])],
        )

    def call(*transactions: AddPartitionsToTxnTransaction) -> dict[str, dict[TopicPartition, int]]:
        response = broker.call(AddPartitionsToTxnRequest(transactions=list(transactions)), version)
        return {result.transactional_id: _codes(result.topic_results) for result in response.results_by_transaction}

    assert call(transaction("t", verify_only=False, partition=0), transaction("x", verify_only=False, partition=0)) == {
        "t": {("a", 0): 0},
        "x": {("a", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    }
    assert broker.harness.state().client_transaction_version == 2
    assert call(transaction("t", verify_only=True, partition=0)) == {"t": {("a", 0): 0}}
    assert call(transaction("t", verify_only=True, partition=1)) == {"t": {("a", 1): ErrorCode.TRANSACTION_ABORTABLE}}
    assert broker.harness.state().partitions == {("a", 0)}


@pytest.mark.parametrize("version", range(5))
def test_add_offsets(broker: FakeBroker, version: int) -> None:
    broker.init()
    request = AddOffsetsToTxnRequest(transactional_id="t", producer_id=0, producer_epoch=0, group_id="four")
    assert broker.call(request, version).error_code == 0
    assert broker.harness.state().partitions == {("__consumer_offsets", 4)}
    request.producer_epoch = 5
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.call(request, version).error_code == fenced


@pytest.mark.parametrize("version", range(6))
def test_end(broker: FakeBroker, version: int) -> None:
    broker.init()
    broker.add()
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.end(version, epoch=7).error_code == fenced
    response = broker.end(version)
    expected = (0, 1) if version >= 5 else (-1, -1)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, *expected)
    assert [marker.committed for marker in broker.harness.markers.take()] == [True]


def test_write_txn_markers(broker: FakeBroker) -> None:
    broker.harness.markers.failing["a", 1] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=3,
        topics=[WritableTxnMarkerTopic(name="a", partition_indexes=[0, 1])],
        coordinator_epoch=2,
        transaction_version=2,
    )
    for version in (1, 2):
        response = broker.call(WriteTxnMarkersRequest(markers=[marker]), version)
        (result,) = response.markers
        assert [(each.partition_index, each.error_code) for each in result.topics[0].partitions] == [
            (0, 0),
            (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        (written,) = broker.harness.markers.take()
        assert written == Marker(("a", 0), (7, 3), False, 2 if version == 2 else 0, 2)  # type: ignore[arg-type]  # a plain pair
    assert broker.call(WriteTxnMarkersRequest(), 2).markers == []


def test_describe_transactions(broker: FakeBroker) -> None:
    broker.init()
    broker.add(3, AddPartitionsToTxnTopic(name="a", partitions=[1, 0]))
    known, unknown = broker.call(DescribeTransactionsRequest(transactional_ids=["t", "x"]), 0).transaction_states
    assert (known.error_code, known.transaction_state, known.transaction_timeout_ms) == (0, "Ongoing", 1000)
    assert known.transaction_start_time_ms == broker.harness.timer.now_ms()
    assert [(topic.topic, topic.partitions) for topic in known.topics] == [("a", [0, 1])]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_list_transactions(broker: FakeBroker) -> None:
    broker.init()
    response = broker.call(ListTransactionsRequest(state_filters=["Empty", "No"], transactional_id_pattern="t"), 2)
    assert [each.transactional_id for each in response.transaction_states] == ["t"]
    assert response.unknown_state_filters == ["No"]
    assert broker.call(ListTransactionsRequest(transactional_id_pattern="[a"), 2).error_code == (
        ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert broker.call(ListTransactionsRequest(producer_id_filters=[8]), 0).transaction_states == []


def test_describe_producers(broker: FakeBroker) -> None:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name="a", partition_indexes=[0, 5]), TopicRequest(name="no/name", partition_indexes=[0])]
    )
    a, invalid = broker.call(request, 0).topics
    known, unknown = a.partitions
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, -1)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (1, 42)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert invalid.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

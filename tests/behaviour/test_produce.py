"""Produce: acknowledgements, what is refused and with which words, timestamps, codecs, idempotence."""

from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode as E

from support.batches import CODECS, LOG_APPEND_TIME, Rec, batch, now_ms, read_batches, values
from support.cluster import (
    Topic,
    coordinated,
    create_topic,
    eventually,
    fetch,
    init_producer,
    list_offset,
    produce,
    topic_is_ready,
    unique,
)
from support.raw import RawClient


def end_offset(raw: RawClient, topic: Topic) -> int:
    offset: int = list_offset(raw, topic, -1).offset
    return offset


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version(raw: RawClient, version: int) -> None:
    topic = create_topic(raw)
    first = produce(raw, topic, b"a", b"b", version=version)
    assert (first.error_code, first.base_offset, first.log_append_time) == (E.none, 0, -1)
    assert produce(raw, topic, b"c", version=version).base_offset == 2
    if version >= 5:
        assert first.log_start_offset == 0
    if version >= 8:
        assert (first.record_errors, first.error_message) == ([], None)
    assert values(fetch(raw, topic).records) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("acks", [1, -1])
def test_acknowledged(raw: RawClient, acks: int) -> None:
    topic = create_topic(raw)
    assert produce(raw, topic, b"x", acks=acks).error_code == E.none
    assert end_offset(raw, topic) == 1


def test_a_topic_of_one_replica_needs_one_in_sync_whatever_its_config_says(raw: RawClient) -> None:
    topic = create_topic(raw, min_insync_replicas="2")
    assert produce(raw, topic, b"x", acks=-1).error_code == E.none


def test_acks_0_gets_no_response(raw: RawClient) -> None:
    topic = create_topic(raw)
    part = {"index": 0, "records": batch([b"silent"])}
    data = [{"name": topic.name, "partition_data": [part]}]
    raw.send("produce", 12, expect_response=False, acks=0, timeout=1000, topic_data=data)
    assert raw.has_nothing_to_read(0.1)
    assert eventually(lambda: end_offset(raw, topic) == 1)


def test_acks_0_with_an_error_closes_the_connection(raw: RawClient) -> None:
    part = {"index": 0, "records": batch([b"silent"])}
    data = [{"name": unique("nowhere"), "partition_data": [part]}]
    raw.send("produce", 12, expect_response=False, acks=0, timeout=1000, topic_data=data)
    assert raw.is_closed_by_peer()


@pytest.mark.parametrize("acks", [2, -2, 5])
def test_impossible_acks(raw: RawClient, acks: int) -> None:
    topic = create_topic(raw)
    answer = produce(raw, topic, b"x", acks=acks)
    assert (answer.error_code, answer.base_offset) == (E.invalid_required_acks, -1)
    assert end_offset(raw, topic) == 0


def test_unknown_topic_and_partition(raw: RawClient) -> None:
    topic = create_topic(raw)
    unknown = produce(raw, unique("nowhere"), b"x")
    assert (unknown.error_code, unknown.base_offset, unknown.log_start_offset) == (E.unknown_topic_or_partition, -1, -1)
    assert produce(raw, topic, b"x", partition=1).error_code == E.unknown_topic_or_partition
    assert produce(raw, topic, b"x", partition=-1).error_code == E.unknown_topic_or_partition


def test_unknown_topic_id(raw: RawClient) -> None:
    answer = produce(raw, Topic("x", uuid4()), b"x", version=13)
    assert (answer.error_code, answer.base_offset) == (E.unknown_topic_id, -1)


def test_an_internal_topic(raw: RawClient) -> None:
    raw.call("find_coordinator", 4, key_type=0, coordinator_keys=[unique("group")])
    eventually(lambda: topic_is_ready(raw, "__consumer_offsets", 3))
    assert produce(raw, "__consumer_offsets", Rec(b"x", b"k")).error_code == E.invalid_topic_exception


def test_several_topics_and_partitions_in_one_request(raw: RawClient) -> None:
    first, second = create_topic(raw, partitions=2), create_topic(raw)
    parts = [{"index": index, "records": batch([b"x"] * (index + 1))} for index in (0, 1)]
    data = [
        {"name": first.name, "partition_data": parts},
        {
            "name": second.name,
            "partition_data": [{"index": 0, "records": batch([b"x"])}, {"index": 7, "records": batch([b"x"])}],
        },
    ]
    response = raw.call("produce", 12, acks=-1, timeout=1000, topic_data=data)
    found = {(t.name, p.index): p.error_code for t in response.responses for p in t.partition_responses}
    assert found == {
        (first.name, 0): E.none,
        (first.name, 1): E.none,
        (second.name, 0): E.none,
        (second.name, 7): E.unknown_topic_or_partition,
    }


@pytest.mark.parametrize("codec", CODECS)
def test_codecs_are_stored_as_they_came(raw: RawClient, codec: str) -> None:
    topic = create_topic(raw)
    records = [Rec(b"value" * 50, b"key", [("h", b"1"), ("h", None)]), Rec(None, b"key2"), Rec(b"", None)]
    assert produce(raw, topic, *records, codec=codec).error_code == E.none
    (stored,) = read_batches(fetch(raw, topic).records)
    assert (stored.codec, stored.count, stored.leader_epoch) == (codec, 3, 0)
    assert [(r.value, r.key, r.headers) for r in stored.records] == [(r.value, r.key, r.headers) for r in records]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topics_compression_type_wins(raw: RawClient, codec: str, target: str) -> None:
    topic = create_topic(raw, compression_type=target)
    assert produce(raw, topic, b"a" * 100, b"b" * 100, codec=codec).base_offset == 0
    assert produce(raw, topic, b"c" * 100, codec=codec).base_offset == 2
    stored = read_batches(fetch(raw, topic).records)
    assert {part.codec for part in stored} == {"none" if target == "uncompressed" else target}
    assert [record.value for part in stored for record in part.records] == [b"a" * 100, b"b" * 100, b"c" * 100]
    assert [record.offset for part in stored for record in part.records] == [0, 1, 2]


class TestRefusedBatches:
    @pytest.mark.parametrize(
        ("data", "error"),
        [
            pytest.param(batch([b"x"], crc=1), E.corrupt_message, id="broken crc"),
            pytest.param(batch([b"x"], count=5), E.invalid_record, id="count above the records"),
            pytest.param(batch([b"x", b"y"], count=1), E.invalid_record, id="count below the records"),
            pytest.param(batch([b"x"], last_offset_delta=3), E.invalid_record, id="last offset delta above the count"),
            pytest.param(batch([b"x"], count=-1), E.invalid_record, id="negative count"),
            pytest.param(batch([], last_offset_delta=0), E.invalid_record, id="no records"),
            pytest.param(batch([b"x"], magic=1), E.invalid_record, id="wrong magic"),
            pytest.param(batch([b"x"]) + batch([b"y"]), E.invalid_record, id="two batches"),
            pytest.param(batch([b"x"])[:-3], E.invalid_record, id="cut short"),
            pytest.param(b"", E.invalid_record, id="empty"),
            pytest.param(batch([b"x"], payload=b"\x7f" * 20), E.invalid_record, id="nonsense as records"),
            pytest.param(batch([b"x"], attributes=0x20), E.invalid_record, id="a control batch"),
            pytest.param(batch([b"x"], base_offset=500), E.invalid_record, id="base offset other than 0"),
        ],
    )
    def test_with_its_error(self, raw: RawClient, data: bytes, error: E) -> None:
        topic = create_topic(raw)
        answer = produce(raw, topic, data=data)
        assert (answer.error_code, answer.base_offset) == (error, -1)
        assert end_offset(raw, topic) == 0
        assert produce(raw, topic, b"good").error_code == E.none

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(batch([b"x"], codec="gzip", payload=b"not gzip at all"), id="broken gzip"),
            pytest.param(batch([b"x"], codec="zstd", payload=b"not zstd at all"), id="broken zstd"),
            pytest.param(batch([b"x"], attributes=5), id="an unknown codec"),
        ],
    )
    def test_what_cannot_be_unpacked(self, raw: RawClient, data: bytes) -> None:
        topic = create_topic(raw)
        answer = produce(raw, topic, data=data)
        assert answer.error_code in (E.unknown_server_error, E.corrupt_message)  # the former is Apache Kafka's
        assert end_offset(raw, topic) == 0
        assert produce(raw, topic, b"good").error_code == E.none

    def test_too_large(self, raw: RawClient) -> None:
        topic = create_topic(raw, max_message_bytes="1000")
        assert produce(raw, topic, b"x" * 1000).error_code == E.message_too_large
        assert produce(raw, topic, b"x" * 900).error_code == E.none
        exact = batch([b"x" * 900])
        padded = batch([b"x" * (900 + 1000 - len(exact))])
        assert len(padded) == 1000
        assert produce(raw, topic, data=padded).error_code == E.none
        assert produce(raw, topic, data=batch([b"x" * (901 + 1000 - len(exact))])).error_code == E.message_too_large

    def test_null_key_on_a_compacted_topic(self, raw: RawClient) -> None:
        topic = create_topic(raw, cleanup_policy="compact")
        answer = produce(raw, topic, Rec(b"good", b"k"), Rec(b"bad"), Rec(b"bad too"))
        assert (answer.error_code, answer.base_offset) == (E.invalid_record, -1)
        assert [error.batch_index for error in answer.record_errors] == [1, 2]
        assert all(error.batch_index_error_message for error in answer.record_errors)
        assert answer.error_message
        assert end_offset(raw, topic) == 0
        assert produce(raw, topic, Rec(b"good", b"k"), Rec(None, b"k")).error_code == E.none

    def test_epoch_and_timestamp_type_of_the_client_are_replaced(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert produce(raw, topic, b"x", attributes=LOG_APPEND_TIME, leader_epoch=9).error_code == E.none
        (stored,) = read_batches(fetch(raw, topic).records)
        assert (stored.leader_epoch, stored.attributes) == (0, 0)


class TestTimestamps:
    def test_create_time_is_kept(self, raw: RawClient) -> None:
        topic = create_topic(raw, retention_ms="-1")
        times = [1_000_000, 999_000, 2_000_000]
        answer = produce(raw, topic, *[Rec(b"x", timestamp=t) for t in times])
        assert answer.log_append_time == -1
        (stored,) = read_batches(fetch(raw, topic).records)
        assert [r.timestamp for r in stored.records] == times
        assert (stored.max_timestamp, stored.attributes & LOG_APPEND_TIME) == (2_000_000, 0)

    def test_log_append_time_is_the_brokers(self, raw: RawClient) -> None:
        topic = create_topic(raw, message_timestamp_type="LogAppendTime")
        before = now_ms()
        answer = produce(raw, topic, Rec(b"x", timestamp=1000), Rec(b"y", timestamp=2000))
        assert before - 1 <= answer.log_append_time <= now_ms() + 1
        (stored,) = read_batches(fetch(raw, topic).records)
        assert stored.attributes & LOG_APPEND_TIME
        assert stored.max_timestamp == answer.log_append_time
        assert stored.base_timestamp == 1000

    def test_bounds_before_and_after(self, raw: RawClient) -> None:
        bounds: dict[str, Any] = {"message_timestamp_before_max_ms": "10000", "message_timestamp_after_max_ms": "20000"}
        topic = create_topic(raw, **bounds)
        now = now_ms()
        answer = produce(raw, topic, Rec(b"fine", timestamp=now), Rec(b"old", timestamp=now - 60_000))
        assert answer.error_code == E.invalid_timestamp
        assert [error.batch_index for error in answer.record_errors] == [1]
        assert produce(raw, topic, Rec(b"new", timestamp=now + 60_000)).error_code == E.invalid_timestamp
        assert produce(raw, topic, Rec(b"fine", timestamp=now - 5_000)).error_code == E.none
        assert produce(raw, topic, Rec(b"fine", timestamp=now + 10_000)).error_code == E.none

    def test_more_than_an_hour_ahead_is_refused_by_default(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert produce(raw, topic, Rec(b"x", timestamp=now_ms() + 2 * 3600_000)).error_code == E.invalid_timestamp

    def test_no_timestamp_is_kept(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert produce(raw, topic, Rec(b"x", timestamp=-1)).error_code == E.none
        (stored,) = read_batches(fetch(raw, topic).records)
        assert (stored.max_timestamp, stored.records[0].timestamp) == (-1, -1)


class TestIdempotence:
    def producer(self, raw: RawClient) -> tuple[int, int]:
        response = init_producer(raw)
        assert (response.error_code, response.producer_epoch) == (E.none, 0)
        return response.producer_id, response.producer_epoch

    def send(self, raw: RawClient, topic: Topic, pid: int, epoch: int, sequence: int, count: int = 1) -> Any:
        identity: dict[str, Any] = {"producer_id": pid, "producer_epoch": epoch, "base_sequence": sequence}
        return produce(raw, topic, *[b"x"] * count, **identity)

    def test_a_duplicate_is_answered_with_its_first_offset(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        pid, epoch = self.producer(raw)
        produce(raw, topic, b"before")
        assert self.send(raw, topic, pid, epoch, 0, 3).base_offset == 1
        again = self.send(raw, topic, pid, epoch, 0, 3)
        assert (again.error_code, again.base_offset) == (E.none, 1)
        assert end_offset(raw, topic) == 4

    def test_the_last_five_batches_are_remembered(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        pid, epoch = self.producer(raw)
        for sequence in range(6):
            assert self.send(raw, topic, pid, epoch, sequence).base_offset == sequence
        for sequence in range(1, 6):
            assert self.send(raw, topic, pid, epoch, sequence).base_offset == sequence
        forgotten = self.send(raw, topic, pid, epoch, 0)
        assert forgotten.error_code == E.out_of_order_sequence_number
        assert end_offset(raw, topic) == 6

    def test_a_gap(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        pid, epoch = self.producer(raw)
        assert self.send(raw, topic, pid, epoch, 0).error_code == E.none
        assert self.send(raw, topic, pid, epoch, 2).error_code == E.out_of_order_sequence_number
        assert self.send(raw, topic, pid, epoch, 1).base_offset == 1

    def test_an_unknown_producer_may_start_anywhere(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        pid, epoch = self.producer(raw)
        assert self.send(raw, topic, pid, epoch, 7).error_code == E.none
        assert self.send(raw, topic, pid, epoch, 8).error_code == E.none

    def test_a_new_epoch_starts_at_0_and_fences_the_old_one(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        pid, epoch = self.producer(raw)
        assert self.send(raw, topic, pid, epoch, 0).error_code == E.none
        assert self.send(raw, topic, pid, epoch + 1, 5).error_code == E.out_of_order_sequence_number
        assert self.send(raw, topic, pid, epoch + 1, 0).error_code == E.none
        assert self.send(raw, topic, pid, epoch, 1).error_code == E.invalid_producer_epoch

    def test_sequences_wrap_around(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        pid, epoch = self.producer(raw)
        top = 2**31 - 1
        assert self.send(raw, topic, pid, epoch, top - 1, 2).error_code == E.none
        assert self.send(raw, topic, pid, epoch, 0).error_code == E.none
        assert self.send(raw, topic, pid, epoch, 1).error_code == E.none

    def test_a_sequence_without_a_producer_epoch(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        answer = produce(raw, topic, b"x", producer_id=5, producer_epoch=0, base_sequence=-1)
        assert answer.error_code == E.invalid_record

    def test_init_producer_id_gives_each_its_own(self, raw: RawClient) -> None:
        assert len({self.producer(raw)[0] for _ in range(5)}) == 5

    @pytest.mark.parametrize("version", range(6))
    def test_init_producer_id_in_every_version(self, raw: RawClient, version: int) -> None:
        request = {"transactional_id": None, "transaction_timeout": 60000}
        response = coordinated(raw, "init_producer_id", version, **request)
        assert (response.error_code, response.producer_epoch) == (E.none, 0)
        assert response.producer_id >= 0

"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode as E

from support.batches import Rec
from support.cluster import Topic, create_topic, list_offset, produce, unique
from support.raw import RawClient

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    """Three batches with the times 1000, 3000 2000, 4000 4000."""
    topic = create_topic(raw, retention_ms="-1")
    for times in ([1000], [3000, 2000], [4000, 4000]):
        produce(raw, topic, *[Rec(b"x", timestamp=time) for time in times])
    return topic


class TestListOffsets:
    @pytest.mark.parametrize("version", range(1, 12))
    def test_latest_and_earliest_in_every_version(self, raw: RawClient, topic: Topic, version: int) -> None:
        def ask(timestamp: int) -> Any:
            part = {"partition_index": 0, "timestamp": timestamp}
            where = [{"name": topic.name, "partitions": [part]}]
            return raw.call("list_offsets", version, replica_id=-1, topics=where).topics[0].partitions[0]

        latest, earliest = ask(LATEST), ask(EARLIEST)
        assert (latest.error_code, latest.offset, latest.timestamp) == (E.none, 5, -1)
        assert (earliest.error_code, earliest.offset, earliest.timestamp) == (E.none, 0, -1)
        if version >= 4:
            assert (latest.leader_epoch, earliest.leader_epoch) == (0, 0)

    @pytest.mark.parametrize(
        ("timestamp", "offset", "found"),
        [
            (0, 0, 1000), (1000, 0, 1000), (1001, 1, 3000), (2000, 1, 3000), (3000, 1, 3000), (3001, 3, 4000),
            (4000, 3, 4000), (4001, -1, -1), (2**62, -1, -1),
        ],
    )  # fmt: skip
    def test_by_time(self, raw: RawClient, topic: Topic, timestamp: int, offset: int, found: int) -> None:
        answer = list_offset(raw, topic, timestamp)
        assert (answer.error_code, answer.offset, answer.timestamp) == (E.none, offset, found)
        assert answer.leader_epoch == (0 if offset >= 0 else -1)

    def test_by_time_inside_a_batch(self, raw: RawClient) -> None:
        topic = create_topic(raw, retention_ms="-1")
        produce(raw, topic, *[Rec(b"x", timestamp=time) for time in (10, 20, 30)], codec="gzip")
        assert (list_offset(raw, topic, 15).offset, list_offset(raw, topic, 15).timestamp) == (1, 20)

    def test_the_record_with_the_largest_timestamp(self, raw: RawClient, topic: Topic) -> None:
        answer = list_offset(raw, topic, MAX_TIMESTAMP)
        assert (answer.error_code, answer.offset, answer.timestamp) == (E.none, 3, 4000)

    def test_max_timestamp_of_an_empty_partition(self, raw: RawClient) -> None:
        answer = list_offset(raw, create_topic(raw), MAX_TIMESTAMP)
        assert (answer.error_code, answer.offset, answer.timestamp) == (E.none, -1, -1)

    def test_earliest_local_and_latest_tiered(self, raw: RawClient, topic: Topic) -> None:
        local, tiered = list_offset(raw, topic, EARLIEST_LOCAL), list_offset(raw, topic, LATEST_TIERED)
        assert (local.error_code, local.offset) == (E.none, 0)
        assert (tiered.error_code, tiered.offset) == (E.none, -1)

    @pytest.mark.parametrize(("version", "timestamp"), [(6, -3), (7, -4), (8, -5), (10, -6), (11, -7)])
    def test_special_timestamps_need_their_version(
        self, raw: RawClient, topic: Topic, version: int, timestamp: int
    ) -> None:
        where = [{"name": topic.name, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
        answer = raw.call("list_offsets", version, replica_id=-1, topics=where).topics[0].partitions[0]
        assert (answer.error_code, answer.offset) == (E.unsupported_version, -1)

    def test_unknown_partition_and_topic(self, raw: RawClient, topic: Topic) -> None:
        assert list_offset(raw, topic, LATEST, partition=3).error_code == E.unknown_topic_or_partition
        assert list_offset(raw, unique("nowhere"), LATEST).error_code == E.unknown_topic_or_partition

    def test_the_same_partition_twice(self, raw: RawClient, topic: Topic) -> None:
        part = {"partition_index": 0, "timestamp": LATEST}
        where = [{"name": topic.name, "partitions": [part, part]}]
        response = raw.call("list_offsets", 10, replica_id=-1, topics=where)
        assert {p.error_code for p in response.topics[0].partitions} == {E.invalid_request}

    def test_the_leader_epoch_is_checked(self, raw: RawClient, topic: Topic) -> None:
        part = {"partition_index": 0, "timestamp": LATEST, "current_leader_epoch": 7}
        where = [{"name": topic.name, "partitions": [part]}]
        answer = raw.call("list_offsets", 10, replica_id=-1, topics=where).topics[0].partitions[0]
        assert answer.error_code == E.unknown_leader_epoch


class TestOffsetForLeaderEpoch:
    def ask(
        self, raw: RawClient, name: str, epoch: int, current: int = -1, version: int = 4, partition: int = 0
    ) -> Any:
        part = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        where = [{"topic": name, "partitions": [part]}]
        replica = {"replica_id": -1} if version >= 3 else {}
        return raw.call("offset_for_leader_epoch", version, **replica, topics=where).topics[0].partitions[0]

    @pytest.mark.parametrize("version", range(2, 5))
    def test_the_current_epoch_ends_at_the_log_end(self, raw: RawClient, topic: Topic, version: int) -> None:
        answer = self.ask(raw, topic.name, 0, version=version)
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (E.none, 0, 5)

    def test_a_future_epoch_is_undefined(self, raw: RawClient, topic: Topic) -> None:
        answer = self.ask(raw, topic.name, 9)
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (E.none, -1, -1)

    def test_errors(self, raw: RawClient, topic: Topic) -> None:
        assert self.ask(raw, topic.name, 0, current=9).error_code == E.unknown_leader_epoch
        assert self.ask(raw, unique("nowhere"), 0).error_code == E.unknown_topic_or_partition
        assert self.ask(raw, topic.name, 0, partition=4).error_code == E.unknown_topic_or_partition


class TestDeleteRecords:
    def delete(self, raw: RawClient, name: str, offset: int, version: int = 2, partition: int = 0) -> Any:
        where = [{"name": name, "partitions": [{"partition_index": partition, "offset": offset}]}]
        return raw.call("delete_records", version, topics=where, timeout=5000).topics[0].partitions[0]

    @pytest.mark.parametrize("version", range(3))
    def test_up_to_an_offset(self, raw: RawClient, topic: Topic, version: int) -> None:
        answer = self.delete(raw, topic.name, 2, version)
        assert (answer.error_code, answer.low_watermark) == (E.none, 2)
        assert list_offset(raw, topic, EARLIEST).offset == 2
        assert list_offset(raw, topic, LATEST).offset == 5
        assert produce(raw, topic, b"x").log_start_offset == 2

    def test_all_of_them(self, raw: RawClient, topic: Topic) -> None:
        assert self.delete(raw, topic.name, -1).low_watermark == 5
        assert list_offset(raw, topic, EARLIEST).offset == 5

    def test_going_back_changes_nothing(self, raw: RawClient, topic: Topic) -> None:
        self.delete(raw, topic.name, 3)
        answer = self.delete(raw, topic.name, 1)
        assert (answer.error_code, answer.low_watermark) == (E.none, 3)

    @pytest.mark.parametrize("offset", [6, -2])
    def test_out_of_range(self, raw: RawClient, topic: Topic, offset: int) -> None:
        answer = self.delete(raw, topic.name, offset)
        assert (answer.error_code, answer.low_watermark) == (E.offset_out_of_range, -1)

    def test_refused(self, raw: RawClient, topic: Topic) -> None:
        assert self.delete(raw, unique("nowhere"), 0).error_code == E.unknown_topic_or_partition
        assert self.delete(raw, topic.name, 0, partition=2).error_code == E.unknown_topic_or_partition
        compacted = create_topic(raw, cleanup_policy="compact")
        assert self.delete(raw, compacted.name, 0).error_code == E.policy_violation

    def test_by_time_finds_only_what_is_left(self, raw: RawClient, topic: Topic) -> None:
        self.delete(raw, topic.name, 3)
        assert list_offset(raw, topic, 0).offset == 3

"""Fetch: long polls, byte limits, errors, sessions. (Transactions and read_committed: `test_transactions`.)"""

import time
from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode as E

from support.batches import batch, read_batches, values
from support.cluster import Cluster, Topic, create_topic, eventually, fetch, list_offset, produce
from support.raw import RawClient


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version(raw: RawClient, version: int) -> None:
    topic = create_topic(raw)
    produce(raw, topic, b"a", b"b")
    answer = fetch(raw, topic, version=version)
    assert (answer.error_code, answer.partition_index, answer.high_watermark) == (E.none, 0, 2)
    assert (answer.last_stable_offset, values(answer.records)) == (2, [b"a", b"b"])
    assert not answer.aborted_transactions
    if version >= 5:
        assert answer.log_start_offset == 0
    if version >= 11:
        assert answer.preferred_read_replica == -1


def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(raw: RawClient) -> None:
    topic = create_topic(raw)
    produce(raw, topic, b"a", b"b", b"c")
    (found,) = read_batches(fetch(raw, topic, 2).records)
    assert (found.base_offset, found.count) == (0, 3)


def test_at_the_end_there_is_nothing(raw: RawClient) -> None:
    topic = create_topic(raw)
    produce(raw, topic, b"a")
    answer = fetch(raw, topic, 1, max_wait=0)
    assert (answer.error_code, answer.records or b"", answer.high_watermark) == (E.none, b"", 1)


@pytest.mark.parametrize("offset", [2, 100, -1])
def test_out_of_range(raw: RawClient, offset: int) -> None:
    topic = create_topic(raw)
    produce(raw, topic, b"a")
    answer = fetch(raw, topic, offset, max_wait=5000)
    assert (answer.error_code, answer.high_watermark, answer.records or b"") == (E.offset_out_of_range, -1, b"")
    assert (answer.log_start_offset, answer.last_stable_offset) == (-1, -1)


def test_below_the_log_start_offset(raw: RawClient) -> None:
    topic = create_topic(raw)
    for value in (b"a", b"b", b"c"):
        produce(raw, topic, value)
    where = [{"name": topic.name, "partitions": [{"partition_index": 0, "offset": 2}]}]
    raw.call("delete_records", 2, topics=where, timeout=5000)
    assert fetch(raw, topic, 1).error_code == E.offset_out_of_range
    answer = fetch(raw, topic, 2)
    assert (answer.log_start_offset, values(answer.records)) == (2, [b"c"])


def test_unknown_topics_and_partitions(raw: RawClient) -> None:
    topic = create_topic(raw)
    assert fetch(raw, topic, partition=5).error_code == E.unknown_topic_or_partition
    assert fetch(raw, Topic("x", uuid4())).error_code == E.unknown_topic_id
    by_name = fetch(raw, Topic("nowhere-at-all", uuid4()), version=12)
    assert (by_name.error_code, by_name.high_watermark) == (E.unknown_topic_or_partition, -1)


def test_the_leader_epoch_is_checked(raw: RawClient) -> None:
    topic = create_topic(raw)
    assert fetch(raw, topic, current_leader_epoch=0, max_wait=0).error_code == E.none
    assert fetch(raw, topic, current_leader_epoch=5).error_code == E.unknown_leader_epoch


def test_a_diverging_epoch_is_reported(raw: RawClient) -> None:
    topic = create_topic(raw)
    produce(raw, topic, b"a")
    fine = fetch(raw, topic, 1, last_fetched_epoch=0, max_wait=0)
    assert (fine.error_code, fine.diverging_epoch.epoch) == (E.none, -1)


class TestLongPoll:
    def test_waits_for_max_wait_when_nothing_comes(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        started = time.monotonic()
        answer = fetch(raw, topic, max_wait=300)
        assert time.monotonic() - started >= 0.29
        assert (answer.error_code, answer.records or b"") == (E.none, b"")

    def test_wakes_when_there_is_something(self, cluster: Cluster, raw: RawClient) -> None:
        topic = create_topic(raw)
        with cluster.connect() as waiting:
            send_fetch(waiting, [topic], max_wait=20000)
            assert waiting.has_nothing_to_read(0.1)
            produce(raw, topic, b"wake up")
            response = waiting.receive()
        assert values(response.responses[0].partitions[0].records) == [b"wake up"]

    def test_min_bytes_counts_over_all_partitions(self, cluster: Cluster, raw: RawClient) -> None:
        first, second = create_topic(raw), create_topic(raw)
        size = len(batch([b"x" * 100]))
        with cluster.connect() as waiting:
            send_fetch(waiting, [first, second], max_wait=20000, min_bytes=2 * size)
            produce(raw, first, b"x" * 100)
            assert waiting.has_nothing_to_read(0.1)
            produce(raw, second, b"x" * 100)
            response = waiting.receive()
        assert [values(t.partitions[0].records) for t in response.responses] == [[b"x" * 100]] * 2

    def test_min_bytes_not_reached_returns_what_there_is_in_the_end(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        produce(raw, topic, b"little")
        answer = fetch(raw, topic, min_bytes=100_000, max_wait=200)
        assert values(answer.records) == [b"little"]

    def test_an_offset_out_of_range_in_one_partition_answers_at_once(self, raw: RawClient) -> None:
        good, bad = create_topic(raw), create_topic(raw)
        parts = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20} for offset in (0, 9)]
        request = [{"topic_id": t.id, "partitions": [part]} for t, part in zip((good, bad), parts, strict=True)]
        response = raw.call("fetch", 17, max_wait=30000, min_bytes=1, topics=request)
        errors = {t.topic_id: t.partitions[0].error_code for t in response.responses}
        assert errors == {good.id: E.none, bad.id: E.offset_out_of_range}

    def test_an_unknown_topic_does_not_end_the_wait_of_the_others(self, cluster: Cluster, raw: RawClient) -> None:
        topic = create_topic(raw)
        with cluster.connect() as waiting:
            send_fetch(waiting, [topic, Topic("x", uuid4())], max_wait=20000)
            assert waiting.has_nothing_to_read(0.1)
            produce(raw, topic, b"wake up")
            response = waiting.receive()
        errors = {t.topic_id == topic.id: t.partitions[0].error_code for t in response.responses}
        assert errors == {True: E.none, False: E.unknown_topic_id}

    def test_only_unknown_topics_answer_at_once(self, raw: RawClient) -> None:
        assert fetch(raw, Topic("x", uuid4()), max_wait=30000).error_code == E.unknown_topic_id

    def test_min_bytes_0_answers_at_once(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert fetch(raw, topic, min_bytes=0, max_wait=30000).error_code == E.none

    def test_no_partitions_answers_at_once(self, raw: RawClient) -> None:
        response = raw.call("fetch", 17, max_wait=30000, min_bytes=1, topics=[])
        assert (response.error_code, response.responses) == (E.none, [])

    def test_a_waiting_fetch_does_not_hold_back_other_connections(self, cluster: Cluster, raw: RawClient) -> None:
        topic = create_topic(raw)
        with cluster.connect() as waiting:
            send_fetch(waiting, [topic], max_wait=10000)
            for _ in range(5):
                assert fetch(raw, topic, max_wait=0).error_code == E.none


def send_fetch(raw: RawClient, topics: list[Topic], **options: Any) -> None:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    request = [{"topic_id": topic.id, "partitions": [part]} for topic in topics]
    raw.send("fetch", 17, **{"min_bytes": 1, **options}, topics=request)


class TestByteLimits:
    def filled(self, raw: RawClient, count: int = 10) -> tuple[Topic, int]:
        topic = create_topic(raw)
        data = batch([b"x" * 1000])
        for _ in range(count):
            produce(raw, topic, data=data)
        return topic, len(data)

    def test_partition_max_bytes_cuts_inside_a_batch(self, raw: RawClient) -> None:
        topic, size = self.filled(raw)
        answer = fetch(raw, topic, partition_max_bytes=3 * size + 10)
        assert len(answer.records) == 3 * size + 10
        assert len(read_batches(answer.records)) == 3

    def test_the_first_batch_comes_whole_even_if_it_is_larger(self, raw: RawClient) -> None:
        topic, size = self.filled(raw)
        answer = fetch(raw, topic, partition_max_bytes=10)
        assert len(answer.records) == size
        limited = fetch(raw, topic, max_bytes=10)
        assert len(limited.records) == size

    def test_max_bytes_limits_the_whole_response(self, raw: RawClient) -> None:
        topic, size = self.filled(raw)
        answer = fetch(raw, topic, max_bytes=2 * size + 1)
        assert len(answer.records) == 2 * size + 1

    def test_only_the_first_partition_may_exceed_the_limit(self, raw: RawClient) -> None:
        first, size = self.filled(raw, 1)
        second, _ = self.filled(raw, 1)
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        request = [{"topic_id": topic.id, "partitions": [part]} for topic in (first, second)]
        response = raw.call("fetch", 17, max_wait=100, min_bytes=1, max_bytes=10, topics=request)
        sizes = [len(t.partitions[0].records or b"") for t in response.responses]
        assert sizes == [size, 0]

    def test_partition_max_bytes_0_returns_the_first_batch(self, raw: RawClient) -> None:
        topic, size = self.filled(raw)
        assert len(fetch(raw, topic, partition_max_bytes=0).records) == size


class TestSessions:
    def full(self, raw: RawClient, topics: list[Topic], **options: Any) -> Any:
        return self.call(raw, topics, session_epoch=0, **options)

    def call(
        self, raw: RawClient, topics: list[Topic], forget: list[Topic] | None = None, offset: int = 0, **options: Any
    ) -> Any:
        part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        return raw.call(
            "fetch", 17, max_wait=options.pop("max_wait", 0), min_bytes=1, **options,
            topics=[{"topic_id": topic.id, "partitions": [part]} for topic in topics],
            forgotten_topics_data=[{"topic_id": topic.id, "partitions": [0]} for topic in forget or []],
        )  # fmt: skip

    def test_sessionless_fetches_have_id_0(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert self.call(raw, [topic], session_epoch=-1).session_id == 0

    def test_a_full_fetch_opens_a_session_and_increments_return_only_news(self, raw: RawClient) -> None:
        first, second = create_topic(raw), create_topic(raw)
        opened = self.full(raw, [first, second])
        assert (opened.error_code, opened.session_id > 0, len(opened.responses)) == (E.none, True, 2)
        quiet = self.call(raw, [], session_id=opened.session_id, session_epoch=1)
        assert (quiet.error_code, quiet.session_id, quiet.responses) == (E.none, opened.session_id, [])
        produce(raw, second, b"news")
        news = self.call(raw, [], session_id=opened.session_id, session_epoch=2, max_wait=1000)
        assert [t.topic_id for t in news.responses] == [second.id]
        assert values(news.responses[0].partitions[0].records) == [b"news"]

    def test_partitions_are_added_moved_on_and_forgotten(self, raw: RawClient) -> None:
        first, second = create_topic(raw), create_topic(raw)
        produce(raw, first, b"1")
        produce(raw, second, b"2")
        session = self.full(raw, [first]).session_id
        added = self.call(raw, [second], session_id=session, session_epoch=1)
        assert {t.topic_id for t in added.responses} == {first.id, second.id}
        moved = self.call(raw, [first], session_id=session, session_epoch=2, offset=1)
        assert [t.topic_id for t in moved.responses] == [second.id]
        forgotten = self.call(raw, [], [second], session_id=session, session_epoch=3)
        assert forgotten.responses == []

    def test_a_wrong_epoch(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        session = self.full(raw, [topic]).session_id
        wrong = self.call(raw, [], session_id=session, session_epoch=5)
        assert (wrong.error_code, wrong.session_id, wrong.responses) == (E.invalid_fetch_session_epoch, 0, [])
        assert self.call(raw, [], session_id=session, session_epoch=1).error_code == E.none
        assert self.call(raw, [], session_id=session, session_epoch=1).error_code == E.invalid_fetch_session_epoch

    def test_an_unknown_session(self, raw: RawClient) -> None:
        unknown = self.call(raw, [], session_id=123456, session_epoch=1)
        assert (unknown.error_code, unknown.session_id) == (E.fetch_session_id_not_found, 0)

    def test_a_session_is_closed_by_epoch_minus_one(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        session = self.full(raw, [topic]).session_id
        closed = self.call(raw, [], session_id=session, session_epoch=-1)
        assert (closed.error_code, closed.session_id) == (E.none, 0)
        assert self.call(raw, [], session_id=session, session_epoch=1).error_code == E.fetch_session_id_not_found

    def test_an_unknown_topic_id_in_a_session(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        opened = self.full(raw, [topic, Topic("x", uuid4())])
        errors = {t.topic_id == topic.id: t.partitions[0].error_code for t in opened.responses}
        assert errors == {True: E.none, False: E.unknown_topic_id}
        again = self.call(raw, [], session_id=opened.session_id, session_epoch=1)
        assert [t.partitions[0].error_code for t in again.responses] == [E.unknown_topic_id]

    def test_a_topic_deleted_during_the_session(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        session = self.full(raw, [topic]).session_id
        raw.call("delete_topics", 6, topics=[{"name": topic.name}], timeout=30000)
        epoch = iter(range(1, 1000))

        def told() -> bool:
            answer = self.call(raw, [], session_id=session, session_epoch=next(epoch))
            return {p.error_code for t in answer.responses for p in t.partitions} == {E.unknown_topic_or_partition}

        assert eventually(told)


def test_high_watermark_follows_every_append(raw: RawClient) -> None:
    topic = create_topic(raw)
    for count in range(1, 4):
        produce(raw, topic, b"x")
        assert fetch(raw, topic, count - 1).high_watermark == count
    assert list_offset(raw, topic, -1).offset == 3

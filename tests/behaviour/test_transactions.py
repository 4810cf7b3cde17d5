"""Transactions of both protocol versions, read_committed, fencing, time-outs, offsets in transactions."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as E

from support.batches import TRANSACTIONAL, read_batches, values
from support.cluster import (
    Topic,
    create_topic,
    eventually,
    fetch,
    find_coordinator,
    init_producer,
    list_offset,
    produce,
    unique,
)
from support.raw import RawClient


@dataclass(frozen=True)
class Producer:
    """A transactional producer's identity, and its requests."""

    raw: RawClient
    transactional_id: str
    producer_id: int
    epoch: int

    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def send(self, topic: Topic, *records: bytes, sequence: int = 0, version: int = 12, partition: int = 0) -> Any:
        """Version 12 and above add the partition to the transaction by themselves (transactions v2)."""
        return produce(
            self.raw, topic, *records, attributes=TRANSACTIONAL, base_sequence=sequence,
            producer_id=self.producer_id, producer_epoch=self.epoch, transactional_id=self.transactional_id,
            version=version, partition=partition,
        )  # fmt: skip

    def add(self, topic: Topic, *partitions: int) -> list[E]:
        who = {f"v3_and_below_{name}": value for name, value in self.identity().items()}
        where = [{"name": topic.name, "partitions": list(partitions)}]

        def added() -> Any:
            response = self.raw.call("add_partitions_to_txn", 3, **who, v3_and_below_topics=where)
            parts = response.results_by_topic_v3_and_below[0].results_by_partition
            errors = [part.partition_error_code for part in sorted(parts, key=lambda part: part.partition_index)]
            return None if E.concurrent_transactions in errors else errors

        errors: list[E] = eventually(added)
        return errors

    def end(self, *, commit: bool, version: int = 5) -> Any:
        """EndTxn, repeated while the last transaction is still being completed."""

        def ended() -> Any:
            answer = self.raw.call("end_txn", version, **self.identity(), committed=commit)
            return None if answer.error_code == E.concurrent_transactions else answer

        return eventually(ended)

    def after(self, answer: Any) -> "Producer":
        """The identity that an EndTxn of version 5 handed out for the next transaction."""
        assert answer.error_code == E.none
        return replace(self, producer_id=answer.producer_id, epoch=answer.producer_epoch)


def new_producer(raw: RawClient, timeout: int = 60000, transactional_id: str | None = None) -> Producer:
    name = transactional_id or unique("txn")

    def initialised() -> Any:
        answer = init_producer(raw, name, timeout)
        return None if answer.error_code == E.concurrent_transactions else answer

    answer = eventually(initialised)
    assert answer.error_code == E.none
    return Producer(raw, name, answer.producer_id, answer.producer_epoch)


@pytest.fixture
def producer(raw: RawClient) -> Producer:
    return new_producer(raw)


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    return create_topic(raw, partitions=2)


def describe_transaction(raw: RawClient, transactional_id: str) -> Any:
    return raw.call("describe_transactions", 0, transactional_ids=[transactional_id]).transaction_states[0]


def settled(raw: RawClient, transactional_id: str) -> str:
    """The state of a transactional id once its markers are written."""

    def state() -> str | None:
        found = describe_transaction(raw, transactional_id)
        return found.transaction_state if not found.transaction_state.startswith("Prepare") else None

    name: str = eventually(state)
    return name


def committed_values(raw: RawClient, topic: Topic, count: int, partition: int = 0) -> Any:
    """What a read_committed consumer sees once `count` offsets are stable: its records without the aborted ones."""
    eventually(lambda: list_offset(raw, topic, -1, partition, isolation_level=1).offset >= count)
    answer = fetch(raw, topic, isolation_level=1, partition=partition)
    aborted = {(entry.producer_id, entry.first_offset) for entry in answer.aborted_transactions}
    visible: list[bytes | None] = []
    open_aborts: set[int] = set()
    for part in read_batches(answer.records):
        open_aborts |= {pid for pid, first in aborted if first <= part.base_offset and pid == part.producer_id}
        if part.is_control:
            open_aborts.discard(part.producer_id)
            aborted = {(pid, first) for pid, first in aborted if pid != part.producer_id or first > part.base_offset}
        elif not (part.attributes & TRANSACTIONAL and part.producer_id in open_aborts):
            visible += [record.value for record in part.records]
    return visible


class TestInitProducerId:
    def test_a_transactional_id_keeps_its_producer_id_and_bumps_the_epoch(self, raw: RawClient) -> None:
        first = new_producer(raw)
        second = new_producer(raw, transactional_id=first.transactional_id)
        assert (second.producer_id, first.epoch, second.epoch) == (first.producer_id, 0, 1)

    @pytest.mark.parametrize(
        ("request_changes", "error"),
        [
            pytest.param({"transactional_id": ""}, E.invalid_request, id="empty id"),
            pytest.param({"transaction_timeout": 0}, E.invalid_transaction_timeout, id="no time-out"),
            pytest.param(
                {"transaction_timeout": 900_001}, E.invalid_transaction_timeout, id="time-out above the maximum"
            ),
        ],
    )
    def test_refused(self, raw: RawClient, producer: Producer, request_changes: dict[str, Any], error: E) -> None:
        request = {"transactional_id": producer.transactional_id, "transaction_timeout": 60000, **request_changes}
        answer = raw.call("init_producer_id", 5, **request)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)

    def test_with_an_identity(self, raw: RawClient, producer: Producer) -> None:
        def again(producer_id: int, epoch: int) -> tuple[E, int]:
            answer = init_producer(raw, producer.transactional_id, producer_id=producer_id, producer_epoch=epoch)
            return answer.error_code, answer.producer_epoch

        pid = producer.producer_id
        assert again(pid, 0) == (E.none, 1)
        assert again(pid, 1) == (E.none, 2)
        assert again(pid, 0)[0] == E.producer_fenced
        assert again(pid, 50)[0] == E.producer_fenced
        assert again(pid + 100_000, 2)[0] == E.producer_fenced
        assert again(pid, -1)[0] == E.invalid_request

    def test_the_last_epoch_again_is_taken_as_a_retry(self, raw: RawClient, producer: Producer) -> None:
        def again() -> int:
            identity = {"producer_id": producer.producer_id, "producer_epoch": 0}
            epoch: int = init_producer(raw, producer.transactional_id, **identity).producer_epoch
            return epoch

        assert (again(), again()) == (1, 1)

    def test_an_open_transaction_of_the_last_owner_is_aborted(
        self, raw: RawClient, producer: Producer, topic: Topic
    ) -> None:
        producer.send(topic, b"lost")
        successor = new_producer(raw, transactional_id=producer.transactional_id)
        assert successor.epoch > producer.epoch
        assert committed_values(raw, topic, 2) == []
        assert producer.send(topic, b"zombie", sequence=1).error_code == E.invalid_producer_epoch
        assert producer.end(commit=True, version=4).error_code == E.producer_fenced


class TestVersion2:
    """Partitions join by being written to; EndTxn hands out the next epoch."""

    def test_commit(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        assert producer.send(topic, b"a", b"b").error_code == E.none
        answer = producer.end(commit=True)
        assert (answer.error_code, answer.producer_id) == (E.none, producer.producer_id)
        assert answer.producer_epoch == producer.epoch + 1
        assert committed_values(raw, topic, 3) == [b"a", b"b"]
        assert settled(raw, producer.transactional_id) == "CompleteCommit"

    def test_abort(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        producer.send(topic, b"a", b"b")
        following = producer.after(producer.end(commit=False))
        eventually(lambda: list_offset(raw, topic, -1, isolation_level=1).offset == 3)
        answer = fetch(raw, topic, isolation_level=1)
        assert [(t.producer_id, t.first_offset) for t in answer.aborted_transactions] == [(producer.producer_id, 0)]
        assert settled(raw, producer.transactional_id) == "CompleteAbort"
        assert following.send(topic, b"c").error_code == E.none
        following.end(commit=True)
        assert committed_values(raw, topic, 5) == [b"c"]

    def test_the_marker(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        producer.send(topic, b"a")
        producer.end(commit=True)
        eventually(lambda: list_offset(raw, topic, -1, isolation_level=1).offset == 2)
        data, marker = read_batches(fetch(raw, topic).records)
        assert (data.producer_epoch, data.attributes) == (producer.epoch, TRANSACTIONAL)
        assert (marker.is_control, marker.producer_id, marker.base_sequence) == (True, producer.producer_id, -1)
        assert (marker.producer_epoch, marker.count, marker.attributes) == (producer.epoch + 1, 1, 0x30)
        assert (marker.records[0].key, marker.records[0].value) == (b"\0\0\0\1", b"\0\0\0\0\0\0")

    def test_until_the_end_nothing_is_stable(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        produce(raw, topic, b"before")
        producer.send(topic, b"open")
        produce(raw, topic, b"after")
        committed = fetch(raw, topic, isolation_level=1)
        assert (committed.high_watermark, committed.last_stable_offset) == (3, 1)
        assert (values(committed.records), committed.aborted_transactions) == ([b"before"], [])
        assert values(fetch(raw, topic).records) == [b"before", b"open", b"after"]
        assert list_offset(raw, topic, -1, isolation_level=1).offset == 1
        assert list_offset(raw, topic, -1).offset == 3
        producer.end(commit=True)
        assert committed_values(raw, topic, 4) == [b"before", b"open", b"after"]

    def test_a_waiting_read_committed_fetch_wakes_at_the_commit(
        self, raw: RawClient, producer: Producer, topic: Topic
    ) -> None:
        producer.send(topic, b"a")
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        where = [{"topic_id": topic.id, "partitions": [part]}]
        with RawClient(f"127.0.0.1:{port_of(raw)}") as waiting:
            waiting.send("fetch", 17, max_wait=20000, min_bytes=1, isolation_level=1, topics=where)
            assert waiting.has_nothing_to_read(0.1)
            producer.end(commit=True)
            assert values(waiting.receive().responses[0].partitions[0].records) == [b"a"]

    def test_the_old_epoch_is_fenced_after_the_end(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        producer.send(topic, b"a")
        producer.end(commit=True)
        settled(raw, producer.transactional_id)
        assert producer.send(topic, b"late", sequence=1).error_code == E.invalid_producer_epoch

    def test_a_repeated_end_gets_the_same_answer(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        producer.send(topic, b"a")
        first = producer.end(commit=True)
        settled(raw, producer.transactional_id)
        again = producer.end(commit=True)
        assert (again.error_code, again.producer_epoch) == (E.none, first.producer_epoch)
        assert producer.end(commit=False).error_code == E.invalid_txn_state

    def test_an_end_without_a_transaction(self, raw: RawClient, producer: Producer) -> None:
        assert producer.end(commit=True).error_code == E.invalid_txn_state
        aborted = producer.end(commit=False)
        assert (aborted.error_code, aborted.producer_epoch) == (E.none, producer.epoch + 1)

    def test_several_partitions_and_topics_at_once(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        other = create_topic(raw)
        assert producer.send(topic, b"0").error_code == E.none
        assert producer.send(topic, b"1", partition=1).error_code == E.none
        assert producer.send(other, b"other").error_code == E.none
        (found,) = raw.call(
            "describe_transactions", 0, transactional_ids=[producer.transactional_id]
        ).transaction_states
        assert {t.topic: sorted(t.partitions) for t in found.topics} == {topic.name: [0, 1], other.name: [0]}
        producer.end(commit=True)
        assert committed_values(raw, topic, 2) == [b"0"]
        assert committed_values(raw, topic, 2, partition=1) == [b"1"]
        assert committed_values(raw, other, 2) == [b"other"]

    def test_interleaved_transactions(self, raw: RawClient, topic: Topic) -> None:
        first, second = new_producer(raw), new_producer(raw)
        first.send(topic, b"1a")
        second.send(topic, b"2a")
        first.send(topic, b"1b", sequence=1)
        second.end(commit=True)
        settled(raw, second.transactional_id)
        assert fetch(raw, topic, isolation_level=1).last_stable_offset == 0
        first.end(commit=False)
        assert committed_values(raw, topic, 5) == [b"2a"]


def port_of(raw: RawClient) -> int:
    port: int = raw.call("metadata", 12, topics=[]).brokers[0].port
    return port


class TestVersion1:
    """Partitions are added by AddPartitionsToTxn, the epoch stays the same."""

    @pytest.mark.parametrize("commit", [True, False])
    def test_commit_and_abort(self, raw: RawClient, producer: Producer, topic: Topic, commit: bool) -> None:
        assert producer.add(topic, 0) == [E.none]
        assert producer.send(topic, b"a", version=11).error_code == E.none
        answer = producer.end(commit=commit, version=4)
        assert answer.error_code == E.none
        assert committed_values(raw, topic, 2) == ([b"a"] if commit else [])
        assert producer.end(commit=commit, version=4).error_code == E.none
        assert producer.end(commit=not commit, version=4).error_code == E.invalid_txn_state
        assert producer.add(topic, 0) == [E.none]
        assert producer.send(topic, b"b", sequence=1, version=11).error_code == E.none

    @pytest.mark.parametrize("version", range(5))
    def test_end_in_every_version(self, raw: RawClient, producer: Producer, topic: Topic, version: int) -> None:
        producer.add(topic, 0)
        assert producer.end(commit=True, version=version).error_code == E.none
        assert settled(raw, producer.transactional_id) == "CompleteCommit"

    @pytest.mark.parametrize("version", range(4))
    def test_add_partitions_in_every_version(
        self, raw: RawClient, producer: Producer, topic: Topic, version: int
    ) -> None:
        who = {f"v3_and_below_{name}": value for name, value in producer.identity().items()}
        where = [{"name": topic.name, "partitions": [0, 1]}]
        response = raw.call("add_partitions_to_txn", version, **who, v3_and_below_topics=where)
        (answer,) = response.results_by_topic_v3_and_below
        found = {part.partition_index: part.partition_error_code for part in answer.results_by_partition}
        assert found == {0: E.none, 1: E.none}

    @pytest.mark.parametrize("version", [4, 5])
    def test_add_partitions_in_the_brokers_versions(
        self, raw: RawClient, producer: Producer, topic: Topic, version: int
    ) -> None:
        one = {**producer.identity(), "verify_only": False, "topics": [{"name": topic.name, "partitions": [0]}]}
        response = raw.call("add_partitions_to_txn", version, transactions=[one])
        assert response.error_code == E.none
        (answer,) = response.results_by_transaction
        assert answer.topic_results[0].results_by_partition[0].partition_error_code == E.none

    def test_an_unknown_partition_spoils_all(self, producer: Producer, topic: Topic) -> None:
        assert producer.add(topic, 0, 9) == [E.operation_not_attempted, E.unknown_topic_or_partition]

    def test_records_for_a_partition_that_was_not_added(self, producer: Producer, topic: Topic) -> None:
        assert producer.send(topic, b"a", version=11).error_code == E.transaction_abortable
        assert producer.send(topic, b"a", version=10).error_code == E.invalid_txn_state

    def test_wrong_identities(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        stranger = replace(producer, producer_id=producer.producer_id + 100_000)
        assert stranger.add(topic, 0) == [E.invalid_producer_id_mapping]
        assert stranger.end(commit=True, version=4).error_code == E.invalid_producer_id_mapping
        future = replace(producer, epoch=producer.epoch + 7)
        assert future.add(topic, 0) == [E.producer_fenced]
        assert future.end(commit=True, version=4).error_code == E.producer_fenced
        assert future.end(commit=True, version=1).error_code == E.invalid_producer_epoch
        nobody = replace(producer, transactional_id=unique("nobody"))
        find_coordinator(raw, 1, nobody.transactional_id)
        assert nobody.add(topic, 0) == [E.invalid_producer_id_mapping]
        assert nobody.end(commit=True, version=4).error_code == E.invalid_producer_id_mapping
        assert replace(producer, transactional_id="").end(commit=True, version=4).error_code == E.invalid_request

    def test_end_without_a_transaction(self, producer: Producer) -> None:
        assert producer.end(commit=True, version=4).error_code == E.invalid_txn_state
        assert producer.end(commit=False, version=4).error_code == E.invalid_txn_state

    def test_transactional_records_without_a_transactional_id(
        self, raw: RawClient, producer: Producer, topic: Topic
    ) -> None:
        anonymous: dict[str, Any] = {
            "attributes": TRANSACTIONAL,
            "producer_id": producer.producer_id,
            "producer_epoch": 0,
        }
        answer = produce(raw, topic, b"a", **anonymous, base_sequence=0)
        assert answer.error_code == E.transactional_id_authorization_failed


class TestTimeouts:
    def test_a_transaction_that_takes_too_long_is_aborted(self, raw: RawClient, topic: Topic) -> None:
        producer = new_producer(raw, timeout=500)
        producer.send(topic, b"slow")
        assert committed_values(raw, topic, 2) == []
        assert settled(raw, producer.transactional_id) == "CompleteAbort"
        assert producer.end(commit=True, version=4).error_code == E.producer_fenced
        assert producer.send(topic, b"late", sequence=1).error_code == E.invalid_producer_epoch


class TestOffsetsInTransactions:
    def commit(self, producer: Producer, group: str, topic: Topic, version: int = 5, **identity: Any) -> E:
        part = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "in txn"}
        where = [{"name": topic.name, "partitions": [part]}]

        def committed() -> Any:
            who = {"group_id": group, **producer.identity(), **identity}
            response = producer.raw.call("txn_offset_commit", version, **who, topics=where)
            error = response.topics[0].partitions[0].error_code
            return None if error == E.concurrent_transactions else (error,)

        (error,) = eventually(committed)
        code: E = error
        return code

    def fetch(self, raw: RawClient, group: str, topic: Topic, *, stable: bool = False) -> tuple[int, E]:
        wanted = [{"name": topic.name, "partition_indexes": [0]}]
        request = [{"group_id": group, "topics": wanted}]
        (answer,) = raw.call("offset_fetch", 9, groups=request, require_stable=stable).groups
        part = answer.topics[0].partitions[0]
        return part.committed_offset, part.error_code

    @pytest.fixture
    def group(self, raw: RawClient) -> str:
        name = unique("group")
        find_coordinator(raw, 0, name)
        return name

    @pytest.mark.parametrize("commit", [True, False])
    def test_version_2_needs_no_announcement(
        self, raw: RawClient, producer: Producer, topic: Topic, group: str, commit: bool
    ) -> None:
        assert self.commit(producer, group, topic) == E.none
        assert self.fetch(raw, group, topic) == (-1, E.none)
        assert self.fetch(raw, group, topic, stable=True) == (-1, E.unstable_offset_commit)
        producer.end(commit=commit)
        expected = (7 if commit else -1, E.none)
        assert eventually(lambda: self.fetch(raw, group, topic, stable=True) == expected)

    @pytest.mark.parametrize("version", range(5))
    def test_version_1_with_add_offsets(
        self, raw: RawClient, producer: Producer, topic: Topic, group: str, version: int
    ) -> None:
        added = raw.call("add_offsets_to_txn", min(version, 4), **producer.identity(), group_id=group)
        assert added.error_code == E.none
        assert self.commit(producer, group, topic, version) == E.none
        (found,) = raw.call(
            "describe_transactions", 0, transactional_ids=[producer.transactional_id]
        ).transaction_states
        assert [t.topic for t in found.topics] == ["__consumer_offsets"]
        producer.end(commit=True, version=4)
        assert eventually(lambda: self.fetch(raw, group, topic) == (7, E.none))

    def test_version_1_without_add_offsets(self, producer: Producer, topic: Topic, group: str) -> None:
        assert self.commit(producer, group, topic, version=4) == E.transaction_abortable
        assert self.commit(producer, group, topic, version=3) == E.invalid_txn_state

    def test_the_group_identity_is_checked(self, producer: Producer, topic: Topic, group: str) -> None:
        assert self.commit(producer, group, topic, member_id="ghost", generation_id=3) == E.illegal_generation

    def test_wrong_producers(self, raw: RawClient, producer: Producer, topic: Topic, group: str) -> None:
        stranger = replace(producer, producer_id=producer.producer_id + 100_000)
        answer = raw.call("add_offsets_to_txn", 4, **stranger.identity(), group_id=group)
        assert answer.error_code == E.invalid_producer_id_mapping
        future = replace(producer, epoch=9)
        assert raw.call("add_offsets_to_txn", 4, **future.identity(), group_id=group).error_code == E.producer_fenced
        assert (
            raw.call("add_offsets_to_txn", 1, **future.identity(), group_id=group).error_code
            == E.invalid_producer_epoch
        )


class TestInspection:
    def test_describe_transactions(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        empty = describe_transaction(raw, producer.transactional_id)
        assert (empty.error_code, empty.transaction_state, empty.transaction_timeout) == (E.none, "Empty", 60000)
        assert (empty.producer_id, empty.producer_epoch, empty.topics) == (producer.producer_id, 0, [])
        assert empty.transaction_start_time == -1
        producer.send(topic, b"a")
        open_one = describe_transaction(raw, producer.transactional_id)
        assert open_one.transaction_state == "Ongoing"
        assert [(t.topic, t.partitions) for t in open_one.topics] == [(topic.name, [0])]
        unknown = describe_transaction(raw, unique("nobody"))
        assert (unknown.error_code, unknown.transaction_state) == (E.transactional_id_not_found, "")
        assert describe_transaction(raw, "").error_code == E.invalid_request

    @pytest.mark.parametrize("version", range(3))
    def test_list_transactions(self, raw: RawClient, producer: Producer, topic: Topic, version: int) -> None:
        producer.send(topic, b"a")
        me = (producer.transactional_id, producer.producer_id, "Ongoing")

        def listed(**filters: Any) -> set[tuple[str, int, str]]:
            response = raw.call("list_transactions", version, **filters)
            assert response.error_code == E.none
            return {(t.transactional_id, t.producer_id, t.transaction_state) for t in response.transaction_states}

        assert me in listed()
        assert me in listed(state_filters=["Ongoing"])
        assert me not in listed(state_filters=["Empty"])
        assert listed(producer_id_filters=[producer.producer_id]) == {me}
        unknown = raw.call("list_transactions", version, state_filters=["Ongoing", "Wild"])
        assert unknown.unknown_state_filters == ["Wild"]
        if version >= 1:
            assert me in listed(duration_filter=0)
            assert me not in listed(duration_filter=3_600_000)
        if version >= 2:
            assert listed(transactional_id_pattern=f"{producer.transactional_id}.*") == {me}
            assert listed(transactional_id_pattern="matches-nothing-.*") == set()
            bad = raw.call("list_transactions", version, transactional_id_pattern="(")
            assert bad.error_code == E.invalid_regular_expression

    def test_describe_producers(self, raw: RawClient, producer: Producer, topic: Topic) -> None:
        def described(*partitions: int, name: str = topic.name) -> list[Any]:
            where = [{"name": name, "partition_indexes": list(partitions)}]
            found: list[Any] = raw.call("describe_producers", 0, topics=where).topics[0].partitions
            return found

        (empty,) = described(0)
        assert (empty.error_code, empty.active_producers) == (E.none, [])
        producer.send(topic, b"a", b"b")
        active, unknown = described(0, 9)
        (one,) = active.active_producers
        assert (one.producer_id, one.producer_epoch, one.last_sequence) == (producer.producer_id, producer.epoch, 1)
        assert (one.current_txn_start_offset, one.coordinator_epoch) == (0, -1)
        assert unknown.error_code == E.unknown_topic_or_partition
        producer.end(commit=True)
        settled(raw, producer.transactional_id)
        ((done,),) = [part.active_producers for part in described(0)]
        assert done.current_txn_start_offset == -1
        (nowhere,) = described(0, name=unique("nowhere"))
        assert nowhere.error_code == E.unknown_topic_or_partition

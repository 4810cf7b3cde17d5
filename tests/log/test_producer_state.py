"""Sequences, epochs, duplicates, markers, and snapshots."""

from pathlib import Path

import pytest

from log.harness import Harness, batch
from millstream.log.append import AppendOrigin
from millstream.log.partition_log import AppendInfo
from millstream.log.producer_state import ProducerState
from millstream.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def send(
    harness: Harness, sequence: int, *, epoch: int = 0, count: int = 1, txn: bool = False, bump: bool = False
) -> AppendInfo:
    data = batch(*[b"v"] * count, producer_id=1, producer_epoch=epoch, base_sequence=sequence, transactional=txn)
    return harness.log.append(data, supports_epoch_bump=bump)


def error_of(harness: Harness, sequence: int, *, epoch: int = 0, txn: bool = False, bump: bool = False) -> ErrorCode:
    end = harness.log.log_end_offset
    with pytest.raises(KafkaError) as error:
        send(harness, sequence, epoch=epoch, txn=txn, bump=bump)
    assert harness.log.log_end_offset == end
    return error.value.code


def end(harness: Harness, *, commit: bool = True, epoch: int = 0, coordinator_epoch: int = 0, version: int = 0) -> int:
    return harness.log.append_control(
        producer_id=1,
        producer_epoch=epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    ).base_offset


def test_the_last_five_batches_are_known_again(harness: Harness) -> None:
    for sequence in range(0, 14, 2):
        send(harness, sequence, count=2)
    for sequence in range(4, 14, 2):
        info = send(harness, sequence, count=2)
        assert (info.duplicate, info.base_offset, info.last_offset) == (True, sequence, sequence + 1)
    assert error_of(harness, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(harness, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_follow_each_other_and_wrap(harness: Harness) -> None:
    send(harness, 2**31 - 2, count=2)
    assert error_of(harness, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(harness, 0).base_offset == 2


def test_an_unknown_producer_may_begin_anywhere_but_not_with_transaction_version_2(harness: Harness) -> None:
    assert error_of(harness, 7, txn=True, bump=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(harness, 7).base_offset == 0


def test_epochs(harness: Harness) -> None:
    send(harness, 0, epoch=3)
    assert error_of(harness, 1, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error_of(harness, 1, epoch=4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(harness, 0, epoch=4).base_offset == 1
    assert error_of(harness, 0, epoch=3) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_coordinator_needs_no_sequence(harness: Harness) -> None:
    data = batch(b"v", producer_id=1, producer_epoch=0)
    for offset in range(3):
        assert harness.log.append(data, origin=AppendOrigin.COORDINATOR).base_offset == offset


def test_transactions_hold_the_last_stable_offset(harness: Harness) -> None:
    log = harness.log
    send(harness, 0, txn=True)
    log.append(batch(b"v", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True))
    assert log.last_stable_offset == 0
    assert error_of(harness, 1) is ErrorCode.INVALID_TXN_STATE
    end(harness, commit=False)
    assert log.last_stable_offset == 1
    log.append_control(producer_id=2, producer_epoch=0, commit=True, coordinator_epoch=0)
    assert log.last_stable_offset == log.high_watermark == 4
    assert [entry[:4] for entry in log.aborted_transactions(0, 4)] == [(1, 0, 2, 1)]


def test_a_batch_of_no_known_transaction(harness: Harness) -> None:
    data = batch(b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    with pytest.raises(KafkaError) as error:
        harness.log.append(data, verified=False)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    harness.log.append(data, verified=True)
    assert harness.log.has_ongoing_transaction(1, 0)
    assert not harness.log.has_ongoing_transaction(1, 1)


def test_markers_fence(harness: Harness) -> None:
    send(harness, 0, epoch=2, txn=True)
    with pytest.raises(KafkaError) as error:
        end(harness, epoch=1)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    end(harness, epoch=2, coordinator_epoch=5)
    with pytest.raises(KafkaError) as error:
        end(harness, epoch=2, coordinator_epoch=4)
    assert error.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_of_version_2_carries_a_new_epoch(harness: Harness) -> None:
    send(harness, 0, txn=True)
    with pytest.raises(KafkaError) as error:
        end(harness, version=2)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    end(harness, epoch=1, version=2)
    end(harness, epoch=1, version=2)  # once more, after it was written: as good as new
    assert error_of(harness, 1, epoch=0, txn=True) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error_of(harness, 1, epoch=1, txn=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(harness, 0, epoch=1, txn=True).base_offset == 3


def test_the_sequence_goes_on_behind_a_marker_of_the_same_epoch(harness: Harness) -> None:
    send(harness, 0, txn=True)
    end(harness)
    assert error_of(harness, 5, txn=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(harness, 1, txn=True).base_offset == 2


def test_silent_producers_expire_but_not_with_an_open_transaction(harness: Harness) -> None:
    send(harness, 0)
    harness.log.append(batch(b"v", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True))
    assert harness.log.producers.expire(harness.clock.now + 86_400_000 - 1) == []
    assert harness.log.producers.expire(harness.clock.now + 86_400_000) == [1]
    assert [entry.producer_id for entry in harness.log.active_producers()] == [2]


def test_snapshots_there_and_back(harness: Harness) -> None:
    send(harness, 4, count=3, epoch=2)
    harness.log.append(batch(b"v", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True))
    harness.log.append_control(producer_id=3, producer_epoch=9, commit=True, coordinator_epoch=8)
    data = harness.log.producers.encode()
    other = ProducerState("other")
    assert other.load(data, harness.clock.now)
    assert other.encode() == data
    assert other.first_unstable_offset == 3
    assert other.entries[1].batches == harness.log.producers.entries[1].batches
    assert other.entries[3].coordinator_epoch == 8
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 1
        assert not ProducerState("other").load(bytes(broken), harness.clock.now)
    assert not other.load(data[:-1], harness.clock.now)
    assert not other.load(b"", harness.clock.now)

"""Offsets by time."""

from pathlib import Path

import pytest

from log.harness import START_MS, Harness, batch
from millstream.log.config import LogConfig
from millstream.log.fetch import READ_COMMITTED
from millstream.log.offset_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NOT_FOUND,
    fetch_offset,
)
from millstream.wire.batches import Record, build_batch


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path, LogConfig(segment_bytes=600, index_interval_bytes=100))
    for n in range(40):
        stamps = (START_MS + n * 10, START_MS + n * 10 + 5)
        records = [Record(index, stamp, None, b"v") for index, stamp in enumerate(stamps)]
        harness.log.append(build_batch(records), leader_epoch=n // 20)
    assert len(harness.log.segments) > 5
    return harness


def test_the_first_record_not_before_a_time(harness: Harness) -> None:
    for clean in (None, True, False):
        if clean is not None:
            harness.reopen(clean=clean)
        for n in range(80):
            found = fetch_offset(harness.log, START_MS + n * 5)
            assert found == (START_MS + n * 5, n, n // 40)
            assert fetch_offset(harness.log, START_MS + n * 5 - 4).offset == n
        assert fetch_offset(harness.log, START_MS + 396) == NOT_FOUND
        assert fetch_offset(harness.log, 0).offset == 0


def test_the_special_timestamps(harness: Harness) -> None:
    log = harness.log
    log.delete_records(3)
    assert fetch_offset(log, EARLIEST) == (-1, 3, 0)
    assert fetch_offset(log, EARLIEST_LOCAL) == (-1, 3, 0)
    assert fetch_offset(log, LATEST) == (-1, 80, 1)
    assert fetch_offset(log, MAX_TIMESTAMP) == (START_MS + 395, 79, 1)
    assert fetch_offset(log, LATEST_TIERED) == (-1, -1, -1)
    assert fetch_offset(log, EARLIEST_PENDING_UPLOAD) == (-1, -1, -1)
    assert fetch_offset(log, 0).offset == 3


def test_the_greatest_timestamp_need_not_be_the_last(harness: Harness) -> None:
    records = [Record(n, START_MS + stamp, None, b"") for n, stamp in enumerate((1, 9000, 9000, 2))]
    harness.log.append(build_batch(records))
    harness.append(b"later record, earlier time")
    assert fetch_offset(harness.log, MAX_TIMESTAMP)[:2] == (START_MS + 9000, 81)
    harness.log.roll()
    harness.append(b"next segment")
    assert fetch_offset(harness.reopen().log, MAX_TIMESTAMP)[:2] == (START_MS + 9000, 81)


def test_an_empty_log(tmp_path: Path) -> None:
    log = Harness(tmp_path).log
    assert fetch_offset(log, MAX_TIMESTAMP) == NOT_FOUND
    assert fetch_offset(log, START_MS) == NOT_FOUND
    assert fetch_offset(log, LATEST).offset == fetch_offset(log, EARLIEST).offset == 0


def test_what_a_reader_may_not_see_is_not_found(harness: Harness) -> None:
    data = batch(b"t", now=START_MS + 5000, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    harness.log.append(data, leader_epoch=1)
    assert fetch_offset(harness.log, START_MS + 4000).offset == 80
    assert fetch_offset(harness.log, START_MS + 4000, READ_COMMITTED) == NOT_FOUND
    assert fetch_offset(harness.log, LATEST, READ_COMMITTED).offset == 80
    assert fetch_offset(harness.log, LATEST).offset == 81

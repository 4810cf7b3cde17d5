"""What is remembered of large batches, and what is not."""

from pathlib import Path

import pytest

from log.harness import Harness, batch
from millstream.log import large_batches
from millstream.log.filesystem import File
from millstream.log.large_batches import LARGE_BATCH
from millstream.log.segment import Segment

LARGE = b"v" * (LARGE_BATCH + 1000)


def place_it(harness: Harness, *values: bytes) -> list[int]:
    """Appends a batch of each and says where they begin."""
    positions = []
    for value in values:
        positions.append(harness.log.segments.active.size)
        harness.append(value)
    return positions


def test_a_large_batch_is_read_once_and_a_small_one_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(tmp_path)
    small, large = place_it(harness, b"small", LARGE)
    segment, batches = harness.log.segments.active, harness.context.large_batches
    reads, file = 0, segment.file

    def counted(_: Segment) -> File:
        nonlocal reads
        reads += 1
        return file

    monkeypatch.setattr(Segment, "file", property(counted))
    for _ in range(3):
        assert batches.look_at(segment, small) == (0, len(batch(b"small")))
        assert batches.look_at(segment, large) == (1, len(batch(LARGE)))
    assert reads == 3 + 1
    assert len(batches) == 1


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_batches, "_MOST", 2)
    harness = Harness(tmp_path)
    positions = place_it(harness, *[LARGE] * 5)
    for offset, position in enumerate(positions):
        found = harness.context.large_batches.look_at(harness.log.segments.active, position)
        assert found == (offset, len(batch(LARGE)))
        assert len(harness.context.large_batches) <= 2


def test_when_positions_mean_nothing_any_more_all_is_forgotten(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    _, last = place_it(harness, LARGE, LARGE)
    batches = harness.context.large_batches
    batches.look_at(harness.log.segments.active, last)
    assert len(batches) == 1
    harness.log.reader.forget()
    assert len(batches) == 0

"""Leader epochs and their checkpoint."""

from pathlib import Path

import pytest

from millstream.log.filesystem import DiskFileSystem
from millstream.log.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(DiskFileSystem(), str(tmp_path), exists=False)
    for epoch, offset in ((1, 0), (1, 5), (3, 10), (4, 30)):
        epochs.assign(epoch, offset)
    return epochs


def again(epochs: LeaderEpochs) -> LeaderEpochs:
    return LeaderEpochs(DiskFileSystem(), str(Path(epochs.path).parent), exists=True)


def test_the_file(epochs: LeaderEpochs) -> None:
    assert Path(epochs.path).read_text() == "0\n3\n1 0\n3 10\n4 30\n"
    assert again(epochs).entries == [(1, 0), (3, 10), (4, 30)]
    assert again(epochs).latest == 4


def test_end_offsets(epochs: LeaderEpochs) -> None:
    answers = {epoch: epochs.end_offset_for(epoch, 99) for epoch in range(-1, 6)}
    assert answers == {-1: (-1, -1), 0: (0, 0), 1: (1, 10), 2: (1, 10), 3: (3, 30), 4: (4, 99), 5: (-1, -1)}


def test_epoch_of_an_offset(epochs: LeaderEpochs) -> None:
    assert [epochs.epoch_for_offset(offset) for offset in (0, 9, 10, 29, 30, 1000)] == [1, 1, 3, 3, 4, 4]


def test_truncating(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_start(15)
    assert epochs.entries == [(3, 15), (4, 30)]
    assert epochs.epoch_for_offset(3) == -1
    epochs.truncate_from_end(30)
    assert again(epochs).entries == [(3, 15)]
    assert epochs.latest == 3


def test_an_epoch_without_records_leaves_no_trace(epochs: LeaderEpochs) -> None:
    epochs.assign(6, 30)
    assert epochs.entries == [(1, 0), (3, 10), (6, 30)]


@pytest.mark.parametrize("content", ["", "0\n", "0\nx\n", "0\n1\n1 2 3\n", "\xff\xfe"])
def test_a_file_that_makes_no_sense(epochs: LeaderEpochs, content: str) -> None:
    Path(epochs.path).write_text(content)
    assert again(epochs).entries == []

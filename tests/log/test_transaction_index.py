"""The transaction index: which aborted transactions a reader has to know."""

from pathlib import Path

import pytest

from millstream.log.filesystem import DiskFileSystem
from millstream.log.transaction_index import AbortedTransaction, TransactionIndex

ENTRIES = [AbortedTransaction(n, n * 10, n * 10 + 25, n * 10 + 5) for n in range(3000)]


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    index = TransactionIndex(DiskFileSystem(), str(tmp_path / "x.txnindex"), size=0)
    for entry in ENTRIES:
        index.append(entry)
    return index


def test_there_and_back(index: TransactionIndex) -> None:
    assert index.size == 34 * 3000
    again = TransactionIndex(DiskFileSystem(), index.path, size=index.size + 7)
    assert list(again) == ENTRIES


def test_only_what_touches_the_range_is_found(index: TransactionIndex) -> None:
    for first, upper in ((0, 1), (100, 101), (100, 500), (29_000, 40_000), (50_000, 60_000), (0, 100_000)):
        expected = [entry for entry in ENTRIES if entry.last_offset >= first and entry.first_offset < upper]
        found, complete = index.collect(first, upper)
        assert found == expected
        assert complete == any(e.last_stable_offset >= upper for e in ENTRIES if e.last_offset >= first)


def test_truncating(index: TransactionIndex) -> None:
    index.truncate_to(ENTRIES[100].last_offset)
    assert list(index) == ENTRIES[:100]
    assert Path(index.path).stat().st_size == 3400
    index.append(ENTRIES[100])
    assert list(index) == ENTRIES[:101]
    index.reset()
    assert list(index) == []
    assert not Path(index.path).exists()
    assert index.collect(0, 10) == ([], False)

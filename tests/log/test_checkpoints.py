"""The small text files."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from millstream.log import checkpoints
from millstream.log.filesystem import DiskFileSystem

FILES = DiskFileSystem()


def test_offsets_there_and_back(tmp_path: Path) -> None:
    offsets = {("a.b-c_1", 0): 7, ("a.b-c_1", 12): 2**62}
    path = tmp_path / "checkpoint"
    path.write_bytes(checkpoints.encode_offsets(offsets))
    assert path.read_text() == f"0\n2\na.b-c_1 0 7\na.b-c_1 12 {2**62}\n"
    assert checkpoints.read_offsets(FILES, str(path)) == offsets
    assert checkpoints.read_offsets(FILES, str(tmp_path / "none")) == {}


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\nx\n", b"0\n1\na b\n", b"\xff\n\xfe\n"])
def test_offsets_that_make_no_sense(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "checkpoint").write_bytes(content)
    assert checkpoints.read_offsets(FILES, str(tmp_path / "checkpoint")) == {}


def test_uuids_are_spelled_as_kafka_does() -> None:
    assert checkpoints.encode_uuid(UUID(int=0)) == "AAAAAAAAAAAAAAAAAAAAAA"
    value = uuid4()
    assert checkpoints.decode_uuid(checkpoints.encode_uuid(value)) == value
    assert len(checkpoints.encode_uuid(value)) == 22


def test_partition_metadata(tmp_path: Path) -> None:
    value = uuid4()
    checkpoints.write_partition_metadata(FILES, str(tmp_path), value, sync=True)
    assert checkpoints.read_partition_metadata(FILES, str(tmp_path)) == value
    (tmp_path / "partition.metadata").write_text("version: 0\ntopic_id: ?")
    assert checkpoints.read_partition_metadata(FILES, str(tmp_path)) is None
    (tmp_path / "partition.metadata").unlink()
    assert checkpoints.read_partition_metadata(FILES, str(tmp_path)) is None


def test_the_mark_of_a_clean_stop_is_taken_once(tmp_path: Path) -> None:
    assert not checkpoints.take_clean_shutdown(FILES, str(tmp_path))
    checkpoints.write_clean_shutdown(FILES, str(tmp_path), 5)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version": 0, "brokerEpoch": 5}'
    assert checkpoints.take_clean_shutdown(FILES, str(tmp_path))
    assert not checkpoints.take_clean_shutdown(FILES, str(tmp_path))


def test_properties(tmp_path: Path) -> None:
    path = str(tmp_path / "meta.properties")
    assert checkpoints.read_properties(FILES, path) is None
    checkpoints.write_properties(FILES, path, {"cluster.id": "x=y", "version": "1"})
    assert checkpoints.read_properties(FILES, path) == {"cluster.id": "x=y", "version": "1"}

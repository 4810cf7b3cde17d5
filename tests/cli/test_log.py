"""`millstream log dump` on real data folders and on damaged copies of their files."""

import shutil
from pathlib import Path
from unittest import mock

import pytest

from millstream.cluster.connection import Connection
from millstream.testing import running_server
from support.cli import refused, run, succeed

NAME = "00000000000000000000"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a server that was stopped: plain, compressed and transactional batches, a group."""
    folder = tmp_path_factory.mktemp("data")
    with running_server(data=folder) as server:
        connection = Connection(server.bootstrap_servers)
        plain = connection.producer({"compression.type": "zstd", "enable.idempotence": True})
        for number in range(20):
            plain.produce("orders", b"v%d" % number, key=b"k%d" % number, headers=[("trace", b"\xff\x00")])
        plain.flush()
        for number in range(2):
            producer = connection.producer({"transactional.id": f"billing-{number}"})
            producer.init_transactions(30)
            producer.begin_transaction()
            for _ in range(3):
                producer.produce("orders", "näh".encode() * 1000)
                producer.flush()
            if number:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        consumer = connection.consumer({"group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        assert consumer.consume(5, 30)
        consumer.commit(asynchronous=False)
        consumer.close()
    return folder


@pytest.fixture
def partition(data: Path, tmp_path: Path) -> Path:
    """A copy of a partition's folder, to be damaged."""
    return shutil.copytree(data / "orders-0", tmp_path / "orders-0")


def test_a_segment_for_people(data: Path) -> None:
    shown = succeed("log", "dump", str(data / "orders-0" / f"{NAME}.log"), columns=140).stdout
    heading, columns, first, *_, last = shown.splitlines()
    assert f"{NAME}.log: segment, " in heading
    assert columns.split() == ["POSITION", "OFFSETS", "RECORDS", "BYTES", "MAX", "TIMESTAMP", "(UTC)", "CODEC", "EPOCH"]
    assert first.split()[:3] == ["0", "0-19", "20"]
    assert "zstd" in first
    assert "producer 0/0 seq 0-19" in first
    assert "transactional, commit" in shown
    assert "transactional, abort" in shown
    assert last == "9 batches, no damage"


def test_a_segment_fits_eighty_columns(data: Path) -> None:
    shown = succeed("log", "dump", str(data / "orders-0" / f"{NAME}.log"), columns=80).stdout
    assert max(map(len, shown.splitlines()[1:])) <= 80
    assert "producer 0/0 seq 0-19" in shown


def test_records_for_people(data: Path) -> None:
    shown = succeed("log", "dump", str(data / "orders-0" / f"{NAME}.log"), "--records").stdout
    assert 'key "k0"  value "v0"' in shown
    assert 'header "trace" = 0xff00' in shown
    assert "key null" in shown
    assert '"nähnäh' in shown
    assert shown.splitlines()[-1] == "9 batches, 28 records, no damage"


def test_a_segment_for_machines(data: Path) -> None:
    file = data / "orders-0" / f"{NAME}.log"
    (found,) = succeed("log", "dump", str(file), "--records", "--json").json
    assert (found["file"], found["kind"], found["problems"]) == (str(file), "segment", [])
    batch, record = found["entries"][:2]
    assert (batch["base_offset"], batch["last_offset"], batch["compression"], batch["crc_ok"]) == (0, 19, "zstd", True)
    assert (record["offset"], record["key"], record["value"]) == (0, "k0", "v0")
    assert record["headers"] == [{"name": "trace", "value_base64": "/wA="}]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{NAME}.index", "IN SEGMENT"),
        (f"{NAME}.timeindex", "TIMESTAMP (UTC)"),
        (f"{NAME}.txnindex", "LAST STABLE OFFSET"),
        ("leader-epoch-checkpoint", "LEADER EPOCH"),
        ("partition.metadata", "topic_id"),
    ],
)
def test_the_other_files_of_a_partition(data: Path, name: str, words: str) -> None:
    shown = succeed("log", "dump", str(data / "orders-0" / name), columns=80).stdout
    assert words in shown
    assert shown.endswith("no damage\n")
    assert max(map(len, shown.splitlines()[1:])) <= 80
    (found,) = succeed("log", "dump", str(data / "orders-0" / name), "--json").json
    assert found["entries"]


def test_a_producer_snapshot(data: Path) -> None:
    (file,) = (data / "orders-0").glob("*.snapshot")
    (found,) = succeed("log", "dump", str(file), "--json").json
    assert {entry["producer_id"] for entry in found["entries"]} == {0, 1, 2}
    assert "PRODUCER" in succeed("log", "dump", str(file)).stdout


def test_a_partition_and_a_whole_data_folder(data: Path) -> None:
    shown = succeed("log", "dump", str(data / "orders-0"), columns=80).stdout
    row = next(line for line in shown.splitlines() if line.startswith(f"{NAME}.log"))
    assert row.split()[-4:] == ["9", "28", "0-27", "ok"]
    assert shown.endswith(" files, no damage\n")
    assert max(map(len, shown.splitlines())) <= 80
    everything = succeed("log", "dump", str(data)).stdout
    assert f"orders-0/{NAME}.log" in everything
    assert "recovery-point-offset-checkpoint" in everything
    files = succeed("log", "dump", str(data), "--json").json
    assert {"segment", "offset index", "time index", "offset checkpoint", "node metadata"} <= {f["kind"] for f in files}
    assert not any(file["problems"] for file in files)
    detailed = succeed("log", "dump", str(data / "orders-0"), "--records").stdout
    assert detailed.count("no damage") == len(files_of(data / "orders-0"))


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()]


@pytest.mark.parametrize(
    ("topic", "what"), [("__consumer_offsets", "offsets"), ("__transaction_state", "transactions")]
)
def test_internal_topics_are_decoded(data: Path, topic: str, what: str) -> None:
    segments = [file for file in data.glob(f"{topic}-*/*.log") if file.stat().st_size]
    assert segments
    decoded = [
        entry["decoded"]
        for file in segments
        for entry in succeed("log", "dump", str(file), "--decode", what, "--json").json[0]["entries"]
        if "decoded" in entry
    ]
    if what == "offsets":
        (commit, *_) = [entry for entry in decoded if entry["type"] == "OffsetCommit"]
        assert commit["key"] == {"group": "readers", "topic": "orders", "partition": 0}
        assert commit["value"]["offset"] == 5
    else:
        states = {entry["value"]["state"] for entry in decoded if entry["key"] == {"transactional_id": "billing-1"}}
        assert {"EMPTY", "ONGOING", "PREPARE_ABORT", "COMPLETE_ABORT"} <= states
    shown = succeed("log", "dump", str(segments[0]), "--decode", what).stdout
    assert ("GroupMetadata" if what == "offsets" else "Transaction") in shown


def test_records_of_another_topic_stay_as_they_are(data: Path) -> None:
    file = str(data / "orders-0" / f"{NAME}.log")
    for what in ("offsets", "transactions"):
        assert 'key "k0"' in succeed("log", "dump", file, "--decode", what).stdout


def damaged(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)


def test_damage_is_said_with_its_position_and_exit_code_1(partition: Path) -> None:
    file = partition / f"{NAME}.log"
    size = file.stat().st_size
    damaged(file, 100)
    file.write_bytes(file.read_bytes()[: size - 10])
    result = run("log", "dump", str(file))
    assert result.exit_code == 1
    assert "BAD CRC" in result.stdout
    assert "         0 PROBLEM: bad CRC: the batch at offset 0 is damaged" in result.stdout
    assert "PROBLEM: torn tail" in result.stdout
    assert result.stdout.splitlines()[-1] == "8 batches, 2 problems"
    machine = run("log", "dump", str(file), "--json")
    assert machine.exit_code == 1
    assert [problem["position"] for problem in machine.json[0]["problems"]] == [0, size - 78]


def test_damage_in_a_folder_names_the_file(partition: Path) -> None:
    damaged(partition / f"{NAME}.index", 7)
    shutil.copy(partition / f"{NAME}.log", partition / "00000000000000000005.log")
    result = run("log", "dump", str(partition))
    assert result.exit_code == 1
    assert f"PROBLEM in {NAME}.index at 0: points nowhere" in result.stdout
    assert "PROBLEM in 00000000000000000005.log at 0: offsets begin at 0" in result.stdout
    assert "1 wrong" in result.stdout
    assert run("log", "dump", str(partition), "--json").exit_code == 1


def test_a_file_that_goes_away_while_a_folder_is_read_is_left_out(partition: Path) -> None:
    (partition / "00000000000000000001.log").symlink_to(partition / "gone")
    with mock.patch.object(Path, "is_file", return_value=True):
        shown = succeed("log", "dump", str(partition)).stdout
    assert "00000000000000000001.log" not in shown
    assert shown.endswith("7 files, no damage\n")


def test_shallow_leaves_the_records_closed(partition: Path) -> None:
    shown = succeed("log", "dump", str(partition / f"{NAME}.log"), "--shallow").stdout
    assert shown.endswith("no damage\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "Missing argument"),
        (["nowhere.log"], 4, "nowhere.log does not exist"),
        (["{tmp}/notes.txt"], 2, "not a file of a log by its name"),
        (["{tmp}/empty"], 2, "has no files of a log in it"),
        (["{tmp}/notes.txt", "--decode", "schemas"], 2, "'schemas' is not known; it is one of offsets, transactions"),
        (["{tmp}/notes.txt", "--shallow", "--records"], 2, "--shallow leaves the records closed"),
        (["{tmp}/notes.txt", "--shallow", "--decode", "offsets"], 2, "--shallow leaves the records closed"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    assert words in refused(code, "log", "dump", *(text.format(tmp=tmp_path) for text in arguments))

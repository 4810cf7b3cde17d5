"""The clicks: what is made, read and saved; and, row by row, that every click is in both stores exactly once."""

import itertools
import json
import signal
import sqlite3
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pyarrow.dataset
import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from clicks.check import Comparison, compare
from clicks.click import CAMPAIGNS, COUNTRIES, JSON_NAMES, PUBLISHERS, BadClickError, Click, read_click, write_click
from clicks.generator import clicks as ticks
from clicks.group import percentile
from clicks.spark import FOLDER
from clicks.stores import Batch, Store, StoreAway, open_store
from examples.conftest import Examples
from millstream.stores import Cassandra, MariaDB
from millstream.stores import Store as Server
from support.cli import COMMAND, run
from support.cluster import eventually

PERSISTOR, MYSQL = "kc-clicks-persistor", "kc-clicks-mysql"
GOOD = Click(str(uuid.UUID(int=1)), 3, 2, 1_700_000_000_000, "1.2.3.4", "São Paulo", "BR", "Firefox", "Linux", "6.1")
PNG = b"\x89PNG"
Headers = list[tuple[str, bytes]]


def some_clicks(count: int) -> list[Click]:
    return [GOOD._replace(uuid=str(uuid.UUID(int=number)), timestamp=number) for number in range(count)]


def batch(clicks: list[Click], first: int, last: int, partition: int = 0) -> Batch:
    """The clicks at these offsets, of a partition in which they lie one after the other."""
    offsets = range(first, last + 1)
    return Batch(partition, first, last, offsets, [clicks[offset] for offset in offsets])


# --- a click ---


def test_a_click_is_read_as_it_was_written() -> None:
    assert read_click(write_click(GOOD)) == GOOD


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"city": "Atlantis"}, "unknown city 'Atlantis'"),
        ({"city": None}, "city is not a text: None"),
        ({"browser": 7}, "browser is not a text: 7"),
        ({"browser": "Fire\0fox"}, "browser is not a text"),
        ({"platform": "\ud800"}, "platform is not a text"),
        ({"ip": "1" * 101}, "ip is longer than 100 characters"),
        ({"campaignId": 11}, "unknown campaign 11"),
        ({"campaignId": True}, "unknown campaign True"),
        ({"campaignId": 3.0}, "unknown campaign 3.0"),
        ({"pubId": 0}, "unknown publisher 0"),
        ({"timestamp": "now"}, "timestamp is not milliseconds"),
        ({"timestamp": 10**18}, "timestamp is not milliseconds"),
        ({"uuid": "1"}, "uuid is none: '1'"),
        ({"uuid": {}}, "uuid is not a text"),
    ],
)
def test_a_click_with_a_wrong_field_is_none(change: dict[str, Any], reason: str) -> None:
    value = json.dumps({**dict(zip(JSON_NAMES, GOOD, strict=True)), **change}).encode()
    with pytest.raises(BadClickError) as caught:
        read_click(value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (write_click(GOOD)[:50], "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "field uuid is missing"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_click_is_said(value: bytes | None, reason: str) -> None:
    with pytest.raises(BadClickError, match=reason):
        read_click(value)


# --- the generator ---


def test_a_tick_is_a_click_for_each_campaign_and_publisher() -> None:
    made = [read_click(value) for _, value in next(ticks(seed=1))]
    pairs = [(click.campaign_id, click.pub_id) for click in made]
    assert sorted(pairs) == sorted(itertools.product(CAMPAIGNS, PUBLISHERS))
    assert all(click.country == COUNTRIES[click.city] for click in made)


def test_a_click_is_keyed_by_its_campaign_and_has_a_uuid_of_its_own() -> None:
    records = list(itertools.chain.from_iterable(itertools.islice(ticks(seed=1), 100)))
    made = [read_click(value) for _, value in records]
    assert [key for key, _ in records] == [str(click.campaign_id).encode() for click in made]
    assert len({click.uuid for click in made}) == len(made) == 5000
    versions = {(uuid.UUID(click.uuid).version, uuid.UUID(click.uuid).variant) for click in made}
    assert versions == {(4, uuid.RFC_4122)}


def test_on_demand_one_in_so_many_is_malformed() -> None:
    records = itertools.chain.from_iterable(itertools.islice(ticks(seed=1, malformed_every=20), 10))
    reasons: Counter[str] = Counter()
    for number, (_, value) in enumerate(records, 1):
        try:
            read_click(value)
        except BadClickError as error:
            assert number % 20 == 0
            reasons[str(error)[:12]] += 1
    assert reasons == {"not JSON: Un": 13, "unknown city": 12}


# --- the stores ---


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDB]:
    with MariaDB() as server:
        yield server


@pytest.fixture(scope="module")
def cassandra() -> Iterator[Cassandra]:
    with Cassandra() as server:
        yield server


@pytest.fixture(params=["sqlite", "parquet", "mariadb", "cassandra"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param in ("mariadb", "cassandra"):
        return url_of(request.getfixturevalue(request.param))
    return f"{request.param}:{tmp_path / 'store'}"


def url_of(server: Server) -> str:
    return server.url if isinstance(server, MariaDB) else f"cassandra://{server.host}:{server.port}/clicks"


def test_what_is_saved_again_in_other_batches_is_there_once(store: str) -> None:
    """As when a member is killed after a save, and others read from the committed offset on; and when it wakes up."""
    made = some_clicks(300)
    first, second = open_store(store), open_store(store)
    first.save([batch(made, 0, 99), batch(made, 100, 120, partition=1)])
    second.save([batch(made, 0, 49)])
    second.save([batch(made, 50, 149), batch(made, 100, 110, partition=1)])
    first.save([batch(made, 90, 299)])
    found = sorted(first.rows(), key=lambda click: click.uuid)
    if store.startswith("parquet"):  # there, a click is known by where it was; and those were in two places
        assert found == sorted(made + made[100:121], key=lambda click: click.uuid)
        assert first.count() == second.count() == 321
    else:
        assert found == made
        assert first.count() == second.count() == 300
    for opened in (first, second):
        opened.close()


def test_offsets_without_a_click_leave_no_gap_to_be_filled(tmp_path: Path) -> None:
    store = open_store(f"parquet:{tmp_path / 'store'}")
    made = some_clicks(10)
    store.save([Batch(0, 0, 9, [2, 5], [made[2], made[5]]), Batch(1, 0, 3, [], [])])
    store.save([batch(made, 0, 9), Batch(1, 0, 3, [], [])])
    assert list(store.rows()) == [made[2], made[5]]


def test_a_locked_database_is_away_and_comes_back(tmp_path: Path) -> None:
    check_outage(f"sqlite:{tmp_path / 'clicks.db'}", away=lambda: lock(tmp_path / "clicks.db"))


def test_a_folder_that_is_gone_is_away_and_comes_back(tmp_path: Path) -> None:
    def unplug() -> Callable[[], object]:
        (tmp_path / "store").rename(tmp_path / "hidden")
        return lambda: (tmp_path / "hidden").rename(tmp_path / "store")

    check_outage(f"parquet:{tmp_path / 'store'}", away=unplug)


@pytest.mark.parametrize("name", ["mariadb", "cassandra"])
def test_a_killed_server_is_away_and_comes_back(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)

    def kill() -> Callable[[], object]:
        server.kill()
        return server.start

    check_outage(url_of(server), away=kill)


def check_outage(url: str, away: Callable[[], Callable[[], object]]) -> None:
    made = some_clicks(2000)[1000:]
    store = open_store(url)
    store.save([batch(made, 0, 499)])
    back = away()
    for _ in range(2):
        with pytest.raises(StoreAway):
            store.save([batch(made, 500, 999)])
    back()
    eventually(lambda: takes(store, batch(made, 500, 999)), timeout=60)
    rows = Counter(store.rows())
    assert [rows[click] for click in made] == [1] * len(made)
    store.close()


def takes(store: Store, clicks: Batch) -> bool:
    try:
        store.save([clicks])
    except StoreAway:
        return False
    return True


def lock(file: Path) -> Callable[[], object]:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    return connection.close


def test_a_comparison_sees_what_is_missing_doubled_and_different(tmp_path: Path) -> None:
    made = some_clicks(6)
    store = open_store(f"parquet:{tmp_path}")
    store.save([batch(made, 0, 3), batch(made, 3, 3, partition=1)])
    clicks = {click.uuid: click for click in made}
    clicks[made[0].uuid] = made[0]._replace(city="Oslo")
    found = compare(clicks, f"parquet:{tmp_path}")
    assert found == Comparison(saved=5, missing=2, doubled=1, different=1)
    assert not found.exactly_once


def test_percentiles() -> None:
    latencies = Counter({10: 98, 500: 1, 1000: 1})
    assert [percentile(latencies, share) for share in (0.5, 0.98, 0.99, 1.0)] == [10, 10, 500, 1000]
    assert percentile(Counter(), 0.5) is None


# --- the whole of it ---


def test_every_click_made_is_in_both_stores_exactly_once(log: str, example: Examples) -> None:
    arguments = ("--bootstrap", log, "--seconds", "2", "--rate", "5000", "--malformed-every", "400", "--seed", "7")
    report = example("clicks", *arguments)
    records = records_in(log, "clicks")
    assert report["clicks_made"] == len(records) >= 5000
    assert_saved_exactly_once(records, example.out, [PERSISTOR, MYSQL])
    bad = {(record.partition(), record.offset()): record.value() for record in records if click_in(record) is None}
    assert len(bad) == len(records) // 400
    for group in (PERSISTOR, MYSQL):
        letters = {}
        for record in records_in(log, "clicks-dead-letters"):
            about = {name: bytes(value).decode() for name, value in cast(Headers, record.headers())}
            if about["group"] == group:
                letters[int(about["partition"]), int(about["offset"])] = record.value()
                assert about["error"].startswith(("not JSON: ", "unknown city 'Atlantis'"))
        assert letters == bad
        found = report[group]
        assert found["saved"] == len(records) - len(bad)
        assert (found["dead_letters"], found["missing"]) == (len(bad), 0)
        assert 0 < found["p50_ms"] <= found["p99_ms"]
        assert f"{group} put {len(bad)} records that are no clicks aside in clicks-dead-letters: " in example.said
        assert found["saved_a_second"] > 0
    assert " not JSON" in example.said
    assert " unknown city 'Atlantis'" in example.said
    assert Path(report["plot"]).read_bytes().startswith(PNG)
    assert json.loads((example.out / "report.json").read_text()) == report


def test_a_member_goes_down(log: str, example: Examples) -> None:
    report = example("clicks", "member-down", "--bootstrap", log, "--seconds", "8", "--rate", "2000")
    assert_saved_exactly_once(records_in(log, "clicks"), example.out, [PERSISTOR])
    assert (report[PERSISTOR]["missing"], report[PERSISTOR]["doubled"]) == (0, 0)
    for words in (
        "persistor-2, which owns partitions",
        "is killed",
        "clicks have piled up",
        "the group is whole again",
    ):
        assert words in example.said
    assert Path(report["plot"]).read_bytes().startswith(PNG)


def test_a_new_group_goes_live(log: str, example: Examples) -> None:
    report = example("clicks", "new-group", "--bootstrap", log, "--seconds", "4", "--rate", "2000")
    assert_saved_exactly_once(records_in(log, "clicks"), example.out, [PERSISTOR, MYSQL])
    assert "kc-clicks-mysql goes live" in example.said
    assert Path(report["plot"]).read_bytes().startswith(PNG)


def test_one_group_is_fast_and_the_other_slow(log: str, example: Examples) -> None:
    report = example("clicks", "fast-and-slow", "--bootstrap", log, "--seconds", "4", "--rate", "1000")
    assert_saved_exactly_once(records_in(log, "clicks"), example.out, [PERSISTOR, MYSQL])
    assert "mysql-3 gets partition" in example.said
    assert Path(report["plot"]).read_bytes().startswith(PNG)


def test_stores_that_go_away_lose_nothing(log: str, example: Examples) -> None:
    arguments = ("--bootstrap", log, "--seconds", "5", "--rate", "2000", "--away", "4")
    report = example("clicks", "store-away", *arguments)
    assert_saved_exactly_once(records_in(log, "clicks"), example.out, [PERSISTOR, MYSQL])
    for store in ("Parquet", "SQLite"):
        assert f"{store} is away" in example.said
        assert f"{store} is back after" in example.said
    assert Path(report["plot"]).read_bytes().startswith(PNG)


def test_on_a_terminal_there_is_a_picture(tmp_path: Path) -> None:
    arguments = ("--seconds", "1", "--rate", "500", "--members", "1", "--out", str(tmp_path))
    result = run("example", "run", "clicks", "--", *arguments, terminal=True)
    assert result.exit_code == 0, result.stderr
    assert "a second" in result.stdout
    assert "persistor-1" in result.stdout
    assert "\x1b[" in result.stdout


def test_records_of_an_earlier_run_are_not_mixed_with_new_ones(log: str, example: Examples) -> None:
    arguments = ("--bootstrap", log, "--seconds", "0.2", "--rate", "500", "--members", "1")
    example("clicks", *arguments)
    again = example.run("clicks", *arguments)
    assert again.exit_code == 1
    assert "millstream topic delete clicks" in again.stderr


def assert_saved_exactly_once(records: list[Message], out: Path, groups: list[str]) -> None:
    """Reads the stores with their own libraries, and compares every row with the topic."""
    made = sorted(click for record in records if (click := click_in(record)) is not None)
    assert made
    if PERSISTOR in groups:
        table = pyarrow.dataset.dataset(out / "stores" / "parquet", partitioning="hive").to_table(list(Click._fields))
        moments = table["timestamp"].cast("int64").to_pylist()
        columns = [moments if name == "timestamp" else table[name].to_pylist() for name in Click._fields]
        assert sorted(zip(*columns, strict=True)) == made
    if MYSQL in groups:
        assert rows_in(out / "stores" / "clicks.db", "SELECT * FROM clicks ORDER BY uuid") == made


def rows_in(file: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement).fetchall()


def click_in(record: Message) -> tuple[Any, ...] | None:
    """The fields of a click, in order; None if it is none."""
    try:
        fields = json.loads(record.value() or b"")
    except ValueError:
        return None
    return tuple(fields[name] for name in JSON_NAMES) if fields["city"] in COUNTRIES else None


def records_in(bootstrap: str, topic: str) -> list[Message]:
    """All records of a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    partitions = [TopicPartition(topic, number, 0) for number in consumer.list_topics(topic).topics[topic].partitions]
    consumer.assign(partitions)
    found, ends = [], 0
    while ends < len(partitions):
        message = consumer.poll(20)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ends += 1
    consumer.close()
    return found


@pytest.mark.timeout(400)
def test_the_same_as_spark_pipelines(log: str, example: Examples) -> None:
    arguments = ("--bootstrap", log, "--seconds", "3", "--rate", "1000", "--malformed-every", "300", "--seed", "7")
    report = example("clicks", "spark", *arguments)
    records = records_in(log, "clicks")
    made = sorted(click for record in records if (click := click_in(record)) is not None)
    out = example.out / "stores"
    assert rows_in(out / "clicks.db", f"SELECT {', '.join(Click._fields)} FROM clicks ORDER BY uuid") == made
    table = pyarrow.dataset.dataset(out / "table", partitioning="hive").to_table(list(Click._fields))
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == made
    counted = rows_in(out / "clicks.db", "SELECT campaign_id, sum(clicks) FROM clicks_per_minute GROUP BY campaign_id")
    parsed = [json.loads(record.value() or b"") for record in records if (record.value() or b"").endswith(b"}")]
    assert counted == sorted(Counter(fields["campaignId"] for fields in parsed).items())
    assert report["minutes"]["wrong"] == 0
    letters = [dict(cast(Headers, record.headers())) for record in records_in(log, "clicks-dead-letters")]
    places = {(int(about["millstream.origin.partition"]), int(about["millstream.origin.offset"])) for about in letters}
    bad = {(record.partition(), record.offset()) for record in records if click_in(record) is None}
    assert places == bad
    assert len(bad) == len(records) // 300
    assert Path(report["plot"]).read_bytes().startswith(PNG)


def test_the_pipelines_know_the_same_cities() -> None:
    lines = (FOLDER / "cities.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines] == ["city", *COUNTRIES]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_a_run_nothing_outlives_it(number: signal.Signals, tmp_path: Path) -> None:
    command = [*COMMAND, "example", "run", "clicks", "--", "--rate", "1000", "--members", "1", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert any("the generator makes" in line for line in process.stdout)
        threads = Path(f"/proc/{process.pid}/task").glob("*/children")
        children = [int(pid) for thread in threads for pid in thread.read_text().split()]
        process.send_signal(number)
    assert process.returncode == (130 if number == signal.SIGTERM else -number)
    assert len(children) == 4  # the cluster, the generator, a member of each group
    eventually(lambda: not any(map(lives, children)), timeout=60)  # they wait for a cluster that is gone


def lives(pid: int) -> bool:
    """Whether there is such a process that is more than an entry in a table."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"

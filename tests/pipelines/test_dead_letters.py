"""Dead letters read and understood: their headers, their causes, the newest of them."""

import pytest

from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, NotFound
from millstream.cluster.records_out import Record
from millstream.pipelines import dead_letters
from millstream.pipelines.dead_letters import Origin, Wanted
from support.cluster import Cluster, unique
from support.pipelines import Letters, letter_headers


@pytest.fixture
def connection(cluster: Cluster) -> Connection:
    return Connection(cluster.bootstrap_servers)


@pytest.fixture
def letters(connection: Connection) -> Letters:
    return Letters(connection, unique("clicks"), 2)


def record(*headers: tuple[str, bytes | None], key: bytes | None = b"k", value: bytes | None = b"v") -> Record:
    return Record("clicks-dead-letters", 0, 7, 1_600_000_000_000, key, value, list(headers))


def test_a_letter_taken_apart() -> None:
    letter = dead_letters.letter_of(
        record(("trace", b"abc"), ("empty", None), *letter_headers("clicks", ("clicks", 3, 17)))
    )
    assert (letter.pipeline, letter.stage, letter.error) == ("clicks", "step 1 (parse)", "parse")
    assert letter.message == "line 1: 'x' is not a date"
    assert letter.origin == Origin("clicks", 3, 17, 1_699_999_999_995)
    assert letter.origin.is_record
    assert (letter.time, letter.redriven) == (1_700_000_000_000, 0)
    assert (letter.key, letter.value, letter.headers) == (b"k", b"v", [("trace", b"abc"), ("empty", None)])


def test_a_row_that_is_no_record_of_a_topic() -> None:
    letter = dead_letters.letter_of(record(*letter_headers("clicks", ("rows", None, None)), key=None))
    assert letter.origin is not None
    assert letter.origin.topic == "rows"
    assert not letter.origin.is_record


def test_headers_of_a_letter_that_was_a_letter_before() -> None:
    first = letter_headers("first", ("clicks", 0, 1), stage="there")
    letter = dead_letters.letter_of(
        record(
            *first, (dead_letters.REDRIVEN, b"2"), *letter_headers("second", ("first-dead-letters", 1, 5), stage="here")
        )
    )
    assert (letter.pipeline, letter.stage, letter.redriven) == ("second", "here", 2)
    assert letter.origin == Origin("first-dead-letters", 1, 5, 1_699_999_999_995)
    assert letter.headers == first


def test_a_record_that_is_no_letter() -> None:
    letter = dead_letters.letter_of(record((dead_letters.ORIGIN_OFFSET, b"many"), (dead_letters.REDRIVEN, b"often")))
    assert (letter.pipeline, letter.error, letter.origin, letter.redriven) == ("", "", None, 0)
    assert letter.time == 1_600_000_000_000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("line 1: 'x' is not a date", "line 77: 'yy' is not a date"),
        ('column "a" is 3.5', 'column "b" is -12'),
        ("id 6c1becd3-c4b1-40be-b237-4fed45cf769c is there", "id 05887557-435a-4b1e-b82e-34bccb981516 is there"),
        ("at 12:30:05", "at 07:01:59"),
        ("  two\n lines ", "two lines"),
    ],
)
def test_messages_that_mean_the_same(one: str, other: str) -> None:
    assert dead_letters.normalised(one) == dead_letters.normalised(other)


def test_messages_that_do_not() -> None:
    assert dead_letters.normalised("no column ip") != dead_letters.normalised("no column id")
    assert len(dead_letters.normalised("x" * 5000)) == 200


def test_causes(connection: Connection, letters: Letters) -> None:
    letters.add(3, message="'a' is not a date", time=1_000)
    letters.add(2, message="'b' is not a date", time=9_000, partition=1)
    letters.add(1, error="sink", stage="sink 1", message="no such table")
    found, others = dead_letters.causes(dead_letters.read(connection, letters.topic))
    assert [(cause.letters, cause.key.error, cause.key.message) for cause in found] == [
        (5, "parse", "'...' is not a date"),
        (1, "sink", "no such table"),
    ]
    assert (found[0].first, found[0].last, others) == (1_000, 9_004, 0)
    assert (found[0].example.value, found[0].example.message) == (b"4", "'b' is not a date")
    assert found[0].key.id != found[1].key.id


def test_causes_beyond_measure_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MOST_CAUSES", 2)
    several = [dead_letters.letter_of(record((dead_letters.ERROR, kind.encode()))) for kind in "abcca"]
    found, others = dead_letters.causes(several)
    assert [(cause.key.error, cause.letters) for cause in found] == [("a", 2), ("b", 1)]
    assert others == 2


def test_the_newest_first(connection: Connection, letters: Letters) -> None:
    letters.add(5, time=1_000)
    letters.add(5, time=5_000, partition=1)
    newest = dead_letters.newest(connection, letters.topic, Wanted(), 7)
    assert [letter.value for letter in newest] == [b"9", b"8", b"7", b"6", b"5", b"4", b"3"]


def test_the_newest_that_are_wanted(connection: Connection, letters: Letters) -> None:
    letters.add(2, error="sink", time=1_000)
    letters.add(8, time=2_000)
    newest = dead_letters.newest(connection, letters.topic, Wanted(error="sink"), 3)
    assert [letter.value for letter in newest] == [b"1", b"0"]


def test_no_topic(connection: Connection) -> None:
    with pytest.raises(NotFound, match="there is no topic"):
        dead_letters.newest(connection, unique("nothing"), Wanted(), 3)


def test_which_letters_are_wanted() -> None:
    letter = dead_letters.letter_of(record(*letter_headers("clicks", ("clicks", 3, 17))))
    ranges = dead_letters.parse_offsets(["0:5-9", "1:7"], "--offsets")
    for wanted in (
        Wanted(),
        Wanted("clicks", "step 1 (parse)", "parse", letter.cause.id, ranges),
        Wanted(cause=letter.cause.id[:4]),
        Wanted(offsets={0: [(1, 2), (7, 7)]}),
    ):
        assert wanted.takes(letter)
    for wanted in (
        Wanted("other"),
        Wanted(stage="step 2"),
        Wanted(error="sink"),
        Wanted(cause="zz"),
        Wanted(offsets={0: [(8, 9)]}),
        Wanted(offsets={1: [(7, 7)]}),
    ):
        assert not wanted.takes(letter)


def test_offsets_as_people_write_them() -> None:
    assert dead_letters.parse_offsets(["0:5-9, 0:12", "3:1"], "--offsets") == {0: [(5, 9), (12, 12)], 3: [(1, 1)]}


@pytest.mark.parametrize("text", ["5", "0:", "0:9-5", "0:1-", "a:1", "0:1-2-3", ""])
def test_offsets_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match=r"--offsets: .* is not PARTITION:OFFSET"):
        dead_letters.parse_offsets([text], "--offsets")


def test_a_letter_for_machines() -> None:
    letter = dead_letters.letter_of(record(*letter_headers("clicks", ("clicks", 3, 17)), value=b"\xff"))
    data = dead_letters.as_json(letter)
    assert (data["key"], data["value"], data["origin"]["offset"]) == ("k", "\\xff", 17)
    assert data["cause"] == letter.cause.id

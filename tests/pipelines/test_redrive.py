"""Dead letters sent back: each once, whatever is picked out, and none lost."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.positions import Position
from millstream.cluster.records_out import Reader, Record
from millstream.pipelines import dead_letters, redrive
from millstream.pipelines.dead_letters import Wanted
from millstream.pipelines.redrive import SPAN, Redriver, Sent
from support.cluster import Cluster, unique
from support.millstream_server import MillstreamServer
from support.pipelines import Letters, new_topic


@pytest.fixture
def connection(cluster: Cluster) -> Connection:
    return Connection(cluster.bootstrap_servers)


@pytest.fixture
def letters(connection: Connection) -> Letters:
    return Letters(connection, unique("clicks"))


def redriver(letters: Letters, wanted: Wanted | None = None, to: str | None = None) -> Redriver:
    return Redriver(letters.connection, letters.topic, letters.pipeline, wanted, to=to)


def records(connection: Connection, topic: str) -> list[Record]:
    reader = Reader(connection, topic, Position("beginning"))
    try:
        return list(reader.to_end())
    finally:
        reader.close()


def values(connection: Connection, topic: str) -> list[str]:
    return [(record.value or b"").decode() for record in records(connection, topic)]


def test_the_record_as_it_was(letters: Letters) -> None:
    letters.add(1, headers=[("trace", b"abc")])
    assert redriver(letters).execute().sent == {letters.origin: 1}
    (record,) = records(letters.connection, letters.origin)
    assert (record.partition, record.key, record.value) == (1, b"k0", b"0")
    assert record.headers == [("trace", b"abc"), (dead_letters.REDRIVEN, b"1")]


def test_how_often_it_was_sent_is_counted(letters: Letters) -> None:
    letters.add(1, headers=[(dead_letters.REDRIVEN, b"4")])
    redriver(letters).execute()
    assert records(letters.connection, letters.origin)[0].headers == [(dead_letters.REDRIVEN, b"5")]


def test_a_plan_sends_nothing(letters: Letters) -> None:
    letters.add(3)
    assert redriver(letters).plan().sent == {letters.origin: 3}
    assert records(letters.connection, letters.origin) == []
    assert redrive.sent(letters.connection, letters.topic, letters.pipeline) == {}


def test_each_letter_is_sent_once(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive, "CHUNK", 4)
    letters.add(10)
    assert redriver(letters).execute().total == 10
    again = redriver(letters).execute()
    assert (again.total, again.left) == (0, [])
    letters.add(2)
    assert redriver(letters).execute().total == 2
    assert values(letters.connection, letters.origin) == [str(number) for number in range(12)]


def test_what_a_filter_leaves_is_sent_later(letters: Letters) -> None:
    for number in range(6):
        letters.add(1, error="sink" if number % 2 else "parse")
    assert redriver(letters, Wanted(error="sink")).execute().total == 3
    assert redrive.sent(letters.connection, letters.topic, letters.pipeline) == {0: Sent(0, frozenset({1, 3, 5}))}
    assert redriver(letters, Wanted(error="sink")).execute().total == 0
    assert redriver(letters, Wanted(offsets={0: [(0, 1)]})).execute().total == 1
    assert redrive.sent(letters.connection, letters.topic, letters.pipeline) == {0: Sent(2, frozenset({3, 5}))}
    assert redriver(letters).execute().total == 2
    assert redrive.sent(letters.connection, letters.topic, letters.pipeline) == {0: Sent(6)}
    assert sorted(values(letters.connection, letters.origin)) == list("012345")


def test_letters_of_other_pipelines_are_theirs(letters: Letters) -> None:
    letters.add(1)
    letters.add(1, pipeline="another")
    letters.add(1)
    assert redriver(letters).execute().total == 2
    assert values(letters.connection, letters.origin) == ["0", "2"]
    theirs = Redriver(letters.connection, letters.topic, "another")
    assert theirs.plan().total == 1


def test_what_is_no_record_of_a_topic_stays(letters: Letters) -> None:
    letters.add(2, origin=("rows", None, None))
    letters.add(1)
    result = redriver(letters).execute()
    assert result.sent == {letters.origin: 1}
    (left,) = result.left
    assert (left.letters, left.places) == (2, ("0:0", "0:1"))
    assert left.why == "it is no record of a topic (source rows): --to TOPIC says where to send it"
    target = new_topic(letters.connection)
    assert redriver(letters, to=target).execute().sent == {target: 2}


def test_a_topic_that_is_gone(letters: Letters) -> None:
    letters.add(1, origin=("no-such-topic", 0, 3))
    result = redriver(letters).execute()
    assert (result.total, [entry.why for entry in result.left]) == (
        0,
        ["there is no topic no-such-topic any more: --to TOPIC says where to send it"],
    )


def test_a_partition_that_is_not_there_is_chosen_by_key(letters: Letters) -> None:
    letters.add(1, origin=(letters.origin, 9, 3))
    redriver(letters).execute()
    assert [record.key for record in records(letters.connection, letters.origin)] == [b"k0"]


def test_a_record_that_the_topic_refuses_stays_and_the_others_go(letters: Letters) -> None:
    small = new_topic(letters.connection, 1, max_message_bytes="300")
    letters.add(1, origin=(small, 0, 0))
    letters.add(1, origin=(small, 0, 1), headers=[("large", b"x" * 1000)])
    letters.add(1, origin=(small, 0, 2))
    result = redriver(letters).execute()
    assert result.sent == {small: 2}
    assert [(entry.letters, entry.places) for entry in result.left] == [(1, ("0:1",))]
    assert "the cluster refuses it" in result.left[0].why
    assert redrive.sent(letters.connection, letters.topic, letters.pipeline) == {0: Sent(1, frozenset({2}))}


def test_what_is_too_far_behind_waits(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive, "SPAN", 3)
    letters.add(1, error="sink")
    letters.add(5)
    result = redriver(letters, Wanted(error="parse")).execute()
    assert result.total == 2
    assert [(entry.letters, entry.why) for entry in result.left] == [
        (3, "offset 0 has to be sent first: it is too far behind")
    ]
    assert redriver(letters).execute().total == 4


def test_another_cluster_than_the_letters(letters: Letters) -> None:
    with MillstreamServer() as server:
        there = Connection(server.bootstrap_servers)
        topic = new_topic(there)
        letters.add(2, origin=(topic, 0, 5))
        elsewhere = Redriver(letters.connection, letters.topic, letters.pipeline, clusters={topic: there})
        assert elsewhere.execute().sent == {topic: 2}
        assert values(there, topic) == ["0", "1"]


def test_a_cluster_that_goes_away_loses_nothing(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive, "CHUNK", 2)
    monkeypatch.setattr(redrive, "DELIVERY_SECONDS", 1.0)
    with MillstreamServer() as server:
        there = Connection(server.bootstrap_servers)
        topic = new_topic(there)
        letters.add(5, origin=(topic, 0, 5))
        elsewhere = Redriver(letters.connection, letters.topic, letters.pipeline, clusters={topic: there})

        def after_the_first_chunk() -> None:
            server.kill()

        with pytest.raises(ClusterError, match=r"the cluster does not take records any more .*: 2 were sent"):
            elsewhere.execute(after_the_first_chunk)
    assert redrive.sent(letters.connection, letters.topic, letters.pipeline) == {0: Sent(2)}


def test_an_interruption_between_chunks(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive, "CHUNK", 2)
    letters.add(5)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        redriver(letters).execute(interrupt)
    assert redriver(letters).execute().total == 3
    assert values(letters.connection, letters.origin) == list("01234")


@settings(deadline=None)
@given(st.integers(0, 10**12), st.sets(st.integers(1, SPAN - 1), max_size=200))
def test_what_was_sent_is_remembered(position: int, behind: set[int]) -> None:
    sent = Sent(position, frozenset(position + offset for offset in behind))
    metadata = sent.metadata()
    assert Sent.committed(position, metadata) == sent
    assert len(metadata) <= 4096


def test_the_worst_pattern_fits_into_metadata() -> None:
    coin = random.Random(1)
    behind = frozenset(offset for offset in range(1, SPAN) if coin.random() < 0.5) | {SPAN - 1}
    metadata = Sent(0, behind).metadata()
    assert len(metadata) <= 4096
    assert Sent.committed(0, metadata) == Sent(0, behind)


@pytest.mark.parametrize("metadata", ["", "hello", "sent:", "sent:!", "sent:aGVsbG8="])
def test_metadata_of_others_is_none(metadata: str) -> None:
    assert Sent.committed(5, metadata) == Sent(5)

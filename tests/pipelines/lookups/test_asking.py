"""Asking a store through a cache, and what is done while it is away."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from millstream.pipelines.spark.lookups.asking import KEYS, PAUSE_SECONDS, WAIT_SECONDS, Answers, Asker, Away
from millstream.pipelines.spark.lookups.cache import Cache
from millstream.pipelines.spark.lookups.store import StoreAway, Unusable


class FakeStore:
    """Holds `n` for a few keys; is away for as long as it is told."""

    def __init__(self) -> None:
        self.rows: dict[str, Mapping[str, Any] | Unusable] = {"a": {"n": 1}, "b": {"n": None, "other": 5}}
        self.away_until = 0.0
        self.asked: list[list[str]] = []
        self.now = 0.0

    def get(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any] | Unusable]:
        self.asked.append(list(keys))
        if self.now < self.away_until:
            raise StoreAway("the store does not answer")
        return {key: self.rows[key] for key in keys if key in self.rows}

    def close(self) -> None:
        pass

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def asker(store: FakeStore, away: Away = "wait", size: int = 100) -> Asker:
    cache = Cache[Any](size, 60, store.clock)
    return Asker(store, {"n": "int"}, cache, away, store.clock, store.sleep)


def test_answers_are_texts_and_none_for_what_is_not_there(store: FakeStore) -> None:
    assert asker(store).ask(["a", "b", "c", "a"]) == Answers({"a": ("1",), "b": (None,), "c": None})
    assert store.asked == [["a", "b", "c"]]


def test_what_is_remembered_is_not_asked_for_again(store: FakeStore) -> None:
    asking = asker(store)
    asking.ask(["a", "c"])
    store.now += 59

    asking.ask(["c", "b", "a"])
    store.now += 1
    asking.ask(["a", "b"])

    assert store.asked == [["a", "c"], ["b"], ["a"]]


def test_many_keys_are_asked_for_in_parts(store: FakeStore) -> None:
    found = asker(store, size=0).ask(str(number) for number in range(KEYS + 1))

    assert [len(keys) for keys in store.asked] == [KEYS, 1]
    assert set(found.known.values()) == {None}


def test_a_value_that_cannot_be_used_is_an_answer(store: FakeStore) -> None:
    store.rows["bad"] = Unusable("no JSON")

    assert asker(store).ask(["bad", "a"]).known == {"bad": Unusable("no JSON"), "a": ("1",)}


def test_wait_asks_again_with_growing_pauses_until_it_answers(store: FakeStore) -> None:
    store.away_until = 20

    assert asker(store).ask(["a"]).known == {"a": ("1",)}
    assert 20 <= store.now < 23
    assert len(store.asked) < 20


def test_wait_gives_up_after_a_long_time(store: FakeStore) -> None:
    store.away_until = 10 * WAIT_SECONDS

    with pytest.raises(StoreAway, match="the store does not answer; waited for 300 s"):
        asker(store).ask(["a"])

    assert WAIT_SECONDS - PAUSE_SECONDS <= store.now <= WAIT_SECONDS


def test_fail_gives_up_at_once(store: FakeStore) -> None:
    store.away_until = 1

    with pytest.raises(StoreAway):
        asker(store, "fail").ask(["a"])

    assert store.now == 0


def test_stale_takes_what_is_remembered_however_old(store: FakeStore) -> None:
    asking = asker(store, "stale")
    asking.ask(["a", "c"])
    store.now = 10_000
    store.away_until = 20_000

    found = asking.ask(["a", "b", "c"])

    assert found.known == {"a": ("1",), "c": None}
    assert found.away == "the store does not answer"


@pytest.mark.parametrize("away", ["null", "dead-letter"])
def test_without_an_answer_the_caller_decides(store: FakeStore, away: Away) -> None:
    asking = asker(store, away)
    asking.ask(["a"])
    store.away_until = 10

    assert asking.ask(["a", "b"]) == Answers({"a": ("1",)}, "the store does not answer")


def test_a_store_that_is_away_is_not_asked_for_every_row(store: FakeStore) -> None:
    asking = asker(store, "null")
    store.away_until = 3

    for number in range(100):
        asking.ask([f"k{number}"])
    assert len(store.asked) == 1
    store.now += PAUSE_SECONDS
    asking.ask(["x"])
    assert len(store.asked) == 2
    store.now += PAUSE_SECONDS

    assert asking.ask(["a"]) == Answers({"a": ("1",)})
    assert asking.ask(["b"]).known == {"b": (None,)}
    assert len(store.asked) == 4

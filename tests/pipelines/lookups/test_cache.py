"""Answers remembered for a while."""

import pytest

from millstream.pipelines.spark.lookups.cache import Cache


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_an_answer_is_given_until_it_is_too_old_and_kept_after_that(clock: Clock) -> None:
    cache = Cache[str](10, 60, clock)
    cache.put("k", "v")

    clock.now += 59.9
    fresh = cache.fresh("k")
    clock.now += 0.1

    assert fresh is not None
    assert fresh.answer == "v"
    assert cache.fresh("k") is None
    stale = cache.stale("k")
    assert stale is not None
    assert stale.answer == "v"


def test_that_a_key_is_not_there_is_an_answer(clock: Clock) -> None:
    cache = Cache[str](10, 60, clock)
    cache.put("k", None)

    found = cache.fresh("k")

    assert found is not None
    assert found.answer is None
    assert cache.fresh("other") is None
    assert cache.stale("other") is None


def test_the_least_recently_used_goes_first(clock: Clock) -> None:
    cache = Cache[int](3, 60, clock)
    for number in range(3):
        cache.put(str(number), number)

    cache.fresh("0")
    cache.put("3", 3)
    cache.put("1b", 1)

    assert [key for key in ("0", "1", "2", "3", "1b") if cache.stale(key)] == ["0", "3", "1b"]
    assert len(cache) == 3


def test_an_answer_that_is_put_again_is_new(clock: Clock) -> None:
    cache = Cache[int](3, 60, clock)
    cache.put("k", 1)
    clock.now += 59
    cache.put("k", 2)
    clock.now += 59

    found = cache.fresh("k")

    assert found is not None
    assert found.answer == 2


def test_a_cache_of_no_size_keeps_nothing(clock: Clock) -> None:
    cache = Cache[int](0, 60, clock)
    cache.put("k", 1)

    assert len(cache) == 0
    assert cache.fresh("k") is None

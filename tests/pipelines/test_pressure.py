"""Back-pressure follows the measured speed, in few and large steps."""

from millstream.pipelines.description.pipeline import BackPressure
from millstream.pipelines.pressure import FIRST_LIMIT, SMALLEST_LIMIT, Pressure


def test_without_adaptation_the_limit_is_what_was_given() -> None:
    fixed = Pressure(BackPressure(max_records=5_000, adaptive=False))
    assert fixed.limit == 5_000
    assert fixed.batch_done(5_000, 60.0) is None
    assert Pressure(BackPressure(adaptive=False)).limit is None


def test_a_slow_sink_makes_batches_smaller() -> None:
    pressure = Pressure(BackPressure(target=2.0))
    assert pressure.batch_done(FIRST_LIMIT, 20.0) is None  # one batch may be an accident
    assert pressure.batch_done(FIRST_LIMIT, 20.0) == FIRST_LIMIT // 10
    assert pressure.limit == FIRST_LIMIT // 10


def test_a_fast_sink_makes_batches_larger_while_it_is_behind() -> None:
    pressure = Pressure(BackPressure(target=2.0))
    assert pressure.batch_done(FIRST_LIMIT, 0.5) is None
    assert pressure.batch_done(FIRST_LIMIT, 0.5) == 4 * FIRST_LIMIT


def test_a_batch_that_the_limit_did_not_cut_says_nothing_about_it() -> None:
    pressure = Pressure(BackPressure(target=2.0))
    assert [pressure.batch_done(1_000, 0.01) for _ in range(5)] == [None] * 5


def test_two_batches_that_disagree_change_nothing() -> None:
    pressure = Pressure(BackPressure(target=2.0))
    assert pressure.batch_done(FIRST_LIMIT, 20.0) is None
    assert pressure.batch_done(FIRST_LIMIT, 0.5) is None
    assert pressure.batch_done(FIRST_LIMIT, 20.0) is None
    assert pressure.limit == FIRST_LIMIT


def test_small_differences_are_not_worth_a_restart() -> None:
    pressure = Pressure(BackPressure(target=2.0))
    assert [pressure.batch_done(FIRST_LIMIT, 1.5) for _ in range(5)] == [None] * 5


def test_never_more_than_the_largest_and_never_next_to_nothing() -> None:
    capped = Pressure(BackPressure(target=2.0, max_records=FIRST_LIMIT * 3 // 2))
    assert [capped.batch_done(FIRST_LIMIT, 0.1) for _ in range(2)] == [None, None]  # half as much more is not twice
    crawling = Pressure(BackPressure(target=2.0))
    assert [crawling.batch_done(FIRST_LIMIT, 10_000_000.0) for _ in range(2)] == [None, SMALLEST_LIMIT]

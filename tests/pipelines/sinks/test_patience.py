"""How long trouble is borne, with a clock that the test moves."""

import pytest

from millstream.pipelines.spark.sinks.patience import LONGEST_PAUSE, Patience


class Clock:
    """Time passes in pauses only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def patience(self, seconds: float) -> Patience:
        return Patience(seconds, self.sleep, lambda: self.now)


def failing(times: int) -> list[Exception]:
    return [OSError("away")] * times


def test_it_is_tried_again_until_it_works() -> None:
    clock, errors = Clock(), failing(3)

    def action() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert clock.patience(60).persist(action, lambda error: isinstance(error, OSError)) == "done"
    assert clock.pauses == [0.1, 0.2, 0.4]


def test_the_time_is_bounded_and_the_last_attempt_is_at_its_end() -> None:
    clock, attempts = Clock(), []

    def action() -> None:
        attempts.append(clock.now)
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        clock.patience(60).persist(action, lambda error: True)
    assert attempts[-1] == pytest.approx(60)
    assert max(clock.pauses) == LONGEST_PAUSE


def test_what_does_not_pass_is_not_tried_again() -> None:
    clock, attempts = Clock(), []

    def action() -> None:
        attempts.append(clock.now)
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        clock.patience(60).persist(action, lambda error: isinstance(error, OSError))
    assert attempts == [0.0]

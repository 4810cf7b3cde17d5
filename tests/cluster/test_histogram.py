"""The histogram of times."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.histogram import Histogram


def test_nothing_counted() -> None:
    assert Histogram().milliseconds() == {"p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}


@given(st.lists(st.floats(1e-6, 100), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_quantiles_are_two_percent_exact(times: list[float], share: float) -> None:
    histogram = Histogram()
    for seconds in times:
        histogram.add(seconds)
    exact = sorted(times)[max(0, -(-len(times) * round(share * 100) // 100) - 1)]
    assert histogram.quantile(share) == pytest.approx(exact, rel=0.021)
    assert histogram.greatest == max(times)


def test_merging_is_counting_together() -> None:
    one, two, both = Histogram(), Histogram(), Histogram()
    for number in range(1, 1000):
        (one if number % 3 else two).add(number / 1000)
        both.add(number / 1000)
    one.merge(*json.loads(json.dumps([two.counts, two.greatest])))
    assert one.milliseconds() == both.milliseconds()
    assert one.total == 999

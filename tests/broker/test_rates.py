"""Rates and token buckets, with the numbers of Apache Kafka's own."""

from millstream.broker.rates import Rate, TokenBucket

NOW = 1_700_000_000_000


def test_the_first_samples_are_measured_over_the_whole_window() -> None:
    rate = Rate(11, 1000, NOW)
    rate.record(500, NOW)
    assert rate.window_ms(NOW) == 10_000
    assert rate.measure(NOW) == 50.0


def test_the_window_slides() -> None:
    rate = Rate(11, 1000, NOW)
    for second in range(30):
        rate.record(100, NOW + second * 1000)
    now = NOW + 29_000
    assert rate.window_ms(now) == 10_000
    assert rate.measure(now) == 110.0


def test_old_samples_are_forgotten() -> None:
    rate = Rate(11, 1000, NOW)
    rate.record(500, NOW)
    assert rate.measure(NOW + 10_999) > 0
    assert rate.measure(NOW + 11_000) == 0


def test_the_wait_brings_the_rate_down_to_the_limit() -> None:
    rate = Rate(11, 1000, NOW)
    rate.record(1500, NOW)
    assert rate.throttle_ms(100, NOW) == 5000
    assert rate.throttle_ms(150, NOW) == 0


def test_one_sample_alone_has_a_window_of_at_least_a_millisecond() -> None:
    rate = Rate(1, 1000, NOW)
    rate.record(1, NOW)
    assert rate.window_ms(NOW) == 1


def test_a_bucket_starts_full_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(11, 1000, NOW)
    assert bucket.throttle_ms(2, NOW) == 0
    bucket.take(32, 2, NOW)
    assert bucket.throttle_ms(2, NOW) == 5000
    assert bucket.throttle_ms(2, NOW + 4999) == 1
    assert bucket.throttle_ms(2, NOW + 5000) == 0


def test_a_bucket_never_holds_more_than_its_window() -> None:
    bucket = TokenBucket(10, 1000, NOW)
    bucket.take(10, 1, NOW + 10**9)
    assert bucket.throttle_ms(1, NOW + 10**9) == 0
    bucket.take(1, 1, NOW + 10**9)
    assert bucket.throttle_ms(1, NOW + 10**9) == 1000

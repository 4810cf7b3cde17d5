"""Client quotas: whose counts, how long the wait is, and that nothing is kept for ever."""

from collections.abc import Mapping

import pytest

from millstream.broker import quotas as module
from millstream.broker.configs.dynamic import DynamicConfigs
from millstream.broker.configs.settings import Settings
from millstream.broker.context import RequestContext
from millstream.broker.quotas import NO_LIMIT, Quotas
from millstream.broker.rates import Rate
from millstream.broker.store import IN_MEMORY, Entity, MetadataStore
from millstream.wire.errors import ErrorCode, KafkaError
from support.manual_timer import ManualTimer

RATE = "producer_byte_rate"
U: Entity = (("user", "u"),)
U_C: Entity = (("client-id", "c"), ("user", "u"))
U_ANY: Entity = (("client-id", None), ("user", "u"))
ANY: Entity = (("user", None),)
ANY_C: Entity = (("client-id", "c"), ("user", None))
ANY_ANY: Entity = (("client-id", None), ("user", None))
C: Entity = (("client-id", "c"),)
C_ANY: Entity = (("client-id", None),)
CLOSEST_FIRST = [U_C, U_ANY, U, ANY_C, ANY_ANY, ANY, C, C_ANY]


class Fixture:
    def __init__(self, quotas: Mapping[Entity, Mapping[str, float]], **settings: str) -> None:
        self.timer = ManualTimer()
        self.store = MetadataStore(IN_MEMORY)
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.quotas = Quotas(self.store, DynamicConfigs(Settings(named), self.store), self.timer)
        self.quotas.replace(quotas)


def context(user: str = "u", client_id: str = "c", version: int = 0) -> RequestContext:
    return RequestContext(api_version=version, client_id=client_id, principal=f"User:{user}")


def test_without_quotas_nobody_waits() -> None:
    quotas = Fixture({}).quotas
    assert quotas.throttle_produce(context(), 10**12) == 0
    assert quotas.throttle_fetch(context(), 10**12) == 0
    assert quotas.throttle_request(context(), 10**3) == 0
    assert quotas.throttle_connection("1.1.1.1") == 0
    assert quotas.fetch_limit(context()) == NO_LIMIT
    quotas.mutations(context(), strict_since=0).record(10**6)


def test_bytes_above_the_quota_make_the_client_wait() -> None:
    fixture = Fixture({U: {RATE: 100.0}})
    asked = context()
    assert fixture.quotas.throttle_produce(asked, 1000) == 0
    assert fixture.quotas.throttle_produce(asked, 500) == 5000
    assert asked.throttle_ms == 5000
    fixture.timer.advance(11_000)
    assert fixture.quotas.throttle_produce(context(), 1000) == 0


@pytest.mark.parametrize("weaker", range(len(CLOSEST_FIRST)))
def test_the_closest_entity_counts(weaker: int) -> None:
    limits = {entity: {RATE: 10.0 + index} for index, entity in enumerate(CLOSEST_FIRST)}
    remaining = dict(list(limits.items())[weaker:])
    quotas = Fixture(remaining).quotas
    expected = round((1000 / 10 - (10 + weaker)) / (10 + weaker) * 10_000)
    assert quotas.throttle_produce(context(), 1000) == expected


def test_a_quota_of_a_user_is_shared_by_its_clients() -> None:
    quotas = Fixture({U: {RATE: 100.0}}).quotas
    quotas.throttle_produce(context(client_id="a"), 1000)
    assert quotas.throttle_produce(context(client_id="b"), 1000) > 0
    assert quotas.throttle_produce(context(user="v"), 10**9) == 0


def test_a_default_is_for_each_by_itself() -> None:
    quotas = Fixture({C_ANY: {RATE: 100.0}}).quotas
    assert quotas.throttle_produce(context(client_id="a"), 2000) > 0
    assert quotas.throttle_produce(context(client_id="b"), 1000) == 0


def test_a_fetch_that_has_to_wait_is_not_counted() -> None:
    quotas = Fixture({U: {"consumer_byte_rate": 100.0}}).quotas
    assert quotas.throttle_fetch(context(), 1000) == 0
    first = quotas.throttle_fetch(context(), 500)
    assert first == 5000
    assert quotas.throttle_fetch(context(), 500) == first
    assert quotas.fetch_limit(context()) == 1000


def test_the_wait_for_request_time_is_at_most_one_sample() -> None:
    quotas = Fixture({U: {"request_percentage": 1.0}}).quotas
    assert quotas.throttle_request(context(), 0.05) == 0
    assert quotas.throttle_request(context(), 10) == 1000


def test_the_window_can_be_set() -> None:
    quotas = Fixture({U: {RATE: 100.0}}, quota_window_num="2", quota_window_size_seconds="1").quotas
    assert quotas.throttle_produce(context(), 200) == 1000


def test_connections_of_an_address() -> None:
    fixture = Fixture({(("ip", "1.1.1.1"),): {"connection_creation_rate": 1.0}})
    waits = [fixture.quotas.throttle_connection("1.1.1.1") for _ in range(12)]
    assert waits[:10] == [0] * 10
    assert waits[10] == waits[11] == 1000
    assert fixture.quotas.throttle_connection("2.2.2.2") == 0


def test_the_default_address() -> None:
    quotas = Fixture({(("ip", None),): {"connection_creation_rate": 1.0}}).quotas
    assert [quotas.throttle_connection("9.9.9.9") for _ in range(11)][-1] > 0


def test_mutations_are_refused_or_slowed_down() -> None:
    fixture = Fixture({U: {"controller_mutation_rate": 2.0}})
    strict = fixture.quotas.mutations(context(version=6), strict_since=6)
    strict.record(30)
    with pytest.raises(KafkaError) as caught:
        strict.record(1)
    assert caught.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert strict.throttle_ms == 4000
    permissive = fixture.quotas.mutations(context(version=5), strict_since=6)
    permissive.record(2)
    assert permissive.throttle_ms == 5000
    fixture.timer.advance(5000)
    fixture.quotas.mutations(context(version=6), strict_since=6).record(1)


def test_usage_survives_a_change_of_the_quota() -> None:
    fixture = Fixture({U: {RATE: 1000.0}})
    fixture.quotas.throttle_produce(context(), 5000)
    fixture.quotas.replace({U: {RATE: 100.0}})
    assert fixture.quotas.throttle_produce(context(), 0) > 0


def test_quotas_are_there_after_a_restart() -> None:
    fixture = Fixture({U: {RATE: 100.0}, C: {RATE: 5.0}})
    fixture.quotas.replace({C: {}})
    again = Quotas(fixture.store, DynamicConfigs(Settings(), fixture.store), fixture.timer)
    assert dict(again) == {U: {RATE: 100.0}}
    assert again.of(U) == {RATE: 100.0}
    assert again.of(C) == {}


def test_usage_is_forgotten_after_an_hour_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SENSORS", 10)
    fixture = Fixture({C_ANY: {RATE: 100.0}})
    kind = module.QuotaKind(RATE, lambda now: Rate(11, 1000, now))
    kind.set_limits({C_ANY: {RATE: 100.0}})
    for number in range(25):
        kind.sensor((None, str(number)), fixture.timer.now_ms())
    assert list(kind._sensors) == [(None, str(number)) for number in range(15, 25)]
    kind.sensor((None, "15"), fixture.timer.now_ms())
    assert next(iter(kind._sensors)) == (None, "16")
    kind.sensor((None, "new"), fixture.timer.now_ms() + module.EXPIRE_MS)
    assert list(kind._sensors) == [(None, "new")]

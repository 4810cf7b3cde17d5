"""Client quotas: who may use how much, and how long somebody who used more has to wait.

A quota belongs to an entity: a user, a client id, both, or an address, each by name or as the default. Of the quotas
that fit a request the one of the closest entity counts (KIP-55), in the order of `PRECEDENCE`. Bytes and request time
are measured with `Rate`, mutations with `TokenBucket`, over quota.window.num samples of quota.window.size.seconds each
(controller.quota.window.* for mutations).

Without a quota of a kind its check is one look into an empty dictionary. Usage is remembered for an hour after its last
use and for at most `MAX_SENSORS` clients of a kind. The quotas themselves are in the metadata store first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from millstream.broker.configs.dynamic import DynamicConfigs
from millstream.broker.context import RequestContext
from millstream.broker.rates import Rate, TokenBucket
from millstream.broker.store import Entity, MetadataStore
from millstream.log.clock import Clock
from millstream.wire.errors import ErrorCode, KafkaError

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
EXPIRE_MS: Final = 3_600_000
MAX_SENSORS: Final = 10_000
NO_LIMIT: Final = 2**31 - 1
PRECEDENCE: Final = (
    ("name", "name"),
    ("name", "default"),
    ("name", "none"),
    ("default", "name"),
    ("default", "default"),
    ("default", "none"),
    ("none", "name"),
    ("none", "default"),
)
"""How an entity may name the user and the client id of a request, the closest first."""

Sensor = TypeVar("Sensor", Rate, TokenBucket)
Key = tuple[str | None, str | None]


class QuotaKind(Generic[Sensor]):
    """The quotas of one name, and the usage of those that have one."""

    def __init__(self, name: str, make: Callable[[int], Sensor]) -> None:
        self.name = name
        self._make: Callable[[int], Sensor] = make
        self.limits: dict[Entity, float] = {}
        self._sensors: dict[Key, Sensor] = {}

    def set_limits(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        self.limits = {entity: values[self.name] for entity, values in quotas.items() if self.name in values}
        if not self.limits:
            self._sensors.clear()

    def find(self, user: str, client_id: str) -> tuple[Key, float] | None:
        """The limit that counts for a client, and whose usage it limits."""
        for user_by, client_by in PRECEDENCE:
            entity = tuple(_component(CLIENT_ID, client_by, client_id) + _component(USER, user_by, user))
            limit = self.limits.get(entity)
            if limit is not None:
                key = (user if user_by != "none" else None, client_id if client_by != "none" else None)
                return key, limit
        return None

    def find_ip(self, ip: str) -> tuple[Key, float] | None:
        for name in (ip, None):
            limit = self.limits.get(((IP, name),))
            if limit is not None:
                return (ip, None), limit
        return None

    def sensor(self, key: Key, now: int) -> Sensor:
        """The usage of a client; the one just asked for is last in the table, so the first is the one to forget."""
        sensor = self._sensors.pop(key, None)
        if sensor is None:
            self._forget(now)
            sensor = self._make(now)
        self._sensors[key] = sensor
        return sensor

    def _forget(self, now: int) -> None:
        while self._sensors:
            oldest = next(iter(self._sensors))
            if len(self._sensors) < MAX_SENSORS and now - self._sensors[oldest].last_used_ms < EXPIRE_MS:
                return
            del self._sensors[oldest]


def _component(kind: str, by: str, name: str) -> list[tuple[str, str | None]]:
    return [] if by == "none" else [(kind, name if by == "name" else None)]


class MutationQuota:
    """The quota of one request for changes to topics. Old clients are slowed down where a strict quota refuses."""

    def __init__(self, bucket: TokenBucket | None, limit: float, clock: Clock, strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._clock = clock
        self._strict = strict
        self.throttle_ms = 0

    def record(self, mutations: int) -> None:
        """Counts mutations; KafkaError(THROTTLING_QUOTA_EXCEEDED) if the quota is strict and used up."""
        if self._bucket is None:
            return
        now = self._clock.now_ms()
        throttle_ms = self._bucket.throttle_ms(self._limit, now)
        if throttle_ms and self._strict:
            self.throttle_ms = max(self.throttle_ms, throttle_ms)
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The quota of changes to topics is used up")
        self._bucket.take(mutations, self._limit, now)
        if not self._strict:
            self.throttle_ms = max(self.throttle_ms, self._bucket.throttle_ms(self._limit, now))


class Quotas:
    """All client quotas."""

    def __init__(self, store: MetadataStore, configs: DynamicConfigs, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        num = configs.int("quota.window.num")
        self._window_ms = window_ms = configs.int("quota.window.size.seconds") * 1000
        self._burst_s = (num - 1) * window_ms / 1000
        self._produce = QuotaKind(PRODUCER_BYTE_RATE, lambda now: Rate(num, window_ms, now))
        self._fetch = QuotaKind(CONSUMER_BYTE_RATE, lambda now: Rate(num, window_ms, now))
        self._request = QuotaKind(REQUEST_PERCENTAGE, lambda now: Rate(num, window_ms, now))
        self._connection = QuotaKind(CONNECTION_CREATION_RATE, lambda now: Rate(num, window_ms, now))
        mutation_num = configs.int("controller.quota.window.num")
        mutation_window_ms = configs.int("controller.quota.window.size.seconds") * 1000
        self._mutation = QuotaKind(
            CONTROLLER_MUTATION_RATE, lambda now: TokenBucket(mutation_num, mutation_window_ms, now)
        )
        self._kinds: tuple[QuotaKind[Any], ...] = (
            self._produce,
            self._fetch,
            self._request,
            self._connection,
            self._mutation,
        )
        self._quotas: dict[Entity, dict[str, float]] = {}
        self._apply(store.client_quotas())

    # --- the quotas themselves -------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(sorted(self._quotas.items(), key=lambda item: str(item[0])))

    def of(self, entity: Entity) -> Mapping[str, float]:
        """What is set for an entity."""
        return self._quotas.get(entity, {})

    def replace(self, changes: Mapping[Entity, Mapping[str, float]]) -> None:
        """Makes these the quotas of each given entity, all of them or none."""
        self._store.replace_client_quotas(changes)
        self._apply({**self._quotas, **{entity: dict(values) for entity, values in changes.items()}})

    def _apply(self, quotas: Mapping[Entity, dict[str, float]]) -> None:
        self._quotas = {entity: values for entity, values in quotas.items() if values}
        for kind in self._kinds:
            kind.set_limits(self._quotas)

    # --- their enforcement -----------------------------------------------------------------------------------------

    def throttle_produce(self, context: RequestContext, size: int) -> int:
        """Counts the bytes of a Produce request and returns how long its client has to wait, in ms."""
        return self._throttle(self._produce, context, size) if self._produce.limits else 0

    def throttle_fetch(self, context: RequestContext, size: int) -> int:
        """Counts the bytes of a Fetch response, unless the client has to wait: then the response must be empty."""
        if not self._fetch.limits:
            return 0
        throttle_ms = self._throttle(self._fetch, context, size)
        if throttle_ms:
            found = self._fetch.find(*_client(context))
            if found is not None:
                now = self._clock.now_ms()
                self._fetch.sensor(found[0], now).record(-size, now)
        return throttle_ms

    def fetch_limit(self, context: RequestContext) -> int:
        """The most bytes that a Fetch may bring without being above its quota for ever."""
        found = self._fetch.find(*_client(context)) if self._fetch.limits else None
        return NO_LIMIT if found is None else min(int(found[1] * self._burst_s), NO_LIMIT)

    def throttle_request(self, context: RequestContext, seconds: float) -> int:
        """Counts the time a request took to handle; the wait is never longer than one sample."""
        if not self._request.limits:
            return 0
        return self._throttle(self._request, context, seconds * 100, most=self._window_ms)

    def throttle_connection(self, ip: str) -> int:
        """Counts a new connection. If the result is not 0, the connection is to be closed after that many ms."""
        found = self._connection.find_ip(ip) if self._connection.limits else None
        if found is None:
            return 0
        key, limit = found
        now = self._clock.now_ms()
        rate = self._connection.sensor(key, now)
        rate.record(1, now)
        throttle_ms = rate.throttle_ms(limit, now)
        if throttle_ms:
            rate.record(-1, now)
        return throttle_ms

    def mutations(self, context: RequestContext, *, strict_since: int) -> MutationQuota:
        """The quota of a request that changes topics; versions from `strict_since` on can be refused."""
        strict = context.api_version >= strict_since
        found = self._mutation.find(*_client(context)) if self._mutation.limits else None
        if found is None:
            return MutationQuota(None, 0, self._clock, strict)
        key, limit = found
        return MutationQuota(self._mutation.sensor(key, self._clock.now_ms()), limit, self._clock, strict)

    def _throttle(self, kind: QuotaKind[Rate], context: RequestContext, value: float, most: int = NO_LIMIT) -> int:
        found = kind.find(*_client(context))
        if found is None:
            return 0
        key, limit = found
        now = self._clock.now_ms()
        rate = kind.sensor(key, now)
        rate.record(value, now)
        throttle_ms = min(rate.throttle_ms(limit, now), most)
        context.throttle_ms = max(context.throttle_ms, throttle_ms)
        return throttle_ms


def _client(context: RequestContext) -> tuple[str, str]:
    """User and client id of a request."""
    return context.principal.partition(":")[2], context.client_id

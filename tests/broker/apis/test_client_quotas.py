"""DescribeClientQuotas and AlterClientQuotas."""

import pytest

from millstream.broker.store import Entity
from millstream.wire.errors import ErrorCode
from millstream.wire.messages import alter_client_quotas as altering
from millstream.wire.messages import describe_client_quotas as describing
from support.admin_broker import AdminBroker

Ops = dict[str, float | None]
RATE = "producer_byte_rate"


def alter(
    broker: AdminBroker, *entries: tuple[Entity, Ops], validate_only: bool = False, version: int = 1
) -> list[int]:
    request = altering.AlterClientQuotasRequest(
        entries=[
            altering.RequestEntryData(
                entity=[altering.RequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[altering.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops.items()],
            )
            for entity, ops in entries
        ],
        validate_only=validate_only,
    )
    response = broker.call(request, altering.AlterClientQuotasResponse, version)
    return [entry.error_code for entry in response.entries]


def describe(
    broker: AdminBroker, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> dict[Entity, dict[str, float]]:
    response = call_describe(broker, *components, strict=strict, version=version)
    assert response.error_code == 0
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
        for entry in response.entries or ()
    }


def call_describe(
    broker: AdminBroker, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> describing.DescribeClientQuotasResponse:
    request = describing.DescribeClientQuotasRequest(
        components=[describing.ComponentData(entity_type=k, match_type=m, match=n) for k, m, n in components],
        strict=strict,
    )
    return broker.call(request, describing.DescribeClientQuotasResponse, version)


USER: Entity = (("user", "u"),)
ANY_USER: Entity = (("user", None),)
BOTH: Entity = (("client-id", "c"), ("user", "u"))
ADDRESS: Entity = (("ip", "10.0.0.1"),)


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_changed_and_removed(broker: AdminBroker, version: int) -> None:
    assert alter(broker, (USER, {RATE: 5.0, "request_percentage": 12.5}), version=version) == [0]
    assert alter(broker, (USER, {RATE: 7.0, "request_percentage": None}), version=version) == [0]
    assert describe(broker, version=version) == {USER: {RATE: 7.0}}
    assert alter(broker, (USER, {RATE: None}), version=version) == [0]
    assert describe(broker, version=version) == {}


def test_they_are_stored(broker: AdminBroker) -> None:
    alter(broker, (ADDRESS, {"connection_creation_rate": 3.0}), (BOTH, {RATE: 1.0}))
    assert broker.store.client_quotas() == {ADDRESS: {"connection_creation_rate": 3.0}, BOTH: {RATE: 1.0}}


def test_filters(broker: AdminBroker) -> None:
    everything: dict[Entity, Ops] = {USER: {RATE: 1.0}, ANY_USER: {RATE: 2.0}, BOTH: {RATE: 3.0}}
    alter(broker, *everything.items())
    assert describe(broker) == everything
    assert set(describe(broker, ("user", 0, "u"))) == {USER, BOTH}
    assert set(describe(broker, ("user", 0, "u"), strict=True)) == {USER}
    assert set(describe(broker, ("user", 1, None))) == {ANY_USER}
    assert set(describe(broker, ("user", 2, None))) == set(everything)
    assert set(describe(broker, ("client-id", 2, None))) == {BOTH}
    assert set(describe(broker, ("client-id", 0, "c"), ("user", 2, None), strict=True)) == {BOTH}
    assert describe(broker, strict=True) == {}


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ([("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 9, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", 2, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_are_refused(
    broker: AdminBroker, components: list[tuple[str, int, str | None]], expected: ErrorCode
) -> None:
    response = call_describe(broker, *components)
    assert (response.error_code, response.entries) == (expected, None)


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ((), {RATE: 1.0}),
        ((("planet", "mars"),), {RATE: 1.0}),
        ((("user", ""),), {RATE: 1.0}),
        ((("user", "u"), ("user", "v")), {RATE: 1.0}),
        ((("ip", "10.0.0.1"), ("user", "u")), {RATE: 1.0}),
        ((("ip", "somewhere"),), {"connection_creation_rate": 1.0}),
        (ADDRESS, {RATE: 1.0}),
        (ADDRESS, {"connection_creation_rate": 3e9}),
        (USER, {"connection_creation_rate": 1.0}),
        (USER, {"no_such": 1.0}),
        (USER, {RATE: 0.0}),
        (USER, {RATE: -1.0}),
        (USER, {RATE: 1.5}),
        (USER, {RATE: float("nan")}),
    ],
)
def test_quotas_that_are_refused(broker: AdminBroker, entity: Entity, ops: Ops) -> None:
    assert alter(broker, (entity, ops)) == [ErrorCode.INVALID_REQUEST]
    assert describe(broker) == {}


def test_one_that_is_refused_does_not_keep_the_others(broker: AdminBroker) -> None:
    assert alter(broker, (USER, {RATE: 1.0}), (ANY_USER, {"no_such": 1.0}), (USER, {RATE: 2.0})) == [
        0,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert describe(broker) == {USER: {RATE: 1.0}}


def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    assert alter(broker, (USER, {RATE: 1.0}), validate_only=True) == [0]
    assert describe(broker) == {}


def test_a_key_named_twice(broker: AdminBroker) -> None:
    ops = [altering.OpData(key=RATE, value=1.0), altering.OpData(key=RATE, value=2.0)]
    entity = [altering.RequestEntityData(entity_type="user", entity_name="u")]
    request = altering.AlterClientQuotasRequest(entries=[altering.RequestEntryData(entity=entity, ops=ops)])
    (entry,) = broker.call(request, altering.AlterClientQuotasResponse).entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST


def test_a_store_that_fails_changes_nothing(broker: AdminBroker) -> None:
    broker.store.close()
    assert alter(broker, (USER, {RATE: 1.0})) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert describe(broker) == {}

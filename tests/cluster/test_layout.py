"""Reading a cluster: patience with a broker that is gone for now, and names that are not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from kafka.errors import ClusterAuthorizationFailedError, KafkaConnectionError, KafkaError

from millstream.cluster import layout as layouts
from millstream.cluster.connection import Connection
from millstream.cluster.errors import NotFound
from millstream.cluster.layout import Broker, Layout, Partition, patiently, reason

LAYOUT = Layout(
    "id",
    1,
    (1,),
    (Broker(1, "a", 9092, None, False), Broker(2, "b", 9092, "r", True)),
    (
        Partition("orders", 0, 1, (1, 2), (1,), False),
        Partition("orders", 1, None, (2,), (), False),
        Partition("clicks", 0, 1, (2, 1), (2, 1), False),
    ),
)


class Clients:
    """A connection that gives out numbered clients and counts them."""

    def __init__(self) -> None:
        self.given = 0

    @contextmanager
    def admin(self) -> Iterator[int]:
        self.given += 1
        yield self.given


def ask(clients: Clients, failures: list[KafkaError]) -> Any:
    def action(admin: Any) -> int:
        if failures:
            raise failures.pop(0)
        return int(admin)

    return patiently(cast(Connection, clients), action)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "PAUSE_SECONDS", 0)


def test_a_broker_that_does_not_answer_is_asked_again_with_a_new_client() -> None:
    clients = Clients()
    assert ask(clients, [KafkaConnectionError(), KafkaConnectionError()]) == 3


def test_a_refusal_is_final() -> None:
    clients = Clients()
    with pytest.raises(ClusterAuthorizationFailedError):
        ask(clients, [ClusterAuthorizationFailedError()])
    assert clients.given == 1


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "PATIENCE_SECONDS", -1)
    with pytest.raises(KafkaConnectionError):
        ask(Clients(), [KafkaConnectionError()])


def test_what_a_layout_knows() -> None:
    assert LAYOUT.alive == {1: None}
    assert LAYOUT.topics == {"orders", "clicks"}
    assert LAYOUT.placement(["orders"]) == {("orders", 0): (1, 2), ("orders", 1): (2,)}
    assert [part.under_replicated for part in LAYOUT.partitions] == [True, True, False]
    assert [part.has_preferred_leader for part in LAYOUT.partitions] == [True, False, False]


def test_names_that_are_not_there() -> None:
    LAYOUT.require_topic("orders")
    LAYOUT.require_broker(2, "BROKER")
    with pytest.raises(NotFound, match="--topic: there is no topic 'order'; did you mean orders"):
        LAYOUT.require_topic("order")
    with pytest.raises(NotFound, match="BROKER: there is no broker 3; there are: 1, 2"):
        LAYOUT.require_broker(3, "BROKER")


def test_reasons_in_words() -> None:
    assert reason(ClusterAuthorizationFailedError).endswith("(CLUSTER_AUTHORIZATION_FAILED)")

"""How to reach a cluster, and the clients that do.

A `Connection` is an address and client properties under Kafka's names (`security.protocol`, `sasl.username`, ...). It
makes clients that are already known to reach the cluster: an address where nobody answers is `Unreachable` within
seconds.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.errors import BadInput, ClusterError, Unreachable

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient
    from kafka.admin import KafkaAdminClient

CONNECT_SECONDS = 3.0
REQUEST_SECONDS = 30.0
_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([^:\[\]\s]+)):(\d{1,5})")


class Connection(NamedTuple):
    """One cluster's address and the properties of its clients."""

    bootstrap: str
    properties: Mapping[str, str] = {}

    def addresses(self) -> list[tuple[str, int]]:
        """The bootstrap servers taken apart; BadInput if one is not HOST:PORT."""
        return [parse_address(part) for part in self.bootstrap.split(",") if part.strip()]

    def check(self) -> str:
        """The first address at which somebody listens; Unreachable if there is none."""
        problems = []
        for host, port in self.addresses():
            try:
                socket.create_connection((host, port), CONNECT_SECONDS).close()
            except OSError as error:
                problems.append(f"{host}:{port} ({error.strerror or error})")
            else:
                return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise Unreachable(
            f"no broker answers at {', '.join(problems)}; is the cluster running, and is this its address? "
            "(--bootstrap, --context, or `millstream up` to start one here)"
        )

    @contextlib.contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """An admin client, closed at the end; what it raises and nobody catches leaves as ClusterError."""
        from kafka.admin import KafkaAdminClient
        from kafka.errors import KafkaError, KafkaTimeoutError

        answering = self.check()  # the client would lose its time with brokers that are down
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        try:
            client = KafkaAdminClient(
                bootstrap_servers=answering,
                client_id="millstream",
                bootstrap_timeout_ms=int(CONNECT_SECONDS * 1000),
                request_timeout_ms=int(REQUEST_SECONDS * 1000),
                **{name.replace(".", "_"): value for name, value in self.properties.items()},
            )
        except KafkaTimeoutError as error:
            raise Unreachable(f"{self.bootstrap} does not answer as a Kafka broker") from error
        except (KafkaError, ValueError, TypeError, AssertionError) as error:
            raise BadInput(f"cannot connect to {self.bootstrap}: {error}") from error
        try:
            yield client
        except KafkaError as error:
            raise ClusterError(f"the cluster refused: {error}") from error
        finally:
            client.close()

    def group_admin(self) -> AdminClient:
        """librdkafka's admin client: the one that describes groups of the KIP-848 protocol."""
        from confluent_kafka.admin import AdminClient

        self.check()
        return AdminClient(self._client_properties(None))

    def producer(self, properties: Mapping[str, Any] | None = None) -> Producer:
        from confluent_kafka import Producer

        self.check()
        return Producer(self._client_properties(properties))

    def consumer(self, properties: Mapping[str, Any]) -> Consumer:
        """`properties` must name a `group.id`, as librdkafka wants one even where none is used."""
        from confluent_kafka import Consumer

        self.check()
        return Consumer(self._client_properties(properties))

    def _client_properties(self, properties: Mapping[str, Any] | None) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": "millstream",
            "log_level": 0,
            **self.properties,
            **(properties or {}),
        }


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT taken apart; BadInput says what is wrong."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) < 65536:
        raise BadInput(f"{text!r} is not an address: it must be HOST:PORT, for example 127.0.0.1:9092")
    return match[1] or match[2], int(match[3])

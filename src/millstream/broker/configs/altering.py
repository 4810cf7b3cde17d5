"""The changes that AlterConfigs and IncrementalAlterConfigs ask for: what is common to both.

A resource changes as a whole or not at all. What is wrong with the request itself is INVALID_REQUEST; what is wrong
with a value is what `configs.validation` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from millstream.broker.configs.catalogue import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
)
from millstream.broker.configs.declaration import Config, ConfigType
from millstream.broker.configs.dynamic import ALL_BROKERS, ResourceType
from millstream.broker.topics import validate_name
from millstream.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from millstream.broker.broker import Broker

CONFIGS: Mapping[ResourceType, Mapping[str, Config]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: BROKER_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
}


class Operation(IntEnum):
    """What IncrementalAlterConfigs can do to a config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Resource(Protocol):
    """A resource as both requests name it."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)


def outcomes(resources: Sequence[R], alter: Callable[[R], None]) -> Iterator[tuple[R, KafkaError | None]]:
    """Alters each resource by itself, and why it could not; one that is named more than once is refused."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The resource is named more than once")
            alter(resource)
        except KafkaError as error:
            yield resource, error
        else:
            yield resource, None


def resource_type(number: int, *, loggers: bool) -> ResourceType:
    """The type of a resource whose configs can be altered."""
    try:
        kind = ResourceType(number)
    except ValueError:
        kind = ResourceType.UNKNOWN
    if kind is ResourceType.UNKNOWN or (kind is ResourceType.BROKER_LOGGER and not loggers):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Configs of resource type {number} cannot be altered")
    return kind


def check_names(names: Sequence[str], nulls: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A config is named more than once")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"A value must not be null: {', '.join(nulls)}")


def check_node(broker: Broker, name: str) -> None:
    """INVALID_REQUEST unless the resource is this broker."""
    try:
        node_id = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"A broker id must be a whole number, not {name!r}") from None
    if node_id != broker.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The only broker is {broker.node_id}, not {name}")


def alter(broker: Broker, kind: ResourceType, name: str, new: Mapping[str, str], *, validate_only: bool) -> None:
    """Makes `new` the configs of a resource, if they may be."""
    if kind is ResourceType.BROKER and name != ALL_BROKERS:
        check_node(broker, name)
    if kind is not ResourceType.BROKER and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The resource must have a name")
    if kind is ResourceType.TOPIC:
        validate_name(name)
    broker.configs.validate(kind, name, new)
    if kind is ResourceType.TOPIC and name not in broker.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}")
    if not validate_only:
        broker.configs.replace(kind, name, new)


def apply_operation(kind: ResourceType, current: dict[str, str], name: str, operation: int, value: str | None) -> None:
    """Does one operation of IncrementalAlterConfigs to the configs of a resource."""
    if operation == Operation.SET:
        current[name] = value or ""
    elif operation == Operation.DELETE:
        current.pop(name, None)
    elif operation in (Operation.APPEND, Operation.SUBTRACT):
        config = CONFIGS[kind].get(name)
        if config is None or config.type is not ConfigType.LIST:
            message = f"{name} is not a list, so nothing can be added to it or taken from it"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        items = [item for item in current.get(name, config.default or "").split(",") if item]
        for item in (value or "").split(","):
            if operation == Operation.APPEND and item not in items:
                items.append(item)
            elif operation == Operation.SUBTRACT and item in items:
                items.remove(item)
        current[name] = ",".join(items)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no operation {operation} on configs")

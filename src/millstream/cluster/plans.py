"""Plans for moving the partitions of a running cluster: read the cluster, ask `placement`, say what it would mean.

Plans are exchanged in the JSON format of Kafka's `kafka-reassign-partitions.sh`:

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster import placement
from millstream.cluster.brokers import partition_sizes
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, ClusterError
from millstream.cluster.layout import Layout, patiently, read_layout
from millstream.cluster.placement import Load, Move, TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient


class Plan(NamedTuple):
    """What would be done, and how the brokers stand before and after. `size_bytes` is what has to be copied."""

    moves: list[Move]
    before: list[Load]
    after: list[Load]
    size_bytes: int
    notes: list[str]

    @property
    def copies(self) -> int:
        return sum(len(move.adding) for move in self.moves)


def plan_topics(
    connection: Connection, topics: Sequence[str], brokers: Sequence[int] | None, factor: int | None
) -> Plan:
    """The topics on these brokers, with this replication factor."""

    def look(admin: KafkaAdminClient) -> Plan:
        layout = read_layout(admin)
        _require_several(layout)
        for topic in topics:
            layout.require_topic(topic)
        for broker in brokers or ():
            layout.require_broker(broker, "--brokers")
        alive = layout.alive
        down = [broker for broker in brokers or () if broker not in alive]
        if down:
            raise BadInput(f"--brokers: broker {down[0]} is not up, so it cannot take replicas")
        racks = {broker: alive[broker] for broker in brokers} if brokers else alive
        current = layout.placement()
        wanted = dict(current)
        try:
            for topic in topics:
                others = {key: replicas for key, replicas in wanted.items() if key[0] != topic}
                elsewhere = {load.broker: load.replicas for load in placement.loads(others, racks)}
                wanted.update(placement.place_topic(layout.placement([topic]), racks, factor, elsewhere))
        except ValueError as error:
            option = "--replication-factor" if factor is not None else "--brokers"
            raise BadInput(f"{option}: {error}") from error
        return _plan(admin, layout, current, wanted)

    return patiently(connection, look)


def plan_file(connection: Connection, file: Path) -> Plan:
    """What a file in Kafka's JSON format asks for."""
    target = read_plan(file)

    def look(admin: KafkaAdminClient) -> Plan:
        layout = read_layout(admin)
        _require_several(layout)
        current = layout.placement()
        for key, replicas in target.items():
            layout.require_topic(key[0], str(file))
            if key not in current:
                raise BadInput(f"{file}: {key[0]} has no partition {key[1]}")
            for broker in replicas:
                layout.require_broker(broker, f"{file}: {key[0]}-{key[1]}")
        down = sorted({broker for replicas in target.values() for broker in replicas} - set(layout.alive))
        notes = [f"broker {broker} is not up: what moves there waits for it" for broker in down]
        return _plan(admin, layout, current, {**current, **target}, notes)

    return patiently(connection, look)


def plan_decommission(connection: Connection, broker: int) -> Plan:
    """Everything off one broker, which may be down already."""

    def look(admin: KafkaAdminClient) -> Plan:
        layout = read_layout(admin)
        current = layout.placement()
        if not any(broker in replicas for replicas in current.values()):
            layout.require_broker(broker, "BROKER")
        _require_several(layout)
        remaining = {id_: rack for id_, rack in layout.alive.items() if id_ != broker}
        tall = {key[0]: len(held) for key, held in current.items() if broker in held and len(held) > len(remaining)}
        if tall:
            topics = names([f"{topic} ({factor} replicas)" for topic, factor in sorted(tall.items())])
            raise ClusterError(
                f"broker {broker} cannot be decommissioned: the {len(remaining)} that would remain are too few for "
                f"{topics}; add a broker, or lower the replication factor first (`cluster reassign --topic ... "
                f"--replication-factor {len(remaining)}`)"
            )
        notes = []
        if broker in layout.voters:
            notes.append(
                f"broker {broker} is also a controller of the quorum {list(layout.voters)}; this moves its partitions "
                "only, so keep its controller running or remove it from the quorum on its own"
            )
        return _plan(admin, layout, current, placement.drain(current, layout.alive, broker), notes)

    return patiently(connection, look)


def plan_balance(connection: Connection) -> Plan:
    def look(admin: KafkaAdminClient) -> Plan:
        layout = read_layout(admin)
        _require_several(layout)
        current = layout.placement()
        down = sorted({broker for replicas in current.values() for broker in replicas} - set(layout.alive))
        if down:
            raise ClusterError(
                f"{names([f'broker {id_}' for id_ in down])} should hold replicas and is not up: start it, or move its "
                "replicas away with `cluster decommission`, and balance then"
            )
        wanted = placement.balance(current, layout.alive, partition_sizes(admin, layout.alive))
        return _plan(admin, layout, current, wanted)

    return patiently(connection, look)


def _plan(
    admin: KafkaAdminClient,
    layout: Layout,
    current: Mapping[TopicPartition, tuple[int, ...]],
    wanted: Mapping[TopicPartition, tuple[int, ...]],
    notes: Iterable[str] = (),
) -> Plan:
    moves = placement.changes(current, wanted)
    sizes = partition_sizes(admin, layout.alive) if moves else {}
    size = sum(sizes.get((move.topic, move.partition), 0) * len(move.adding) for move in moves)
    brokers = set(layout.alive) | {broker for replicas in current.values() for broker in replicas}
    return Plan(moves, placement.loads(current, brokers), placement.loads(wanted, brokers), size, list(notes))


def _require_several(layout: Layout) -> None:
    if len(layout.brokers) == 1 and len(layout.alive) == 1:
        held = {broker for partition in layout.partitions for broker in partition.replicas}
        if held <= set(layout.alive):
            raise ClusterError(
                f"there is nothing to move: this cluster has one broker ({layout.brokers[0].id}), which holds every "
                "replica and leads every partition; `millstream up --engine kafka --brokers 3` starts one with several"
            )


# --- Kafka's JSON


def to_json(moves: Iterable[Move], *, undo: bool = False) -> dict[str, Any]:
    """The moves in Kafka's format; with `undo`, the replicas as they were before."""
    partitions = []
    for move in moves:
        replicas = list(move.before if undo else move.after)
        entry = {"topic": move.topic, "partition": move.partition, "replicas": replicas}
        partitions.append({**entry, "log_dirs": ["any"] * len(replicas)})
    return {"version": 1, "partitions": partitions}


def read_plan(file: Path) -> dict[TopicPartition, tuple[int, ...]]:
    """A plan in Kafka's format. BadInput says what is wrong where."""
    try:
        data = json.loads(file.read_text())
    except OSError as error:
        raise BadInput(f"--plan: {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"--plan: {file} is not JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("partitions"), list):
        raise BadInput(f'--plan: {file} must be an object with "partitions", as Kafka\'s reassignment tool writes it')
    if data.get("version", 1) != 1:
        raise BadInput(f"--plan: {file} has version {data['version']!r}; 1 is the only one there is")
    plan: dict[TopicPartition, tuple[int, ...]] = {}
    for number, entry in enumerate(data["partitions"]):
        where = f"--plan: {file}, partitions[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str):
            raise BadInput(f'{where} needs a "topic"')
        if not _is_number(entry.get("partition")):
            raise BadInput(f'{where} needs a "partition", a number')
        replicas = entry.get("replicas")
        if not isinstance(replicas, list) or not replicas or not all(map(_is_number, replicas)):
            raise BadInput(f'{where} needs "replicas", a list of broker ids')
        if len(set(replicas)) < len(replicas):
            raise BadInput(f"{where} names a broker twice: {replicas}")
        key = (entry["topic"], entry["partition"])
        if key in plan:
            raise BadInput(f"{where}: {key[0]}-{key[1]} is there twice")
        plan[key] = tuple(replicas)
    return plan


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def names(items: Sequence[object]) -> str:
    """The first few of them."""
    shown = ", ".join(map(str, items[:5]))
    return shown if len(items) <= 5 else f"{shown} and {len(items) - 5} more"

"""The plan of a local Apache Kafka cluster: its nodes, what each does, where it listens, and its properties.

The plan is kept in `cluster.json` in the data folder, because most of it may not change once there is data:

    cluster id    given to every node when its storage is formatted
    brokers       node ids 1..n; more can be added later, none is taken away by starting fewer
    controllers   the nodes of the metadata quorum, fixed when the cluster is made

The quorum is one node for one or two brokers (two could not lose either), three for three and more. Those nodes are
brokers too, unless the cluster was made with a controller of its own: then node 100 is the quorum and nothing else, and
any broker can be stopped while the metadata stay available.
"""

from __future__ import annotations

import json
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from millstream.engines.errors import EngineError, EngineInputError
from millstream.engines.ports import HOST

CONTROLLER_ID = 100
MAXIMUM_BROKERS = 9
REPLICATION = 3


class Layout(NamedTuple):
    """All that the nodes of one cluster have in common."""

    cluster_id: str
    controllers: tuple[int, ...]
    broker_ports: Mapping[int, int]
    controller_ports: Mapping[int, int]

    @property
    def brokers(self) -> list[int]:
        return sorted(self.broker_ports)

    @property
    def nodes(self) -> list[int]:
        """Pure controllers first, in the order in which they are started."""
        return sorted(set(self.controllers) - set(self.broker_ports)) + self.brokers

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{self.broker_ports[node]}" for node in self.brokers)

    def roles(self, node: int) -> str:
        roles = ("broker",) * (node in self.broker_ports) + ("controller",) * (node in self.controllers)
        return ",".join(roles)

    def properties(self, node: int, logs: Path, settings: Mapping[str, str]) -> dict[str, str]:
        """The node's server.properties; `settings` win, except over what makes the cluster one."""
        factor = min(REPLICATION, len(self.brokers))
        in_sync = str(max(1, factor - 1))
        listeners = []
        if node in self.broker_ports:
            listeners.append(f"PLAINTEXT://{HOST}:{self.broker_ports[node]}")
        if node in self.controllers:
            listeners.append(f"CONTROLLER://{HOST}:{self.controller_ports[node]}")
        return {
            "default.replication.factor": str(factor),
            "offsets.topic.replication.factor": str(factor),
            "transaction.state.log.replication.factor": str(factor),
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": str(factor),
            "share.coordinator.state.topic.min.isr": in_sync,
            "group.initial.rebalance.delay.ms": "0",
            **settings,
            "process.roles": self.roles(node),
            "node.id": str(node),
            "controller.quorum.voters": ",".join(
                f"{controller}@{HOST}:{self.controller_ports[controller]}" for controller in self.controllers
            ),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "log.dirs": str(logs),
        }

    def save(self, file: Path) -> None:
        plan = {**self._asdict(), "controllers": list(self.controllers)}
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps(plan, indent=2) + "\n")
        temporary.replace(file)


def load(file: Path) -> Layout | None:
    """The plan in the file; None if there is no file yet."""
    try:
        plan = json.loads(file.read_text())
        return Layout(
            plan["cluster_id"],
            tuple(plan["controllers"]),
            {int(node): port for node, port in plan["broker_ports"].items()},
            {int(node): port for node, port in plan["controller_ports"].items()},
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise EngineError(f"{file} is not the plan of a cluster ({error}); is this a data folder of ours?") from error


def new(brokers: int, *, own_controller: bool) -> Layout:
    """A cluster that is not there yet; it has no ports until it is started."""
    check_count(brokers)
    controllers = (CONTROLLER_ID,) if own_controller else (1, 2, 3) if brokers >= 3 else (1,)
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    return Layout(cluster_id, controllers, dict.fromkeys(range(1, brokers + 1), 0), dict.fromkeys(controllers, 0))


def check_count(brokers: int) -> None:
    if not 1 <= brokers <= MAXIMUM_BROKERS:
        raise EngineInputError(f"--brokers {brokers}: one machine can have 1 to {MAXIMUM_BROKERS}")


def grown(layout: Layout, brokers: int, data: Path) -> Layout:
    """The same cluster with that many brokers."""
    check_count(brokers)
    if brokers < len(layout.brokers):
        raise EngineInputError(
            f"--brokers {brokers}: the cluster in {data} has {len(layout.brokers)}, which may hold data; "
            "start them all, and stop single ones with `millstream down --broker ID`"
        )
    return layout._replace(broker_ports={node: layout.broker_ports.get(node, 0) for node in range(1, brokers + 1)})

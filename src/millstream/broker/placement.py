"""Where replicas may be: on this node, once. The errors are those of a cluster that has no other broker."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.wire.errors import ErrorCode, KafkaError


def check_replication_factor(replication_factor: int) -> None:
    """KafkaError(INVALID_REPLICATION_FACTOR) if there are not enough brokers for it."""
    if replication_factor != 1:
        message = f"There cannot be {replication_factor} replicas of a partition: the cluster has one broker"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def check_assignment(node_id: int, replicas: Sequence[int]) -> None:
    """KafkaError(INVALID_REPLICA_ASSIGNMENT) if a partition cannot be on these brokers."""
    problem = None
    strangers = [replica for replica in replicas if replica != node_id]
    if not replicas:
        problem = "A partition must be assigned to a broker"
    elif strangers:
        problem = f"A partition is assigned to broker {strangers[0]}, but the only broker is {node_id}"
    elif len(replicas) > 1:
        problem = f"A partition is assigned to broker {node_id} more than once"
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)

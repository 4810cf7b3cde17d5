"""Broker configs that can only be set while the broker runs: throttles of replication.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
follower.replication.throttled.rate | LONG | 9223372036854775807 | >= 0 | MEDIUM | cluster-wide | accepted
    bytes a second that throttled followers fetch
leader.replication.throttled.rate | LONG | 9223372036854775807 | >= 0 | MEDIUM | cluster-wide | accepted
    bytes a second that leaders send to throttled replicas
replica.alter.log.dirs.io.max.bytes.per.second | LONG | 9223372036854775807 | >= 0 | MEDIUM | cluster-wide | accepted
    bytes a second for moves between log folders
"""

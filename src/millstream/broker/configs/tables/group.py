"""Group configs (KIP-1043).

The columns are those of `catalogue.read_table`.
"""

TABLE = """
consumer.assignment.interval.ms | INT | 1000 | >= 0 | MEDIUM | cluster-wide | honoured
    least time between two assignments of the consumer group
consumer.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | cluster-wide | honoured
    heartbeat interval of the consumer group
consumer.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | cluster-wide | honoured
    session time-out of the consumer group
share.assignment.interval.ms | INT | 1000 | >= 0 | MEDIUM | cluster-wide | accepted
    least time between two assignments of the share group
share.auto.offset.reset | STRING | latest | offset reset | MEDIUM | cluster-wide | accepted
    where a new share group starts
share.delivery.count.limit | INT | 5 | >= 2 | MEDIUM | cluster-wide | accepted
    how often a record is delivered
share.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | cluster-wide | accepted
    heartbeat interval of the share group
share.isolation.level | STRING | read_uncommitted | one of read_committed, read_uncommitted | MEDIUM | cluster-wide | \
accepted
    whether records of open transactions are delivered
share.partition.max.record.locks | INT | 2000 | >= 100 | MEDIUM | cluster-wide | accepted
    most locked records of a share partition
share.record.lock.duration.ms | INT | 30000 | >= 1000 | MEDIUM | cluster-wide | accepted
    how long a share consumer holds a record
share.renew.acknowledge.enable | BOOLEAN | true | | MEDIUM | cluster-wide | accepted
    let share consumers renew their locks
share.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | cluster-wide | accepted
    session time-out of the share group
streams.assignment.interval.ms | INT | 1000 | >= 0 | MEDIUM | cluster-wide | accepted
    least time between two assignments of the streams group
streams.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | cluster-wide | accepted
    heartbeat interval of the streams group
streams.initial.rebalance.delay.ms | INT | 3000 | >= 0 | MEDIUM | cluster-wide | accepted
    how long the new group waits for more members
streams.num.standby.replicas | INT | 0 | >= 0 | MEDIUM | cluster-wide | accepted
    standby replicas of each task
streams.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | cluster-wide | accepted
    session time-out of the streams group
"""

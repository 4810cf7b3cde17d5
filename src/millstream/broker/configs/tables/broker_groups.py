"""Broker configs of the group and share coordinators.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
group.consumer.assignment.interval.ms | INT | 1000 | >= 0 | MEDIUM | cluster-wide | honoured
    least time between two assignments of a consumer group
group.consumer.assignors | LIST | uniform,range | different, at least one | MEDIUM | read-only | honoured
    assignors of consumer groups; the first is the default
group.consumer.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | read-only | honoured
    heartbeat interval of consumer groups
group.consumer.max.assignment.interval.ms | INT | 15000 | >= 0 | MEDIUM | read-only | honoured
    longest assignment interval a consumer group may be given
group.consumer.max.heartbeat.interval.ms | INT | 15000 | >= 1 | MEDIUM | read-only | honoured
    longest heartbeat interval a consumer group may be given
group.consumer.max.session.timeout.ms | INT | 60000 | >= 1 | MEDIUM | read-only | honoured
    longest session time-out a consumer group may be given
group.consumer.max.size | INT | 2147483647 | >= 1 | MEDIUM | read-only | honoured
    most members of a consumer group
group.consumer.migration.policy | STRING | bidirectional | \
in any case one of disabled, downgrade, upgrade, bidirectional | MEDIUM | read-only | honoured
    whether groups change between the classic and the consumer protocol
group.consumer.min.assignment.interval.ms | INT | 0 | >= 0 | MEDIUM | read-only | honoured
    shortest assignment interval a consumer group may be given
group.consumer.min.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | read-only | honoured
    shortest heartbeat interval a consumer group may be given
group.consumer.min.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | read-only | honoured
    shortest session time-out a consumer group may be given
group.consumer.regex.refresh.interval.ms | INT | 600000 | >= 10000 | MEDIUM | read-only | honoured internal
    how often subscribed regular expressions are resolved again
group.consumer.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | read-only | honoured
    session time-out of consumer groups
group.coordinator.append.linger.ms | INT | -1 | >= -1 | MEDIUM | read-only | accepted
    how long the group coordinator gathers writes; -1 adapts
group.coordinator.background.threads | INT | 2 | >= 1 | HIGH | read-only | accepted
    threads for background work of the group coordinator
group.coordinator.cached.buffer.max.bytes | INT | 1048588 | >= 524288 | MEDIUM | cluster-wide | accepted
    largest write buffer the group coordinator keeps
group.coordinator.rebalance.protocols | LIST | classic,consumer,streams | some of consumer, classic, share, streams | \
MEDIUM | read-only | accepted
    group protocols that are on
group.coordinator.threads | INT | 4 | >= 1 | HIGH | read-only | accepted
    threads of the group coordinator
group.initial.rebalance.delay.ms | INT | 3000 | | MEDIUM | read-only | honoured
    how long an empty classic group waits for more members
group.max.session.timeout.ms | INT | 1800000 | | MEDIUM | read-only | honoured
    longest session time-out a classic member may ask for
group.max.size | INT | 2147483647 | >= 1 | MEDIUM | read-only | honoured
    most members of a classic group
group.min.session.timeout.ms | INT | 6000 | | MEDIUM | read-only | honoured
    shortest session time-out a classic member may ask for
group.share.assignment.interval.ms | INT | 1000 | >= 0 | MEDIUM | cluster-wide | accepted
    least time between two assignments of a share group
group.share.assignors | LIST | simple | different, at least one | MEDIUM | read-only | accepted
    assignor of share groups
group.share.delivery.count.limit | INT | 5 | 2 .. 10 | MEDIUM | read-only | accepted
    how often a share group delivers a record
group.share.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | read-only | accepted
    heartbeat interval of share groups
group.share.initialize.retry.interval.ms | INT | 30000 | >= 1 | LOW | read-only | accepted internal
    pause before share group state is initialized again
group.share.max.assignment.interval.ms | INT | 15000 | >= 0 | MEDIUM | read-only | accepted
    longest assignment interval a share group may be given
group.share.max.delivery.count.limit | INT | 10 | 5 .. 25 | MEDIUM | read-only | accepted
    highest delivery count limit a share group may be given
group.share.max.heartbeat.interval.ms | INT | 15000 | >= 1 | MEDIUM | read-only | accepted
    longest heartbeat interval a share group may be given
group.share.max.partition.max.record.locks | INT | 4000 | 2000 .. 10000 | MEDIUM | read-only | accepted
    highest limit of locked records a share group may be given
group.share.max.record.lock.duration.ms | INT | 60000 | 30000 .. 3600000 | MEDIUM | read-only | accepted
    longest record lock a share group may be given
group.share.max.session.timeout.ms | INT | 60000 | >= 1 | MEDIUM | read-only | accepted
    longest session time-out a share group may be given
group.share.max.share.sessions | INT | 2000 | >= 1 | MEDIUM | read-only | accepted
    most share sessions of a broker
group.share.max.size | INT | 200 | 1 .. 1000 | MEDIUM | read-only | accepted
    most members of a share group
group.share.min.assignment.interval.ms | INT | 0 | >= 0 | MEDIUM | read-only | accepted
    shortest assignment interval a share group may be given
group.share.min.delivery.count.limit | INT | 2 | 2 .. 5 | MEDIUM | read-only | accepted
    lowest delivery count limit a share group may be given
group.share.min.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | read-only | accepted
    shortest heartbeat interval a share group may be given
group.share.min.partition.max.record.locks | INT | 100 | 100 .. 2000 | MEDIUM | read-only | accepted
    lowest limit of locked records a share group may be given
group.share.min.record.lock.duration.ms | INT | 15000 | 1000 .. 30000 | MEDIUM | read-only | accepted
    shortest record lock a share group may be given
group.share.min.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | read-only | accepted
    shortest session time-out a share group may be given
group.share.partition.max.record.locks | INT | 2000 | 100 .. 10000 | MEDIUM | read-only | accepted
    most locked records of a share partition
group.share.persister.class.name | STRING | org.apache.kafka.server.share.persister.DefaultStatePersister | | MEDIUM | \
read-only | accepted internal
    class that stores the state of share groups
group.share.record.lock.duration.ms | INT | 30000 | 1000 .. 3600000 | MEDIUM | read-only | accepted
    how long a share consumer holds a record
group.share.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | read-only | accepted
    session time-out of share groups
group.streams.assignment.interval.ms | INT | 1000 | >= 0 | MEDIUM | cluster-wide | accepted
    least time between two assignments of a streams group
group.streams.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | read-only | accepted
    heartbeat interval of streams groups
group.streams.initial.rebalance.delay.ms | INT | 3000 | >= 0 | MEDIUM | read-only | accepted
    how long a new streams group waits for more members
group.streams.max.assignment.interval.ms | INT | 15000 | >= 0 | MEDIUM | read-only | accepted
    longest assignment interval a streams group may be given
group.streams.max.heartbeat.interval.ms | INT | 15000 | >= 1 | MEDIUM | read-only | accepted
    longest heartbeat interval a streams group may be given
group.streams.max.session.timeout.ms | INT | 60000 | >= 1 | MEDIUM | read-only | accepted
    longest session time-out a streams group may be given
group.streams.max.size | INT | 2147483647 | >= 1 | MEDIUM | read-only | accepted
    most members of a streams group
group.streams.max.standby.replicas | INT | 2 | >= 0 | MEDIUM | read-only | accepted
    most standby replicas a streams group may be given
group.streams.min.assignment.interval.ms | INT | 0 | >= 0 | MEDIUM | read-only | accepted
    shortest assignment interval a streams group may be given
group.streams.min.heartbeat.interval.ms | INT | 5000 | >= 1 | MEDIUM | read-only | accepted
    shortest heartbeat interval a streams group may be given
group.streams.min.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | read-only | accepted
    shortest session time-out a streams group may be given
group.streams.num.standby.replicas | INT | 0 | >= 0 | MEDIUM | read-only | accepted
    standby replicas of each task
group.streams.session.timeout.ms | INT | 45000 | >= 1 | MEDIUM | read-only | accepted
    session time-out of streams groups
offset.metadata.max.bytes | INT | 4096 | | HIGH | read-only | honoured
    longest metadata a client may add to an offset
offsets.commit.timeout.ms | INT | 5000 | >= 1 | HIGH | read-only | accepted
    how long an offset commit waits for its replicas
offsets.load.buffer.size | INT | 5242880 | >= 1 | HIGH | read-only | accepted
    bytes read at once when offsets are loaded
offsets.retention.check.interval.ms | LONG | 600000 | >= 1 | HIGH | read-only | honoured
    how often old offsets are looked for
offsets.retention.minutes | INT | 10080 | >= 1 | HIGH | read-only | honoured
    how long offsets of an empty group are kept
offsets.topic.compression.codec | INT | 0 | | HIGH | read-only | accepted
    codec number of the offsets topic
offsets.topic.num.partitions | INT | 50 | >= 1 | HIGH | read-only | honoured
    partitions of the offsets topic
offsets.topic.replication.factor | SHORT | 3 | >= 1 | HIGH | read-only | accepted
    replicas of the offsets topic
offsets.topic.segment.bytes | INT | 104857600 | >= 1 | HIGH | read-only | honoured
    segment size of the offsets topic
share.coordinator.append.linger.ms | INT | -1 | >= -1 | MEDIUM | read-only | accepted
    how long the share coordinator gathers writes; -1 adapts
share.coordinator.cached.buffer.max.bytes | INT | 1048588 | >= 524288 | MEDIUM | cluster-wide | accepted
    largest write buffer the share coordinator keeps
share.coordinator.cold.partition.snapshot.interval.ms | INT | 300000 | >= 1 | LOW | read-only | accepted internal
    how often idle share partitions are snapshotted
share.coordinator.load.buffer.size | INT | 5242880 | >= 1 | HIGH | read-only | accepted
    bytes read at once when share state is loaded
share.coordinator.snapshot.update.records.per.snapshot | INT | 500 | 0 .. 500 | MEDIUM | read-only | accepted
    share state updates between two snapshots
share.coordinator.state.topic.compression.codec | INT | 0 | | HIGH | read-only | accepted
    codec number of the share state topic
share.coordinator.state.topic.min.isr | SHORT | 2 | >= 1 | HIGH | read-only | accepted
    min.insync.replicas of the share state topic
share.coordinator.state.topic.num.partitions | INT | 50 | >= 1 | HIGH | read-only | accepted
    partitions of the share state topic
share.coordinator.state.topic.prune.interval.ms | INT | 300000 | >= 1 | LOW | read-only | accepted internal
    how often the share state topic is pruned
share.coordinator.state.topic.replication.factor | SHORT | 3 | >= 1 | HIGH | read-only | accepted
    replicas of the share state topic
share.coordinator.state.topic.segment.bytes | INT | 104857600 | >= 1 | HIGH | read-only | accepted
    segment size of the share state topic
share.coordinator.threads | INT | 1 | >= 1 | MEDIUM | read-only | accepted
    threads of the share coordinator
share.coordinator.write.timeout.ms | INT | 5000 | >= 1 | HIGH | read-only | accepted
    how long a share state write waits for its replicas
share.fetch.purgatory.purge.interval.requests | INT | 1000 | | MEDIUM | read-only | accepted
    requests after which waiting share fetches are cleaned up
"""

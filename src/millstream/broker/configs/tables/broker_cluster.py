"""Broker configs of other brokers and the controllers: what a one-node server has little use for.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
alter.log.dirs.replication.quota.window.num | INT | 11 | >= 1 | LOW | read-only | accepted
    samples kept for quotas of moves between log folders
alter.log.dirs.replication.quota.window.size.seconds | INT | 1 | >= 1 | LOW | read-only | accepted
    length of a sample for quotas of moves between log folders
auto.leader.rebalance.enable | BOOLEAN | true | | HIGH | read-only | accepted
    move leadership back to preferred replicas
broker.heartbeat.interval.ms | INT | 2000 | | MEDIUM | read-only | accepted
    pause between heartbeats to the controller
broker.session.timeout.ms | INT | 9000 | | MEDIUM | read-only | accepted
    how long the controller waits for a heartbeat before it fences the broker
controlled.shutdown.enable | BOOLEAN | true | | MEDIUM | read-only | accepted
    hand leadership over before stopping
controller.listener.names | LIST | null | different, at least one | HIGH | read-only | honoured
    listeners that the controller uses
controller.performance.always.log.threshold.ms | LONG | 2000 | >= 0 | MEDIUM | read-only | accepted internal
    controller events slower than this are always logged
controller.performance.sample.period.ms | LONG | 60000 | >= 100 | MEDIUM | read-only | accepted internal
    how often the controller logs its performance
controller.quorum.append.linger.ms | INT | 25 | >= 0 | MEDIUM | read-only | accepted
    how long the controller gathers writes
controller.quorum.auto.join.enable | BOOLEAN | false | | LOW | read-only | accepted
    join the controllers by itself
controller.quorum.bootstrap.servers | LIST | '' | different | HIGH | read-only | accepted
    addresses by which the controllers are found
controller.quorum.election.backoff.max.ms | INT | 1000 | >= 0 | HIGH | read-only | accepted
    longest wait before another election
controller.quorum.election.timeout.ms | INT | 1000 | >= 0 | HIGH | read-only | accepted
    how long a candidate waits for votes
controller.quorum.fetch.max.bytes | INT | 1048576 | >= 1 | LOW | read-only | accepted
    bytes of the metadata log fetched at once
controller.quorum.fetch.snapshot.max.bytes | INT | 1048576 | >= 1 | LOW | read-only | accepted
    bytes of a snapshot fetched at once
controller.quorum.fetch.timeout.ms | INT | 2000 | >= 0 | HIGH | read-only | accepted
    how long a controller waits for the leader before an election
controller.quorum.request.timeout.ms | INT | 2000 | >= 0 | MEDIUM | read-only | accepted
    how long a controller waits for an answer
controller.quorum.retry.backoff.ms | INT | 20 | >= 0 | LOW | read-only | accepted
    pause before a controller request is tried again
controller.quorum.voters | LIST | '' | different | HIGH | read-only | accepted
    the controllers, as id@host:port
controller.quota.window.num | INT | 11 | >= 1 | LOW | read-only | honoured
    samples kept for quotas of mutations
controller.quota.window.size.seconds | INT | 1 | >= 1 | LOW | read-only | honoured
    length of a sample for quotas of mutations
controller.socket.timeout.ms | INT | 30000 | | MEDIUM | read-only | accepted
    socket time-out between controller and broker
cordoned.log.dirs | LIST | '' | different | MEDIUM | per-broker | accepted
    log folders that take no new replicas
default.replication.factor | INT | 1 | | MEDIUM | read-only | honoured
    replicas of a topic created without saying how many
initial.broker.registration.timeout.ms | INT | 60000 | | MEDIUM | read-only | accepted
    how long a broker tries to register with the controllers
inter.broker.listener.name | STRING | null | | MEDIUM | read-only | accepted
    listener that brokers use among themselves
internal.metadata.delete.delay.millis | LONG | 60000 | | LOW | read-only | accepted internal
    wait before a metadata segment is deleted, for tests
internal.metadata.log.segment.bytes | INT | null | | LOW | read-only | accepted internal
    size of a metadata segment, for tests
internal.metadata.max.batch.size.in.bytes | INT | 8388608 | | LOW | read-only | accepted internal
    largest batch of the metadata log, for tests
leader.imbalance.check.interval.seconds | LONG | 300 | >= 1 | HIGH | read-only | accepted
    how often leadership is checked for imbalance
log.dir.failure.timeout.ms | LONG | 30000 | >= 1 | LOW | read-only | accepted
    how long a failed log folder may stay unreported
metadata.log.dir | STRING | null | | HIGH | read-only | accepted
    folder of the metadata log
metadata.log.max.record.bytes.between.snapshots | LONG | 20971520 | >= 1 | HIGH | read-only | accepted
    bytes of metadata after which a snapshot is taken
metadata.log.max.snapshot.interval.ms | LONG | 3600000 | >= 0 | HIGH | read-only | accepted
    time after which a metadata snapshot is taken
metadata.log.segment.bytes | INT | 1073741824 | >= 8388608 | HIGH | read-only | accepted
    size of a segment of the metadata log
metadata.log.segment.ms | LONG | 604800000 | | HIGH | read-only | accepted
    age at which a segment of the metadata log is rolled
metadata.max.idle.interval.ms | INT | 500 | >= 0 | LOW | read-only | accepted
    how often the controller writes a no-op record
metadata.max.retention.bytes | LONG | 104857600 | | HIGH | read-only | accepted
    size the metadata log and its snapshots may have
metadata.max.retention.ms | LONG | 604800000 | | HIGH | read-only | accepted
    how long old metadata segments are kept
num.replica.alter.log.dirs.threads | INT | null | | HIGH | read-only | accepted
    threads that move replicas between log folders
num.replica.fetchers | INT | 1 | >= 1 | HIGH | cluster-wide | accepted
    threads that fetch from one other broker
process.roles | LIST | null | some of broker, controller | HIGH | read-only | accepted
    what this node does: broker, controller or both
replica.fetch.backoff.ms | INT | 1000 | >= 0 | MEDIUM | read-only | accepted
    pause after a follower's fetch failed
replica.fetch.max.bytes | INT | 1048576 | >= 0 | MEDIUM | read-only | accepted
    bytes a follower fetches for one partition
replica.fetch.min.bytes | INT | 1 | | HIGH | read-only | accepted
    fewest bytes a follower's fetch waits for
replica.fetch.response.max.bytes | INT | 10485760 | >= 0 | MEDIUM | read-only | accepted
    bytes in the answer to a follower's fetch
replica.fetch.wait.max.ms | INT | 500 | | HIGH | read-only | accepted
    longest wait of a follower's fetch
replica.high.watermark.checkpoint.interval.ms | LONG | 5000 | | HIGH | read-only | accepted
    how often high watermarks are written to disk
replica.lag.time.max.ms | LONG | 30000 | | HIGH | read-only | accepted
    how long a follower may lag before it leaves the in-sync replicas
replica.selector.class | STRING | null | | MEDIUM | read-only | accepted
    class that picks the replica a consumer reads from
replica.socket.receive.buffer.bytes | INT | 65536 | | HIGH | read-only | accepted
    SO_RCVBUF of a follower's fetch
replica.socket.timeout.ms | INT | 30000 | | HIGH | read-only | accepted
    socket time-out of a follower's fetch
replication.quota.window.num | INT | 11 | >= 1 | LOW | read-only | accepted
    samples kept for replication quotas
replication.quota.window.size.seconds | INT | 1 | >= 1 | LOW | read-only | accepted
    length of a sample for replication quotas
server.max.startup.time.ms | LONG | 9223372036854775807 | >= 0 | MEDIUM | read-only | accepted internal
    how long a start may take
unclean.leader.election.enable | BOOLEAN | false | | HIGH | cluster-wide | accepted
    let a replica outside the in-sync set lead, losing data
unclean.leader.election.interval.ms | LONG | 300000 | >= 1 | MEDIUM | read-only | accepted internal
    how often the controller looks for unclean elections to hold
"""

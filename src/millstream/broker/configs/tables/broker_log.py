"""Broker configs of topics and logs; most are the default of a topic config.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
alter.config.policy.class.name | CLASS | null | | LOW | read-only | accepted
    class that may refuse a change of configs
auto.create.topics.enable | BOOLEAN | true | | HIGH | read-only | honoured
    create a topic when a client asks for it
compression.gzip.level | INT | -1 | 1 .. 9 or -1 | MEDIUM | cluster-wide | honoured
    gzip level when the broker compresses
compression.lz4.level | INT | 9 | 1 .. 17 | MEDIUM | cluster-wide | honoured
    lz4 level when the broker compresses
compression.type | STRING | producer | one of uncompressed, zstd, lz4, snappy, gzip, producer | HIGH | cluster-wide | \
honoured
    codec in which topics store batches; producer keeps what was sent
compression.zstd.level | INT | 3 | -131072 .. 22 | MEDIUM | cluster-wide | honoured
    zstd level when the broker compresses
create.topic.policy.class.name | CLASS | null | | LOW | read-only | accepted
    class that may refuse the creation of a topic
delete.topic.enable | BOOLEAN | true | | HIGH | read-only | honoured
    let clients delete topics
log.cleaner.backoff.ms | LONG | 15000 | >= 0 | MEDIUM | cluster-wide | honoured
    pause of the log cleaner when there is nothing to do
log.cleaner.dedupe.buffer.size | LONG | 134217728 | | MEDIUM | cluster-wide | honoured
    memory for the keys of a compaction
log.cleaner.delete.retention.ms | LONG | 86400000 | >= 0 | MEDIUM | cluster-wide | honoured
    how long tombstones are kept
log.cleaner.enable | BOOLEAN | true | | MEDIUM | read-only | honoured
    compact logs
log.cleaner.io.buffer.load.factor | DOUBLE | 0.9 | | MEDIUM | cluster-wide | accepted
    how full the key buffer of the log cleaner may get
log.cleaner.io.buffer.size | INT | 524288 | >= 0 | MEDIUM | cluster-wide | accepted
    memory for reads and writes of the log cleaner
log.cleaner.io.max.bytes.per.second | DOUBLE | 1.7976931348623157E308 | | MEDIUM | cluster-wide | accepted
    rate of reads and writes of the log cleaner
log.cleaner.max.compaction.lag.ms | LONG | 9223372036854775807 | >= 1 | MEDIUM | cluster-wide | honoured
    age at which a record must be compacted
log.cleaner.min.cleanable.ratio | DOUBLE | 0.5 | 0 .. 1 | MEDIUM | cluster-wide | honoured
    share of a log that must be dirty before it is compacted
log.cleaner.min.compaction.lag.ms | LONG | 0 | >= 0 | MEDIUM | cluster-wide | honoured
    age a record must have before it is compacted
log.cleaner.threads | INT | 1 | >= 0 | MEDIUM | cluster-wide | accepted
    threads that compact logs
log.cleanup.policy | LIST | delete | any of compact, delete | MEDIUM | cluster-wide | honoured
    what happens to old records: delete, compact or both
log.dir | LIST | /tmp/kafka-logs | different, at least one | HIGH | read-only | honoured
    folder of the logs when log.dirs is not set
log.dirs | LIST | null | different, at least one | HIGH | read-only | honoured
    folder of the logs
log.flush.interval.messages | LONG | 9223372036854775807 | >= 1 | HIGH | cluster-wide | honoured
    records after which a log is flushed to disk
log.flush.interval.ms | LONG | null | | HIGH | cluster-wide | honoured
    longest time a record stays unflushed
log.flush.offset.checkpoint.interval.ms | INT | 60000 | >= 0 | HIGH | read-only | honoured
    how often the recovery point is written
log.flush.scheduler.interval.ms | LONG | 9223372036854775807 | | HIGH | read-only | honoured
    how often logs are looked through for what must be flushed
log.flush.start.offset.checkpoint.interval.ms | INT | 60000 | >= 0 | HIGH | read-only | accepted
    how often log start offsets are written
log.index.interval.bytes | INT | 4096 | >= 0 | MEDIUM | cluster-wide | honoured
    bytes of log between two index entries
log.index.size.max.bytes | INT | 10485760 | >= 4 | MEDIUM | cluster-wide | honoured
    largest offset index
log.initial.task.delay.ms | LONG | 30000 | >= 0 | LOW | read-only | honoured internal
    wait after start before background work on logs begins
log.message.timestamp.after.max.ms | LONG | 3600000 | >= 0 | MEDIUM | cluster-wide | honoured
    how far a record's time may lie in the future
log.message.timestamp.before.max.ms | LONG | 9223372036854775807 | >= 0 | MEDIUM | cluster-wide | honoured
    how far a record's time may lie in the past
log.message.timestamp.type | STRING | CreateTime | one of CreateTime, LogAppendTime | MEDIUM | cluster-wide | honoured
    whose clock stamps records: CreateTime or LogAppendTime
log.preallocate | BOOLEAN | false | | MEDIUM | cluster-wide | honoured
    allocate a segment's space when it is created
log.retention.bytes | LONG | -1 | | HIGH | cluster-wide | honoured
    size a log may have before its oldest segments go; -1 is no limit
log.retention.check.interval.ms | LONG | 300000 | >= 1 | MEDIUM | read-only | honoured
    how often logs are looked through for what retention deletes
log.retention.hours | INT | 168 | | HIGH | read-only | honoured
    how long records are kept, in hours
log.retention.minutes | INT | null | | HIGH | read-only | honoured
    how long records are kept, in minutes
log.retention.ms | LONG | null | | HIGH | cluster-wide | honoured
    how long records are kept; -1 is for ever
log.roll.hours | INT | 168 | >= 1 | HIGH | read-only | honoured
    age at which a segment is rolled, in hours
log.roll.jitter.hours | INT | 0 | >= 0 | HIGH | read-only | honoured
    random part of the age at which a segment is rolled, in hours
log.roll.jitter.ms | LONG | null | | HIGH | cluster-wide | honoured
    random part of the age at which a segment is rolled
log.roll.ms | LONG | null | | HIGH | cluster-wide | honoured
    age at which a segment is rolled
log.segment.bytes | INT | 1073741824 | >= 1048576 | HIGH | cluster-wide | honoured
    size at which a segment is rolled
log.segment.delete.delay.ms | LONG | 60000 | >= 0 | HIGH | cluster-wide | honoured
    wait before the files of a deleted segment are removed
message.max.bytes | INT | 1048588 | >= 0 | HIGH | cluster-wide | honoured
    largest batch a topic takes, after compression, unless the topic says otherwise
min.insync.replicas | INT | 1 | >= 1 | HIGH | cluster-wide | accepted
    replicas that must have a record before acks=all is answered
num.partitions | INT | 1 | >= 1 | MEDIUM | read-only | honoured
    partitions of a topic created without saying how many
num.recovery.threads.per.data.dir | INT | 2 | >= 1 | HIGH | cluster-wide | accepted
    threads that recover logs at start
"""

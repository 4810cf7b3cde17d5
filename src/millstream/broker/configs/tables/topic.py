"""Topic configs.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
cleanup.policy | LIST | delete | any of compact, delete | MEDIUM | cluster-wide | honoured
    what happens to old records: delete, compact or both
compression.gzip.level | INT | -1 | 1 .. 9 or -1 | MEDIUM | cluster-wide | honoured
    gzip level when the broker compresses
compression.lz4.level | INT | 9 | 1 .. 17 | MEDIUM | cluster-wide | honoured
    lz4 level when the broker compresses
compression.type | STRING | producer | one of uncompressed, zstd, lz4, snappy, gzip, producer | MEDIUM | \
cluster-wide | honoured
    codec in which topics store batches; producer keeps what was sent
compression.zstd.level | INT | 3 | -131072 .. 22 | MEDIUM | cluster-wide | honoured
    zstd level when the broker compresses
delete.retention.ms | LONG | 86400000 | >= 0 | MEDIUM | cluster-wide | honoured
    how long tombstones are kept
file.delete.delay.ms | LONG | 60000 | >= 0 | MEDIUM | cluster-wide | honoured
    wait before the files of a deleted segment are removed
flush.messages | LONG | 9223372036854775807 | >= 1 | MEDIUM | cluster-wide | honoured
    records after which the log is flushed to disk
flush.ms | LONG | 9223372036854775807 | >= 0 | MEDIUM | cluster-wide | honoured
    longest time a record stays unflushed
follower.replication.throttled.replicas | LIST | '' | throttled replicas | MEDIUM | cluster-wide | accepted
    replicas whose follower is throttled, as partition:broker
index.interval.bytes | INT | 4096 | >= 0 | MEDIUM | cluster-wide | honoured
    bytes of log between two index entries
internal.segment.bytes | INT | null | | MEDIUM | cluster-wide | honoured internal
    size at which a segment is rolled, for tests
leader.replication.throttled.replicas | LIST | '' | throttled replicas | MEDIUM | cluster-wide | accepted
    replicas whose leader is throttled, as partition:broker
local.retention.bytes | LONG | -2 | >= -2 | MEDIUM | cluster-wide | accepted
    how much of a tiered log also stays on local disk; -2 is all of it
local.retention.ms | LONG | -2 | >= -2 | MEDIUM | cluster-wide | accepted
    how long a tiered segment also stays on local disk; -2 is as long as the log
max.compaction.lag.ms | LONG | 9223372036854775807 | >= 1 | MEDIUM | cluster-wide | honoured
    age at which a record must be compacted
max.message.bytes | INT | 1048588 | >= 0 | MEDIUM | cluster-wide | honoured
    largest batch the topic takes, after compression
message.timestamp.after.max.ms | LONG | 3600000 | >= 0 | MEDIUM | cluster-wide | honoured
    how far a record's time may lie in the future
message.timestamp.before.max.ms | LONG | 9223372036854775807 | >= 0 | MEDIUM | cluster-wide | honoured
    how far a record's time may lie in the past
message.timestamp.type | STRING | CreateTime | one of CreateTime, LogAppendTime | MEDIUM | cluster-wide | honoured
    whose clock stamps records: CreateTime or LogAppendTime
min.cleanable.dirty.ratio | DOUBLE | 0.5 | 0 .. 1 | MEDIUM | cluster-wide | honoured
    share of the log that must be dirty before it is compacted
min.compaction.lag.ms | LONG | 0 | >= 0 | MEDIUM | cluster-wide | honoured
    age a record must have before it is compacted
min.insync.replicas | INT | 1 | >= 1 | MEDIUM | cluster-wide | accepted
    replicas that must have a record before acks=all is answered
preallocate | BOOLEAN | false | | MEDIUM | cluster-wide | honoured
    allocate a segment's space when it is created
remote.log.copy.disable | BOOLEAN | false | | MEDIUM | cluster-wide | accepted
    stop copying to the remote store
remote.log.delete.on.disable | BOOLEAN | false | | MEDIUM | cluster-wide | accepted
    delete what is tiered when tiering is turned off
remote.storage.enable | BOOLEAN | false | | MEDIUM | cluster-wide | accepted
    keep old segments in the remote store
retention.bytes | LONG | -1 | | MEDIUM | cluster-wide | honoured
    size a partition may have before its oldest segments go; -1 is no limit
retention.ms | LONG | 604800000 | >= -1 | MEDIUM | cluster-wide | honoured
    how long records are kept; -1 is for ever
segment.bytes | INT | 1073741824 | >= 1048576 | MEDIUM | cluster-wide | honoured
    size at which a segment is rolled
segment.index.bytes | INT | 10485760 | >= 4 | MEDIUM | cluster-wide | honoured
    largest offset index
segment.jitter.ms | LONG | 0 | >= 0 | MEDIUM | cluster-wide | honoured
    random part of the age at which a segment is rolled
segment.ms | LONG | 604800000 | >= 1 | MEDIUM | cluster-wide | honoured
    age at which a segment is rolled
unclean.leader.election.enable | BOOLEAN | false | | MEDIUM | cluster-wide | accepted
    let a replica outside the in-sync set lead, losing data
"""

"""Broker configs of tiered storage. Accepted for compatibility: this server keeps its logs on local disk.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
follower.fetch.last.tiered.offset.enable | BOOLEAN | false | | MEDIUM | cluster-wide | accepted
    let new followers start behind what is tiered
log.local.retention.bytes | LONG | -2 | >= -2 | MEDIUM | cluster-wide | accepted
    how much of a tiered log also stays on local disk; -2 is all of it
log.local.retention.ms | LONG | -2 | >= -2 | MEDIUM | cluster-wide | accepted
    how long a tiered segment also stays on local disk; -2 is as long as the log
remote.fetch.max.wait.ms | INT | 500 | >= 1 | MEDIUM | cluster-wide | accepted
    how long a fetch waits for the remote store
remote.list.offsets.request.timeout.ms | LONG | 30000 | >= 1 | MEDIUM | cluster-wide | accepted
    how long ListOffsets waits for the remote store
remote.log.index.file.cache.total.size.bytes | LONG | 1073741824 | >= 1 | LOW | cluster-wide | accepted
    disk space for cached indexes of remote segments
remote.log.index.file.cache.ttl.ms | LONG | 900000 | >= -1 | LOW | read-only | accepted internal
    how long an index of a remote segment stays cached
remote.log.manager.copier.thread.pool.size | INT | 10 | >= 1 | MEDIUM | cluster-wide | accepted
    threads that copy segments to the remote store
remote.log.manager.copy.max.bytes.per.second | LONG | 9223372036854775807 | >= 1 | MEDIUM | cluster-wide | accepted
    rate at which segments are copied to the remote store
remote.log.manager.copy.quota.window.num | INT | 11 | >= 1 | MEDIUM | read-only | accepted
    samples kept for the rate of remote copies
remote.log.manager.copy.quota.window.size.seconds | INT | 1 | >= 1 | MEDIUM | read-only | accepted
    length of a sample for the rate of remote copies
remote.log.manager.expiration.thread.pool.size | INT | 10 | >= 1 | MEDIUM | cluster-wide | accepted
    threads that delete expired remote segments
remote.log.manager.fetch.max.bytes.per.second | LONG | 9223372036854775807 | >= 1 | MEDIUM | cluster-wide | accepted
    rate at which the remote store is read
remote.log.manager.fetch.quota.window.num | INT | 11 | >= 1 | MEDIUM | read-only | accepted
    samples kept for the rate of remote reads
remote.log.manager.fetch.quota.window.size.seconds | INT | 1 | >= 1 | MEDIUM | read-only | accepted
    length of a sample for the rate of remote reads
remote.log.manager.follower.thread.pool.size | INT | 2 | >= 1 | MEDIUM | cluster-wide | accepted
    threads for remote storage tasks of followers
remote.log.manager.task.interval.ms | LONG | 30000 | >= 1 | LOW | read-only | accepted
    pause between two runs of the remote storage tasks
remote.log.manager.task.retry.backoff.max.ms | LONG | 30000 | >= 1 | LOW | read-only | accepted internal
    longest wait before a remote storage task is tried again
remote.log.manager.task.retry.backoff.ms | LONG | 500 | >= 1 | LOW | read-only | accepted internal
    first wait before a remote storage task is tried again
remote.log.manager.task.retry.jitter | DOUBLE | 0.2 | 0 .. 0.5 | LOW | read-only | accepted internal
    random share of the wait of remote storage tasks
remote.log.manager.thread.pool.size | INT | 2 | >= 1 | MEDIUM | read-only | accepted
    threads for remote storage tasks
remote.log.metadata.custom.metadata.max.bytes | INT | 128 | >= 0 | LOW | read-only | accepted
    most custom bytes the remote storage plugin may add to a segment
remote.log.metadata.manager.class.name | STRING | \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager | not empty | MEDIUM | \
read-only | accepted
    class of the remote metadata plugin
remote.log.metadata.manager.class.path | STRING | null | | MEDIUM | read-only | accepted
    where the remote metadata plugin is loaded from
remote.log.metadata.manager.impl.prefix | STRING | rlmm.config. | not empty | MEDIUM | read-only | accepted
    prefix of the settings handed to the remote metadata plugin
remote.log.metadata.manager.listener.name | STRING | null | not empty | MEDIUM | read-only | accepted
    listener by which the remote metadata plugin reaches the broker
remote.log.reader.max.pending.tasks | INT | 100 | >= 1 | MEDIUM | read-only | accepted
    most reads that may wait for the remote store
remote.log.reader.threads | INT | 10 | >= 1 | MEDIUM | cluster-wide | accepted
    threads that read from the remote store
remote.log.storage.manager.class.name | STRING | null | not empty | MEDIUM | read-only | accepted
    class of the remote storage plugin
remote.log.storage.manager.class.path | STRING | null | | MEDIUM | read-only | accepted
    where the remote storage plugin is loaded from
remote.log.storage.manager.impl.prefix | STRING | rsm.config. | not empty | MEDIUM | read-only | accepted
    prefix of the settings handed to the remote storage plugin
remote.log.storage.system.enable | BOOLEAN | false | | MEDIUM | read-only | accepted
    keep old segments in a remote store
"""

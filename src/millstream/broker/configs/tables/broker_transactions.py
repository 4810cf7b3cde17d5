"""Broker configs of transactions, producers and the transaction coordinator.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
add.partitions.to.txn.retry.backoff.max.ms | INT | 100 | >= 0 | HIGH | read-only | accepted
    longest wait before a partition is added to a busy transaction again
add.partitions.to.txn.retry.backoff.ms | INT | 20 | >= 1 | HIGH | read-only | accepted
    wait before a partition is added to a busy transaction again
producer.id.expiration.check.interval.ms | INT | 600000 | >= 1 | LOW | read-only | honoured internal
    how often idle producers are looked for
producer.id.expiration.ms | INT | 86400000 | >= 1 | LOW | cluster-wide | honoured
    how long the state of an idle producer is kept
transaction.abort.timed.out.transaction.cleanup.interval.ms | INT | 10000 | >= 1 | LOW | read-only | honoured
    how often timed-out transactions are looked for
transaction.max.timeout.ms | INT | 900000 | >= 1 | HIGH | read-only | honoured
    longest transaction time-out a producer may ask for
transaction.partition.verification.enable | BOOLEAN | true | | LOW | cluster-wide | honoured
    check that a partition was added to the transaction that writes to it
transaction.remove.expired.transaction.cleanup.interval.ms | INT | 3600000 | >= 1 | LOW | read-only | honoured
    how often expired transactional ids are looked for
transaction.state.log.load.buffer.size | INT | 5242880 | >= 1 | HIGH | read-only | accepted
    bytes read at once when transactions are loaded
transaction.state.log.min.isr | INT | 2 | >= 1 | HIGH | read-only | accepted
    min.insync.replicas of the transaction topic
transaction.state.log.num.partitions | INT | 50 | >= 1 | HIGH | read-only | honoured
    partitions of the transaction topic
transaction.state.log.replication.factor | SHORT | 3 | >= 1 | HIGH | read-only | accepted
    replicas of the transaction topic
transaction.state.log.segment.bytes | INT | 104857600 | >= 1 | HIGH | read-only | honoured
    segment size of the transaction topic
transaction.two.phase.commit.enable | BOOLEAN | false | | LOW | read-only | accepted
    let producers take part in two-phase commits
transactional.id.expiration.ms | INT | 604800000 | >= 1 | HIGH | read-only | honoured
    how long an unused transactional id is kept
"""

"""The one set of server settings under which the behaviour and client suites run, whatever the server is.

Small internal topics and short bounds, so that time-outs can be tested in about a second. A cluster given by
`--bootstrap-servers` must have been started with the same settings.
"""

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "100",
}

"""Broker configs of the node, its sockets, its requests, its quotas and its metrics.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
advertised.listeners | LIST | null | different, at least one | HIGH | read-only | honoured
    addresses told to clients; the listeners themselves if not set
background.threads | INT | 10 | >= 1 | HIGH | cluster-wide | accepted
    threads for background work
broker.id | INT | -1 | | HIGH | read-only | honoured
    the old name of node.id
broker.rack | STRING | null | | MEDIUM | read-only | honoured
    the rack this broker stands in, told to clients
client.quota.callback.class | CLASS | null | | LOW | read-only | accepted
    class that decides which quota a client has
config.providers | LIST | '' | different | LOW | cluster-wide | accepted
    names of the plugins that look up setting values
connections.max.idle.ms | LONG | 600000 | | MEDIUM | read-only | honoured
    connections idle for longer are closed
delete.records.purgatory.purge.interval.requests | INT | 1 | | MEDIUM | read-only | accepted
    requests after which waiting DeleteRecords are cleaned up
early.start.listeners | LIST | null | different | HIGH | read-only | accepted
    listeners opened before the authorizer is ready
fetch.max.bytes | INT | 57671680 | >= 1024 | MEDIUM | read-only | honoured
    most bytes in the answer to one fetch
fetch.purgatory.purge.interval.requests | INT | 1000 | | MEDIUM | read-only | accepted
    requests after which waiting fetches are cleaned up
kafka.metrics.polling.interval.secs | INT | 10 | >= 1 | LOW | read-only | accepted
    how often the older metrics are reported
kafka.metrics.reporters | LIST | '' | different | LOW | read-only | accepted
    classes that report the older metrics
listener.security.protocol.map | STRING | \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT | | LOW | per-broker | honoured
    the security protocol of each listener name
listeners | LIST | PLAINTEXT://:9092 | different, at least one | HIGH | per-broker | honoured
    addresses the server listens on, as NAME://host:port
max.connection.creation.rate | INT | 2147483647 | >= 0 | MEDIUM | cluster-wide | accepted
    most new connections a second
max.connections | INT | 2147483647 | >= 0 | MEDIUM | cluster-wide | honoured
    most connections of the server
max.connections.per.ip | INT | 2147483647 | >= 0 | MEDIUM | cluster-wide | honoured
    most connections from one address
max.connections.per.ip.overrides | STRING | '' | | MEDIUM | cluster-wide | honoured
    own limits for single addresses, as host:count
max.incremental.fetch.session.cache.slots | INT | 1000 | >= 0 | MEDIUM | read-only | honoured
    how many fetch sessions are kept
max.request.partition.size.limit | INT | 2000 | >= 1 | MEDIUM | read-only | honoured
    most partitions in the answer to one DescribeTopicPartitions
metric.reporters | LIST | org.apache.kafka.common.metrics.JmxReporter | different | LOW | cluster-wide | accepted
    classes that report metrics
metrics.num.samples | INT | 2 | >= 1 | LOW | read-only | accepted
    samples kept for a metric
metrics.recording.level | STRING | INFO | | LOW | read-only | accepted
    how much is recorded in metrics
metrics.sample.window.ms | LONG | 30000 | >= 1 | LOW | read-only | accepted
    length of a sample of a metric
node.id | INT | null | >= 0 | HIGH | read-only | honoured
    the number of this node
num.io.threads | INT | 8 | >= 1 | HIGH | cluster-wide | accepted
    threads that handle requests
num.network.threads | INT | 3 | >= 1 | HIGH | cluster-wide | accepted
    threads that read and write the network
producer.purgatory.purge.interval.requests | INT | 1000 | | MEDIUM | read-only | accepted
    requests after which waiting produces are cleaned up
queued.max.request.bytes | LONG | -1 | | MEDIUM | read-only | honoured
    bytes of requests that may wait before the network stops being read; -1 is no limit
queued.max.requests | INT | 500 | >= 1 | HIGH | read-only | accepted
    requests that may wait before the network stops being read
quota.window.num | INT | 11 | >= 1 | LOW | read-only | honoured
    samples kept for client quotas
quota.window.size.seconds | INT | 1 | >= 1 | LOW | read-only | honoured
    length of a sample for client quotas
request.timeout.ms | INT | 30000 | | HIGH | read-only | accepted
    how long the broker waits for an answer from another broker
socket.connection.setup.timeout.max.ms | LONG | 30000 | | MEDIUM | read-only | accepted
    longest wait for a connection to another node
socket.connection.setup.timeout.ms | LONG | 10000 | | MEDIUM | read-only | accepted
    first wait for a connection to another node
socket.listen.backlog.size | INT | 50 | >= 1 | MEDIUM | read-only | honoured
    connections that may wait to be accepted
socket.receive.buffer.bytes | INT | 102400 | | HIGH | read-only | honoured
    SO_RCVBUF of client connections; -1 leaves it to the system
socket.request.max.bytes | INT | 104857600 | >= 1 | HIGH | read-only | honoured
    largest request that is read
socket.send.buffer.bytes | INT | 102400 | | HIGH | read-only | honoured
    SO_SNDBUF of client connections; -1 leaves it to the system
telemetry.max.bytes | INT | 1048576 | >= 1 | LOW | read-only | accepted
    largest metrics push of a client
unstable.api.versions.enable | BOOLEAN | false | | HIGH | read-only | accepted internal
    offer API versions that are still in development
unstable.feature.versions.enable | BOOLEAN | false | | HIGH | read-only | accepted internal
    offer feature levels that are still in development
"""

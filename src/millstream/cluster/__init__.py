"""A Kafka cluster seen from outside: what the commands do, through public clients, to any cluster at any address.

Here live the operations behind the command line (topics, records, groups, configs, brokers, transactions, moving to
another cluster, measuring) and how a cluster is named (contexts). Records go through confluent-kafka, administration
through kafka-python's admin client, which covers all of it. Nothing here knows Millstream's own server, and nothing
prints: results are returned, progress is told to callbacks, and failures are `ClusterError`.
"""

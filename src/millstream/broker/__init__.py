"""What Kafka's protocol means: topics, groups, transactions, configs, quotas, and one handler for each API.

Everything here runs on the event loop's thread and is driven by messages and timers; sockets are the server's matter,
files the log's. `broker.broker.Broker` puts the parts together, `broker.apis` answers the requests.
"""

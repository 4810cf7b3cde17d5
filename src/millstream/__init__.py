"""Millstream: a streaming data platform in one `pip install`.

The packages, lowest first; each imports only those before it:

- `wire`: Kafka's bytes: messages, record batches, errors. No I/O, no clock.
- `log`: one partition on disk: segments, indexes, producer state, retention, compaction, recovery.
- `broker`: what the protocol means: topics, groups, transactions, configs, one handler for each API.
- `server`: sockets, flow control, start and stop, metrics.
- `testing`: a server inside a test, and the pytest plugin.
- `cli`: what a person types.
"""

__version__ = "0.1.0"

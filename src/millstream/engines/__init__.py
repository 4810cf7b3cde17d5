"""The engines under the platform: start one here, stop it, get its address.

- `embedded`: Millstream's own log server, one process.
- `kafka`: Apache Kafka, 1 to n KRaft brokers as processes on this machine, from Maven Central's jars.

What runs on top of an engine is given an address and knows nothing of it.
"""

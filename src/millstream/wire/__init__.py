"""Kafka's bytes: protocol messages, request headers, record batches, compression, error codes.

Bytes in, values out, and back. No I/O, no clock, no state: what a message means is the broker's matter, where a batch
is stored the log's.
"""

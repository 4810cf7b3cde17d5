"""Sockets and what flows through them: listeners, connections, frames, flow control, start and stop, metrics.

Bytes are cut into frames here and handed to `broker.apis`; what a request means is not known here.
"""

"""A client that costs next to nothing: frames made beforehand, pushed over any number of connections.

It is for what a real client would hide: how a server does with a thousand connections, and how far it is from the limit
of a loop that does no more than receive and write. Each connection keeps `depth` requests under way; a response is
counted, and its length is all that is looked at.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Sequence
from itertools import cycle

from bench.loads import PATIENCE, Failed
from millstream.cluster.bench_worker import payloads
from millstream.wire.batches import Record, build_batch
from millstream.wire.codec import encode
from millstream.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_VERSION = 9
_CLIENT = b"bench"
_LENGTH = struct.Struct(">i")


def produce_frame(topic: str, *, size: int, records: int, partition: int = 0, acks: int = 1) -> bytes:
    """A whole Produce request with one batch."""
    now = int(time.time() * 1000)
    batch = build_batch(
        [Record(offset, now, None, value, []) for offset, value in enumerate((payloads(size) * records)[:records])]
    )
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    message = encode(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data]), _VERSION)
    header = struct.pack(">hhih", 0, _VERSION, 1, len(_CLIENT)) + _CLIENT + b"\0"
    return _LENGTH.pack(len(header) + len(message)) + header + message


def push(bootstrap: str, frames: Sequence[bytes], *, connections: int, requests: int, depth: int) -> float:
    """Seconds until all are answered; the connections share the frames, and each sends its own over and over."""
    host, _, port = bootstrap.rpartition(":")
    selector = selectors.DefaultSelector()
    peers = []
    for index in range(connections):
        channel = socket.create_connection((host, int(port)))
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel.setblocking(False)
        share = requests // connections + (index < requests % connections)
        mine = frames[index::connections] or [frames[index % len(frames)]]
        peers.append(_Peer(channel, mine, share, depth))
        selector.register(channel, selectors.EVENT_READ, peers[-1])
    deadline = time.monotonic() + PATIENCE
    begin = time.perf_counter()
    for peer in peers:
        peer.write(selector)
    missing = requests
    try:
        while missing:
            for key, events in selector.select(1.0):
                peer = key.data
                if events & selectors.EVENT_READ:
                    missing -= peer.read()
                peer.write(selector)
            if time.monotonic() > deadline:
                raise Failed(f"{missing} of {requests} requests have no answer after {PATIENCE:.0f} s")
        return time.perf_counter() - begin
    finally:
        for peer in peers:
            peer.channel.close()
        selector.close()


class _Peer:
    """One connection."""

    def __init__(self, channel: socket.socket, frames: Sequence[bytes], share: int, depth: int) -> None:
        self.channel = channel
        self._frames = cycle([memoryview(frame) for frame in frames])
        self._to_send, self._depth = share, depth
        self._rest = memoryview(b"")
        self._under_way = 0
        self._received = b""
        self._waits_to_write = False

    def write(self, selector: selectors.BaseSelector) -> None:
        blocked = False
        while not blocked:
            if not self._rest:
                if not self._to_send or self._under_way >= self._depth:
                    break
                self._rest = next(self._frames)
                self._to_send -= 1
                self._under_way += 1
            try:
                self._rest = self._rest[self.channel.send(self._rest) :]
            except BlockingIOError:
                blocked = True
        if blocked != self._waits_to_write:
            self._waits_to_write = blocked
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if blocked else 0)
            selector.modify(self.channel, events, self)

    def read(self) -> int:
        """How many responses have come."""
        data = self.channel.recv(1 << 16)
        if not data:
            raise Failed("the server closed the connection")
        self._received += data
        count = position = 0
        while position + 4 <= len(self._received):
            end = position + 4 + _LENGTH.unpack_from(self._received, position)[0]
            if end > len(self._received):
                break
            position, count = end, count + 1
        self._received = self._received[position:]
        self._under_way -= count
        return count

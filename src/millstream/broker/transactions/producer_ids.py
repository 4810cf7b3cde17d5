"""Producer ids: every one is handed out once, for ever.

They come in blocks. A block is reserved durably before its first id is used (`reserve_block`, the broker's metadata
store); what is left of a block at a crash or a stop is lost, not reused. There are 2^63 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from millstream.wire.errors import ErrorCode, KafkaError

BLOCK_SIZE: Final = 1000
"""How many ids `reserve_block` is expected to reserve at a time, as Kafka's controller does."""
_MAX_ID: Final = (1 << 63) - 1


class ProducerIds:
    def __init__(self, reserve_block: Callable[[], range]) -> None:
        self._reserve_block = reserve_block
        self._block = range(0)

    def next(self) -> int:
        """A producer id that nobody else has. KafkaError if no block could be reserved."""
        if not self._block:
            block = self._reserve_block()
            if not block or block.step != 1 or block[0] < 0 or block[-1] > _MAX_ID:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{block} is not a block of producer ids")
            self._block = block
        producer_id = self._block[0]
        self._block = self._block[1:]
        return producer_id

"""The settings of a log: Kafka's topic configs in snake_case, with Kafka's defaults.

Only what the log itself needs is here; where the values come from (topic, broker default, file) is the broker's matter.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from millstream.wire.compression import (
    GZIP_DEFAULT_LEVEL,
    LZ4_DEFAULT_LEVEL,
    ZSTD_DEFAULT_LEVEL,
    Compression,
)

LONG_MAX: Final = 9223372036854775807

_CODEC_NAMES: Final = {
    "none": Compression.NONE,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


class LogConfig(NamedTuple):
    """One immutable value, shared by all partitions of a topic."""

    cleanup_policy: frozenset[str] = frozenset(("delete",))
    compression_type: str = "producer"
    compression_gzip_level: int = GZIP_DEFAULT_LEVEL
    compression_lz4_level: int = LZ4_DEFAULT_LEVEL
    compression_zstd_level: int = ZSTD_DEFAULT_LEVEL
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def max_segment_ms(self) -> int:
        """A compacted topic rolls in time for max.compaction.lag.ms, since the active segment is never compacted."""
        if self.compact and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    def target_compression(self, source: Compression) -> Compression:
        """The codec the batches of this topic are stored with."""
        return source if self.compression_type == "producer" else _CODEC_NAMES[self.compression_type]

    def compression_level(self, codec: Compression) -> int | None:
        if codec is Compression.GZIP:
            return self.compression_gzip_level
        if codec is Compression.LZ4:
            return self.compression_lz4_level
        return self.compression_zstd_level if codec is Compression.ZSTD else None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "LogConfig":
        """From topic config names and values as Kafka writes them; names the log has no use for are passed over."""
        values: dict[str, Any] = {}
        for name, text in properties.items():
            field = name.replace(".", "_")
            default = cls._field_defaults.get(field)
            if default is None:
                continue
            if isinstance(default, frozenset):
                values[field] = frozenset(filter(None, (part.strip() for part in text.split(","))))
            elif isinstance(default, bool):
                values[field] = text.strip().lower() == "true"
            else:
                values[field] = type(default)(text.strip())
        return cls()._replace(**values)

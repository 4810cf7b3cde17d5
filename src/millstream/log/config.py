"""The settings of a log: Kafka's topic configs in snake_case, with Kafka's defaults.

Only what the log itself needs is here; where the values come from (topic, broker default, file) is the broker's matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

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


@dataclass(frozen=True, slots=True)
class LogConfig:
    """One immutable value, shared by all partitions of a topic. What follows from the settings is worked out once."""

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

    compact: bool = field(init=False)
    delete: bool = field(init=False)
    log_append_time: bool = field(init=False)
    max_segment_ms: int = field(init=False)
    """A compacted topic rolls in time for max.compaction.lag.ms, since the active segment is never compacted."""

    def __post_init__(self) -> None:
        compact = "compact" in self.cleanup_policy
        by_lag = compact and 0 < self.max_compaction_lag_ms < self.segment_ms
        derived = {
            "compact": compact,
            "delete": "delete" in self.cleanup_policy,
            "log_append_time": self.message_timestamp_type == "LogAppendTime",
            "max_segment_ms": self.max_compaction_lag_ms if by_lag else self.segment_ms,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

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
        defaults: dict[str, Any] = {item.name: item.default for item in fields(cls) if item.init}
        values: dict[str, Any] = {}
        for property_name, text in properties.items():
            name = property_name.replace(".", "_")
            default = defaults.get(name)
            if default is None:
                continue
            if isinstance(default, frozenset):
                values[name] = frozenset(filter(None, (part.strip() for part in text.split(","))))
            elif isinstance(default, bool):
                values[name] = text.strip().lower() == "true"
            else:
                values[name] = type(default)(text.strip())
        return cls(**values)

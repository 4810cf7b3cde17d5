"""Topic configs as the log sees them."""

from dataclasses import replace

from millstream.log.config import LogConfig
from millstream.wire.compression import Compression


def test_from_kafka_s_names_and_values() -> None:
    config = LogConfig.from_properties(
        {
            "cleanup.policy": "compact, delete",
            "retention.ms": "-1",
            "min.cleanable.dirty.ratio": "0.25",
            "preallocate": "true",
            "message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": "1",
        }
    )
    assert config.cleanup_policy == {"compact", "delete"}
    assert (config.retention_ms, config.min_cleanable_dirty_ratio, config.preallocate) == (-1, 0.25, True)
    assert config.compact
    assert config.delete
    assert config.log_append_time
    assert LogConfig.from_properties({}) == LogConfig()
    assert LogConfig.from_properties({"cleanup.policy": ""}).cleanup_policy == frozenset()


def test_a_compacted_topic_rolls_for_its_compaction_lag() -> None:
    config = LogConfig(segment_ms=1000, max_compaction_lag_ms=10)
    assert config.max_segment_ms == 1000
    assert replace(config, cleanup_policy=frozenset(("compact",))).max_segment_ms == 10


def test_codecs_and_levels() -> None:
    config = LogConfig(compression_type="zstd", compression_zstd_level=7)
    assert config.target_compression(Compression.GZIP) is Compression.ZSTD
    assert config.compression_level(Compression.ZSTD) == 7
    assert config.compression_level(Compression.SNAPPY) is None
    assert LogConfig().target_compression(Compression.GZIP) is Compression.GZIP
    assert LogConfig(compression_type="uncompressed").target_compression(Compression.LZ4) is Compression.NONE

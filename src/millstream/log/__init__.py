"""A partition on disk, in Kafka's own layout: segments, indexes, producer state, retention, compaction, recovery.

One concept a file. `partition_log.PartitionLog` is what the broker appends to and reads from, `manager.LogManager`
opens and keeps the whole data folder. Nothing in here locks: every log is changed by the event loop's thread only. What
blocks (fsync, compaction, unlinking) is handed to a worker (`flush`), which touches files that no longer change.
"""

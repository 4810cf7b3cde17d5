"""Bringing the producer state (and leader epochs, and the transaction index) up to batches that are in the log already.

Used when a log is opened and when the end of one is taken back: load the newest sound snapshot, replay what lies
behind.
"""

from collections.abc import Iterable

from millstream.log.context import LogContext
from millstream.log.leader_epochs import LeaderEpochs
from millstream.log.producer_state import SNAPSHOT_SUFFIX, ProducerState
from millstream.log.segment import Segment, segment_name
from millstream.log.segments import Segments
from millstream.log.transaction_index import AbortedTransaction
from millstream.wire.batches import BatchHeader, parse_header, read_marker
from millstream.wire.errors import KafkaError


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among the files of a log's folder, ascending."""
    return sorted(int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in names if name.endswith(SNAPSHOT_SUFFIX))


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{segment_name(offset)}{SNAPSHOT_SUFFIX}"


def replay_batch(
    producers: ProducerState,
    epochs: LeaderEpochs,
    segment: Segment,
    chunk: bytes,
    position: int,
    header: BatchHeader,
    *,
    write_index: bool,
) -> None:
    """Take over one batch; with `write_index`, an aborted transaction goes into the segment's transaction index."""
    if header.partition_leader_epoch > epochs.latest:
        epochs.assign(header.partition_leader_epoch, header.base_offset)
    if header.producer_id < 0:
        return
    if not header.is_control:
        producers.apply_batch(header, header.base_offset, header.max_timestamp, -1, -1)
        return
    try:
        marker = read_marker(chunk, position, header)
    except KafkaError:
        return
    if marker is None:
        return
    completed = producers.apply_marker(
        header.producer_id, header.producer_epoch, marker, header.base_offset, header.max_timestamp
    )
    if completed is None:
        return
    stable = producers.complete(completed)
    if completed.aborted and write_index:
        segment.transaction_index.append(
            AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)
        )


def restore_producers(
    context: LogContext,
    producers: ProducerState,
    epochs: LeaderEpochs,
    segments: Segments,
    snapshots: list[int],
    end_offset: int,
    segment_count: int,
) -> int:
    """The state at `end_offset`: the newest sound snapshot not ahead of it and the batches behind that one.

    Only the first `segment_count` segments are read. Returns how many bytes that were.
    """
    file_system = context.file_system
    now = context.clock.now_ms()
    producers.clear()
    from_offset = 0
    for offset in reversed(snapshots):
        if offset > end_offset:
            continue
        path = snapshot_path(segments.directory, offset)
        if producers.load(file_system.read_bytes(path), now):
            from_offset = offset
            break
        file_system.remove(path)
    if from_offset >= end_offset:
        return 0
    scanned = 0
    for index in range(max(segments.floor_index(from_offset), 0), segment_count):
        segment = segments[index]
        start = 0
        if from_offset > segment.base_offset:
            found = segment.locate(from_offset)
            if found is None:
                continue
            start = found.position
        for _, chunk in segment.chunks(start):
            position = 0
            while position < len(chunk):
                header = parse_header(chunk, position)
                if header.base_offset >= end_offset:
                    return scanned
                replay_batch(producers, epochs, segment, chunk, position, header, write_index=False)
                position += header.size_in_bytes
                scanned += header.size_in_bytes
    return scanned

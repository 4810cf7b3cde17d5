"""Fetch sessions: the server remembers what a consumer fetches, so that requests and responses carry only changes
(KIP-227).

A session is made by a full fetch (epoch 0), used by incremental ones (epoch 1, 2, ...), and ended by a final one
(epoch -1) or by eviction. Partitions that returned something move to the end of the session, so that none starves
behind a busy one. At most `max.incremental.fetch.session.cache.slots` sessions are kept; a new one pushes out the one
that was unused for the longest time if that was more than two minutes ago, or one that is smaller, and is otherwise
not made: the consumer then goes on with full fetches.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

EVICTION_MS = 120_000
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
NO_SESSION = 0

TopicKey = str | bytes
"""A topic as the request names it: by name up to version 12, by id from version 13 on."""
Key = tuple[TopicKey, int]


class CachedPartition:
    """What a session remembers about one partition: what is asked for, and what was answered last."""

    __slots__ = ("found", "high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: FetchPartition) -> None:
        self.wanted = wanted
        self.high_watermark = -1
        self.log_start_offset = -1
        self.found = False
        """Whether the partition has been there at some time in this session."""

    def must_respond(self, answer: PartitionData) -> bool:
        """Whether the answer says anything new; remembers it."""
        news = bool(answer.records) or answer.error_code != ErrorCode.NONE or answer.diverging_epoch is not None
        if answer.high_watermark != self.high_watermark or answer.log_start_offset != self.log_start_offset:
            news = True
        self.high_watermark = answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        if answer.error_code == ErrorCode.NONE:
            self.found = True
        else:
            self.high_watermark = -1  # the next answer without an error is news, whatever it says
        return news


class FetchSession:
    """One consumer's partitions, in the order in which they are served."""

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[Key, CachedPartition] = {}

    def update(self, request: FetchRequest) -> None:
        for key, wanted in requested(request, self.by_id):
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = CachedPartition(wanted)
            else:
                cached.wanted = wanted
        for forgotten in request.forgotten_topics_data:
            topic: TopicKey = forgotten.topic_id if self.by_id else forgotten.topic
            for index in forgotten.partitions:
                self.partitions.pop((topic, index), None)

    def changes(self, answers: dict[Key, PartitionData]) -> dict[Key, PartitionData]:
        """The answers worth sending; what returned records is served last next time."""
        out = {}
        for key, answer in answers.items():
            cached = self.partitions.get(key)
            if cached is not None and cached.must_respond(answer):
                out[key] = answer
                if answer.records:
                    self.partitions[key] = self.partitions.pop(key)
        return out

    def has_found(self, key: Key) -> bool:
        cached = self.partitions.get(key)
        return cached is not None and cached.found


def requested(request: FetchRequest, by_id: bool) -> list[tuple[Key, FetchPartition]]:
    return [
        ((topic.topic_id if by_id else topic.topic, wanted.partition), wanted)
        for topic in request.topics
        for wanted in topic.partitions
    ]


class FetchSessions:
    """All sessions of the server."""

    def __init__(self, slots: int, now_ms: Callable[[], int]) -> None:
        self._slots = slots
        self._now_ms = now_ms
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(self, request: FetchRequest, by_id: bool) -> FetchSession | None:
        """The session of an incremental fetch, brought up to date; None for a fetch that carries all it wants
        itself."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return None
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.update(request)
        session.epoch = session.epoch + 1 if session.epoch < 0x7FFFFFFF else 1
        session.last_used_ms = self._now_ms()
        if not session.partitions:
            del self._sessions[session.session_id]
        return session

    def create(self, request: FetchRequest, by_id: bool, answers: dict[Key, PartitionData]) -> int:
        """Remembers a full fetch and its answers; the new session's id, or 0 if it is not kept."""
        if request.session_epoch != INITIAL_EPOCH or not answers or not self._make_room(len(answers)):
            return NO_SESSION
        session = FetchSession(self._unused_id(), by_id, self._now_ms())
        session.update(request)
        for key, answer in answers.items():
            cached = session.partitions.get(key)
            if cached is not None:
                cached.must_respond(answer)
        self._sessions[session.session_id] = session
        return session.session_id

    def _make_room(self, size: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        for victim, may_go in (
            (oldest, self._now_ms() - oldest.last_used_ms > EVICTION_MS),
            (smallest, len(smallest.partitions) < size),
        ):
            if may_go:
                del self._sessions[victim.session_id]
                return True
        return False

    def _unused_id(self) -> int:
        while True:
            session_id = random.randrange(1, 0x7FFFFFFF)
            if session_id not in self._sessions:
                return session_id

"""The file that remembers a move between two clusters, so that the same command can go on after a kill.

How far each partition got is not in it: the target's end offset says that, exactly. The file says which topics at the
target are ours to append to (by topic id), where each partition begins, what has been verified, and which group
positions were set. It is replaced in one step, and a lock beside it keeps a second run for the same clusters away.

    {"version": 1, "source": ID, "target": ID, "topics": {NAME:
        {"source_id": ID, "target_id": ID, "done": BOOL, "starts": {P: OFFSET}, "verified": {P: OFFSET}}},
        "groups": {NAME: {TOPIC-P: OFFSET}}}
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.cluster.errors import BadInput, ClusterError

VERSION = 1


class TopicRecord:
    """What is remembered of one topic."""

    def __init__(self, source_id: str, target_id: str) -> None:
        self.source_id = source_id
        self.target_id = target_id
        self.done = False
        self.starts: dict[int, int] = {}
        """Where a partition begins at the target; not there until the offsets before it are filled."""
        self.verified: dict[int, int] = {}
        """Up to which offset both sides were compared and found equal."""

    def to_json(self) -> dict[str, Any]:
        return vars(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TopicRecord:
        record = cls(data["source_id"], data["target_id"])
        record.done = bool(data["done"])
        record.starts = {int(partition): int(offset) for partition, offset in data["starts"].items()}
        record.verified = {int(partition): int(offset) for partition, offset in data["verified"].items()}
        return record


class State:
    """The file's content and the file."""

    def __init__(self, path: Path, source_id: str, target_id: str) -> None:
        self.path = path
        self._clusters = {"source": source_id, "target": target_id}
        self.topics: dict[str, TopicRecord] = {}
        self.positions: dict[str, dict[str, int]] = {}
        """The offsets that were set for each group, by partition."""

    @classmethod
    def load(cls, path: Path, source_id: str, target_id: str) -> State:
        """BadInput if the file is of another move or is no such file at all."""
        state = cls(path, source_id, target_id)
        try:
            data = json.loads(path.read_text())
            version, clusters = data["version"], {side: data[side] for side in ("source", "target")}
            topics = {name: TopicRecord.from_json(entry) for name, entry in data["topics"].items()}
            positions = {group: dict(offsets) for group, offsets in data["groups"].items()}
        except FileNotFoundError:
            return state
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"--state: {path} is not the state of a move ({type(error).__name__}: {error})") from error
        if version != VERSION:
            raise BadInput(f"--state: {path} has version {version}; this program knows version {VERSION}")
        if clusters != state._clusters:
            raise BadInput(
                f"--state: {path} belongs to a move from cluster {clusters['source']} to {clusters['target']}, "
                f"not from {source_id} to {target_id}; name another file"
            )
        state.topics = topics
        state.positions = positions
        return state

    def save(self) -> None:
        data = {
            "version": VERSION,
            **self._clusters,
            "topics": {name: record.to_json() for name, record in sorted(self.topics.items())},
            "groups": self.positions,
        }
        temporary = self.path.with_name(self.path.name + ".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w") as out:
                json.dump(data, out, indent=1)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise ClusterError(f"--state: {self.path} cannot be written: {error.strerror or error}") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """ClusterError if another run holds the lock; a killed one does not."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self.path.with_name(self.path.name + ".lock").open("w")
        except OSError as error:
            raise ClusterError(f"--state: {self.path} cannot be written: {error.strerror or error}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ClusterError(f"another `millstream graduate` is at work with {self.path}") from error
            yield

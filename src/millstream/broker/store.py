"""The metadata of the server in one small transactional store: a SQLite file, `millstream.db`, in the data folder.

It holds what Apache Kafka keeps in its metadata log: topics, dynamic configs, client quotas, finalized features, the
cluster id and the producer ids handed out. Records, offsets and transactions are not here: they live in the logs.

Every method is one transaction, durable when the method returns (write-ahead log, fsync at every commit) and all or
nothing in a crash. A topic exists if and only if its row does: the row is committed before the first partition folder
is made, and removed before the first one is deleted, so that folders without a row are leftovers to be swept at start.
The file is locked for as long as it is open: a second server on the same folder is refused. Storage trouble is a
KafkaError with KAFKA_STORAGE_ERROR, after which the store is as it was before the call. For the event loop's thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from millstream.wire.errors import ErrorCode, KafkaError

FILE_NAME: Final = "millstream.db"
IN_MEMORY: Final = ":memory:"
SCHEMA_VERSION: Final = 1
_SCHEMA: Final = (
    "CREATE TABLE topics (name TEXT PRIMARY KEY, topic_id BLOB UNIQUE, partitions INTEGER, created_ms INTEGER)",
    "CREATE TABLE configs (resource_type INTEGER, resource_name TEXT, name TEXT, value TEXT,"
    " PRIMARY KEY (resource_type, resource_name, name))",
    "CREATE TABLE client_quotas (entity TEXT, name TEXT, value REAL, PRIMARY KEY (entity, name))",
    "CREATE TABLE features (name TEXT PRIMARY KEY, level INTEGER)",
    "CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
TOPIC_RESOURCE: Final = 2
"""Kafka's number for configs of a topic."""

Entity = tuple[tuple[str, str | None], ...]
"""A client quota entity: its types and names in the order of the types; a name of None is the type's default."""
Resource = tuple[int, str]
"""A config resource: Kafka's number of its type, and its name."""


class StoredTopic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int
    created_ms: int


class MetadataStore:
    """The open store."""

    def __init__(self, path: Path | str) -> None:
        """Opens the file, and makes it if there is none. `:memory:` is a store that is gone when it is closed."""
        try:
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise _storage_error(error) from error
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA cache_size = -512")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise _storage_error(error) from error
        if version > SCHEMA_VERSION:
            message = f"the metadata store was written by a newer version (schema {version}, not {SCHEMA_VERSION})"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        # An exclusive lock is taken by the first write, so there must be one even if the schema is there already.
        with self._transaction():
            for statement in _SCHEMA if version == 0 else _SCHEMA[-1:]:
                self._db.execute(statement)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise _storage_error(error) from error

    def _read(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        try:
            return self._db.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise _storage_error(error) from error

    # --- topics ----------------------------------------------------------------------------------------------------

    def topics(self) -> list[StoredTopic]:
        rows = self._read("SELECT name, topic_id, partitions, created_ms FROM topics ORDER BY name")
        return [StoredTopic._make(row) for row in rows]

    def create_topics(self, topics: Iterable[tuple[StoredTopic, Mapping[str, str]]]) -> None:
        """Adds topics with their configs."""
        with self._transaction() as db:
            for topic, configs in topics:
                db.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", topic)
                _replace_configs(db, (TOPIC_RESOURCE, topic.name), configs)

    def delete_topics(self, names: Iterable[str]) -> None:
        """Removes topics and their configs."""
        with self._transaction() as db:
            for name in names:
                db.execute("DELETE FROM topics WHERE name = ?", (name,))
                _replace_configs(db, (TOPIC_RESOURCE, name), {})

    def set_partitions(self, counts: Mapping[str, int]) -> None:
        """How many partitions topics have from now on."""
        with self._transaction() as db:
            db.executemany("UPDATE topics SET partitions = ? WHERE name = ?", [(n, name) for name, n in counts.items()])

    # --- configs, quotas, features ---------------------------------------------------------------------------------

    def configs(self) -> dict[Resource, dict[str, str]]:
        """All dynamic configs."""
        found: dict[Resource, dict[str, str]] = {}
        for kind, resource, name, value in self._read("SELECT resource_type, resource_name, name, value FROM configs"):
            found.setdefault((_int(kind), str(resource)), {})[str(name)] = str(value)
        return found

    def replace_configs(self, resource: Resource, configs: Mapping[str, str]) -> None:
        """Makes these the configs of a resource, all of them."""
        with self._transaction() as db:
            _replace_configs(db, resource, configs)

    def client_quotas(self) -> dict[Entity, dict[str, float]]:
        found: dict[Entity, dict[str, float]] = {}
        for entity, name, value in self._read("SELECT entity, name, value FROM client_quotas"):
            key = tuple((str(kind), of) for kind, of in json.loads(str(entity)))
            found.setdefault(key, {})[str(name)] = float(str(value))
        return found

    def replace_client_quotas(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """Makes these the quotas of each given entity; an entity with none is removed."""
        with self._transaction() as db:
            for entity, values in quotas.items():
                text = json.dumps(entity)
                db.execute("DELETE FROM client_quotas WHERE entity = ?", (text,))
                rows = [(text, name, value) for name, value in values.items()]
                db.executemany("INSERT INTO client_quotas VALUES (?, ?, ?)", rows)

    def features(self) -> dict[str, int]:
        return {str(name): _int(level) for name, level in self._read("SELECT name, level FROM features")}

    def replace_features(self, levels: Mapping[str, int], epoch: int) -> None:
        """Makes these the finalized features, all of them, with their epoch."""
        with self._transaction() as db:
            db.execute("DELETE FROM features")
            db.executemany("INSERT INTO features VALUES (?, ?)", list(levels.items()))
            _set_property(db, "features.epoch", str(epoch))

    def features_epoch(self) -> int:
        return int(self.property("features.epoch") or 0)

    # --- single values ---------------------------------------------------------------------------------------------

    def property(self, name: str) -> str | None:
        rows = self._read("SELECT value FROM properties WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def set_property(self, name: str, value: str) -> None:
        with self._transaction() as db:
            _set_property(db, name, value)

    def allocate_producer_ids(self, count: int) -> range:
        """The next producer ids; a crash after the call loses them, but never hands one out twice."""
        first = int(self.property("producer.id.next") or 0)
        self.set_property("producer.id.next", str(first + count))
        return range(first, first + count)


def _replace_configs(db: sqlite3.Connection, resource: Resource, configs: Mapping[str, str]) -> None:
    db.execute("DELETE FROM configs WHERE resource_type = ? AND resource_name = ?", resource)
    rows = [(*resource, name, value) for name, value in configs.items()]
    db.executemany("INSERT INTO configs VALUES (?, ?, ?, ?)", rows)


def _set_property(db: sqlite3.Connection, name: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (name, value))


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _storage_error(error: sqlite3.Error) -> KafkaError:
    if "locked" in str(error):
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata store is in use by another server")
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata store failed: {error}")

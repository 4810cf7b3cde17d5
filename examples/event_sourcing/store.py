"""The accounts in memory, and the topics that they are made of.

    bank-events     every event that ever was, in order for each account: the truth
    bank-snapshots  compacted: the last known state of each account, and up to which event that is (`@position`)

Rebuilding reads all events; or the snapshots, and only the events after them. Both must give the same. A snapshot is
written now and then, in the transaction that writes the events, so it can never tell of an event that did not happen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from event_sourcing.accounts import Account, Event
from example_kit.reading import read_topic

COMMANDS = "bank-commands"
EVENTS = "bank-events"
SNAPSHOTS = "bank-snapshots"
REPLIES = "bank-replies"
DEAD_LETTERS = "bank-dead-letters"
PARTITIONS = 4
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    COMMANDS: (PARTITIONS, {}),
    EVENTS: (PARTITIONS, {"retention.ms": "-1"}),
    SNAPSHOTS: (PARTITIONS, {"cleanup.policy": "compact"}),
    REPLIES: (1, {"retention.ms": "3600000"}),
    DEAD_LETTERS: (1, {}),
}
"""Name -> partitions and configs. An account is in the same partition of commands, events and snapshots."""
POSITION_KEY = b"@position"


@dataclass
class Shard:
    """The accounts of one partition."""

    accounts: dict[str, Account] = field(default_factory=dict)
    events_read: int = 0
    snapshots_read: int = 0
    next_offset: int = 0
    touched: set[str] = field(default_factory=set)
    since_snapshot: int = 0

    def apply(self, event: Event) -> None:
        """An event that is known already, from a snapshot, changes nothing."""
        account = self.accounts.get(event["account"], Account(event["account"]))
        if event["version"] <= account.version:
            return
        if event["version"] != account.version + 1:
            raise ValueError(f"{account.name}: event {event['version']} after version {account.version}")
        self.accounts[account.name] = account.after(event)
        self.touched.add(account.name)
        self.since_snapshot += 1

    def snapshot(self) -> list[tuple[bytes, bytes]]:
        """Keys and values to write: what has changed since the last snapshot, and up to which event."""
        records = [(name.encode(), json.dumps(self.accounts[name].as_dict()).encode()) for name in sorted(self.touched)]
        records.append((POSITION_KEY, json.dumps({"next": self.next_offset}).encode()))
        self.touched.clear()
        self.since_snapshot = 0
        return records


def from_scratch(bootstrap: str, partition: int) -> Shard:
    """Every event, from offset 0."""
    shard = Shard()
    _read_events(bootstrap, partition, shard)
    return shard


def from_snapshot(bootstrap: str, partition: int) -> Shard:
    """The snapshots, and the events after them."""
    shard = Shard()
    for record in read_topic(bootstrap, SNAPSHOTS, partitions=[partition]):
        key, value = record.key() or b"", json.loads(record.value() or b"{}")
        shard.snapshots_read += 1
        if key == POSITION_KEY:
            shard.next_offset = value["next"]
        else:
            name = str(key, "utf-8")
            shard.accounts[name] = Account(name, value["version"], value["balance"], tuple(value["commands"]))
    _read_events(bootstrap, partition, shard)
    return shard


def _read_events(bootstrap: str, partition: int, shard: Shard) -> None:
    for record in read_topic(bootstrap, EVENTS, partitions=[partition], start={partition: shard.next_offset}):
        shard.events_read += 1
        shard.next_offset = (record.offset() or 0) + 1
        shard.apply(json.loads(record.value() or b""))

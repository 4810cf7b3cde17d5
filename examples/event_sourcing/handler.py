"""Carries out commands: a process that owns some partitions and answers for the accounts in them.

The events of a batch of commands, commands that follow from them, answers, snapshots and the group's position are one
transaction (`example_kit.exactly_once`). Killed at any moment and started again, it rebuilds its accounts from the log
and goes on: no command is carried out twice and none is forgotten.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message

from event_sourcing.accounts import Command, Decision, MalformedError, checked, decide
from event_sourcing.store import COMMANDS, DEAD_LETTERS, EVENTS, REPLIES, SNAPSHOTS, Shard, from_snapshot
from example_kit import parent_says_stop, tell
from example_kit.exactly_once import ExactlyOnce, Send

SNAPSHOT_EVERY = 100
"""Events of a partition."""


class Handler:
    """One of the processes of group `bank`."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._bootstrap = bootstrap
        self._shards: dict[int, Shard] = {}
        self.worker = ExactlyOnce(
            bootstrap, name=name, group="bank", topics=[COMMANDS], restore=self._restore, batch=100, wait=0.05
        )

    def _restore(self, partitions: set[int]) -> None:
        begun = time.monotonic()
        self._shards = {number: from_snapshot(self._bootstrap, number) for number in sorted(partitions)}
        if self._shards:
            tell(
                partitions=sorted(self._shards),
                accounts=sum(len(shard.accounts) for shard in self._shards.values()),
                snapshots=sum(shard.snapshots_read for shard in self._shards.values()),
                events=sum(shard.events_read for shard in self._shards.values()),
                seconds=round(time.monotonic() - begun, 3),
            )

    def work(self, records: list[Message], send: Send) -> None:
        for record in records:
            partition, headers = record.partition() or 0, dict(record.headers() or [])
            try:
                command = _command(record, headers)
            except MalformedError as error:
                _set_aside(record, str(error), send)
                continue
            shard = self._shards[partition]
            decision = decide(shard.accounts.get(command["account"]), command)
            _carry_out(partition, shard, decision, send)
            if "reply-to" in headers:
                send(REPLIES, value=json.dumps(decision.answer), headers={"correlation-id": headers["correlation-id"]})
        self._take_snapshots(send)

    def _take_snapshots(self, send: Send) -> None:
        due = [number for number, shard in self._shards.items() if shard.since_snapshot >= SNAPSHOT_EVERY]
        if due:
            self.worker.flush()  # so that the offsets of the events are known
        for number in due:
            for key, value in self._shards[number].snapshot():
                send(SNAPSHOTS, key=key, value=value, partition=number)


def _carry_out(partition: int, shard: Shard, decision: Decision, send: Send) -> None:
    if decision.event is not None:
        event = {**decision.event, "at": int(time.time() * 1000)}
        shard.apply(event)
        written = partial(_written, shard)
        send(EVENTS, key=event["account"], value=json.dumps(event), partition=partition, on_delivery=written)
    for command in decision.commands:
        send(COMMANDS, key=command["account"], value=json.dumps(command))


def _written(shard: Shard, error: KafkaError | None, record: Message) -> None:
    if error is None:
        shard.next_offset = (record.offset() or 0) + 1


def _command(record: Message, headers: dict[str, Any]) -> Command:
    if headers.get("reply-to", REPLIES.encode()) != REPLIES.encode() or ("reply-to" in headers) != (
        "correlation-id" in headers
    ):
        raise MalformedError(f"answers go to {REPLIES}, with a correlation-id")
    try:
        command = checked(json.loads(record.value() or b""))
    except ValueError as error:
        raise MalformedError(f"the value is not JSON: {error}") from None
    if record.key() != command["account"].encode():
        raise MalformedError("the key is not the account: it would be in another partition than its events")
    return command


def _set_aside(record: Message, error: str, send: Send) -> None:
    origin = f"{record.topic()}-{record.partition()}@{record.offset()}"
    send(DEAD_LETTERS, key=record.key(), value=record.value(), headers={"error": error, "origin": origin})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--name", required=True)
    options = parser.parse_args()
    stop = parent_says_stop()
    handler = Handler(options.bootstrap, options.name)
    handler.worker.run(handler.work, stop)


if __name__ == "__main__":
    main()

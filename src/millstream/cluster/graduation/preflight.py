"""Looks at both clusters and plans the move; changes nothing on either side."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import nearest
from millstream.cluster.errors import BadInput, NotFound
from millstream.cluster.graduation import codecs, configs, groups
from millstream.cluster.graduation.plan import (
    Blocker,
    LeftOut,
    Partition,
    PartitionPlan,
    Preflight,
    Side,
    TopicPlan,
    TopicState,
)
from millstream.cluster.graduation.requests import offsets
from millstream.cluster.graduation.state import State
from millstream.cluster.log_dirs import replicas

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

_PROBE = "millstream-graduate-probe"
"""A topic that is only ever validated, never made: its answer holds the target's defaults."""
_OPEN_TRANSACTIONS = {"Ongoing", "PrepareCommit", "PrepareAbort"}


class Options(NamedTuple):
    """What the person who starts the move decides."""

    topics: Sequence[str] = ()
    exclude: Sequence[str] = ()
    replication_factor: int = -1
    skip_configs: Sequence[str] = ()
    visible_fillers: bool = False
    force: bool = False
    follow: bool = False


def side(bootstrap: str, admin: KafkaAdminClient) -> Side:
    found = admin.describe_cluster()
    return Side(bootstrap, found["cluster_id"], len(found["brokers"]))


def preflight(
    source: KafkaAdminClient, target: KafkaAdminClient, sides: tuple[Side, Side], options: Options, state: State
) -> Preflight:
    """The plan, with everything that stands in its way."""
    if sides[0].cluster_id == sides[1].cluster_id:
        raise BadInput(f"--to: {sides[1].bootstrap} is the same cluster as the source ({sides[0].bootstrap})")
    described = {topic["name"]: topic for topic in source.describe_topics()}
    chosen, left_out = _choose(described, options)
    blockers = _cluster_blockers(target, options)
    planner = _Planner(source, target, chosen, options, state)
    topics = [planner.plan(name) for name in sorted(chosen)]
    blockers += planner.blockers
    if not blockers:
        blockers += planner.rehearse(topics)
    group_plans, other_groups = groups.plan(source, target, frozenset(chosen), state, force=options.force)
    left_out += [*other_groups, *_transactions(source)]
    notes = [*_notes(topics, sides[1]), *planner.expired(source)]
    return Preflight(*sides, tuple(topics), tuple(group_plans), tuple(left_out), tuple(notes), tuple(blockers))


def _choose(described: Mapping[str, Any], options: Options) -> tuple[dict[str, Any], list[LeftOut]]:
    internal = sorted(name for name, topic in described.items() if topic["is_internal"] or name.startswith("__"))
    names = [name for name in described if name not in internal]
    for argument, patterns in (("--topic", options.topics), ("--exclude", options.exclude)):
        for pattern in patterns:
            if not fnmatch.filter(names, pattern):
                raise NotFound(f"{argument}: no topic at the source is called {pattern}{nearest(pattern, names)}")
    chosen = {
        name: described[name]
        for name in names
        if (not options.topics or _matches(name, options.topics)) and not _matches(name, options.exclude)
    }
    left_out = [LeftOut(f"topic {name}", "is internal: each cluster keeps its own") for name in internal]
    not_chosen = len(names) - len(chosen)
    if not_chosen:
        left_out.append(LeftOut(f"{not_chosen} topic{'s' * (not_chosen > 1)}", "not chosen by --topic and --exclude"))
    return chosen, left_out


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _cluster_blockers(target: KafkaAdminClient, options: Options) -> list[Blocker]:
    allowed = target.describe_cluster().get("authorized_operations")
    if options.visible_fillers or not allowed or {"ALTER", "CLUSTER_ACTION"} & set(allowed):
        return []
    return [
        Blocker(
            "target",
            "you may not write transaction markers there, which hold the place of offsets without a record",
            "get ALTER on the cluster, or take visible records for it: --placeholders records",
        )
    ]


def _transactions(source: KafkaAdminClient) -> list[LeftOut]:
    listed = [entry for entries in source.list_transactions().values() for entry in entries]
    running = sum(entry.state.value in _OPEN_TRANSACTIONS for entry in listed)
    if not listed:
        return []
    return [
        LeftOut(
            f"{len(listed)} transactional id{'s' * (len(listed) != 1)}",
            f"transactional state stays ({running} open): producers begin anew at the target; committed records are "
            "moved as plain ones, aborted ones are not",
        )
    ]


def _notes(topics: Sequence[TopicPlan], target: Side) -> list[str]:
    found = []
    unfinished = [topic.name for topic in topics if any(part.open_transaction for part in topic.partitions)]
    if unfinished:
        found.append(
            f"open transactions: of {', '.join(unfinished)} only what lies before the first open one is moved; end "
            "them first, or run the same command again later"
        )
    compacted = [topic.name for topic in topics if topic.compacted]
    if compacted:
        found.append(
            f"{', '.join(compacted)}: compacted, so there are fewer records than offsets; the empty offsets are held "
            "by placeholders that consumers do not see (docs/graduate.md)"
        )
    if target.brokers > 1 and any(topic.replication_factor == 1 for topic in topics):
        found.append(
            f"the target has {target.brokers} brokers and keeps one copy of each topic: --replication-factor 3?"
        )
    return found


class _Planner:
    """Plans topics from answers that were asked for once for all of them."""

    def __init__(
        self,
        source: KafkaAdminClient,
        target: KafkaAdminClient,
        chosen: Mapping[str, Any],
        options: Options,
        state: State,
    ) -> None:
        self.blockers: list[Blocker] = []
        self._target = target
        self._options = options
        self._state = state
        self._topics = chosen
        self._there = {topic["name"]: topic for topic in target.describe_topics() if topic["name"] in chosen}
        ours = _partitions(chosen.values())
        theirs = _partitions(self._there.values())
        self._first, self._end = offsets(source, ours, -2), offsets(source, ours, -1, committed=True)
        self._last = offsets(source, ours, -1)
        self._target_first, self._target_end = offsets(target, theirs, -2), offsets(target, theirs, -1)
        self._configs = _topic_configs(source, chosen)
        self._bytes = _sizes(source)
        self._codecs = codecs.sample(source, {where: (self._first[where], self._end[where]) for where in ours})
        self._defaults, self._default_replication = self._target_defaults()
        self._request_bytes = _request_limit(target)

    def _target_defaults(self) -> tuple[dict[str, str], int]:
        wanted = {"num_partitions": 1, "replication_factor": self._options.replication_factor}
        (answer,) = self._target.create_topics({_PROBE: wanted}, validate_only=True, raise_errors=False)["topics"]
        if answer["error_code"]:
            self._block(
                "target",
                f"makes no topics for us: {answer['error_message'] or answer['error_code']}",
                "--replication-factor with a number that its brokers can hold, or rights to create topics",
            )
            return {}, -1
        defaults = {name: entry["value"] for name, entry in (answer.get("configs") or {}).items()}
        return defaults, answer["replication_factor"]

    def plan(self, name: str) -> TopicPlan:
        indexes = sorted(part["partition_index"] for part in self._topics[name]["partitions"])
        state = self._topic_state(name, len(indexes))
        parts = []
        for index in indexes:
            where = Partition(name, index)
            at = self._target_end.get(where, 0)
            parts.append(
                PartitionPlan(index, self._first[where], self._end[where], at, self._last[where] > self._end[where])
            )
        wanted = configs.wanted(self._configs[name], self._defaults) if self._defaults else {}
        wanted = {key: value for key, value in wanted.items() if key not in self._options.skip_configs}
        self._check_configs(name, wanted)
        there = self._there.get(name)
        return TopicPlan(
            name,
            state,
            tuple(parts),
            sum(self._bytes.get(Partition(name, index), 0) for index in indexes),
            tuple(self._codecs.get(Partition(name, index), "none") for index in indexes),
            wanted,
            len(there["partitions"][0]["replica_nodes"]) if there else self._default_replication,
            "compact" in self._configs[name]["cleanup.policy"]["value"],
        )

    def _topic_state(self, name: str, partitions: int) -> TopicState:
        there, known = self._there.get(name), self._state.topics.get(name)
        if there is None:
            return "new"
        if len(there["partitions"]) != partitions:
            self._block(
                f"topic {name}",
                f"has {partitions} partitions at the source and {len(there['partitions'])} at the target",
                f"delete it there, or --exclude {name}",
            )
            return "empty"
        ends = {index: self._target_end[Partition(name, index)] for index in range(partitions)}
        ids = str(self._topics[name]["topic_id"]), str(there["topic_id"])
        if known is None or (known.source_id, known.target_id) != ids:
            if any(ends.values()):
                self._block(
                    f"topic {name}",
                    "exists at the target and holds records that are not from this move",
                    f"delete it there, or --exclude {name}, or --state FILE of the move that made it",
                )
            return "empty"
        beyond = {index for index, end in ends.items() if end > self._last[Partition(name, index)]}
        if beyond or (known.done and any(ends[index] > end for index, end in known.verified.items())):
            self._block(
                f"topic {name}",
                "was moved, and others have written to it at the target since",
                f"it lives there now: --exclude {name}",
            )
        behind = any(end < self._end[Partition(name, index)] for index, end in ends.items())
        return "resume" if behind or not known.done else "moved"

    def _check_configs(self, name: str, wanted: Mapping[str, str]) -> None:
        for unknown in sorted(wanted.keys() - self._defaults.keys()):
            self._block(
                f"topic {name}", f"has the config {unknown}, which the target does not know", f"--skip-config {unknown}"
            )
        biggest = int(self._configs[name]["max.message.bytes"]["value"])
        if self._request_bytes is not None and biggest > self._request_bytes:
            self._block(
                f"topic {name}",
                f"takes batches of {biggest} bytes; the target takes no request over {self._request_bytes} bytes",
                "raise socket.request.max.bytes there, or lower the topic's max.message.bytes",
            )

    def expired(self, source: KafkaAdminClient) -> list[str]:
        """Of topics that hold records older than their retention: a segment goes when all of it is too old."""
        found = []
        for name in sorted(self._topics):
            policy, kept = (self._configs[name][key]["value"] for key in ("cleanup.policy", "retention.ms"))
            parts = [where for where in self._first if where.topic == name and self._end[where] > self._first[where]]
            if "delete" not in policy or int(kept) < 0:
                continue
            fresh = offsets(source, parts, int(time.time() * 1000) - int(kept))
            old = sum((self._end[where] if at < 0 else at) - self._first[where] for where, at in fresh.items())
            if old > 0:
                found.append(
                    f"{name}: {old} of its records are older than its retention (retention.ms={kept}); the target may "
                    "delete them as soon as the move is done"
                )
        return found

    def rehearse(self, topics: Sequence[TopicPlan]) -> list[Blocker]:
        """Has the target check, without making them, the topics as they are made and as they are to be in the end."""
        found = {}
        new = [topic for topic in topics if topic.state == "new"]
        for settings in (lambda topic: topic.configs, lambda topic: self.copying_configs(topic)):
            wanted = {
                topic.name: {
                    "num_partitions": len(topic.partitions),
                    "replication_factor": self._options.replication_factor,
                    "configs": dict(settings(topic)),
                }
                for topic in new
            }
            answers = (
                self._target.create_topics(wanted, validate_only=True, raise_errors=False)["topics"] if wanted else ()
            )
            for answer in answers:
                if answer["error_code"]:
                    text = answer["error_message"] or f"error {answer['error_code']}"
                    found[answer["name"]] = Blocker(
                        f"topic {answer['name']}",
                        f"cannot be made at the target: {text}",
                        "--skip-config NAME, --replication-factor N, or --exclude it",
                    )
        return list(found.values())

    def copying_configs(self, topic: TopicPlan) -> dict[str, str]:
        return configs.while_copying(topic.configs, int(self._configs[topic.name]["max.message.bytes"]["value"]))

    def _block(self, subject: str, problem: str, remedy: str) -> None:
        self.blockers.append(Blocker(subject, problem, remedy))


def _partitions(topics: Iterable[Any]) -> list[Partition]:
    return [Partition(topic["name"], part["partition_index"]) for topic in topics for part in topic["partitions"]]


def _topic_configs(admin: KafkaAdminClient, names: Iterable[str]) -> Mapping[str, Any]:
    from kafka.admin import ConfigResource, ConfigResourceType

    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    found: Mapping[str, Any] = admin.describe_configs(resources, config_filter="all")["topic"]
    return found


def _request_limit(admin: KafkaAdminClient) -> int | None:
    from kafka.admin import ConfigResource, ConfigResourceType

    broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
    found = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, broker)], config_filter="all")
    value = found["broker"][broker].get("socket.request.max.bytes", {}).get("value")
    return int(value) if value else None


def _sizes(admin: KafkaAdminClient) -> dict[Partition, int]:
    """On disk; of several replicas the biggest."""
    found: dict[Partition, int] = {}
    for replica in replicas(admin.describe_log_dirs()):
        where = Partition(replica.topic, replica.partition)
        found[where] = max(found.get(where, 0), replica.size)
    return found

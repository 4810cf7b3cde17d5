"""Apache Kafka's own command line tools, from its jars, against the server under test."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.batches import Rec
from support.cluster import Cluster, Topic, create_topic, eventually, find_coordinator, init_producer, produce, unique
from support.groups import Member, subscription
from support.java import KafkaWorker, Outcome, run_tool
from support.raw import RawClient

Tool = Callable[..., Outcome]
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONFIG_COMMAND = "kafka.admin.ConfigCommand"


@pytest.fixture
def tool(cluster: Cluster, java: KafkaWorker) -> Tool:
    """Runs a tool with the server's address; fails the test unless the tool succeeds."""

    def run(name: str, *arguments: str, **options: Any) -> Outcome:
        return java.tool(name, "--bootstrap-server", cluster.bootstrap_servers, *arguments, **options).checked()

    return run


def rows(outcome: Outcome) -> list[list[str]]:
    return [line.split() for line in outcome.lines() if line.strip()]


class TestTopicCommand:
    def test_the_life_of_a_topic(self, tool: Tool) -> None:
        name = unique("tool")
        made = tool("TopicCommand", "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=1234")
        assert f"Created topic {name}." in made.stdout
        assert name in tool("TopicCommand", "--list").lines()
        described = tool("TopicCommand", "--describe", "--topic", name).stdout
        assert "PartitionCount: 2\tReplicationFactor: 1" in described
        assert "retention.ms=1234" in described
        assert len(re.findall(r"Leader: 1\tReplicas: 1\tIsr: 1", described)) == 2
        tool("TopicCommand", "--alter", "--topic", name, "--partitions", "4")
        assert eventually(lambda: "PartitionCount: 4" in tool("TopicCommand", "--describe", "--topic", name).stdout)
        tool("TopicCommand", "--delete", "--topic", name)
        assert eventually(lambda: name not in tool("TopicCommand", "--list").lines())

    def test_an_existing_topic_is_an_error(self, cluster: Cluster, java: KafkaWorker, raw: RawClient) -> None:
        topic = create_topic(raw)
        address = ["--bootstrap-server", cluster.bootstrap_servers]
        outcome = java.tool("TopicCommand", *address, "--create", "--topic", topic.name)
        assert outcome.exit_code == 1
        assert "TopicExistsException" in outcome.stderr


class TestConsole:
    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_producer_and_consumer(self, tool: Tool, raw: RawClient, codec: str) -> None:
        topic = create_topic(raw)
        lines = [f"key{number}\tvalue {number}" for number in range(10)]
        options = ["--reader-property", "parse.key=true", "--compression-codec", codec]
        tool("ConsoleProducer", "--topic", topic.name, *options, stdin=lines)
        read = tool(
            CONSOLE_CONSUMER, "--topic", topic.name, "--from-beginning", "--max-messages", "10",
            "--timeout-ms", "20000", "--formatter-property", "print.key=true",
        )  # fmt: skip
        assert read.lines() == lines


class TestConsumerGroupCommand:
    def test_describe_reset_and_delete(self, cluster: Cluster, tool: Tool, raw: RawClient) -> None:
        topic, group = create_topic(raw), unique("group")
        produce(raw, topic, *[b"x"] * 10)
        with Member(cluster, group, protocols=(("range", subscription(topic.name)),)) as member:
            # A consumer protocol assignment: partition 0 of the topic.
            name = topic.name.encode()
            parts = b"\0\0\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
            member.join()
            member.sync({member.member_id: parts})
            part = {"partition_index": 0, "committed_offset": 4, "committed_metadata": ""}
            who = {"generation_id_or_member_epoch": 1, "member_id": member.member_id}
            where = [{"name": topic.name, "partitions": [part]}]
            raw.call("offset_commit", 9, group_id=group, **who, topics=where)
            assert group in tool(GROUP_COMMAND, "--list").lines()
            row = next(r for r in rows(tool(GROUP_COMMAND, "--describe", "--group", group)) if r[0] == group)
            assert row[1:6] == [topic.name, "0", "4", "10", "6"]
            assert row[6:9] == [member.member_id, "/127.0.0.1", f"client-of-{group}"]
            state = tool(GROUP_COMMAND, "--describe", "--group", group, "--state").stdout
            assert "Stable" in state
            assert "range" in state
            assert member.member_id in tool(GROUP_COMMAND, "--describe", "--group", group, "--members").stdout
            member.leave()
        reset = tool(
            GROUP_COMMAND, "--group", group, "--reset-offsets", "--to-earliest", "--topic", topic.name, "--execute"
        )
        assert [group, topic.name, "0", "0"] in [row[:4] for row in rows(reset)]
        row = next(r for r in rows(tool(GROUP_COMMAND, "--describe", "--group", group)) if r[0] == group)
        assert row[3:6] == ["0", "10", "10"]
        assert "successful" in tool(GROUP_COMMAND, "--delete", "--group", group).stdout
        assert group not in tool(GROUP_COMMAND, "--list").lines()

    def test_delete_offsets(self, tool: Tool, raw: RawClient) -> None:
        topic, group = create_topic(raw), unique("group")
        find_coordinator(raw, 0, group)
        part = {"partition_index": 0, "committed_offset": 4, "committed_metadata": ""}
        where = [{"name": topic.name, "partitions": [part]}]
        who = {"generation_id_or_member_epoch": -1, "member_id": ""}
        raw.call("offset_commit", 9, group_id=group, **who, topics=where)
        done = tool(GROUP_COMMAND, "--delete-offsets", "--group", group, "--topic", topic.name).stdout
        assert "Successful" in done


class TestConfigCommand:
    def test_of_a_topic(self, tool: Tool, raw: RawClient) -> None:
        topic = create_topic(raw)
        which = ["--entity-type", "topics", "--entity-name", topic.name]
        tool(CONFIG_COMMAND, *which, "--alter", "--add-config", "retention.ms=777,cleanup.policy=[compact,delete]")
        described = tool(CONFIG_COMMAND, *which, "--describe").stdout
        assert "retention.ms=777" in described
        assert "cleanup.policy=compact,delete" in described
        tool(CONFIG_COMMAND, *which, "--alter", "--delete-config", "retention.ms")
        assert "retention.ms=777" not in tool(CONFIG_COMMAND, *which, "--describe").stdout

    def test_of_the_broker(self, tool: Tool) -> None:
        everything = tool(
            CONFIG_COMMAND, "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all"
        ).stdout
        assert "offsets.topic.num.partitions=3" in everything

    def test_quotas_of_a_client(self, tool: Tool) -> None:
        which = ["--entity-type", "clients", "--entity-name", unique("client")]
        tool(CONFIG_COMMAND, *which, "--alter", "--add-config", "producer_byte_rate=1024")
        assert eventually(lambda: "producer_byte_rate=1024.0" in tool(CONFIG_COMMAND, *which, "--describe").stdout)
        tool(CONFIG_COMMAND, *which, "--alter", "--delete-config", "producer_byte_rate")


class TestOffsets:
    def test_get_offset_shell(self, tool: Tool, raw: RawClient) -> None:
        topic = create_topic(raw, partitions=2, retention_ms="-1")
        produce(raw, topic, *[Rec(b"x", timestamp=1000 * number) for number in range(1, 6)])

        def offsets(when: str) -> list[str]:
            return tool("GetOffsetShell", "--topic", topic.name, "--time", when).lines()

        assert offsets("-1") == [f"{topic.name}:0:5", f"{topic.name}:1:0"]
        assert offsets("-2") == [f"{topic.name}:0:0", f"{topic.name}:1:0"]
        assert f"{topic.name}:0:4" in offsets("-3")
        assert f"{topic.name}:0:2" in offsets("2500")

    def test_delete_records(self, tool: Tool, raw: RawClient, tmp_path: Path) -> None:
        topic = create_topic(raw)
        produce(raw, topic, *[b"x"] * 10)
        file = tmp_path / "offsets.json"
        wanted = {"partitions": [{"topic": topic.name, "partition": 0, "offset": 6}], "version": 1}
        file.write_text(json.dumps(wanted))
        done = tool("DeleteRecordsCommand", "--offset-json-file", str(file)).stdout
        assert f"partition: {topic.name}-0\tlow_watermark: 6" in done
        assert tool("GetOffsetShell", "--topic", topic.name, "--time", "-2").lines() == [f"{topic.name}:0:6"]


class TestTransactionsCommand:
    def test_list_describe_and_producers(self, tool: Tool, raw: RawClient) -> None:
        topic, name = create_topic(raw), unique("txn")
        identity = init_producer(raw, name)
        produce(
            raw, topic, b"open", attributes=0x10, producer_id=identity.producer_id, producer_epoch=0, base_sequence=0,
            transactional_id=name,
        )  # fmt: skip
        listed = {row[0]: row for row in rows(tool("TransactionsCommand", "list"))}
        assert (listed[name][2], listed[name][3]) == (str(identity.producer_id), "Ongoing")
        described = tool("TransactionsCommand", "describe", "--transactional-id", name).stdout
        assert f"{topic.name}-0" in described
        producers = tool("TransactionsCommand", "describe-producers", "--topic", topic.name, "--partition", "0")
        assert rows(producers)[1][0] == str(identity.producer_id)
        who = {"transactional_id": name, "producer_id": identity.producer_id, "producer_epoch": 0}
        raw.call("end_txn", 5, **who, committed=False)


class TestVerifiable:
    def run(self, cluster: Cluster, name: str, *arguments: str) -> list[dict[str, Any]]:
        outcome = run_tool(name, "--bootstrap-server", cluster.bootstrap_servers, *arguments).checked()
        return [json.loads(line) for line in outcome.lines() if line.startswith("{")]

    def test_producer_and_consumer(self, cluster: Cluster, raw: RawClient) -> None:
        topic = create_topic(raw)
        options = ["--topic", topic.name, "--max-messages", "100"]
        events = self.run(cluster, "VerifiableProducer", *options, "--acks", "-1")
        assert len([event for event in events if event["name"] == "producer_send_success"]) == 100
        (summary,) = [event for event in events if event["name"] == "tool_data"]
        assert (summary["sent"], summary["acked"]) == (100, 100)
        group = ["--group-id", unique("group"), "--reset-policy", "earliest"]
        events = self.run(cluster, "VerifiableConsumer", *options, *group)
        assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 100
        commits = [event["success"] for event in events if event["name"] == "offsets_committed"]
        assert commits
        assert all(commits)


class TestClusterTools:
    def test_api_versions(self, cluster: Cluster, tool: Tool) -> None:
        listed = tool("BrokerApiVersionsCommand").stdout
        assert cluster.bootstrap_servers in listed
        assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", listed)
        assert re.search(r"ConsumerGroupHeartbeat\(68\): 0 to 1 \[usable: 1\]", listed)

    def test_features(self, tool: Tool) -> None:
        described = tool("FeatureCommand", "describe").stdout
        assert re.search(r"Feature: metadata.version.*FinalizedVersionLevel: 4\.3", described)
        assert re.search(r"Feature: transaction.version.*FinalizedVersionLevel: 2", described)

    def test_cluster_id(self, tool: Tool, cluster: Cluster, java: KafkaWorker, raw: RawClient) -> None:
        outcome = java.tool("ClusterTool", "cluster-id", "--bootstrap-server", cluster.bootstrap_servers).checked()
        assert raw.call("metadata", 12, topics=[]).cluster_id in outcome.stdout

    def test_quorum(self, tool: Tool) -> None:
        status = tool("MetadataQuorumCommand", "describe", "--status").stdout
        assert re.search(r"LeaderId:\s+1\b", status)

    def test_log_dirs(self, tool: Tool, raw: RawClient) -> None:
        topic = create_topic(raw)
        produce(raw, topic, b"x" * 1000)
        outcome = tool("LogDirsCommand", "--describe", "--topic-list", topic.name)
        report = json.loads(next(line for line in outcome.lines() if line.startswith("{")))
        (folder,) = report["brokers"][0]["logDirs"]
        assert [part["partition"] for part in folder["partitions"]] == [f"{topic.name}-0"]
        assert folder["partitions"][0]["size"] > 1000

    def test_leader_election_is_not_needed(self, tool: Tool, raw: RawClient) -> None:
        topic = create_topic(raw)
        options = ["--election-type", "preferred", "--topic", topic.name, "--partition", "0"]
        assert "Valid replica already elected" in tool("LeaderElectionCommand", *options).stdout


class TestDumpLogSegments:
    """Kafka reads the files themselves: nothing may be wrong with segments or indexes."""

    @pytest.fixture
    def folder(self, cluster: Cluster) -> Path:
        if cluster.data_folder is None:
            pytest.skip("the data folder of a remote cluster is not known")
        return cluster.data_folder

    def dump(self, java: KafkaWorker, *files: Path, **options: bool) -> str:
        flags = [f"--{name.replace('_', '-')}" for name, wanted in options.items() if wanted]
        names = ",".join(str(file) for file in files)
        text = java.tool("DumpLogSegments", *flags, "--files", names).checked().stdout
        for complaint in ("Mismatches in", "isvalid: false", "Non-consecutive offsets", "Found timestamp mismatch"):
            assert complaint not in text, text[-3000:]
        return text

    def fill(self, raw: RawClient, topic: Topic) -> int:
        """Several segments with every codec and both ends of a transaction; returns the next offset."""
        count = 0
        for number in range(40):
            codec = ("none", "gzip", "snappy", "lz4", "zstd")[number % 5]
            data = [Rec(f"{number}-{item}".encode() * 40, f"key{item}".encode()) for item in range(5)]
            count += 5
            assert produce(raw, topic, *data, codec=codec).error_code == 0
        for commit in (True, False):
            name = unique("txn")
            identity = init_producer(raw, name)
            who = {"transactional_id": name, "producer_id": identity.producer_id, "producer_epoch": 0}
            produce(
                raw, topic, b"in a transaction", transactional_id=name, attributes=0x10, base_sequence=0,
                producer_id=identity.producer_id, producer_epoch=0,
            )  # fmt: skip
            assert raw.call("end_txn", 5, **who, committed=commit).error_code == 0
            count += 2

        def stable() -> bool:
            part = {"partition_index": 0, "timestamp": -1}
            where = [{"name": topic.name, "partitions": [part]}]
            answer = raw.call("list_offsets", 10, replica_id=-1, isolation_level=1, topics=where)
            return bool(answer.topics[0].partitions[0].offset == count)

        eventually(stable)
        return count

    def test_segments_and_indexes(self, java: KafkaWorker, raw: RawClient, folder: Path) -> None:
        topic = create_topic(raw, segment_bytes=str(1 << 20), index_interval_bytes="100", segment_ms="604800000")
        count = self.fill(raw, topic)
        files = sorted((folder / f"{topic.name}-0").iterdir())
        kinds = {file.suffix for file in files}
        assert {".log", ".index", ".timeindex"} <= kinds
        logs = [file for file in files if file.suffix == ".log"]
        text = self.dump(java, *logs, deep_iteration=True, print_data_log=True)
        offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE)]
        assert offsets == list(range(count))
        assert "endTxnMarker: COMMIT" in text
        assert "endTxnMarker: ABORT" in text
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            assert f"compresscodec: {codec}" in text
        indexes = [file for file in files if file.suffix in (".index", ".timeindex")]
        self.dump(java, *indexes)
        checked = self.dump(java, *[file for file in indexes if file.suffix == ".index"], index_sanity_check=True)
        assert "passed sanity check" in checked

    def test_rolled_segments_and_producer_snapshots(self, java: KafkaWorker, raw: RawClient, folder: Path) -> None:
        topic = create_topic(raw, segment_bytes=str(1 << 20), index_interval_bytes="1000")
        for number in range(30):
            assert produce(raw, topic, Rec(bytes([number]) * 100_000, b"k")).error_code == 0
        files = sorted((folder / f"{topic.name}-0").iterdir())
        logs = [file for file in files if file.suffix == ".log"]
        assert len(logs) >= 3
        text = self.dump(java, *logs, deep_iteration=True)
        assert [int(found) for found in re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE)] == list(range(30))
        rolled = {log.name.removesuffix(".log") for log in logs[1:]}
        assert rolled <= {file.name.removesuffix(".snapshot") for file in files if file.suffix == ".snapshot"}
        self.dump(java, *[file for file in files if file.suffix in (".index", ".timeindex", ".snapshot")])

    def test_the_offsets_topic(self, java: KafkaWorker, raw: RawClient, folder: Path) -> None:
        topic, group = create_topic(raw), unique("group")
        find_coordinator(raw, 0, group)
        part = {"partition_index": 0, "committed_offset": 4, "committed_metadata": "note"}
        who = {"generation_id_or_member_epoch": -1, "member_id": ""}
        where = [{"name": topic.name, "partitions": [part]}]
        raw.call("offset_commit", 9, group_id=group, **who, topics=where)
        logs = sorted(folder.glob("__consumer_offsets-*/*.log"))
        text = self.dump(java, *logs, offsets_decoder=True, deep_iteration=True)
        assert f'"group":"{group}"' in text
        assert '"offset":4' in text

    def test_the_transaction_topic(self, java: KafkaWorker, raw: RawClient, folder: Path) -> None:
        name = unique("txn")
        identity = init_producer(raw, name)
        logs = sorted(folder.glob("__transaction_state-*/*.log"))
        text = self.dump(java, *logs, transaction_log_decoder=True, deep_iteration=True)
        assert f'"transactionalId":"{name}"' in text
        assert f'"producerId":{identity.producer_id}' in text

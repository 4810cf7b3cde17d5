"""`millstream cluster` on a cluster of one broker, whichever it is: what it shows, and what it cannot move."""

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from millstream.cluster.connection import Connection
from support.cli import refused, run, succeed
from support.cluster import Cluster, create_topic, produce, unique
from support.raw import RawClient


def shown(cluster: Cluster, *arguments: str, **options: Any) -> str:
    return succeed("cluster", *arguments, "--bootstrap", cluster.bootstrap_servers, **options).stdout


def json(cluster: Cluster, *arguments: str) -> Any:
    return succeed("cluster", *arguments, "--bootstrap", cluster.bootstrap_servers, "--json").json


def test_info(cluster: Cluster, raw: RawClient) -> None:
    topic = create_topic(raw, partitions=3)
    found = json(cluster, "info")
    assert (found["controller"], found["brokers"], found["voters"]) == (1, [1], [1])
    assert found["version"].startswith("4.")
    assert (found["under_replicated"], found["offline"], found["fenced_brokers"]) == ([], [], [])
    assert {"__consumer_offsets", "__transaction_state"} <= set(found["internal_topics"])
    assert found["features"]["transaction.version"] == 2
    assert found["partitions"] == found["replicas"] >= 9
    text = shown(cluster, "info", columns=80)
    assert f"cluster id            {found['cluster_id']}\n" in text
    assert "under-replicated      0\n" in text
    assert topic.name not in text


def test_brokers(cluster: Cluster, raw: RawClient) -> None:
    produce(raw, create_topic(raw), b"x" * 1000)
    (broker,) = json(cluster, "brokers")
    assert f"{broker['host']}:{broker['port']}" == cluster.bootstrap_servers
    assert (broker["id"], broker["state"], broker["controller"], broker["rack"]) == (1, "up", True, None)
    assert broker["leaders"] == broker["replicas"] > 0
    assert broker["size_bytes"] > 1000
    assert broker["usable_bytes"] > 0
    heading, row = shown(cluster, "brokers", columns=80).splitlines()
    assert heading.split() == ["ID", "ADDRESS", "RACK", "STATE", "CONTROLLER", "LEADS", "HOLDS", "SIZE", "FREE"]
    assert row.split()[:5] == ["1", cluster.bootstrap_servers, "-", "up", "yes"]
    assert len(heading) <= 80


def test_apis(cluster: Cluster) -> None:
    rows = {row["name"]: row for row in json(cluster, "apis")}
    assert (rows["Produce"]["key"], rows["Produce"]["versions"]) == (0, "0-13")
    assert rows["ListTransactions"]["by_broker"] == {"1": "0-2"}
    assert "ElectLeaders" in shown(cluster, "apis")


def test_metrics_measure_rates_and_lag(cluster: Cluster, raw: RawClient) -> None:
    topic = create_topic(raw, partitions=2)
    produce(raw, topic, b"a", b"b", b"c")
    connection = Connection(cluster.bootstrap_servers)
    group = unique("group")
    consumer = connection.consumer({"group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic.name])
    assert consumer.consume(1, 30)
    consumer.commit(asynchronous=False)
    stop = threading.Event()

    def write() -> None:
        with cluster.connect() as client:
            while not stop.wait(0.02):
                produce(client, topic, b"more", partition=1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = json(cluster, "metrics", "--interval", "0.5")
    finally:
        stop.set()
        writer.join()
        consumer.close()
    row = next(row for row in found["topics"] if row["topic"] == topic.name)
    assert (row["partitions"], row["internal"]) == (2, False)
    assert row["records"] > 3
    assert 0 < row["records_per_second"] <= found["records_per_second"]
    assert row["size_bytes"] > 0
    lag = next(row for row in found["groups"] if row["group"] == group)
    assert (lag["topics"], lag["lag"] >= 2) == (1, True)
    text = shown(cluster, "metrics", "--interval", "0.1")
    assert re.search(r"\d records/s over \d+\.\d s; 1 broker, ", text)
    assert topic.name in text
    assert group in text


PAGE = b"""# TYPE millstream_partitions gauge
millstream_partitions 7
millstream_requests_total{api="Fetch"} 3
"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = {
            "/metrics": PAGE,
            "/other": b"<html>no metrics {</html>",
        }
        self.send_response(200 if self.path in known else 404)
        self.end_headers()
        self.wfile.write(known.get(self.path, b""))

    def log_message(self, *_: Any) -> None:
        pass


def test_metrics_of_a_prometheus_page(cluster: Cluster) -> None:
    with HTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        quick = ("metrics", "--interval", "0.1", "--metrics-url")
        found = json(cluster, *quick, f"{url}/metrics")
        assert found["prometheus"] == [
            {"name": "millstream_partitions", "labels": {}, "value": 7},
            {"name": "millstream_requests_total", "labels": {"api": "Fetch"}, "value": 3},
        ]
        assert "api=Fetch" in shown(cluster, *quick, f"{url}/metrics")
        where = ("--bootstrap", cluster.bootstrap_servers)
        assert "answered 404" in refused(2, "cluster", *quick, f"{url}/nothing", *where)
        assert "not a page of Prometheus metrics" in refused(2, "cluster", *quick, f"{url}/other", *where)
        server.shutdown()
    assert "does not answer" in refused(3, "cluster", *quick, f"{url}/metrics", *where)
    assert "must begin with http" in refused(2, "cluster", *quick, "file:///etc/passwd", *where)


@pytest.mark.parametrize(
    "command",
    [
        ("balance",),
        ("balance", "--execute"),
        ("decommission", "1"),
        ("reassign", "--topic", "x", "--replication-factor", "1"),
    ],
)
def test_one_broker_has_nothing_to_move(cluster: Cluster, command: tuple[str, ...]) -> None:
    said = refused(1, "cluster", *command, "--bootstrap", cluster.bootstrap_servers)
    assert "there is nothing to move: this cluster has one broker (1)" in said


def test_one_broker_leads_all_and_moves_none(cluster: Cluster, raw: RawClient) -> None:
    topic = create_topic(raw)
    assert shown(cluster, "elect") == "nothing to do: every partition is led by its preferred leader\n"
    assert (
        shown(cluster, "elect", "--topic", topic.name, "--unclean") == "nothing to do: every partition has a leader\n"
    )
    assert json(cluster, "elect", "--execute") == []
    assert shown(cluster, "reassignments") == "no partition is being moved\n"
    assert json(cluster, "reassignments", "--cancel", "--execute") == []


def test_what_does_not_exist(cluster: Cluster, raw: RawClient) -> None:
    name = create_topic(raw, name=unique("unlike-all-others")).name
    where = ("--bootstrap", cluster.bootstrap_servers)
    assert f"did you mean {name}?" in refused(4, "cluster", "elect", "--topic", name.replace("all", "al"), *where)
    assert "there is no broker 99; there are: 1" in refused(4, "cluster", "decommission", "99", *where)


def test_nobody_answers() -> None:
    for command in (("info",), ("brokers",), ("apis",), ("metrics",), ("balance",), ("reassignments",), ("elect",)):
        said = run("cluster", *command, "--bootstrap", "127.0.0.1:1")
        assert said.exit_code == 3
        assert "no broker answers at 127.0.0.1:1" in said.stderr

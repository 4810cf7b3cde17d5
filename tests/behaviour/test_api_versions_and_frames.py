"""ApiVersions, and what happens to a connection that does not speak properly."""

import struct

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster
from support.raw import RawClient, frame

CLIENT_APIS = {
    "produce": (0, 0, 13), "fetch": (1, 4, 18), "list_offsets": (2, 1, 11), "metadata": (3, 0, 13),
    "offset_commit": (8, 2, 10), "offset_fetch": (9, 1, 10), "find_coordinator": (10, 0, 6), "join_group": (11, 0, 9),
    "heartbeat": (12, 0, 4), "leave_group": (13, 0, 5), "sync_group": (14, 0, 5), "describe_groups": (15, 0, 6),
    "list_groups": (16, 0, 5), "api_versions": (18, 0, 4), "create_topics": (19, 2, 7), "delete_topics": (20, 1, 6),
    "delete_records": (21, 0, 2), "init_producer_id": (22, 0, 5), "offset_for_leader_epoch": (23, 2, 4),
    "add_partitions_to_txn": (24, 0, 5), "add_offsets_to_txn": (25, 0, 4), "end_txn": (26, 0, 5),
    "txn_offset_commit": (28, 0, 5), "describe_configs": (32, 1, 4), "alter_configs": (33, 0, 2),
    "describe_log_dirs": (35, 1, 5), "create_partitions": (37, 0, 3), "delete_groups": (42, 0, 2),
    "elect_leaders": (43, 0, 2), "incremental_alter_configs": (44, 0, 1), "alter_partition_reassignments": (45, 0, 1),
    "list_partition_reassignments": (46, 0, 0), "offset_delete": (47, 0, 0), "describe_client_quotas": (48, 0, 1),
    "alter_client_quotas": (49, 0, 1), "describe_quorum": (55, 0, 2), "update_features": (57, 0, 2),
    "describe_cluster": (60, 0, 2), "describe_producers": (61, 0, 0), "describe_transactions": (65, 0, 0),
    "list_transactions": (66, 0, 2), "consumer_group_heartbeat": (68, 0, 1), "consumer_group_describe": (69, 0, 1),
    "list_config_resources": (74, 0, 1), "describe_topic_partitions": (75, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_every_client_api_with_kafkas_ranges(raw: RawClient, version: int) -> None:
    software = {"client_software_name": "behaviour", "client_software_version": "1.0"} if version >= 3 else {}
    response = raw.call("api_versions", version, **software)
    assert response.error_code == E.none
    ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert {key: ranges.get(key) for key, _, _ in CLIENT_APIS.values()} == {
        key: (low, high) for key, low, high in CLIENT_APIS.values()
    }
    keys = [api.api_key for api in response.api_keys]
    assert keys == sorted(keys)


def test_api_versions_reports_the_features_of_a_4_3_cluster(raw: RawClient) -> None:
    response = raw.call("api_versions", 4, client_software_name="behaviour", client_software_version="1.0")
    finalized = {f.name: (f.min_version_level, f.max_version_level) for f in response.finalized_features}
    supported = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
    assert finalized["metadata.version"] == (30, 30)
    assert finalized["transaction.version"] == (2, 2)
    assert finalized["group.version"] == (1, 1)
    assert supported["metadata.version"] == (7, 30)
    assert supported["transaction.version"] == (0, 2)
    assert supported["group.version"] == (0, 1)
    assert response.finalized_features_epoch >= 0
    assert response.zk_migration_ready is False


@pytest.mark.parametrize("version", [5, 9, 32767])
def test_unsupported_api_versions_is_answered_in_version_0_with_the_own_range(raw: RawClient, version: int) -> None:
    raw.send_bytes(frame(struct.pack(">hhih", 18, version, 77, -1) + b"\0\0\0\0"))
    payload = raw.receive_bytes()
    correlation_id, error, count = struct.unpack_from(">ihi", payload)
    assert (correlation_id, error) == (77, E.unsupported_version)
    assert count == 1
    assert struct.unpack_from(">hhh", payload, 10) == (18, 0, 4)
    assert len(payload) == 16
    assert raw.call("api_versions", 0).error_code == E.none


@pytest.mark.parametrize(
    ("name", "version"), [("", "1.0"), ("-starts-badly", "1.0"), ("with space", "1.0"), ("fine", ""), ("fine", "1.0-")]
)
def test_api_versions_refuses_malformed_client_software(raw: RawClient, name: str, version: str) -> None:
    response = raw.call("api_versions", 3, client_software_name=name, client_software_version=version)
    assert response.error_code == E.invalid_request


def test_requests_on_one_connection_are_answered_in_order(raw: RawClient) -> None:
    for version in (0, 1, 2, 0, 1, 2):
        raw.send("api_versions", version)
    raw.send("metadata", 12, topics=[])
    assert [raw.receive().error_code for _ in range(6)] == [E.none] * 6
    assert raw.receive().cluster_id


def test_a_null_client_id_is_fine(cluster: Cluster) -> None:
    with cluster.connect(client_id=None) as raw:
        assert raw.call("metadata", 9, topics=[]).brokers
        assert raw.call("api_versions", 1).error_code == E.none


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">i", 2**31 - 1), id="a size of 2 GB"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="http"),
        pytest.param(frame(b""), id="empty frame"),
        pytest.param(frame(b"\0"), id="one byte"),
        pytest.param(frame(struct.pack(">hhih", 999, 0, 1, -1)), id="unknown api"),
        pytest.param(frame(struct.pack(">hhih", -1, 0, 1, -1)), id="negative api"),
        pytest.param(frame(struct.pack(">hhih", 3, 99, 1, -1) + b"\0"), id="unsupported version of metadata"),
        pytest.param(frame(struct.pack(">hhih", 1, 3, 1, -1)), id="version of fetch below the range"),
        pytest.param(frame(struct.pack(">hhih", 3, 1, 1, -1) + b"\0\0\0\x05\0"), id="body cut short"),
        pytest.param(frame(struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff"), id="array of two billion"),
        pytest.param(frame(struct.pack(">hhih", 3, 1, 1, 500) + b"x"), id="client id beyond the frame"),
    ],
)
def test_a_connection_that_talks_nonsense_is_closed_and_others_do_not_notice(
    cluster: Cluster, raw: RawClient, data: bytes
) -> None:
    with cluster.connect() as bad:
        bad.send_bytes(data)
        assert bad.is_closed_by_peer()
    assert raw.call("api_versions", 0).error_code == E.none


def test_half_a_frame_then_the_rest_is_one_request(raw: RawClient) -> None:
    data = frame(struct.pack(">hhih", 18, 0, 5, -1))
    raw.send_bytes(data[:3])
    assert raw.has_nothing_to_read(0.05)
    raw.send_bytes(data[3:9])
    assert raw.has_nothing_to_read(0.05)
    raw.send_bytes(data[9:])
    assert struct.unpack_from(">ih", raw.receive_bytes()) == (5, 0)


def test_sasl_is_refused_on_a_plaintext_listener(raw: RawClient) -> None:
    assert raw.call("sasl_handshake", 1, mechanism="PLAIN").error_code == E.illegal_sasl_state

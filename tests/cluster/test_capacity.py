"""The formulas of the capacity plan."""

import math

from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.capacity import Load, Machine, parse_network, parse_rate, parse_size, parse_time, plan, size

MB, TB = 10**6, 10**12


def test_a_load_worked_out_by_hand() -> None:
    found = plan(Load(rate=50 * MB, message_size=1000, retention=7 * 86400, replication=3, partitions=30), Machine())
    data = 50 * MB * 604_800 * 3
    assert math.isclose(found.disk_total, (data + 90 * 2**30) / 0.7)
    assert found.brokers_for["disk"] == math.ceil(found.disk_total / (2 * TB))
    assert found.brokers_for["network"] == 1
    assert found.brokers_for["memory"] == math.ceil(150 * MB * 1800 / (56 * 2**30))
    assert found.brokers == found.brokers_for["disk"]
    assert found.decided_by == "disk"


def test_there_is_a_partition_for_each_broker_unless_they_are_given() -> None:
    load = Load(rate=50 * MB, message_size=1000, retention=7 * 86400)
    assert plan(load, Machine()).partitions == plan(load, Machine()).brokers
    few = plan(load._replace(partitions=2), Machine())
    assert few.partitions == 2
    assert any("use only 6 of" in note for note in few.notes)


def test_never_fewer_brokers_than_copies() -> None:
    assert plan(Load(rate=1, message_size=1, retention=60, replication=5), Machine()).brokers == 5


@given(
    st.floats(1, 1e10), st.floats(1, 1e7), st.floats(1, 1e8), st.integers(1, 5), st.integers(0, 20), st.floats(1, 20)
)
def test_what_is_planned_holds_the_load(
    rate: float, message: float, retention: float, copies: int, consumers: int, compression: float
) -> None:
    machine = Machine()
    found = plan(Load(rate, message, retention, copies, consumers, compression), machine)
    assert found.disk_per_broker <= machine.disk * 1.000001
    assert found.memory_per_broker <= machine.memory * 1.000001
    assert max(found.network_in_per_broker, found.network_out_per_broker) <= machine.network
    assert found.partitions >= found.brokers


def test_units() -> None:
    assert parse_size("1KB", "") == 1000
    assert parse_size("1.5 KiB", "") == 1536
    assert parse_time("2w", "") == 14 * 86400
    assert parse_rate("50MB/s", 10, "") == 50 * MB
    assert parse_rate("20/s", 10, "") == 200
    assert parse_network("8Gbit", "") == 10**9
    assert parse_network("500MB/s", "") == 500 * MB
    assert size(90.72e12) == "90.7 TB"
    assert size(999.9) == "1 kB"
    assert size(64 * 2**30, binary=True) == "64 GiB"

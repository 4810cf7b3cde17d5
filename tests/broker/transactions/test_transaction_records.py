import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.transactions.metadata import TransactionMetadata
from millstream.broker.transactions.records import decode_record, encode_key, encode_record
from millstream.broker.transactions.states import TransactionState

ONGOING = TransactionMetadata(
    transactional_id="tx",
    producer_id=7,
    timeout_ms=60_000,
    last_update_ms=2,
    previous_producer_id=6,
    producer_epoch=3,
    state=TransactionState.ONGOING,
    partitions=frozenset({("a", 1), ("a", 0), ("b", 2)}),
    start_ms=1,
    client_transaction_version=2,
)


def test_version_1_byte_for_byte() -> None:
    key, value = encode_record(ONGOING, 2)
    assert key == bytes.fromhex("0000 0002 7478")
    assert value == bytes.fromhex(
        "0001"  # version
        "0000000000000007 0003 0000ea60 01"  # producer id, epoch, timeout, Ongoing
        "03 02 61 03 00000000 00000001 00 02 62 02 00000002 00"  # a: 0, 1; b: 2
        "0000000000000002 0000000000000001"  # last update, start
        "02 00 08 0000000000000006 02 02 0002"  # tags: previous producer id, client transaction version
    )


def test_version_0_byte_for_byte() -> None:
    _, value = encode_record(ONGOING, 0)
    assert value == bytes.fromhex(
        "0000"
        "0000000000000007 0003 0000ea60 01"
        "00000002 0001 61 00000002 00000000 00000001 0001 62 00000001 00000002"
        "0000000000000002 0000000000000001"
    )


def test_the_partitions_of_an_empty_one_are_null() -> None:
    value = encode_record(TransactionMetadata("tx", 7, 60_000, 2, producer_epoch=0), 1).value
    assert value is not None
    assert value[17:18] == b"\0"


metadata = st.builds(
    TransactionMetadata,
    transactional_id=st.text(max_size=20),
    producer_id=st.integers(0, 2**63 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    last_update_ms=st.integers(0, 2**60),
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 32_767),
    last_producer_epoch=st.just(-1),
    state=st.sampled_from(TransactionState).filter(lambda state: state is not TransactionState.EMPTY),
    partitions=st.frozensets(st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 100)), max_size=5),
    start_ms=st.integers(-1, 2**60),
    client_transaction_version=st.integers(0, 2),
)


@given(metadata)
def test_what_is_written_is_read(written: TransactionMetadata) -> None:
    assert decode_record(encode_record(written, 2)) == (written.transactional_id, written)


def test_a_record_without_value_is_a_tombstone() -> None:
    assert decode_record(KeyValue(encode_key("tx"), None)) == ("tx", None)


def test_unknown_versions_are_passed_over() -> None:
    key, value = encode_record(ONGOING, 2)
    assert value is not None
    assert decode_record(KeyValue(b"\0\1" + key[2:], value)) is None
    assert decode_record(KeyValue(key, b"\0\2" + value[2:])) is None


@pytest.mark.parametrize("broken", [b"", b"\0", b"\0\1\0", b"\0\1" + bytes(14) + b"\x09" + bytes(18)])
def test_a_value_that_cannot_be_read(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_record(KeyValue(encode_key("tx"), broken))

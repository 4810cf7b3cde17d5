"""Zigzag varints."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.varints import decode_varint, encode_varint


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    assert decode_varint(encode_varint(value), 0) == (value, len(encode_varint(value)))


def test_known_values() -> None:
    assert [encode_varint(n) for n in (0, -1, 1, 63, 64, -65)] == [b"\0", b"\1", b"\2", b"\x7e", b"\x80\1", b"\x81\1"]


def test_one_that_never_ends() -> None:
    with pytest.raises(KafkaError) as refused:
        decode_varint(b"\xff" * 20, 0)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(IndexError):
        decode_varint(b"\xff\xff", 0)

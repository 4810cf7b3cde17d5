"""Each codec there and back, in the framings other clients read, and nothing that unpacks without bound."""

import zlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.compression import Compression, compress, decompress
from millstream.wire.errors import ErrorCode, KafkaError

PACKED = [codec for codec in Compression if codec is not Compression.NONE]


@settings(deadline=None)
@given(st.sampled_from(Compression), st.binary(max_size=300), st.integers(0, 2000))
def test_there_and_back(codec: Compression, piece: bytes, repeats: int) -> None:
    data = piece * repeats
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", PACKED)
def test_a_limit_is_kept(codec: Compression) -> None:
    data = b"\x00" * 3_000_000
    packed = compress(codec, data)
    assert len(packed) < 200_000
    assert decompress(codec, packed, len(data)) == data
    with pytest.raises(KafkaError) as refused:
        decompress(codec, packed, len(data) - 1)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_does_not_go_off(codec: Compression) -> None:
    bomb = compress(codec, b"\x00" * 50_000_000)
    with pytest.raises(KafkaError, match="cannot be unpacked"):
        decompress(codec, bomb, 1000)


def outcome(codec: Compression, data: bytes) -> ErrorCode:
    try:
        decompress(codec, data, 10_000)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize("codec", PACKED)
@settings(deadline=None)
@given(junk=st.binary(min_size=1, max_size=60))
def test_junk_is_a_corrupt_message(codec: Compression, junk: bytes) -> None:
    assert outcome(codec, junk) in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)


@pytest.mark.parametrize("codec", PACKED)
def test_a_cut_stream_is_a_corrupt_message(codec: Compression) -> None:
    packed = compress(codec, bytes(range(256)) * 40)
    with pytest.raises(KafkaError) as refused:
        decompress(codec, packed[: len(packed) // 2], 100_000)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_snappy_is_written_in_xerial_framing_and_read_raw_too() -> None:
    data = b"some data " * 10_000
    packed = compress(Compression.SNAPPY, data)
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_lz4_blocks_are_independent_as_the_java_client_requires() -> None:
    packed = compress(Compression.LZ4, b"some data " * 20_000)
    assert packed[:4] == bytes.fromhex("04224d18")
    assert packed[4] & 0x20
    assert bytes(cramjam.lz4.decompress(packed)) == b"some data " * 20_000


def test_lz4_frames_with_linked_blocks_and_checksums_are_read() -> None:
    data = b"some data " * 20_000
    assert decompress(Compression.LZ4, bytes(cramjam.lz4.compress(data))) == data


def test_gzip_members_in_a_row_are_one_stream() -> None:
    packed = compress(Compression.GZIP, b"one ") + compress(Compression.GZIP, b"two")
    assert decompress(Compression.GZIP, packed) == b"one two"
    assert zlib.decompress(compress(Compression.GZIP, b"x"), 31) == b"x"


@pytest.mark.parametrize(
    ("codec", "levels"), [(Compression.GZIP, (1, 9)), (Compression.ZSTD, (-5, 19)), (Compression.LZ4, (1, 12))]
)
def test_levels_change_the_size_only(codec: Compression, levels: tuple[int, int]) -> None:
    data = b"".join(b"%d," % (n * n) for n in range(20_000))
    fast, small = (compress(codec, data, level) for level in levels)
    assert len(small) < len(fast)
    assert decompress(codec, fast) == decompress(codec, small) == data

"""Every message of every version against kio, an independent implementation made from the same schemas."""

import contextlib
import importlib
import pkgutil
import random
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

import millstream.wire.messages as messages
from millstream.wire.codec import MalformedMessage, decode, decode_prefix, encode, maker_of
from millstream.wire.message import Field, Message
from millstream.wire.messages.fetch import PartitionData
from millstream.wire.messages.group_records import ConsumerGroupMemberMetadataValue
from millstream.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from millstream.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from support.raw import make_times_plain

RANGES = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}


def payload_classes() -> Iterator[type[Message]]:
    for info in pkgutil.iter_modules(messages.__path__):
        module = importlib.import_module(f"{messages.__name__}.{info.name}")
        for name in dir(module):
            cls = getattr(module, name)
            if isinstance(cls, type) and issubclass(cls, Message) and name.endswith(("Request", "Response")):
                yield cls


CASES = [(cls, version) for cls in payload_classes() if cls.API_KEY >= 0 for version in range(*cls.VERSIONS)] + [
    (cls, cls.VERSIONS[1]) for cls in payload_classes() if cls.API_KEY >= 0
]


def random_value(field: Field, version: int, rng: random.Random) -> Any:
    nullable = field.nullable[0] <= version <= field.nullable[1]
    if nullable and rng.random() < 0.3:
        return None
    if field.array:
        return [random_item(field, version, rng) for _ in range(rng.randrange(3))]
    return random_item(field, version, rng)


def random_item(field: Field, version: int, rng: random.Random) -> Any:
    kind = field.kind
    if kind == "struct":
        assert field.struct is not None
        return random_message(field.struct, version, rng)
    if "error_code" in field.name:
        return rng.randrange(100)
    if field.name.endswith("_ms") or "timestamp" in field.name or "time" in field.name:
        return rng.randrange(1, 2**30)
    if kind in RANGES:
        return rng.randrange(2 ** (RANGES[kind] - 1))
    makers: dict[str, Callable[[], Any]] = {
        "bool": lambda: rng.random() < 0.5,
        "float64": rng.random,
        "string": lambda: "é" * rng.randrange(90),
        "bytes": lambda: rng.randbytes(rng.randrange(200)),
        "records": lambda: rng.randbytes(rng.randrange(200)),
        "uuid": lambda: UUID(int=rng.getrandbits(128), version=4).bytes,
    }
    return makers[kind]()


def random_message(cls: type[Message], version: int, rng: random.Random) -> Message:
    values = {
        field.name: random_value(field, version, rng)
        for field in cls.FIELDS
        if field.versions[0] <= version <= field.versions[1] and (field.tag < 0 or rng.random() < 0.5)
    }
    return cls(**values)


@pytest.mark.parametrize(("cls", "version"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_reads_back_what_it_wrote(cls: type[Message], version: int) -> None:
    rng = random.Random(f"{cls.__name__} {version}")
    for _ in range(5):
        message = random_message(cls, version, rng)
        assert decode(cls, encode(message, version), version) == message


@pytest.mark.parametrize(("cls", "version"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_kio_reads_it_and_writes_the_same_bytes(cls: type[Message], version: int) -> None:
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    schema = load(cls.API_KEY, version)
    make_times_plain(schema)  # as the raw client does: kio keeps the first reader that it makes
    rng = random.Random(f"kio {cls.__name__} {version}")
    for _ in range(3):
        raw = encode(random_message(cls, version, rng), version)
        entity, size = entity_reader(schema)(raw, 0)
        assert size == len(raw)
        again = BytesIO()
        entity_writer(schema)(again, entity)
        assert again.getvalue() == raw


def test_records_are_read_without_a_copy_and_written_as_parts() -> None:
    records = memoryview(b"a batch")
    request = ProduceRequest(
        acks=1, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=[records, b"!"])])]
    )
    raw = encode(request, 9)
    read = decode(ProduceRequest, raw, 9).topic_data[0].partition_data[0].records
    assert isinstance(read, memoryview)
    assert bytes(read) == b"a batch!"
    assert read.obj is raw


@pytest.mark.parametrize("version", range(14))
def test_a_message_cut_anywhere_is_malformed(version: int) -> None:
    raw = encode(
        MetadataRequest(topics=[MetadataRequestTopic(name="topic"), MetadataRequestTopic(name="other")]), version
    )
    for size in range(len(raw)):
        with pytest.raises(MalformedMessage):
            decode(MetadataRequest, raw[:size], version)


def test_bytes_behind_the_message_are_malformed() -> None:
    with pytest.raises(MalformedMessage, match="ends at byte"):
        decode(MetadataRequest, encode(MetadataRequest(topics=[]), 4) + b"x", 4)


def test_a_count_that_cannot_fit_is_refused_before_anything_is_allocated() -> None:
    with pytest.raises(MalformedMessage, match="2147483647 elements do not fit"):
        decode(MetadataRequest, b"\x7f\xff\xff\xff" + bytes(100), 1)


def test_null_where_the_version_has_none_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="topics is null"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)


def test_a_string_that_is_not_utf8_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="not UTF-8"):
        decode(MetadataRequest, b"\x00\x00\x00\x01\x00\x02\xff\xfe", 0)


def test_unknown_tags_are_skipped() -> None:
    raw = encode(MetadataRequest(topics=[]), 12)
    assert raw.endswith(b"\x00")
    tagged = raw[:-1] + b"\x01\x63\x03abc"
    assert decode(MetadataRequest, tagged, 12) == decode(MetadataRequest, raw, 12)


def test_a_prefix_tells_where_it_ends() -> None:
    raw = encode(MetadataResponse(cluster_id="c"), 2)
    assert decode_prefix(MetadataResponse, b"??" + raw + b"rest", 2, 2)[1] == 2 + len(raw)


@pytest.mark.parametrize("cls", list({cls.__name__: cls for cls, _ in CASES}.values()))
def test_any_bytes_are_a_message_or_malformed(cls: type[Message]) -> None:
    """Random bytes, and real messages with bytes changed, cut out or put in: never another exception."""
    rng = random.Random(cls.__name__)
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        for _ in range(20):
            for data in (
                rng.randbytes(rng.randrange(80)),
                mutated(encode(random_message(cls, version, rng), version), rng),
            ):
                with contextlib.suppress(MalformedMessage):
                    encode(decode(cls, data, version), version)


def mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        position = rng.randrange(len(changed) + 1)
        match rng.randrange(3):
            case 0 if position < len(changed):
                changed[position] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 1:
                del changed[position : position + rng.randrange(1, 5)]
            case _:
                changed[position:position] = rng.randbytes(rng.randrange(1, 5))
    return bytes(changed)


def test_a_null_struct_in_a_tagged_field_is_said_with_a_zero() -> None:
    """As Apache Kafka 4.3.1 wrote it for a member of a consumer group that does not use the classic protocol."""
    written = b"\x00\x00\x0bmillstream\x0b/127.0.0.1\x02\x02t\x01\x00\x04\x93\xe0\x00\x01\x00\x01\x00"
    value = decode(ConsumerGroupMemberMetadataValue, written, 0)
    assert (value.client_id, value.rebalance_timeout_ms, value.classic_member_metadata) == ("millstream", 300_000, None)
    assert encode(value, 0) == written


@pytest.mark.parametrize("cls", [MetadataResponse, PartitionData, ProduceResponse])
def test_a_maker_makes_what_the_class_makes(cls: type[Message]) -> None:
    make = maker_of(cls)
    assert make() == cls()
    for field in cls.FIELDS:
        value = getattr(cls(), field.name)
        assert getattr(make(**{field.name: value}), field.name) == value
    lists = [field.name for field in cls.FIELDS if isinstance(getattr(cls(), field.name), list)]
    assert all(getattr(make(), name) is not getattr(make(), name) for name in lists)


def test_a_maker_knows_the_names() -> None:
    assert maker_of(PartitionData)(partition_index=3, records=b"r") == PartitionData(partition_index=3, records=b"r")
    with pytest.raises(TypeError, match="nonsense"):
        maker_of(PartitionData)(nonsense=1)  # type: ignore[call-arg]

"""Finding the way of a request, and the frames of its response."""

import struct

import pytest

from millstream.broker.apis import load_all
from millstream.log.fetch import FetchSlice
from millstream.server.routes import API_VERSIONS_KEY, BadRequest, route
from millstream.wire.codec import decode, encode
from millstream.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from millstream.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from millstream.wire.messages.metadata import MetadataRequest, MetadataResponse

FETCH, METADATA = 1, 3
UNKNOWN_KEY = 999
FLEXIBLE_METADATA, OLD_METADATA = 12, 8

load_all()


class Slice(FetchSlice):
    """Bytes that pretend to lie in a file."""

    def __init__(self, size: int) -> None:
        super().__init__(0, 0, 0, None, 0, size, None, False)


def message_of(frame: bytes, header: int) -> bytes:
    size, correlation_id = struct.unpack_from(">ii", frame)
    assert size == len(frame) - 4
    assert correlation_id == 7
    return frame[header:]


def test_an_api_that_nobody_knows_has_no_route() -> None:
    with pytest.raises(BadRequest, match="unknown API key 999"):
        route(UNKNOWN_KEY, 0)


def test_a_version_that_we_do_not_speak_has_no_route() -> None:
    with pytest.raises(BadRequest, match="Metadata version 99; supported: 0 to 13"):
        route(METADATA, 99)


def test_the_same_route_is_used_again() -> None:
    assert route(METADATA, OLD_METADATA) is route(METADATA, OLD_METADATA)


@pytest.mark.parametrize("tags", [b"\x00", b"\x01\x05\x02ab"])
def test_tagged_fields_of_a_flexible_header_are_passed_over(tags: bytes) -> None:
    wanted = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    frame = memoryview(tags + encode(wanted, FLEXIBLE_METADATA))
    assert route(METADATA, FLEXIBLE_METADATA).read(frame, 0) == wanted


@pytest.mark.parametrize("tags", [b"", b"\x01", b"\x01\x05\x7f"])
def test_a_header_that_is_cut_short_is_said_to_be(tags: bytes) -> None:
    with pytest.raises(BadRequest, match="header"):
        route(METADATA, FLEXIBLE_METADATA).read(memoryview(tags), 0)


@pytest.mark.parametrize(("version", "header"), [(OLD_METADATA, 8), (FLEXIBLE_METADATA, 9)])
def test_a_response_is_one_frame_with_the_header_of_its_version(version: int, header: int) -> None:
    response = MetadataResponse(cluster_id="c", controller_id=1)
    (frame,) = route(METADATA, version).response(7, response)
    assert decode(MetadataResponse, message_of(frame, header), version) == response


def test_the_header_of_api_versions_is_never_flexible() -> None:
    response = ApiVersionsResponse(throttle_time_ms=3)
    (frame,) = route(API_VERSIONS_KEY, 3).response(7, response)
    assert decode(ApiVersionsResponse, message_of(frame, 8), 3).throttle_time_ms == 3


def test_api_versions_of_a_future_version_is_answered_in_version_0() -> None:
    way = route(API_VERSIONS_KEY, 99)
    assert way.read(memoryview(b"not to be read"), 0) == ApiVersionsRequest()
    (frame,) = way.response(7, ApiVersionsResponse(error_code=35))
    assert decode(ApiVersionsResponse, message_of(frame, 8), 0).error_code == 35


def test_slices_of_files_stay_what_they_are() -> None:
    first, second = Slice(100), Slice(50)
    partitions = [PartitionData(partition_index=0, records=[first]), PartitionData(partition_index=1, records=[second])]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = route(FETCH, 12).response(7, response)
    assert [part for part in parts if isinstance(part, Slice)] == [first, second]
    assert [type(part) for part in parts] == [bytes, Slice, bytes, Slice, bytes]
    assert struct.unpack_from(">i", parts[0])[0] == sum(map(len, parts)) - 4

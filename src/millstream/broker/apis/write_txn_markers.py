"""WriteTxnMarkers: ends a producer's transaction in the named partitions, past the transaction coordinator.

Between brokers this is how a coordinator writes its markers; here it is what `kafka-transactions.sh abort` (the admin
client's `abortTransaction`) sends to get rid of a transaction that hangs in a partition. The partition checks producer
and coordinator epoch; in `__consumer_offsets` the group coordinator learns of the end, too.

Departures from Apache Kafka: none known. The results have the order of the request.

- v1: flexible. v2: the transaction version, which decides how strictly the epoch is checked (KAFKA-19999).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

Results = dict[int, dict[str, dict[int, ErrorCode]]]


@api(WriteTxnMarkersRequest, versions=(1, 2))
def write_txn_markers(
    broker: Broker, request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    results: Results = {}
    for marker in request.markers:
        topics = results.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            partitions = topics.setdefault(topic.name, {})
            for index in topic.partition_indexes:
                partitions[index] = _written(broker, marker, topic.name, index)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index, code in partitions.items()
                        ],
                    )
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in results.items()
        ]
    )


def _written(broker: Broker, marker: WritableTxnMarker, topic: str, index: int) -> ErrorCode:
    try:
        broker.transactions.markers.write_marker(
            topic,
            index,
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            marker.transaction_version,
        )
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE

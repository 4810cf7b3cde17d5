"""ApiVersions: what this server speaks, and the cluster's feature levels.

Computed from the registrations, so it cannot promise what is not there. Departures from Apache Kafka: none known.

- v0-2: the table of APIs. An unsupported version is answered in v0 with UNSUPPORTED_VERSION and the table's own
  entry, so that the client can try again (KIP-511).
- v3: flexible; client software name and version are checked for their form; feature levels (KIP-584).
- v4: features whose lowest level is 0 are listed too (KIP-1022).

Produce is listed from version 0 although versions 0 to 2 are not served: old librdkafka takes the missing 0 for a
broker without any record batch format (KIP-896).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import APIS, api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from millstream.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

VERSIONS = (0, 4)
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(ApiVersionsRequest, versions=VERSIONS)
def api_versions(broker: Broker, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    version = context.api_version
    if not VERSIONS[0] <= version <= VERSIONS[1]:
        own = ApiVersion(api_key=ApiVersionsRequest.API_KEY, min_version=VERSIONS[0], max_version=VERSIONS[1])
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    if version >= 3 and not (
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=entry.key,
                min_version=0 if entry.key == ProduceRequest.API_KEY else entry.min_version,
                max_version=entry.max_version,
            )
            for entry in sorted(APIS.values(), key=lambda entry: entry.key)
        ],
        supported_features=[
            SupportedFeatureKey(name=feature.name, min_version=feature.min_level, max_version=feature.max_level)
            for feature in broker.features.supported()
            if feature.min_level > 0 or version >= 4
        ],
        finalized_features_epoch=broker.features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in broker.features.finalized().items()
        ],
    )

"""UpdateFeatures: changes finalized feature levels (KIP-584), all of those asked for or none.

Departures from Apache Kafka: kraft.version cannot be raised, since the voters are fixed.

- v0: a downgrade is allowed by a flag. v1: by a type, and validation alone (KIP-778). v2: one error for all (KIP-1022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.features import SAFE_DOWNGRADE, UPGRADE
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(UpdateFeaturesRequest, versions=(0, 2))
def update_features(broker: Broker, request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    updates = {}
    for update in request.feature_updates:
        upgrade_type = update.upgrade_type
        if context.api_version == 0:
            upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
        updates[update.feature] = (update.max_version_level, upgrade_type)
    try:
        broker.features.update(updates, validate_only=request.validate_only)
    except KafkaError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=f"Nothing was changed. {error.message}")
    results = [UpdatableFeatureResult(feature=name, error_message=ErrorCode.NONE.name) for name in updates]
    return UpdateFeaturesResponse(error_message=None, results=results if context.api_version <= 1 else [])

"""SaslAuthenticate: one step of a SASL exchange.

Departures from Apache Kafka: none known. All listeners are PLAINTEXT, where Kafka answers ILLEGAL_SASL_STATE.

- v1: session lifetime (KIP-368). v2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(SaslAuthenticateRequest, versions=(0, 2))
def sasl_authenticate(
    broker: Broker, request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message="This listener has no SASL.")

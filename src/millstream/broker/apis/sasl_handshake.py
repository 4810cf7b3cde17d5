"""SaslHandshake: the choice of a SASL mechanism.

Departures from Apache Kafka: none known. All listeners are PLAINTEXT, where Kafka answers ILLEGAL_SASL_STATE.

- v1: the exchange goes on in SaslAuthenticate requests (KIP-152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(SaslHandshakeRequest, versions=(0, 1))
def sasl_handshake(broker: Broker, request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

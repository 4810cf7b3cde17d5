"""DescribeUserScramCredentials: which users have SCRAM credentials (KIP-554).

Departure from Apache Kafka: there are no SCRAM credentials here yet, so the list is empty and every named user is not
found, as on a Kafka cluster where none have been made. `kafka-configs --describe --entity-type users` asks for them
beside the quotas.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(DescribeUserScramCredentialsRequest, versions=(0, 0))
def describe_user_scram_credentials(
    broker: Broker, request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_not_found(user, count) for user, count in counts.items()]
    )


def _not_found(user: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=f"The user {user} is named twice."
        )
    return DescribeUserScramCredentialsResult(
        user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=f"{user} has no SCRAM credentials."
    )

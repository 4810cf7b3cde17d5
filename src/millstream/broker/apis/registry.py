"""The table of APIs: every handler registers itself here in one line, and everything else is computed from the table.

    @api(MetadataRequest, versions=(0, 13))
    def metadata(broker: Broker, request: MetadataRequest, context: RequestContext) -> MetadataResponse: ...

ApiVersions answers from it, the server dispatches by it, and the documentation's table of APIs is printed from it, so
none of the three can disagree with the others. A handler returns its response, or an awaitable of it when it has to
wait (a rebalance, an fsync), or a `Waiting` when the wait is for what others bring (a long poll); the connection takes
the next request only when the response is on its way, as Kafka does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from millstream.wire.message import Message

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

R = TypeVar("R", bound=Message)


class Waiting(ABC):
    """A response that another request may make possible. It is then given at once, not in some later turn of the event
    loop: how soon a consumer has a record depends on it."""

    __slots__ = ()

    @abstractmethod
    def wait(self, ready: Callable[[], None]) -> None:
        """Begins to wait. `ready` is called once, perhaps before this returns, perhaps in the middle of another
        request: all it may do is to see to it that `answer` is called soon."""

    @abstractmethod
    def answer(self) -> Message:
        """The response, after `ready` was called."""

    @abstractmethod
    def stop(self) -> None:
        """Nobody waits any more."""


Handler = Callable[["Broker", Any, "RequestContext"], "Message | Waiting | Awaitable[Message | None] | None"]


class Api(NamedTuple):
    """One entry of the table."""

    key: int
    name: str
    request: type[Message]
    min_version: int
    max_version: int
    handler: Handler


APIS: dict[int, Api] = {}


def api(
    request: type[R], *, versions: tuple[int, int]
) -> Callable[[Callable[[Broker, R, RequestContext], Any]], Callable[[Broker, R, RequestContext], Any]]:
    """Registers the decorated function as the handler of a request in a range of versions."""

    def register(handler: Callable[[Broker, R, RequestContext], Any]) -> Callable[[Broker, R, RequestContext], Any]:
        if request.API_KEY in APIS:
            raise ValueError(f"API {request.API_KEY} is registered twice")
        name = request.__name__.removesuffix("Request")
        APIS[request.API_KEY] = Api(request.API_KEY, name, request, *versions, handler)
        return handler

    return register

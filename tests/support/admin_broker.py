"""A broker without sockets, coordinators and an event loop: what the admin APIs work on, on a real folder.

Requests and responses go through the codec in the version under test, so that a field a version does not have is lost
as it would be on the wire.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from millstream.broker.apis.registry import APIS
from millstream.broker.configs.dynamic import DynamicConfigs
from millstream.broker.configs.settings import Settings
from millstream.broker.context import RequestContext
from millstream.broker.features import Features
from millstream.broker.quotas import Quotas
from millstream.broker.store import FILE_NAME, MetadataStore
from millstream.broker.topics import Topics
from millstream.log.config import LogConfig
from millstream.log.manager import LogManager
from millstream.wire.codec import decode, encode
from millstream.wire.message import Message
from support.manual_timer import ManualTimer

M = TypeVar("M", bound=Message)


class AdminBroker:
    """Offers what handlers ask of a `Broker`."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.timer = ManualTimer()
        self.settings = Settings(settings)
        self.node_id = self.settings.int("node.id")
        self.cluster_id = "cluster"
        self.rack = self.settings.str("broker.rack") or None
        self.logs = LogManager(str(folder), clock=self.timer, sync=False)
        self.logs.lock()
        self.store = MetadataStore(folder / FILE_NAME)
        self.configs = DynamicConfigs(self.settings, self.store)
        self.features = Features(self.store)
        self.topics = Topics(self.store, self.configs, self.logs, self.timer)
        self.quotas = Quotas(self.store, self.configs, self.timer)
        self.logs.open(self._log_config, lambda name, index, _: self.topics.partition(name, index) is not None)

    def _log_config(self, name: str) -> LogConfig:
        topic = self.topics.get(name)
        return topic.log_config if topic is not None else LogConfig()

    def endpoint(self, context: RequestContext) -> tuple[str, int]:
        return "host", 9092

    def stop(self) -> None:
        self.logs.close()
        self.store.close()

    def call(self, request: Message, response: type[M], version: int | None = None, **context: Any) -> M:
        """The response to a request, in the highest version if none is given."""
        importlib.import_module(type(request).__module__.replace(".wire.messages.", ".broker.apis."))
        api = APIS[request.API_KEY]
        version = api.max_version if version is None else version
        received = decode(type(request), encode(request, version), version)
        # The handlers know no more of a broker than what is offered here.
        handler: Any = api.handler
        answer = handler(self, received, RequestContext(api_version=version, **context))
        return decode(response, encode(answer, version), version)

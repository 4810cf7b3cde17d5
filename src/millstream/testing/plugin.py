"""The pytest plugin: fixtures that give a test a log server of its own.

- `millstream`: a fresh server for each test, gone afterwards. `millstream.bootstrap_servers` goes to any Kafka client.
- `millstream_session`: one server for the whole test session, for suites that name their topics apart.
- `millstream_settings`: override it to give the servers Kafka's settings:

      @pytest.fixture(scope="session")
      def millstream_settings():
          return {"auto.create.topics.enable": "false"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from millstream.testing.server import TestServer


@pytest.fixture(scope="session")
def millstream_settings() -> Mapping[str, str]:
    """Kafka's settings for the servers of this test session; override it."""
    return {}


@pytest.fixture
def millstream(millstream_settings: Mapping[str, str]) -> Iterator[TestServer]:
    """A fresh log server for one test."""
    from millstream.testing.server import running_server

    with running_server(millstream_settings) as server:
        yield server


@pytest.fixture(scope="session")
def millstream_session(millstream_settings: Mapping[str, str]) -> Iterator[TestServer]:
    """One log server for the whole session."""
    from millstream.testing.server import running_server

    with running_server(millstream_settings) as server:
        yield server

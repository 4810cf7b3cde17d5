"""The broker that the admin APIs are called on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.admin_broker import AdminBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AdminBroker]:
    broker = AdminBroker(tmp_path / "data")
    yield broker
    broker.stop()

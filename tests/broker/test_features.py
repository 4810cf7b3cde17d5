"""Feature levels, as a fresh Apache Kafka 4.3.1 cluster reports them."""

import pytest

from millstream.broker.features import FEATURES, SAFE_DOWNGRADE, UPGRADE, Features
from millstream.broker.store import IN_MEMORY, MetadataStore
from millstream.wire.errors import KafkaError


def test_the_levels_of_a_fresh_cluster() -> None:
    assert Features(MetadataStore(IN_MEMORY)).finalized() == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_what_is_supported() -> None:
    assert {feature.name: (feature.min_level, feature.max_level) for feature in FEATURES} == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 30),
        "share.version": (0, 1),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }
    assert Features(MetadataStore(IN_MEMORY)).supported() == FEATURES


def test_a_level_is_there_after_a_restart_and_level_zero_is_not_listed() -> None:
    store = MetadataStore(IN_MEMORY)
    features = Features(store)
    features.update(
        {"transaction.version": (1, SAFE_DOWNGRADE), "group.version": (0, SAFE_DOWNGRADE)}, validate_only=False
    )
    again = Features(store)
    assert again.level("transaction.version") == 1
    assert "group.version" not in again.finalized()
    assert again.epoch == features.epoch == 2


def test_one_level_that_is_refused_refuses_all() -> None:
    features = Features(MetadataStore(IN_MEMORY))
    with pytest.raises(KafkaError, match="INVALID_UPDATE_VERSION"):
        features.update({"transaction.version": (1, SAFE_DOWNGRADE), "no.such": (1, UPGRADE)}, validate_only=False)
    assert features.level("transaction.version") == 2

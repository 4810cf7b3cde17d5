"""Feature levels (KIP-584): what this server supports, and what the cluster has agreed on.

The table is that of Apache Kafka 4.3: a fresh cluster is at the highest level of everything but kraft.version, which is
0 for a quorum whose voters are fixed and is then not listed. Levels can be changed within what is supported; the server
acts on transaction.version and group.version. Stored first, then in effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from millstream.broker.store import MetadataStore
from millstream.wire.errors import ErrorCode, KafkaError

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Feature(NamedTuple):
    name: str
    min_level: int
    max_level: int
    fresh_level: int
    """The level of a fresh cluster."""


FEATURES: Final = (
    Feature(GROUP_VERSION, 0, 1, 1),
    Feature(KRAFT_VERSION, 0, 1, 0),
    Feature(METADATA_VERSION, 7, 30, 30),
    Feature(SHARE_VERSION, 0, 1, 1),
    Feature(STREAMS_VERSION, 0, 1, 1),
    Feature(TRANSACTION_VERSION, 0, 2, 2),
    Feature(ELR_VERSION, 0, 1, 1),
)
_BY_NAME: Final = {feature.name: feature for feature in FEATURES}


class Features:
    """The supported and the finalized features."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._levels = store.features()
        self.epoch = store.features_epoch()
        """Grows with every change, so that clients know which of two answers is the newer one."""
        if not self._levels:
            self._save({feature.name: feature.fresh_level for feature in FEATURES if feature.fresh_level})

    def supported(self) -> tuple[Feature, ...]:
        return FEATURES

    def finalized(self) -> Mapping[str, int]:
        return self._levels

    def level(self, name: str) -> int:
        return self._levels.get(name, 0)

    def update(self, updates: Mapping[str, tuple[int, int]], *, validate_only: bool) -> None:
        """Sets levels, `name -> (level, upgrade type)`, all of them or none. KafkaError(INVALID_UPDATE_VERSION)."""
        levels = dict(self._levels)
        for name, (level, upgrade_type) in updates.items():
            self._check(name, level, upgrade_type)
            levels[name] = level
        if not validate_only and updates:
            self._save({name: level for name, level in levels.items() if level})

    def _save(self, levels: dict[str, int]) -> None:
        self._store.replace_features(levels, self.epoch + 1)
        self._levels = levels
        self.epoch += 1

    def _check(self, name: str, level: int, upgrade_type: int) -> None:
        problem = None
        feature, current = _BY_NAME.get(name), self.level(name)
        if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            problem = f"{upgrade_type} is not a type of upgrade"
        elif level < 0:
            problem = "A level cannot be less than 0"
        elif feature is None:
            problem = "This server does not know the feature"
        elif not feature.min_level <= level <= feature.max_level:
            problem = f"This server supports levels from {feature.min_level} to {feature.max_level}"
        elif level < current and upgrade_type == UPGRADE:
            problem = f"The level is {current}; to lower it, the upgrade type must be a downgrade"
        elif level > current and upgrade_type != UPGRADE:
            problem = f"The level is {current}; a downgrade cannot raise it"
        elif name == KRAFT_VERSION and level != current:
            problem = "The voters of this server are fixed"
        elif name == METADATA_VERSION and level < current:
            problem = f"Going down from {current} could lose metadata"
        if problem is not None:
            message = f"Level {level} of the feature {name} is not possible: {problem}"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, message)

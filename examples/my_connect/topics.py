"""The topics of My Connect, and what is in them.

my-connect-profiles      compacted; key: person                 {"name", "city"}
my-connect-connections   compacted; key: the two, sorted        {"people": [a, b], "connected": true}
my-connect-messages      key: receiver                          {"id", "from", "to", "text", "sent_at"}
my-connect-inboxes       key: receiver; what was delivered      the message
my-connect-dead-letters  what was not, with the reason in headers
"""

from __future__ import annotations

PROFILES = "my-connect-profiles"
CONNECTIONS = "my-connect-connections"
MESSAGES = "my-connect-messages"
INBOXES = "my-connect-inboxes"
DEAD_LETTERS = "my-connect-dead-letters"
DELIVERY = "my-connect-delivery"
"""The group that delivers."""
USAGE = "my-connect-usage"
"""The group that watches."""
USAGE_SPARK = "my-connect-usage-spark"
DEGREES_SPARK = "my-connect-degrees-spark"
"""What the Spark pipelines write."""
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    PROFILES: (1, {"cleanup.policy": "compact"}),
    # who counts changes, as a pipeline does, must see each of them: they stay for a day
    CONNECTIONS: (1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}),
    MESSAGES: (4, {}),
    INBOXES: (4, {}),
    DEAD_LETTERS: (1, {}),
}
"""Name -> partitions and configs."""


def pair(one: str, other: str) -> str:
    """The key of a connection: the same whoever asked for it."""
    return "|".join(sorted((one, other)))

"""Configs of client metrics subscriptions (KIP-714), stored and reported; nothing is collected.

The columns are those of `catalogue.read_table`.
"""

TABLE = """
interval.ms | INT | 300000 | | MEDIUM | cluster-wide | accepted
    how often subscribed clients push their metrics
match | LIST | '' | different | MEDIUM | cluster-wide | accepted
    which clients are subscribed, as attribute=pattern
metrics | LIST | '' | different | MEDIUM | cluster-wide | accepted
    prefixes of the metrics that are pushed
"""

"""Which value counts, and what is said about where it comes from. Checked against what Apache Kafka 4.3.1 answered."""

from millstream.broker.configs.effective import (
    BrokerLevels,
    ConfigEntry,
    Said,
    Source,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_new_topic,
    describe_topic,
    topic_texts,
)
from millstream.broker.configs.settings import Settings


def levels(dynamic: dict[str, str] | None = None, default: dict[str, str] | None = None, **static: str) -> BrokerLevels:
    settings = Settings({name.replace("_", "."): value for name, value in static.items()})
    return BrokerLevels(dynamic or {}, default or {}, settings.values)


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    return next(entry for entry in entries if entry.name == name)


def test_the_strongest_level_counts() -> None:
    name = "log.retention.bytes"
    assert levels().value(name) == -1
    assert levels(log_retention_bytes="1").value(name) == 1
    assert levels(default={name: "2"}, log_retention_bytes="1").value(name) == 2
    assert levels({name: "3"}, {name: "2"}, log_retention_bytes="1").value(name) == 3


def test_a_topic_takes_the_strongest_of_its_synonyms() -> None:
    assert levels().topic_default("retention.ms") == "604800000"
    assert levels(log_retention_hours="2").topic_default("retention.ms") == "7200000"
    assert levels(log_retention_hours="2", log_retention_minutes="3").topic_default("retention.ms") == "180000"
    assert levels({"log.retention.ms": "5"}, log_retention_minutes="3").topic_default("retention.ms") == "5"
    assert levels(log_retention_hours="-1").topic_default("retention.ms") == "-1"
    assert levels(log_flush_scheduler_interval_ms="9").topic_default("flush.ms") == "9"


def test_an_override_of_the_topic_is_stronger_still() -> None:
    assert topic_texts(levels({"log.retention.ms": "5"}), {"retention.ms": "7"})["retention.ms"] == "7"
    assert "internal.segment.bytes" not in topic_texts(levels(), {})


def test_the_sources_of_a_topic_config() -> None:
    described = describe_topic(levels({"log.retention.ms": "5"}, {"log.retention.ms": "6"}), {"retention.ms": "7"})
    retention = entry(described, "retention.ms")
    assert (retention.value, retention.source) == ("7", Source.TOPIC)
    assert retention.synonyms == (
        Said("retention.ms", "7", Source.TOPIC),
        Said("log.retention.ms", "5", Source.DYNAMIC_BROKER),
        Said("log.retention.ms", "6", Source.DYNAMIC_DEFAULT_BROKER),
        Said("log.retention.hours", "168", Source.DEFAULT),
    )
    assert not retention.read_only


def test_synonyms_of_another_name_are_not_listed_first() -> None:
    segment = entry(describe_topic(levels(log_roll_hours="1"), {}), "segment.ms")
    assert (segment.value, segment.source, segment.synonyms) == ("3600000", Source.DEFAULT, ())


def test_a_new_topic_shows_the_level_a_value_really_comes_from() -> None:
    described = describe_new_topic(levels(log_roll_hours="1"), {"preallocate": "TRUE"})
    assert entry(described, "segment.ms").source is Source.STATIC_BROKER
    assert entry(described, "preallocate").value == "TRUE"
    assert entry(described, "preallocate").source is Source.TOPIC
    assert entry(described, "cleanup.policy").source is Source.DEFAULT


def test_internal_configs_are_shown_only_if_they_are_set() -> None:
    names = {e.name for e in describe_topic(levels(), {})}
    assert len(names) == 33
    assert "internal.segment.bytes" not in names
    assert "internal.segment.bytes" in {e.name for e in describe_topic(levels(), {"internal.segment.bytes": "9"})}


def test_the_broker_shows_340_configs_and_hides_secrets() -> None:
    described = describe_broker(levels(ssl_key_password="hush"), None)
    assert len(described) == 340
    secret = entry(described, "ssl.key.password")
    assert (secret.value, secret.sensitive, secret.source) == (None, True, Source.STATIC_BROKER)
    assert all(said.value is None for said in secret.synonyms)
    assert "hush" not in repr(described)


def test_a_config_that_is_none_of_kafkas_is_taken_for_a_secret() -> None:
    (foo,) = describe_broker(levels({"foo.bar": "x"}), ["foo.bar"])
    assert (foo.value, foo.sensitive, foo.type, foo.read_only) == (None, True, 0, True)


def test_read_only_and_types() -> None:
    described = describe_broker(levels(), ["num.partitions", "log.retention.ms"])
    assert [(e.name, e.read_only, e.type) for e in described] == [
        ("log.retention.ms", False, 5),
        ("num.partitions", True, 3),
    ]


def test_the_default_of_all_brokers_lists_only_what_is_set() -> None:
    (only,) = describe_broker_default(levels({"log.retention.ms": "5"}, {"log.retention.ms": "6"}), None)
    assert (only.value, only.source) == ("6", Source.DYNAMIC_DEFAULT_BROKER)
    assert only.synonyms == (Said("log.retention.ms", "6", Source.DYNAMIC_DEFAULT_BROKER),)


def test_a_group_config() -> None:
    described = describe_group(levels(), {"consumer.session.timeout.ms": "50000"})
    assert len(described) == 17
    assert entry(described, "consumer.session.timeout.ms").source is Source.GROUP
    assert entry(described, "share.isolation.level").synonyms == (
        Said("share.isolation.level", "read_uncommitted", Source.DEFAULT),
    )


def test_client_metrics_have_no_default_synonyms() -> None:
    described = describe_client_metrics({"interval.ms": "1000"})
    assert [(e.name, e.value, e.source, len(e.synonyms)) for e in described] == [
        ("interval.ms", "1000", Source.CLIENT_METRICS, 1),
        ("match", "", Source.DEFAULT, 0),
        ("metrics", "", Source.DEFAULT, 0),
    ]


def test_keys_choose_and_an_empty_list_of_them_does_not() -> None:
    assert [e.name for e in describe_topic(levels(), {}, ["retention.ms", "nothing"])] == ["retention.ms"]
    assert len(describe_topic(levels(), {}, [])) == 33

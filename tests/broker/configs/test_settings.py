"""Settings from file, environment and flags."""

from pathlib import Path

import pytest

from millstream.broker.configs.catalogue import BROKER_CONFIGS
from millstream.broker.configs.settings import ONE_NODE, Settings, SettingsError, environment_to_name


def problems(
    *flags: str, environ: dict[str, str] | None = None, properties_file: Path | None = None
) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings.load(properties_file, environ or {}, flags)
    return caught.value.problems


def test_defaults_are_kafkas() -> None:
    settings = Settings()
    assert settings.int("num.partitions") == 1
    assert settings.bool("auto.create.topics.enable") is True
    assert settings.list("log.cleanup.policy") == ["delete"]
    assert settings.str("compression.type") == "producer"
    assert settings.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.list("log.dirs") == []
    assert settings.str("broker.rack") == ""


def test_what_a_one_node_cluster_needs_is_set() -> None:
    assert {name: Settings().values[name] for name in ONE_NODE} == dict(ONE_NODE)
    assert Settings().values["broker.id"] == "1"


def test_flags_are_stronger_than_the_environment_and_that_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.retention.hours=3\ndefault.replication.factor=1\n")
    environ = {"KAFKA_NUM_PARTITIONS": "4", "KAFKA_LOG_RETENTION_HOURS": "5", "HOME": "/"}
    settings = Settings.load(file, environ, ["num.partitions=6"])
    assert settings.int("num.partitions") == 6
    assert settings.int("log.retention.hours") == 5
    assert settings.values["default.replication.factor"] == "1"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_NUM_PARTITIONS", "num.partitions"),
        ("KAFKA_LISTENER_NAME_A__B_SSL_KEY_PASSWORD", "listener.name.a_b.ssl.key.password"),
        ("KAFKA_A___B_C", "a-b.c"),
    ],
)
def test_names_of_variables(variable: str, name: str) -> None:
    assert environment_to_name(variable) == name


def test_variables_that_are_no_settings_are_passed_over() -> None:
    environ = dict.fromkeys(
        (
            "KAFKA_HEAP_OPTS",
            "KAFKA_OPTS",
            "KAFKA_LOG4J_OPTS",
            "KAFKA_LOG4J_ROOT_LOGLEVEL",
            "KAFKA_JMX_PORT",
            "KAFKA_JVM_PERFORMANCE_OPTS",
            "KAFKA_GC_LOG_OPTS",
            "KAFKA_VERSION",
            "KAFKA_PORT_9092_TCP_ADDR",
            "KAFKA_SERVICE_HOST",
        ),
        "whatever",
    )
    assert Settings.load(None, environ).values == Settings().values


def test_an_unknown_name_is_named_with_its_source_and_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# mine\n\nnum.partition=2\n")
    found = problems("auto.create.topic.enable=true", environ={"KAFKA_LOG_DIRSS": "x"}, properties_file=file)
    assert found == (
        f"{file}:3: there is no setting 'num.partition'; the nearest is 'num.partitions'",
        "KAFKA_LOG_DIRSS: there is no setting 'log.dirss'; the nearest is 'log.dirs'",
        "--set auto.create.topic.enable=true: there is no setting 'auto.create.topic.enable'; "
        "the nearest is 'auto.create.topics.enable'",
    )


def test_a_name_like_none_is_named_alone() -> None:
    assert problems("qqqqqqqq=1") == ("--set qqqqqqqq=1: there is no setting 'qqqqqqqq'",)


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("num.partitions=0", "num.partitions takes a whole number of 32 bits at least 1, not '0'"),
        ("auto.create.topics.enable=maybe", "takes true or false, not 'maybe'"),
        ("compression.type=zip", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("num.partitions", "must be name=value"),
        ("=3", "must be name=value"),
    ],
)
def test_a_malformed_value_is_named_with_what_is_taken(flag: str, expected: str) -> None:
    (problem,) = problems(flag)
    assert problem.startswith(f"--set {flag}: ")
    assert expected in problem


def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    assert "hush" not in str(Settings({"ssl.key.password": "hush"}).value("num.partitions"))
    file = tmp_path / "f"
    file.write_bytes(b"\xff\xfe")
    assert problems(properties_file=file) == (f"{file}: is not UTF-8 text",)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (problem,) = problems(properties_file=tmp_path / "none")
    assert "cannot be read" in problem


def test_a_malformed_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("a=1\nb=\\u1")
    (problem,) = problems(properties_file=file)
    assert problem.startswith(f"{file}:2: ")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["group.consumer.session.timeout.ms=5000"], "group.consumer.min.session.timeout.ms"),
        (["group.min.session.timeout.ms=10", "group.max.session.timeout.ms=5"], "must not be greater"),
        (["log.retention.ms=0"], "log.retention.ms must be -1 or at least 1"),
        (["log.roll.ms=0"], "log.roll.ms must be at least 1"),
        (["queued.max.request.bytes=5"], "socket.request.max.bytes"),
        (["broker.id=1", "node.id=2"], "must be equal"),
        (["log.dirs=/a,/b"], "one folder"),
        (["listeners=here"], "NAME://host:port"),
        (["listeners=SSL://:9093"], "speaks PLAINTEXT only"),
        (["listeners=MINE://:9093"], "no security protocol for the listener MINE"),
        (["listeners=PLAINTEXT://:9092,PLAINTEXT://:9093"], "name of its own"),
        (["advertised.listeners=PLAINTEXT://0.0.0.0:9092"], "no client can reach"),
        (["advertised.listeners=OTHER://a:9092"], "no listener named OTHER"),
        (["listener.security.protocol.map=A:B"], "security protocol"),
    ],
)
def test_settings_that_do_not_go_together(flags: list[str], expected: str) -> None:
    assert any(expected in problem for problem in problems(*flags))


def test_a_name_of_the_node_by_its_old_name() -> None:
    assert Settings({"broker.id": "7"}).int("node.id") == 7


def test_listener_and_plugin_settings_are_taken() -> None:
    settings = Settings.load(
        None,
        {},
        [
            "listener.name.plaintext.max.connections=5",
            "listener.name.sasl.plain.sasl.jaas.config=x",
            "rsm.config.some.thing=1",
            "listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
        ],
    )
    assert settings.values["listener.name.plaintext.max.connections"] == "5"


def test_every_default_may_be_set() -> None:
    given = {name: config.default for name, config in BROKER_CONFIGS.items() if config.default is not None}
    given["broker.id"] = "1"
    assert Settings(given).values == {**ONE_NODE, **given}


def test_replace_checks_again() -> None:
    settings = Settings({"num.partitions": "3"}).replace({"log.retention.ms": "5"})
    assert (settings.int("num.partitions"), settings.int("log.retention.ms")) == (3, 5)
    with pytest.raises(SettingsError):
        settings.replace({"num.partitions": "none"})


def test_a_value_of_another_type_is_not_handed_out() -> None:
    with pytest.raises(TypeError, match=r"num\.partitions"):
        Settings().bool("num.partitions")
    with pytest.raises(TypeError):
        Settings().int("broker.rack")

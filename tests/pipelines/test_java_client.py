"""A connection's properties for Java's clients."""

from pathlib import Path

import pytest

from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.java_client import java_properties


def test_what_both_call_the_same_stays() -> None:
    assert java_properties({"security.protocol": "SSL", "client.id": "me"}) == {
        "security.protocol": "SSL",
        "client.id": "me",
    }


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
def test_a_user_and_a_password_become_a_login(name: str, mechanism: str, module: str) -> None:
    found = java_properties({name: mechanism, "sasl.username": "ann", "sasl.password": 'a"b\\c'})
    assert found == {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="ann" password="a\\"b\\\\c";',
    }


def test_a_user_without_a_mechanism_is_an_error_that_names_them() -> None:
    with pytest.raises(PipelineError, match=r"`sasl.mechanism` is not set.*PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        java_properties({"sasl.username": "ann"})


def test_certificates_in_files(tmp_path: Path) -> None:
    (tmp_path / "me.pem").write_text("certificate")
    (tmp_path / "me.key").write_text("key")
    found = java_properties(
        {
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": str(tmp_path / "me.pem"),
            "ssl.key.location": str(tmp_path / "me.key"),
            "ssl.key.password": "secret",
        }
    )
    assert found == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "certificate",
        "ssl.keystore.key": "key",
        "ssl.key.password": "secret",
    }


def test_a_certificate_without_its_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "me.pem").write_text("certificate")
    with pytest.raises(PipelineError, match=r"`ssl.key.location`"):
        java_properties({"ssl.certificate.location": str(tmp_path / "me.pem")})

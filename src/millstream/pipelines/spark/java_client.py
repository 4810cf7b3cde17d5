"""A connection's properties as Java's clients name them; Spark's source and sink are such clients.

Millstream's own clients are librdkafka's. Most properties have one name in both worlds; a user with a password and
certificates in files do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millstream.pipelines.errors import PipelineError

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_TRANSLATED = (
    "sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location", "ssl.certificate.location",
    "ssl.key.location",
)  # fmt: skip


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The same for a Java client. PipelineError if there is no way to say it."""
    found = {name: value for name, value in properties.items() if name not in _TRANSLATED}
    if "sasl.mechanisms" in properties:
        found["sasl.mechanism"] = properties["sasl.mechanisms"]
    if "sasl.username" in properties:
        found["sasl.jaas.config"] = _login(found.get("sasl.mechanism", ""), properties)
    if "ssl.ca.location" in properties:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": properties["ssl.ca.location"]}
    if "ssl.certificate.location" in properties:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _text(properties, "ssl.certificate.location"),
            "ssl.keystore.key": _text(properties, "ssl.key.location"),
        }
    return found


def _login(mechanism: str, properties: Mapping[str, str]) -> str:
    module = LOGIN_MODULES.get(mechanism.upper())
    if module is None:
        raise PipelineError(
            f"`sasl.mechanism` is {mechanism or 'not set'}; a pipeline with `sasl.username` can have "
            f"{', '.join(LOGIN_MODULES)}"
        )
    user, password = (_quoted(properties.get(f"sasl.{name}", "")) for name in ("username", "password"))
    return f"{module} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(properties: Mapping[str, str], name: str) -> str:
    try:
        return Path(properties[name]).read_text()
    except (KeyError, OSError) as error:
        raise PipelineError(f"`{name}`, which goes with the client's certificate, cannot be read: {error}") from error

"""Fixtures of the client suite: every real client, by name."""

import pytest

from support.clients import AioKafka, Client, Confluent, Java, KafkaPython, Kcat
from support.java import KafkaWorker

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")


@pytest.fixture(scope="session")
def clients(java: KafkaWorker) -> dict[str, Client]:
    everyone: list[Client] = [Confluent(), KafkaPython(), AioKafka(), Kcat(), Java(java)]
    return {client.name: client for client in everyone}

"""Apache Kafka with three brokers on this machine, started by our own kafka engine: for what one broker cannot show.

Brokers 1, 2 and 3 are on free ports, with small heaps, in a temporary folder that goes away with them. Node 100 is the
controller and no broker, so that any broker can be stopped, killed and started again by `engine.stop_broker(2)`,
`engine.kill_broker(2)` and `engine.start_broker(2)` while the metadata stay available. A broker that does not answer is
given up after three seconds (Kafka's own default is nine).
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from millstream.engines.kafka import KafkaEngine
from support.java import kafka_cache

SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
JAVA_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1")


@contextmanager
def three_brokers(settings: Mapping[str, str] | None = None) -> Iterator[KafkaEngine]:
    """The running engine; `engine.bootstrap` is the address."""
    folder = Path(tempfile.mkdtemp(prefix="millstream-three-brokers-"))
    engine = KafkaEngine(
        folder,
        brokers=3,
        port=0,
        own_controller=True,
        settings={**SETTINGS, **(settings or {})},
        java_options=JAVA_OPTIONS,
        cache=kafka_cache(),
    )
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)

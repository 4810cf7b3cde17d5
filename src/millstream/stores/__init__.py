"""Real stores, started on this machine as child processes: for tests, demos and the examples.

    with MariaDB() as store:
        pymysql.connect(host=store.host, port=store.port, user=store.user, password=store.password)

Each is the real program (Debian's packages, or jars from Maven Central) on a folder of its own and a free port of the
loopback address, tuned to start quickly; none is meant to keep anything of value. They end with the process that
started them. Nothing here knows what is stored, and no client library is needed to start one.
"""

from millstream.stores.cassandra import Cassandra
from millstream.stores.errors import StoreError
from millstream.stores.hdfs import Hdfs
from millstream.stores.mariadb import MariaDB
from millstream.stores.postgresql import PostgreSQL
from millstream.stores.redis import Redis
from millstream.stores.spark_cluster import SparkCluster
from millstream.stores.store import Store

__all__ = ["Cassandra", "Hdfs", "MariaDB", "PostgreSQL", "Redis", "SparkCluster", "Store", "StoreError"]

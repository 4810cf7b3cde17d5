"""What stands in a record's value: `decode` takes it apart into columns, `encode` puts columns together.

All of it is SQL expressions, so it runs inside Spark's JVM, on streams and on static rows, in micro-batches and in real
time. A value that does not decode is its row's error and never an exception; a row that cannot be encoded is found
beforehand (`refusal`).
"""

from millstream.pipelines.spark.values.decoding import JAVA_OPTIONS, decode
from millstream.pipelines.spark.values.encoding import encode, refusal
from millstream.pipelines.spark.values.options import producer_options, spark_options, value_options

__all__ = ["JAVA_OPTIONS", "decode", "encode", "producer_options", "refusal", "spark_options", "value_options"]

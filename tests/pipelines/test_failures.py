"""What Spark says when a query ends, made short."""

from millstream.pipelines.spark.failures import explain

OURS = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error
Traceback (most recent call last):
  File "x.py", line 1, in write
millstream.pipelines.errors.PipelineError: orders.yaml:7: the table `orders` has no column `city`

	at py4j.Protocol.getReturnValue(Protocol.java:476)
"""
WRAPPED = """[STREAM_FAILED] Query [id = 1] terminated
	at org.apache.spark.X
Caused by: org.apache.spark.SparkException: Job aborted
	at org.apache.spark.Y
Caused by: java.sql.SQLNonTransientConnectionException: Socket fail to connect to 127.0.0.1
	at org.mariadb.Z
"""


def test_our_own_sentence_is_found_in_sparks_layers_and_is_final() -> None:
    failure = explain(RuntimeError(OURS))
    assert failure.message == "orders.yaml:7: the table `orders` has no column `city`"
    assert failure.final


def test_the_innermost_cause_is_told_and_may_pass() -> None:
    failure = explain(RuntimeError(WRAPPED))
    assert failure.message == "SQLNonTransientConnectionException: Socket fail to connect to 127.0.0.1"
    assert not failure.final


def test_an_exception_of_python_is_told_by_its_last_line() -> None:
    text = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "x.py", line 3, in __call__
    raise ValueError
builtins.ValueError: no such city: Atlantis

	at py4j.Protocol.getReturnValue(Protocol.java:476)
"""
    assert explain(RuntimeError(text)).message == "ValueError: no such city: Atlantis"


def test_lost_records_and_refused_modes_are_told_apart() -> None:
    assert explain(RuntimeError("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] gone")).data_loss
    refused = explain(RuntimeError("[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] no"))
    assert refused.real_time_refused
    assert not refused.data_loss


def test_an_error_without_words_has_a_sentence() -> None:
    assert explain(RuntimeError("")).message == "Spark gave no reason"

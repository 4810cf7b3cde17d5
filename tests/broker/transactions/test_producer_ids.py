import pytest

from millstream.broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from millstream.wire.errors import ErrorCode, KafkaError
from support.transactions import ProducerIdBlocks


def test_ids_follow_each_other_through_blocks() -> None:
    ids = ProducerIds(ProducerIdBlocks().reserve)
    assert [ids.next() for _ in range(BLOCK_SIZE + 2)] == list(range(BLOCK_SIZE + 2))


def test_no_block_is_reserved_before_it_is_needed() -> None:
    blocks = ProducerIdBlocks()
    ids = ProducerIds(blocks.reserve)
    assert blocks.next_start == 0
    for _ in range(BLOCK_SIZE):
        ids.next()
    assert blocks.next_start == BLOCK_SIZE


def test_no_id_twice_across_restarts() -> None:
    blocks = ProducerIdBlocks()
    seen = []
    for _ in range(5):
        ids = ProducerIds(blocks.reserve)
        seen += [ids.next() for _ in range(700)]
    assert len(set(seen)) == len(seen)


def test_a_failed_reservation_is_the_callers_error_and_tried_again() -> None:
    answers: list[range | KafkaError] = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), range(5, 6)]

    def reserve() -> range:
        answer = answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    ids = ProducerIds(reserve)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        ids.next()
    assert ids.next() == 5


@pytest.mark.parametrize("block", [range(0), range(-1, 5), range(0, 10, 2), range(2**63 - 1, 2**63 + 1)])
def test_what_is_not_a_block_is_refused(block: range) -> None:
    with pytest.raises(KafkaError, match="not a block"):
        ProducerIds(lambda: block).next()

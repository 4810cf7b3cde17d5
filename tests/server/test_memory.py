from millstream.server.memory import RequestMemory


def test_what_is_over_the_limit_waits_for_a_release() -> None:
    memory = RequestMemory(100)
    granted: list[str] = []
    assert memory.try_acquire(80)
    assert not memory.try_acquire(30)
    memory.wait(30, lambda: granted.append("first"))
    memory.wait(90, lambda: granted.append("second"))
    memory.release(80)
    assert granted == ["first"]
    memory.release(30)
    assert granted == ["first", "second"]
    assert memory.used == 90


def test_a_request_larger_than_the_pool_is_let_in_alone() -> None:
    memory = RequestMemory(100)
    assert memory.try_acquire(1000)
    assert not memory.try_acquire(1)


def test_no_limit_never_waits() -> None:
    memory = RequestMemory(-1)
    assert all(memory.try_acquire(1 << 40) for _ in range(3))


def test_a_withdrawn_wait_is_never_granted() -> None:
    memory = RequestMemory(10)
    granted: list[int] = []

    def take() -> None:
        granted.append(1)

    assert memory.try_acquire(10)
    memory.wait(5, take)
    memory.forget(take)
    memory.release(10)
    assert granted == []
    assert memory.used == 0

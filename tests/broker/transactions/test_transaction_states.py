from millstream.broker.transactions.states import STATES_BY_TEXT, TRANSITIONS, TransactionState


def test_the_numbers_and_names_are_those_of_the_log_and_of_the_protocol() -> None:
    assert {state.text: int(state) for state in TransactionState} == {
        "Empty": 0,
        "Ongoing": 1,
        "PrepareCommit": 2,
        "PrepareAbort": 3,
        "CompleteCommit": 4,
        "CompleteAbort": 5,
        "Dead": 6,
        "PrepareEpochFence": 7,
    }
    assert STATES_BY_TEXT["PrepareAbort"] is TransactionState.PREPARE_ABORT


def test_a_decided_transaction_has_one_way_on() -> None:
    assert TRANSITIONS[TransactionState.PREPARE_COMMIT] == {TransactionState.COMPLETE_COMMIT}
    assert TRANSITIONS[TransactionState.PREPARE_ABORT] == {TransactionState.COMPLETE_ABORT}


def test_every_state_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(TransactionState)
    assert not TRANSITIONS[TransactionState.DEAD]


def test_only_states_without_an_open_transaction_expire() -> None:
    assert [state.text for state in TransactionState if state.may_expire] == [
        "Empty",
        "CompleteCommit",
        "CompleteAbort",
    ]

"""The offset store against a model that replays the whole history for every question."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from support.group_coordinator import Groups

GROUPS = ("a", "b")
PLACES = (("t", 0), ("t", 1), ("u", 0))


class Commit(NamedTuple):
    group: str
    place: tuple[str, int]
    offset: int
    producer: int | None


class End(NamedTuple):
    group: str
    producer: int
    committed: bool


class Delete(NamedTuple):
    group: str


class Restart(NamedTuple):
    compacted: bool


Step = Commit | End | Delete | Restart

_groups = st.sampled_from(GROUPS)
_producers = st.integers(1, 3)
_steps = st.lists(
    st.one_of(
        st.builds(Commit, _groups, st.sampled_from(PLACES), st.integers(0, 99), st.none() | _producers),
        st.builds(End, _groups, _producers, st.booleans()),
        st.builds(Delete, _groups),
        st.builds(Restart, st.booleans()),
    ),
    max_size=25,
)


class Model:
    """All commits in order; each is pending, visible or void. The last visible one counts."""

    def __init__(self, partitions: dict[str, int]) -> None:
        self._partitions = partitions
        self._history: list[tuple[Commit, str]] = []

    def apply(self, step: Step) -> None:
        if isinstance(step, Commit):
            self._history.append((step, "visible" if step.producer is None else "pending"))
        elif isinstance(step, End):
            partition = self._partitions[step.group]
            self._history = [
                (commit, ("visible" if step.committed else "void"))
                if state == "pending"
                and commit.producer == step.producer
                and self._partitions[commit.group] == partition
                else (commit, state)
                for commit, state in self._history
            ]
        elif isinstance(step, Delete):
            self._history = [(commit, state) for commit, state in self._history if commit.group != step.group]

    def _is_ended(self, commit: Commit, end: End) -> bool:
        """A marker ends what its producer wrote to the marker's partition, for whichever group."""
        return commit.producer == end.producer and self._partitions[commit.group] == self._partitions[end.group]

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        found = {}
        for commit, state in self._history:
            if commit.group == group and state == "visible":
                found[commit.place] = commit.offset
        return found

    def pending(self, group: str) -> set[tuple[str, int]]:
        return {commit.place for commit, state in self._history if commit.group == group and state == "pending"}


@settings(deadline=None, max_examples=300)
@given(_steps)
def test_the_store_does_as_the_model(steps: list[Step]) -> None:
    groups = Groups()
    model = Model({group: groups.coordinator.partition_for(group) for group in GROUPS})
    for step in steps:
        if isinstance(step, Commit):
            offsets = {step.place: step.offset}
            if step.producer is None:
                assert groups.commit(offsets, group=step.group) == 0
            else:
                assert groups.commit_in_transaction(offsets, group=step.group, producer=step.producer) == 0
        elif isinstance(step, End):
            groups.end_transaction(committed=step.committed, producer=step.producer, group=step.group)
        elif isinstance(step, Delete):
            if step.group in groups.coordinator.group_ids():
                groups.coordinator.delete_group(step.group)
        else:
            groups = groups.restarted(compacted=step.compacted)
        model.apply(step)
        for group in GROUPS:
            assert groups.offsets(group) == model.offsets(group)
            unstable = {place for place in PLACES if groups.fetched(*place, group=group, require_stable=True)[1] != 0}
            assert unstable == model.pending(group)

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.config.specs import FeedbackSpec
from recbias.core.dataset import Attributes, Dataset, Interactions, Odds, Split
from recbias.core.errors import BrokenContract, Contradiction
from recbias.core.queries import Queries
from recbias.runner.feedback import AcceptItems
from recbias.runner.stages import ModelOutputs
from support.worlds.evidence_worlds import make_lists, make_user_queries, make_vocabulary

EQUAL = Odds(np.zeros((1, 5)), np.zeros(3, dtype=int))
CERTAIN = FeedbackSpec(rounds=2, acceptance=1.0, picks=3)


@dataclass(frozen=True)
class World:
    """Three users to whom all five items are equally likely."""

    returned: Any = EQUAL

    def compute_odds(self, users: Attributes, items: Attributes) -> Any:
        assert len(users.ids) == 3
        assert len(items.ids) == 5
        return self.returned


def make_rows(pairs: list[tuple[int, int]], *, timed: bool = True) -> Interactions:
    users, items = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    values = np.arange(1, users.size + 1, dtype=np.float32)
    times = np.arange(100, 100 + users.size) if timed else None
    ids = make_vocabulary("u", 3), make_vocabulary("i", 5)
    return Interactions(users.copy(), items.copy(), values, times, *ids)


def accept(
    items: list[list[int]],
    split: Split,
    queries: Queries | None = None,
    returned: Any = EQUAL,
    choice: FeedbackSpec = CERTAIN,
) -> Split:
    users, ids = split.train.user_ids, split.train.item_ids
    tables = (
        Attributes(users, pd.DataFrame(index=range(3))),
        Attributes(ids, pd.DataFrame(index=range(5))),
    )
    dataset = Dataset(split.train, *tables)
    outputs = ModelOutputs(make_lists(items), None)
    step = AcceptItems(World(returned), choice, 42, 1, 2)
    return step(dataset, split, queries or make_user_queries(3), outputs)


def list_pairs(rows: Interactions) -> list[tuple[int, int]]:
    return list(zip(rows.users.tolist(), rows.items.tolist(), strict=True))


def test_hand_worked_round() -> None:
    # Users accept all that they can. User 0 has had item 0, holds item 1 out for the test and item
    # 2 for the validation: only item 3 of the list is new. User 1 accepts all three; user 2 has an
    # empty list. The new rows have the median value 2 of the values 1 2 3 and the time 103.
    train = make_rows([(0, 0), (1, 4), (2, 0)])
    split = Split(train, make_rows([(0, 1)]), make_rows([(0, 2)]))
    later = accept([[0, 1, 2, 3], [2, 1, 0], []], split)
    assert list_pairs(later.train) == [*list_pairs(train), (0, 3), (1, 2), (1, 1), (1, 0)]
    assert later.train.values.tolist() == [1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 2.0]
    assert later.train.times is not None
    assert later.train.times.tolist() == [100, 101, 102, 103, 103, 103, 103]
    assert later.test is split.test
    assert later.validation is split.validation
    assert split.train is train  # the split before is as it was


def test_no_pair_of_the_test_set_becomes_training_data() -> None:
    # every user is recommended everything: what is held out stays held out
    rng = np.random.default_rng(1)
    for _ in range(20):
        parts = rng.integers(0, 3, (3, 5))
        pairs = [[(u, i) for u in range(3) for i in range(5) if parts[u, i] == n] for n in (0, 1)]
        if not all(pairs):
            continue
        split = Split(make_rows(pairs[0]), make_rows(pairs[1]))
        later = accept([[0, 1, 2, 3, 4]] * 3, split)
        assert not set(list_pairs(later.train)) & set(pairs[1])
        assert len(set(list_pairs(later.train))) == len(later.train)


def test_nothing_accepted_leaves_the_split_as_it_is() -> None:
    split = Split(make_rows([(0, 0), (1, 4)]), None)
    never = FeedbackSpec(rounds=2, acceptance=0.0)
    assert accept([[1, 2], [1, 2], [1, 2]], split, choice=never).train is split.train


def test_bad_input_is_an_error() -> None:
    split = Split(make_rows([(0, 0)]), None)
    with pytest.raises(Contradiction, match="no query is a user"):
        accept([[1]] * 3, split, make_user_queries(3, users=[-1, -1, -1]))
    with pytest.raises(BrokenContract, match="returns NoneType, not Odds"):
        accept([[1]] * 3, split, returned=None)
    without = replace(ModelOutputs(make_lists([[1]]), None), lists=None)
    step = AcceptItems(World(), CERTAIN, 42, 1, 2)
    with pytest.raises(BrokenContract, match="no lists"):
        step(Dataset(split.train), split, make_user_queries(3), without)

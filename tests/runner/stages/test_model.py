from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract
from recbias.core.queries.queries import Queries
from recbias.runner.stages.model import AnswerQueries, histories
from support.worlds import make_interactions


def queries(users: list[int], ids: list[str]) -> Queries:
    names = Vocabulary(np.array(ids, dtype=object))
    labels = Attributes(names, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(names, labels, np.array(users, dtype=np.int32))


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ([0, 1], [[1, 1, 0], [0, 0, 1]]),
        ([1, 0], [[0, 0, 1], [1, 1, 0]]),
        ([1, -1], [[0, 0, 1], [0, 0, 0]]),
        ([1], [[0, 0, 1]]),
    ],
)
def test_the_history_of_a_query_is_its_users_training_rows(
    users: list[int], expected: list[list[int]]
) -> None:
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 2)]))
    found = histories(queries(users, [f"q{each}" for each in users]), data)
    assert found.toarray().astype(int).tolist() == expected


class LongestFirst:
    """Names item 1 first for a text of more than three letters; learns nothing."""

    provides = frozenset({"predictions"})

    def __init__(self, width: int = 2) -> None:
        self.width, self.seen = width, list[list[str]]()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> LongestFirst:
        for each in (data.reviews, data.validation_reviews):
            assert each is not None
            self.seen.append(each.texts.tolist())
        return self

    def named(self, texts: np.ndarray, data: TrainingData) -> np.ndarray:
        first = np.array([len(each) > 3 for each in texts], dtype=np.int32)
        return np.column_stack([first, 1 - first])[:, : self.width]


def reviewed() -> tuple[Dataset, Split]:
    train, validation, test = (
        make_interactions(pairs, n_users=4, n_items=2)
        for pairs in ([(0, 0), (0, 1)], [(1, 0)], [(2, 1), (3, 0)])
    )
    users, items = np.array([0, 0, 1, 2, 2, 3], "i4"), np.array([0, 1, 0, 1, 1, 0], "i4")
    texts = np.array(["a", "b", "c", "long", "d", "e"], dtype=object)
    everything = make_interactions([(0, 0), (0, 1), (1, 0), (2, 1), (3, 0)], n_users=4, n_items=2)
    return Dataset(everything, reviews=Reviews(users, items, texts)), Split(
        train, test, validation
    )


def test_the_held_out_reviews_are_named_and_never_trained_on() -> None:
    dataset, split = reviewed()
    model = LongestFirst()
    ask = AnswerQueries(model, "LongestFirst", 1, 42, 0)
    found = ask(dataset, split, queries([0], ["u0"])).predictions
    assert model.seen == [["a", "b"], ["c"]]
    assert found is not None
    # user 2 has two reviews of item 1; "long" is the only long text
    assert found.ids.tolist() == ["u2:i1:1", "u2:i1:2", "u3:i0:1"]
    assert found.items.tolist() == [1, 1, 0]
    assert found.ranked.tolist() == [[1, 0], [0, 1], [0, 1]]


def test_a_search_names_the_validation_reviews() -> None:
    dataset, split = reviewed()
    ask = AnswerQueries(LongestFirst(), "LongestFirst", 1, 42, 0, held="validation")
    found = ask(dataset, split, queries([0], ["u0"])).predictions
    assert found is not None
    assert found.ids.tolist() == ["u1:i0:1"]


def test_a_model_that_leaves_items_out_breaks_its_contract() -> None:
    ask = AnswerQueries(LongestFirst(width=1), "LongestFirst", 1, 42, 0)
    with pytest.raises(BrokenContract, match="names items of shape"):
        ask(*reviewed(), queries([0], ["u0"]))

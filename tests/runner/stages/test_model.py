from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import (
    Attributes,
    Dataset,
    Queries,
    Reviews,
    Split,
    TrainingData,
    Vocabulary,
)
from recbias.core.errors import BrokenContract
from recbias.runner.stages import AnswerQueries, align_dataset, select_histories
from support.worlds.small_worlds import make_interactions


def make_queries(users: list[int], ids: list[str]) -> Queries:
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
def test_the_history_of_a_query_is_the_training_rows_of_its_user(
    users: list[int], expected: list[list[int]]
) -> None:
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 2)]))
    queries = make_queries(users, [f"q{user}" for user in users])
    assert select_histories(queries, data).toarray().astype(int).tolist() == expected


def test_attributes_follow_the_items_of_a_split_that_has_others_than_the_dataset() -> None:
    rows, genres = make_interactions([(0, 0), (0, 1)]), pd.DataFrame({"genre": ["A", "B"]})
    dataset = Dataset(rows, items=Attributes(rows.item_ids, genres, "item"))
    items = Vocabulary(np.array([rows.item_ids.ids[1], "new", rows.item_ids.ids[0]], dtype=object))
    train = replace(make_interactions([(0, 0), (0, 2)]), item_ids=items)
    aligned = align_dataset(dataset, Split(train, None)).items
    assert aligned is not None
    assert aligned.column("genre").fillna("").tolist() == ["B", "", "A"]


class LongText:
    """Ranks item 1 first for texts of more than three letters; learns nothing."""

    provides = frozenset({"predictions"})

    def __init__(self, width: int = 2) -> None:
        self.width, self.fit_texts = width, list[list[str]]()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> LongText:
        for reviews in (data.reviews, data.validation_reviews):
            assert reviews is not None
            self.fit_texts.append(reviews.texts.tolist())
        return self

    def named(self, texts: np.ndarray, data: TrainingData) -> np.ndarray:
        best = np.array([len(text) > 3 for text in texts], dtype=np.int32)
        return np.column_stack([best, 1 - best])[:, : self.width]


def make_reviewed_dataset() -> tuple[Dataset, Split]:
    train, validation, test = (
        make_interactions(pairs, n_users=4, n_items=2)
        for pairs in ([(0, 0), (0, 1)], [(1, 0)], [(2, 1), (3, 0)])
    )
    users, items = np.array([0, 0, 1, 2, 2, 3], "i4"), np.array([0, 1, 0, 1, 1, 0], "i4")
    texts = np.array(["a", "b", "c", "long", "d", "e"], dtype=object)
    interactions = make_interactions(
        [(0, 0), (0, 1), (1, 0), (2, 1), (3, 0)], n_users=4, n_items=2
    )
    return Dataset(interactions, reviews=Reviews(users, items, texts)), Split(
        train, test, validation
    )


def test_the_items_of_test_reviews_are_predicted_without_training_on_them() -> None:
    dataset, split = make_reviewed_dataset()
    model = LongText()
    answer = AnswerQueries(model, "LongText", 1, 42, 0)
    predictions = answer(dataset, split, make_queries([0], ["u0"])).predictions
    assert model.fit_texts == [["a", "b"], ["c"]]
    assert predictions is not None
    # user 2 has two reviews of item 1; "long" is the only long text
    assert predictions.ids.tolist() == ["u2:i1:1", "u2:i1:2", "u3:i0:1"]
    assert predictions.items.tolist() == [1, 1, 0]
    assert predictions.ranked.tolist() == [[1, 0], [0, 1], [0, 1]]


def test_a_model_that_ranks_too_few_items_breaks_its_contract() -> None:
    answer = AnswerQueries(LongText(width=1), "LongText", 1, 42, 0)
    with pytest.raises(BrokenContract, match="ranks items of shape"):
        answer(*make_reviewed_dataset(), make_queries([0], ["u0"]))

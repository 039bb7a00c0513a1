from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import Failure
from recbias.core.dataset import Attributes, Dataset, Reviews, Split, Vocabulary
from recbias.core.evidence import Embeddings, RankedLists, Responses, SentenceScores
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.core.queries import Queries
from recbias.runner.codecs import FORMATS
from recbias.runner.stages import ItemLabels, ModelOutputs
from recbias.runner.tuning import SearchResult, Trial
from support.worlds.small_worlds import make_interactions

ODD = ["a,b", 'quote"d', "new\nline", "emoji 🎬", "", "שלום", "007", " spaced "]


def save_and_load(kind: str, value: Any, folder: Path) -> Any:
    FORMATS[kind].save(value, folder)
    return FORMATS[kind].load(folder)


def test_a_dataset_is_restored_with_odd_identifiers_and_missing_cells(tmp_path: Path) -> None:
    ids = Vocabulary(np.array(ODD, dtype=object))
    interactions = make_interactions([(0, 0), (0, 1)], n_users=1, n_items=len(ODD), times=[5, 6])
    interactions = type(interactions)(
        interactions.users,
        interactions.items,
        interactions.values,
        interactions.times,
        interactions.user_ids,
        ids,
    )
    table = pd.DataFrame({"price": [1.0, *[math.nan] * 7], "genres": ["A|B", *[None] * 7]})
    texts = np.array(["", "fine 🎬"], dtype=object)
    zero = np.zeros(2, dtype=np.int32)
    dataset = Dataset(
        interactions,
        items=Attributes(ids, table),
        reviews=Reviews(zero, zero, texts),
        counts={"bad": 2},
    )
    restored = save_and_load("dataset", dataset, tmp_path)
    assert restored.item_ids.ids.tolist() == ODD
    assert restored.interactions.times.tolist() == [5, 6]
    assert restored.items.frame["genres"].tolist() == ["A|B", *[None] * 7]
    assert restored.items.numbers("price")[0] == 1.0
    assert np.isnan(restored.items.numbers("price")[1:]).all()
    assert restored.reviews.texts.tolist() == ["", "fine 🎬"]
    assert restored.counts == {"bad": 2}
    assert restored.users is None


@pytest.mark.parametrize("validation", [True, False])
def test_a_split_is_restored(tmp_path: Path, validation: bool) -> None:
    validation_rows = make_interactions([(1, 1)], n_users=2, n_items=3)
    split = Split(
        make_interactions([(0, 0), (1, 2)], n_users=2, n_items=3),
        make_interactions([(0, 1)], n_users=2, n_items=3),
        validation_rows if validation else None,
    )
    restored = save_and_load("split", split, tmp_path)
    assert restored.train.items.tolist() == [0, 2]
    assert restored.test.items.tolist() == [1]
    assert (restored.validation is not None) == validation


def test_queries_are_restored(tmp_path: Path) -> None:
    ids = Vocabulary(np.array(ODD, dtype=object))
    labels = Attributes(ids, pd.DataFrame({"race": ["black", *[None] * 7]}), "query")
    queries = Queries(ids, labels, np.full(8, -1, dtype=np.int32), ids.ids, "prompt")
    restored = save_and_load("queries", queries, tmp_path)
    assert restored.ids.ids.tolist() == ODD
    assert restored.texts is not None
    assert restored.texts.tolist() == ODD
    assert restored.unit == "prompt"
    assert restored.labels.frame["race"].tolist() == ["black", *[None] * 7]


def test_answers_are_restored(tmp_path: Path) -> None:
    lists = RankedLists(
        np.array([[1, -1], [5, 0]], dtype=np.int32),
        np.array([[2.0, np.nan], [1.0, 0.5]], dtype=np.float32),
        np.array(["elsewhere"], dtype=object),
    )
    vectors = Embeddings(None, np.ones((3, 2), dtype=np.float32))
    restored = save_and_load("answer", ModelOutputs(lists, vectors), tmp_path)
    assert restored.lists.items.tolist() == [[1, -1], [5, 0]]
    assert restored.lists.outside.tolist() == ["elsewhere"]
    assert restored.embeddings.users is None
    assert restored.embeddings.items.shape == (3, 2)


def test_measurements_are_restored_with_undefined_values(tmp_path: Path) -> None:
    ids = np.array(["u1", "u2"], dtype=object)
    units = UnitScores("user", ids, np.array([0.5, np.nan]))
    measured = (
        Measurement.from_units(units, group="race=black"),
        Measurement(0.3, 2, 0, replicates=np.array([0.1, 0.2])),
    )
    first, second = save_and_load("measure", measured, tmp_path)
    assert (first.value, first.n, first.undefined, first.group) == (0.5, 1, 1, "race=black")
    assert math.isnan(first.std)
    assert first.units.ids.tolist() == ["u1", "u2"]
    assert np.isnan(first.units.values[1])
    assert second.units is None
    assert second.replicates.tolist() == [0.1, 0.2]


def test_a_learned_state_is_restored(tmp_path: Path) -> None:
    state = {"a": np.eye(2), "b": np.arange(3)}
    restored = save_and_load("fit", state, tmp_path)
    assert {name: array.tolist() for name, array in restored.items()} == {
        "a": [[1.0, 0.0], [0.0, 1.0]],
        "b": [0, 1, 2],
    }


def test_sentence_scores_and_responses_are_restored(tmp_path: Path) -> None:
    ids = np.array(["1", "2"], dtype=object)
    groups = np.array(["T1", None], dtype=object)
    labels = pd.DataFrame({"category": ["gender", "age"]})
    scores = SentenceScores(ids, ids, groups, np.array([3.5, np.nan]), labels)
    replies = Responses(ids, np.array(["", "שלום"], dtype=object), groups)
    restored = save_and_load("answer", ModelOutputs(None, None, scores, replies), tmp_path)
    assert restored.sentence_scores.groups.tolist() == ["T1", None]
    assert restored.sentence_scores.perplexity.tolist()[0] == 3.5
    assert np.isnan(restored.sentence_scores.perplexity[1])
    assert restored.sentence_scores.labels["category"].tolist() == ["gender", "age"]
    assert restored.responses.texts.tolist() == ["", "שלום"]
    assert len(restored.responses.labels) == 2
    assert restored.lists is None


def test_contrasts_and_counts_are_restored(tmp_path: Path) -> None:
    contrast = Contrast(*("groups", "g=a", "g=b", "welch_t"), 3, 0.1, 0.2, -0.1, -2.0, math.nan)
    measurement = Measurement(0.5, 3, 0, counts=np.array([1.0, 2.0]), contrasts=(contrast,))
    (restored,) = save_and_load("measure", (measurement,), tmp_path)
    assert restored.counts.tolist() == [1.0, 2.0]
    assert (restored.contrasts[0].a, restored.contrasts[0].n) == ("g=a", 3)
    assert math.isnan(restored.contrasts[0].p)


def test_replies_about_items_are_restored(tmp_path: Path) -> None:
    frame = pd.DataFrame({"judge.gender": [1.0]})
    replies = pd.DataFrame({"item_id": ["1"], "reply": ["gender: 1\n"], "probability.age": [0.5]})
    restored = save_and_load("label", ItemLabels(frame, replies), tmp_path)
    pd.testing.assert_frame_equal(restored.replies, replies)


def test_trials_and_search_results_are_restored(tmp_path: Path) -> None:
    failure = Failure("the loss is NaN", "lower the rate", user=True)
    done = Trial(1, {"alpha": 0.1, "kind": None}, 1 / 3, 2.5)
    failed = Trial(2, {"alpha": 1e-300, "kind": "a"}, math.nan, 0.1, failure)
    assert save_and_load("trial", done, tmp_path) == done
    restored = save_and_load("trial", failed, tmp_path)
    assert (restored.failure, restored.state) == (failure, "failed")
    assert math.isnan(restored.value)
    result = save_and_load("search", SearchResult(done, (done, failed)), tmp_path)
    assert result.best == done
    assert [trial.number for trial in result.trials] == [1, 2]

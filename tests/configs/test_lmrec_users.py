"""Classical recommenders and models of review texts in one run, for users."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import recbias
from support.commands import invoke_recbias
from support.files.review_files import ENCODER_WORDS, make_review, make_venue, write_reviews
from support.models.small_encoder import write_small_encoder

CLASSICAL = ["UserKNN", "ItemKNN", "MF"]
TEXT = ["TFIDF-LR", "LMRec"]
SPEC: dict[str, Any] = {
    "name": "users",
    "seed": 7,
    "dataset": {"name": "yelp", "folder": "reviews", "filters": ["deduplicate"]},
    "split": {"name": "leave_one_out", "which": "random"},
    "k": 2,
    "models": [
        "UserKNN",
        "ItemKNN",
        {"name": "MF", "epochs": 2, "embedding_size": 2},
        {"name": "TFIDF-LR", "min_df": 1},
        {
            "name": "LMRec",
            "encoder": "encoder",
            "pooling": "mean",
            "learning_rate": 0.01,
            "batch_size": 16,
            "epochs": 4,
            "max_length": 16,
            "device": "cpu",
        },
    ],
    "metrics": ["nDCG", "class_accuracy"],
    "tests": [{"name": "paired_t", "correction": "holm"}],
    "report": {"formats": ["csv"]},
}


def make_taste_reviews() -> list[dict[str, Any]]:
    """Return reviews of users who eat in venues of one price, and always write about one word.

    User n has visited the venues 0 to 2 if n is even, else 3 to 5; every review of an even user is
    about soup, of an odd user about beef. A held-out venue is the only unseen one of its price.
    """
    return [
        make_review(venue, number, f"the {'beef' if number % 2 else 'soup'} was good")
        for number in range(40)
        for venue in range(3 * (number % 2), 3 * (number % 2) + 3)
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    folder = tmp_path_factory.mktemp("users")
    write_reviews(
        folder / "data", [make_venue(number) for number in range(6)], make_taste_reviews()
    )
    write_small_encoder(folder / "encoder", ENCODER_WORDS)
    (folder / "users.json").write_text(json.dumps(SPEC), encoding="utf-8")
    result = invoke_recbias("run", "users.json", "--data", "data", "--offline", folder=folder)
    assert result.code == 0, result.err
    return recbias.load(folder / "results" / "users" / "latest")


def select_values(run: recbias.Run, metric: str) -> pd.DataFrame:
    """Return the rows of a metric by model."""
    return run.metrics[run.metrics["metric"] == metric].set_index("model")


def test_all_models_recommend_to_the_same_users(run: recbias.Run) -> None:
    assert run.failures.empty
    values = select_values(run, "nDCG")
    assert sorted(values.index) == sorted([*CLASSICAL, *TEXT])
    assert (values["n"] == 40).all()
    # the held-out venue is the only unseen one that users who write alike have visited
    assert values.loc[TEXT, "value"].tolist() == [1, 1]


def test_one_test_compares_every_pair_of_models(run: recbias.Run) -> None:
    tests = run.significance[run.significance["metric"] == "nDCG"]
    pairs = {frozenset(pair) for pair in zip(tests["a"], tests["b"], strict=True)}
    assert len(pairs) == len(tests) == 10  # 5 models
    assert frozenset({"UserKNN", "LMRec"}) in pairs
    assert (tests["n"] == 40).all()
    assert (tests["family_size"] == 10).all()


def test_accuracy_of_reviews_is_undefined_for_models_that_do_not_read_them(
    run: recbias.Run,
) -> None:
    values = select_values(run, "class_accuracy")["value"]
    assert values.reindex(CLASSICAL).isna().all()
    # three venues have the same text: a third at best, and the most probable may be held out
    assert values[TEXT].between(0, 0.5).all()
    tests = run.significance[run.significance["metric"] == "class_accuracy"]
    assert [{*pair} for pair in zip(tests["a"], tests["b"], strict=True)] == [{*TEXT}]

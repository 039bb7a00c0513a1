from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recbias import api
from recbias.core import context as context_module
from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import Split, TrainingData
from recbias.core.errors import Faults, MissingEvidence, OutOfRange, UnknownColumn
from recbias.data.movielens import MovieLens1M
from recbias.models.baselines import Random
from recbias.models.convmf import ConvMF
from recbias.testing import check_recommender
from support.models.recommending import compute_mean_ndcg, make_checkerboard, query_all_users
from support.specs import make_small_spec
from support.worlds.attribute_worlds import load_demo_split, make_item_data
from support.worlds.small_worlds import make_interactions

SMALL = ConvMF(
    text=("text",),
    embedding_size=8,
    epochs=30,
    batch_size=64,
    learning_rate=0.02,
    reg_user=0.5,
    reg_item=0.5,
    word_size=8,
    filters=4,
    windows=(1, 2),
    device="cpu",
)
ELLIOT = replace(SMALL, variant="elliot", embedding_size=16)
all_variants = pytest.mark.parametrize(
    "model", [SMALL, ELLIOT], ids=lambda model: str(model.variant)
)


def make_colours(template: str = "{}") -> TrainingData:
    """Return users who like red or blue items. The text of an item names its colour.

    Each of the last 20 items has one user only, who likes the other colour.
    """
    rng = np.random.default_rng(3)
    pairs = [
        (u, i) for u in range(40) for i in range(40) if (u + i) % 2 == 0 and rng.random() < 0.6
    ]
    pairs += [(i - 39, i) for i in range(40, 60)]
    names = [template.format(["red", "blue"][i % 2]) for i in range(60)]
    return make_item_data(
        pairs, {"text": [f"a {name} thing {i % 7}" for i, name in enumerate(names)]}
    )


def rank_by_colour(data: TrainingData) -> float:
    """Return how often rare items of the own colour score above those of the other colour."""
    model = replace(SMALL, reg_item=20.0, epochs=40)
    fitted: Any = model.fit(data, np.random.default_rng(0))
    scores = fitted.scores(np.arange(40, dtype=np.int32))[:, 40:]
    red, blue = scores[:, 0::2], scores[:, 1::2]
    above = (red[:, :, None] > blue[:, None, :]).mean(axis=(1, 2))
    return float(np.where(np.arange(40) % 2 == 0, above, 1 - above).mean())


def test_text_predicts_who_likes_a_rare_item() -> None:
    assert rank_by_colour(make_colours()) > 0.9
    assert rank_by_colour(make_colours(template="grey")) < 0.6


@all_variants
def test_ndcg_exceeds_random_on_the_demo_dataset(model: ConvMF) -> None:
    split, data = load_demo_split()
    model = replace(model, text=("title", "genres"), batch_size=512)
    lists, random_lists = (
        recommender.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
        for recommender in (model, Random())
    )
    min_ratio = 1.5 if model.variant == "paper" else 0.8
    assert compute_mean_ndcg(lists, split) > min_ratio * compute_mean_ndcg(random_lists, split)


def test_scores_approximate_ratings() -> None:
    pairs = [(u, i) for u in range(20) for i in range(20) if (u * i) % 3 != 1]
    values = [5.0 if (u + i) % 2 == 0 else 1.0 for u, i in pairs]
    data = make_item_data(pairs, {"text": [f"word{i}" for i in range(20)]}, values=values)
    fitted: Any = replace(SMALL, reg_user=0.05, reg_item=0.05, epochs=80).fit(
        data, np.random.default_rng(0)
    )
    scores = fitted.scores(np.arange(20, dtype=np.int32))
    liked = np.add.outer(np.arange(20), np.arange(20)) % 2 == 0
    assert scores[liked].mean() == pytest.approx(5, abs=0.7)
    assert scores[~liked].mean() == pytest.approx(1, abs=0.7)


def test_elliot_ranks_items_alike_for_all_users_without_text() -> None:
    data = TrainingData(
        make_interactions([(u, i) for u in range(12) for i in range(8) if i <= u % 6 + 1])
    )
    fitted: Any = replace(ELLIOT, epochs=60).fit(data, np.random.default_rng(0))
    assert (
        fitted.item_scores[:2].min() > fitted.item_scores[2:].max()
    )  # all users have items 0 and 1
    assert fitted.embeddings().users.shape == (12, 16)


def test_elliot_requires_a_multiple_of_16_as_embedding_size() -> None:
    with pytest.raises(OutOfRange, match="embedding_size 24") as caught:
        replace(ELLIOT, embedding_size=24).fit(make_checkerboard(4)[0], np.random.default_rng(0))
    assert caught.value.where == "embedding_size"
    assert "multiple of 16" in caught.value.remedy


@all_variants
def test_model_fulfils_the_recommender_contract(model: ConvMF) -> None:
    check_recommender(replace(model, epochs=2), data=make_colours())


@all_variants
def test_fit_is_reproducible_and_depends_on_the_seed(model: ConvMF) -> None:
    states = [
        replace(model, epochs=2).fit(make_colours(), np.random.default_rng(seed)).state()  # type: ignore[attr-defined]
        for seed in (1, 1, 2)
    ]
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name])
    assert not np.array_equal(states[0]["item_factors"], states[2]["item_factors"])


class CheckpointStore:
    """Keeps the last checkpoint."""

    arrays: Any = None

    def load(self) -> Any:
        return self.arrays

    def save(self, arrays: Any) -> None:
        self.arrays = {name: np.array(array) for name, array in arrays.items()}


@all_variants
def test_resumed_training_gives_the_same_state(
    model: ConvMF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, model = make_colours(), replace(model, epochs=4)
    uninterrupted: Any = model.fit(data, np.random.default_rng(1))
    with stage_context(checkpoint_store=CheckpointStore()):
        replace(model, epochs=2).fit(data, np.random.default_rng(1))
        resumed: Any = model.fit(data, np.random.default_rng(1))
    for name, array in uninterrupted.state().items():
        np.testing.assert_array_equal(array, resumed.state()[name])


def test_missing_texts_are_counted_and_their_items_recommended() -> None:
    texts = ["a film", None, "", "🎬", "x" * 100_000, "word " * 10_000]
    data = make_item_data([(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)], {"text": texts})
    with collect_warnings() as messages:
        fitted: Any = replace(SMALL, epochs=3).fit(data, np.random.default_rng(0))
    assert messages == ["ConvMF: 2 of 6 items have no text"]
    lists = fitted.recommend(query_all_users(data), 4, data)
    assert lists.filled.all()


@all_variants
def test_divergence_is_an_error_that_names_the_learning_rate(model: ConvMF) -> None:
    with pytest.raises(OutOfRange, match="ConvMF diverged in epoch"):
        replace(model, learning_rate=1e30).fit(make_colours(), np.random.default_rng(0))


@pytest.mark.usefixtures("stage_warnings")
@all_variants
@pytest.mark.parametrize(
    ("pairs", "values"),
    [
        ([(0, 0), (1, 0)], [1, 1]),
        ([(0, 0), (0, 1)], [1, 2]),
        ([(0, 1), (1, 2), (2, 0)], [1, 1, 1]),
        ([], []),
    ],
    ids=["one item", "one user", "one interaction per user", "no interactions"],
)
def test_smallest_datasets_are_learned(model: ConvMF, pairs: Any, values: Any) -> None:
    n_items = max([item + 1 for _, item in pairs], default=2)
    data = make_item_data(pairs, {"text": ["a b"] * n_items}, n_users=3, values=values)
    fitted = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(query_all_users(data), 5, data)
    assert lists.items.shape == (3, 5)


def test_needs_depend_on_text_and_variant() -> None:
    assert ConvMF().needs_now() == {"train", "items"}
    assert ConvMF(text=("reviews",)).needs_now() == {"train", "reviews"}
    assert ConvMF(text=("title", "reviews")).needs_now() == {"train", "items", "reviews"}
    assert ConvMF(variant="elliot", embedding_size=64).needs_now() == {"train"}


def test_missing_texts_are_refused() -> None:
    data = make_checkerboard(4)[0]
    with pytest.raises(MissingEvidence, match="the items have no text") as caught:
        SMALL.fit(data, np.random.default_rng(0))
    assert "items table" in caught.value.remedy
    with pytest.raises(UnknownColumn, match="no column 'plot'"):
        replace(SMALL, text=("plot",)).fit(make_colours(), np.random.default_rng(0))


def test_dataset_without_items_is_refused_before_training(tmp_path: Any) -> None:
    (tmp_path / "ratings.csv").write_text("user,item\n" + "a,x\nb,y\na,y\nb,x\n")
    dataset = {"name": "tables", "interactions": str(tmp_path / "ratings.csv")}
    spec = make_small_spec(dataset=dataset, models=["MostPop", "ConvMF"])
    with pytest.raises(Faults, match="ConvMF needs items, which tables does not have"):
        api.run(spec, out=tmp_path / "run")


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "low", "high"),
    [
        (ConvMF(epochs=3, device="cpu"), 0.2, 0.31),
        # Table A.3: 0.1563, after 50 epochs in batches of 256
        (
            ConvMF(
                variant="elliot",
                embedding_size=64,
                epochs=1,
                batch_size=2048,
                learning_rate=0.01,
                dropout=0.3,
                device="cpu",
            ),
            0.12,
            0.1763,
        ),
    ],
    ids=["paper", "elliot"],
)
@pytest.mark.slow
def test_ndcg_on_movielens(
    model: ConvMF, low: float, high: float, movielens: Split, real_data: Any
) -> None:
    items = MovieLens1M().load(real_data, np.random.default_rng(0)).items
    assert items is not None
    data = movielens.training_data(items=items.align(movielens.train.item_ids))
    lists = model.fit(data, np.random.default_rng(0)).recommend(query_all_users(data), 10, data)
    assert low < compute_mean_ndcg(lists, movielens) < high

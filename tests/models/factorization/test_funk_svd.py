from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.factorization.funk_svd import MF, FunkSVD, _learner, _squared_error
from recbias.models.training import loop as torch_fit
from recbias.models.training.rating_targets import mean_value
from support import recommending
from support.worlds import rows

FUNK = FunkSVD(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu")
MODELS: list[Any] = [
    MF(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu"),
    FUNK,
    replace(FUNK, variant="elliot", epochs=150),
]
every = pytest.mark.parametrize(
    "model", MODELS, ids=lambda each: f"{type(each).__name__}-{getattr(each, 'variant', '')}"
)


def double(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    pairs = [torch.tensor([0, 0, 2]), torch.tensor([1, 3, 1]), torch.tensor([1.0, 0.0, 0.5])]

    def loss(*tables: Any) -> Any:
        return _squared_error(FactorTables(*tables), 0.3, *pairs, mean=0.4)

    sides = [double(each, 2, rng=rng) for each in (3, 4)]
    biases = [double(each, 1, rng=rng) for each in (3, 4)]
    assert torch.autograd.gradcheck(loss, (*sides, *biases))


def test_a_step_of_a_gpu_goes_down_half_the_gradient(rng: np.random.Generator) -> None:
    pairs = [torch.tensor([0, 0, 2]), torch.tensor([1, 3, 1]), torch.tensor([1.0, 0.0, 0.5])]
    shapes = [(3, 2), (4, 2), (3, 1), (4, 1)]
    for some in (shapes, shapes[:2]):
        tables = FactorTables(*(double(*each, rng=rng) for each in some))
        learner = _learner(tables, lambda _: (), 0.3, 0.4)
        loss = learner.loss(*pairs)
        assert loss.item() == pytest.approx(
            _squared_error(tables, 0.3, *pairs, mean=0.4).item() / 2
        )
        loss.backward()
        expected = [(each - 0.1 * each.grad).detach() for each in tables.parameters()]
        assert learner.step(0.1, *pairs).item() == pytest.approx(loss.item())
        for found, each in zip(tables.parameters(), expected, strict=True):
            torch.testing.assert_close(found.detach(), each)


@pytest.mark.parametrize("model", [MF, FunkSVD])
def test_batches_of_a_gpu_learn_the_checkerboard_too(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_fit, "SingleSteps", ())
    test_it_learns_the_checkerboard(replace(MODELS[model is FunkSVD], batch_size=16))


def test_the_loss_of_a_pair_by_hand() -> None:
    # score 2 · 3 + 0.5 - 1 = 5.5, error 8 - 1 - 5.5 = 1.5, squares 4 + 9 + 0.25 + 1 = 14.25
    values = (2.0, 3.0, 0.5, -1.0)
    tables = FactorTables(*(torch.tensor([[each]]) for each in values))
    pair = (torch.tensor([0]), torch.tensor([0]), torch.tensor([8.0]))
    found = _squared_error(tables, 0.1, *pair, mean=1.0)
    assert found.item() == pytest.approx(1.5**2 + 0.1 * 14.25)


@every
def test_it_learns_the_checkerboard(model: Any) -> None:
    data, wanted = recommending.checkerboard(20)
    found = model.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 1, data)
    assert (lists.items[:, 0] == wanted).mean() > 0.8


def low_rank(rng: np.random.Generator) -> tuple[TrainingData, Any]:
    """Ratings made of one taste and biases, four fifths of them seen; and all of them."""
    tastes = np.outer(rng.normal(size=40), rng.normal(size=30))
    ratings = 3 + tastes + rng.normal(size=(40, 1)) / 2 + rng.normal(size=30) / 2
    users, items = np.nonzero(rng.random(ratings.shape) < 0.8)
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    return TrainingData(rows(pairs, values=ratings[users, items].tolist())), ratings


@pytest.mark.parametrize("model", MODELS[:2], ids=["MF", "FunkSVD"])
def test_it_learns_ratings(model: Any, rng: np.random.Generator) -> None:
    data, ratings = low_rank(rng)
    model = replace(model, embedding_size=3, reg=0.001)
    scores = model.fit(data, np.random.default_rng(0)).scores(np.arange(40, dtype=np.int32))
    unseen = data.train.binary.toarray() == 0
    # what is the same for all items of a user is in no score
    gaps = ratings - scores
    gaps -= gaps.mean(axis=1, keepdims=True)
    alone = ratings - ratings.mean(axis=1, keepdims=True)
    assert gaps[unseen].std() < 0.4 * alone[unseen].std()


def test_elliot_never_looks_at_ratings() -> None:
    pairs = [(0, 0), (0, 1), (1, 1), (2, 2)]
    data = [TrainingData(rows(pairs, values=each)) for each in ([1.0, 2, 3, 4], [4.0, 3, 2, 1])]
    for model in MODELS[1:]:
        first, second = (
            replace(model, epochs=2).fit(each, np.random.default_rng(0)) for each in data
        )
        alike = np.array_equal(first.item_factors, second.item_factors)
        assert alike == (model.variant == "elliot")


def test_regularised_away_all_that_is_left_is_the_mean() -> None:
    data, _ = recommending.checkerboard(10)
    found = replace(FUNK, reg=40).fit(data, np.random.default_rng(0))
    assert np.abs(found.scores(np.arange(10, dtype=np.int32))).max() < 0.02
    assert mean_value(data.train, 4) == 0.2


@every
def test_one_seed_one_result_another_another(model: Any) -> None:
    data, _ = recommending.checkerboard(12)
    fit = partial(replace(model, epochs=2).fit, data)
    first, again, other = (fit(np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.item_factors, again.item_factors)
    assert not np.array_equal(first.item_factors, other.item_factors)


@every
def test_a_learning_rate_that_diverges_is_named(model: Any) -> None:
    data, _ = recommending.checkerboard(12)
    with pytest.raises(OutOfRange, match="diverged in epoch") as caught:
        replace(model, learning_rate=1e30).fit(data, np.random.default_rng(0))
    assert "lower learning_rate" in caught.value.remedy


@every
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(rows([(0, 0), (1, 0)])),
        TrainingData(rows([(0, 0), (1, 1), (2, 2)])),
        TrainingData(rows([(0, 0), (0, 1)], values=[1, 2])),
        TrainingData(rows([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one row a user", "one user", "no row"],
)
def test_the_smallest_worlds_are_learned(model: Any, data: TrainingData) -> None:
    found = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)


@pytest.mark.real_data
def test_quality_on_movielens(movielens: Split) -> None:
    # a quarter of the epochs of the default, and above the 0.2388 that Table A.3 has for MF
    data = movielens.training_data()
    found = MF(epochs=20, device="cpu").fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 10, data)
    assert recommending.mean_ndcg(lists, movielens) > 0.25

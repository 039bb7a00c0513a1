from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias import api
from recbias.core import stage_context as context_module
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import Faults, MissingEvidence, OutOfRange, UnknownColumn
from recbias.core.stage_context import collect_warnings, stage_context
from recbias.data.datasets.movielens import MovieLens1M
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.neural.convmf import ConvLearner, ConvMF, _spread
from recbias.models.neural.text_cnn import TextCNN
from recbias.models.training.layers import Dense
from recbias.models.unpersonalised import Random
from recbias.testing import check_recommender
from support.attribute_worlds import load_demo_split, make_item_data
from support.recommending import compute_mean_ndcg, make_checkerboard, query_all_users
from support.specs import make_small_spec
from support.worlds import make_interactions

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
every = pytest.mark.parametrize("model", [SMALL, ELLIOT], ids=lambda each: str(each.variant))


def double(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def learner(rng: np.random.Generator) -> ConvLearner:
    """Three users, four items of which the last has no text, all in double precision."""
    model = replace(SMALL, reg_user=0.3, reg_item=0.7, reg_network=0.2, dropout=0.0)
    words = double(6, 2, rng=rng)
    with torch.no_grad():
        words[0] = 0
    shapes = [(4, 3), (3,), (3, 4), (4,), (4, 2), (2,)]
    parts = [double(*each, rng=rng) for each in shapes]
    layers = [Dense(*parts[place : place + 2]) for place in (0, 2, 4)]
    samples = (
        np.array([0, 1, 2, 2], np.int32),
        np.array([0, 1, 2, 3], np.int32),
        np.array([1.0, 3.0, 5.0, 2.0]),
    )
    return ConvLearner(
        model=model,
        tables=FactorTables(double(3, 2, rng=rng), double(4, 2, rng=rng)),
        network=TextCNN(words, (2,), layers[:1], layers[1], layers[2]),
        codes=torch.tensor([[1, 2, 3], [4, 0, 0], [5, 5, 1], [0, 0, 0]]),
        told=np.arange(3),
        draw=lambda rng: samples,
    )


def objective(found: ConvLearner, users: Any, items: Any, values: Any) -> Any:
    """Twice equation 6 of the paper, as it stands there."""
    p, q = found.tables.users, found.tables.items
    errors = sum((r - p[u] @ q[i]) ** 2 for u, i, r in zip(users, items, values, strict=True))
    prior = sum(
        0.7 * (q[i] - found.network(found.codes[i : i + 1])[0]).square().sum() for i in range(4)
    )
    weights = sum(each.square().sum() for each in found.network.parameters())
    return errors + 0.3 * p.square().sum() + prior + 0.2 * weights


def test_an_epoch_in_one_batch_goes_down_the_objective_of_the_paper(
    rng: np.random.Generator,
) -> None:
    found = learner(rng)
    batch = [torch.from_numpy(each) for each in found.sample_epoch(rng)]
    found.loss(*batch).backward()
    samples = found.draw(rng)
    for tensor in found.parameters():
        slope = tensor.grad.numpy()
        for place in np.ndindex(tensor.shape):
            if tensor is found.network.words and place[0] == 0:
                continue  # no word is always 0
            ends = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    tensor[place] += step
                    ends.append(float(objective(found, *samples)))
                    tensor[place] -= step
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-5)


def test_batches_add_up_to_the_epoch(rng: np.random.Generator) -> None:
    found = learner(rng)
    batch = [torch.from_numpy(each) for each in found.sample_epoch(rng)]
    whole = found.loss(*batch).item()
    parts = [found.loss(*(each[cut] for each in batch)).item() for cut in (slice(1), slice(1, 4))]
    assert sum(parts) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("n_samples", [0, 1, 130, 131, 200, 5000])
def test_every_text_is_read_once_an_epoch_in_runs(n_samples: int) -> None:
    texts = np.arange(130)[::-1]
    found = _spread(texts, n_samples)
    assert found.size == n_samples
    read = found[found >= 0]
    assert read.tolist() == texts[:n_samples].tolist()
    if n_samples == 5000:  # runs of 64, 64 and 2: the last at the end, the gaps alike
        assert found[:64].tolist() == texts[:64].tolist()
        assert (found[64 : 64 + 2435] == -1).all()
        assert found[-2:].tolist() == [1, 0]


def colours(told: str = "{}") -> TrainingData:
    """Users like red or blue. Every item is called so; the last 20 one user has, by mistake."""
    rng = np.random.default_rng(3)
    pairs = [
        (u, i) for u in range(40) for i in range(40) if (u + i) % 2 == 0 and rng.random() < 0.6
    ]
    pairs += [(i - 39, i) for i in range(40, 60)]  # of the other colour
    names = [told.format(["red", "blue"][i % 2]) for i in range(60)]
    return make_item_data(
        pairs, {"text": [f"a {name} thing {i % 7}" for i, name in enumerate(names)]}
    )


def own_colour(data: TrainingData) -> float:
    """How often an item that one user has scores above one of the other colour, on the mean."""
    model = replace(SMALL, reg_item=20.0, epochs=40)
    found: Any = model.fit(data, np.random.default_rng(0))
    scores = found.scores(np.arange(40, dtype=np.int32))[:, 40:]
    red, blue = scores[:, 0::2], scores[:, 1::2]
    above = (red[:, :, None] > blue[:, None, :]).mean(axis=(1, 2))
    return float(np.where(np.arange(40) % 2 == 0, above, 1 - above).mean())


def test_the_text_of_an_item_tells_who_likes_it() -> None:
    assert own_colour(colours()) > 0.9
    assert own_colour(colours(told="grey")) < 0.6


@every
def test_it_learns_on_the_demo_world(model: ConvMF) -> None:
    split, data = load_demo_split()
    model = replace(model, text=("title", "genres"), batch_size=512)
    lists, chance = (
        each.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
        for each in (model, Random())
    )
    least = 1.5 if model.variant == "paper" else 0.8
    assert compute_mean_ndcg(lists, split) > least * compute_mean_ndcg(chance, split)


def test_ratings_are_learned_as_they_are() -> None:
    pairs = [(u, i) for u in range(20) for i in range(20) if (u * i) % 3 != 1]
    values = [5.0 if (u + i) % 2 == 0 else 1.0 for u, i in pairs]
    data = make_item_data(pairs, {"text": [f"word{i}" for i in range(20)]}, values=values)
    found: Any = replace(SMALL, reg_user=0.05, reg_item=0.05, epochs=80).fit(
        data, np.random.default_rng(0)
    )
    scores = found.scores(np.arange(20, dtype=np.int32))
    liked = np.add.outer(np.arange(20), np.arange(20)) % 2 == 0
    assert scores[liked].mean() == pytest.approx(5, abs=0.7)
    assert scores[~liked].mean() == pytest.approx(1, abs=0.7)


def test_elliot_gives_everybody_one_ranking_and_reads_nothing() -> None:
    data = TrainingData(
        make_interactions([(u, i) for u in range(12) for i in range(8) if i <= u % 6 + 1])
    )
    found: Any = replace(ELLIOT, epochs=60).fit(data, np.random.default_rng(0))
    assert found.item_scores[:2].min() > found.item_scores[2:].max()  # everybody has 0 and 1
    assert found.embeddings().users.shape == (12, 16)


def test_elliot_needs_vectors_that_fill_its_windows() -> None:
    with pytest.raises(OutOfRange, match="embedding_size 24") as caught:
        replace(ELLIOT, embedding_size=24).fit(make_checkerboard(4)[0], np.random.default_rng(0))
    assert caught.value.where == "embedding_size"
    assert "multiple of 16" in caught.value.remedy


@every
def test_it_keeps_the_contract(model: ConvMF) -> None:
    check_recommender(replace(model, epochs=2), data=colours())


@every
def test_one_seed_one_result_another_another(model: ConvMF) -> None:
    states = [
        replace(model, epochs=2).fit(colours(), np.random.default_rng(seed)).state()  # type: ignore[attr-defined]
        for seed in (1, 1, 2)
    ]
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name])
    assert not np.array_equal(states[0]["item_factors"], states[2]["item_factors"])


class Disk:
    """Keeps what survives."""

    arrays: Any = None

    def load(self) -> Any:
        return self.arrays

    def save(self, arrays: Any) -> None:
        self.arrays = {name: np.array(each) for name, each in arrays.items()}


@every
def test_what_was_cut_off_ends_in_the_same_figures(
    model: ConvMF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, model = colours(), replace(model, epochs=4)
    whole: Any = model.fit(data, np.random.default_rng(1))
    with stage_context(checkpoint_store=Disk()):
        replace(model, epochs=2).fit(data, np.random.default_rng(1))
        found: Any = model.fit(data, np.random.default_rng(1))
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, found.state()[name])


def test_a_text_that_is_missing_is_counted_and_its_item_still_learned() -> None:
    texts = ["a film", None, "", "🎬", "x" * 100_000, "word " * 10_000]
    data = make_item_data([(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5)], {"text": texts})
    with collect_warnings() as notes:
        found: Any = replace(SMALL, epochs=3).fit(data, np.random.default_rng(0))
    assert notes == ["ConvMF: 2 of 6 items have no text"]
    lists = found.recommend(query_all_users(data), 4, data)
    assert lists.filled.all()


@every
def test_a_learning_rate_that_diverges_is_named(model: ConvMF) -> None:
    with pytest.raises(OutOfRange, match="ConvMF diverged in epoch"):
        replace(model, learning_rate=1e30).fit(colours(), np.random.default_rng(0))


@every
@pytest.mark.parametrize(
    ("pairs", "values"),
    [
        ([(0, 0), (1, 0)], [1, 1]),
        ([(0, 0), (0, 1)], [1, 2]),
        ([(0, 1), (1, 2), (2, 0)], [1, 1, 1]),
        ([], []),
    ],
    ids=["one item", "one user", "one row a user", "no row"],
)
def test_the_smallest_worlds_are_learned(model: ConvMF, pairs: Any, values: Any) -> None:
    n_items = max([item + 1 for _, item in pairs], default=2)
    data = make_item_data(pairs, {"text": ["a b"] * n_items}, n_users=3, values=values)
    found = replace(model, epochs=2).fit(data, np.random.default_rng(0))
    lists = found.recommend(query_all_users(data), 5, data)
    assert lists.items.shape == (3, 5)


def test_what_it_needs_hangs_on_what_it_reads() -> None:
    assert ConvMF().needs_now() == {"train", "items"}
    assert ConvMF(text=("reviews",)).needs_now() == {"train", "reviews"}
    assert ConvMF(text=("title", "reviews")).needs_now() == {"train", "items", "reviews"}
    assert ConvMF(variant="elliot", embedding_size=64).needs_now() == {"train"}


def test_without_text_it_is_refused() -> None:
    data = make_checkerboard(4)[0]
    with pytest.raises(MissingEvidence, match="they have no text") as caught:
        SMALL.fit(data, np.random.default_rng(0))
    assert "items table" in caught.value.remedy
    with pytest.raises(UnknownColumn, match="no column 'plot'"):
        replace(SMALL, text=("plot",)).fit(colours(), np.random.default_rng(0))


def test_without_text_it_is_refused_before_any_training(tmp_path: Any) -> None:
    (tmp_path / "ratings.csv").write_text("user,item\n" + "a,x\nb,y\na,y\nb,x\n")
    dataset = {"name": "tables", "interactions": str(tmp_path / "ratings.csv")}
    spec = make_small_spec(dataset=dataset, models=["MostPop", "ConvMF"])
    with pytest.raises(Faults, match="ConvMF needs items, which tables does not have"):
        api.run(spec, out=tmp_path / "run")


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "least", "most"),
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
def test_ndcg_on_movielens(
    model: ConvMF, least: float, most: float, movielens: Split, real_data: Any
) -> None:
    items = MovieLens1M().load(real_data, np.random.default_rng(0)).items
    assert items is not None
    data = movielens.training_data(items=items.align(movielens.train.item_ids))
    lists = model.fit(data, np.random.default_rng(0)).recommend(query_all_users(data), 10, data)
    assert least < compute_mean_ndcg(lists, movielens) < most

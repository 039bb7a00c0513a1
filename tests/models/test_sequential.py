"""What SASRec, GRU4Rec and BERT4Rec have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import AnyArray, TrainingData
from recbias.core.errors import Contradiction
from recbias.models.baselines import MostPop
from recbias.models.linear import EASE
from recbias.models.sequential import (
    BERT4Rec,
    GRU4Rec,
    Histories,
    SASRec,
    UnseenItems,
    attend,
    create_dropout,
    see_items,
    sum_binary_cross_entropy,
    sum_cross_entropy,
    sum_sampled_cross_entropy,
)
from support.models import recommending
from support.models.sequence_worlds import make_chain, set_file_order, set_times
from support.worlds.small_worlds import make_interactions

SETTINGS: dict[str, Any] = {
    "embedding_size": 16,
    "batch_size": 16,
    "learning_rate": 0.01,
    "dropout": 0.0,
    "max_length": 8,
    "device": "cpu",
}


MODELS = [
    SASRec(epochs=15, **SETTINGS),
    SASRec(epochs=30, loss="binary_cross_entropy", negatives=1, **SETTINGS),
    SASRec(epochs=15, negatives=4, **SETTINGS),
    GRU4Rec(epochs=25, **SETTINGS),
    GRU4Rec(epochs=25, negatives=6, **SETTINGS),
    BERT4Rec(epochs=80, **SETTINGS | {"learning_rate": 0.005}),
]


def name_model(model: Any) -> str:
    return f"{type(model).__name__} {getattr(model, 'loss', '')} {getattr(model, 'negatives', '')}"


all_models = pytest.mark.parametrize("model", MODELS, ids=name_model)


each_model = pytest.mark.parametrize("model", [MODELS[0], MODELS[3], MODELS[5]], ids=name_model)


def count_hits(fitted: Any, data: TrainingData, expected: AnyArray) -> float:
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    return float((lists.items[:, 0] == expected).mean())


@all_models
def test_the_item_after_the_last_is_found(model: Any) -> None:
    data, expected = make_chain()
    assert count_hits(model.fit(data, np.random.default_rng(0)), data, expected) > 0.9


@pytest.mark.parametrize("model", [MostPop(), EASE()], ids=["MostPop", "EASE"])
def test_a_model_without_the_order_cannot_find_it(model: Any) -> None:
    data, expected = make_chain()
    assert count_hits(model.fit(data, np.random.default_rng(0)), data, expected) < 0.65


@each_model
def test_the_order_is_that_of_the_times_not_of_the_rows(model: Any) -> None:
    data, expected = make_chain()
    assert (
        count_hits(model.fit(set_file_order(data), np.random.default_rng(0)), data, expected)
        < 0.65
    )


def test_histories_are_in_the_order_of_time_and_ties_in_that_of_the_file() -> None:
    rows = make_interactions([(1, 3), (0, 2), (0, 1), (0, 0), (1, 3)], n_users=3)
    histories = Histories.from_interactions(set_times(rows, np.array([9, 5, 5, 1, 2])))
    assert histories.items.tolist() == [0, 2, 1, 3, 3]
    assert histories.starts.tolist() == [0, 3, 5, 5]


@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    length=st.integers(2, 6),
    least=st.sampled_from([1, 2]),
    seed=st.none() | st.integers(0, 99),
)
def test_windows_have_every_successor_or_every_item_once(
    counts: list[int], length: int, least: int, seed: int | None
) -> None:
    histories = Histories(np.arange(sum(counts)), np.append(0, np.cumsum(counts)))
    rng = None if seed is None else np.random.default_rng(seed)
    users, firsts, sizes = histories.cut_windows(length, least, rng)
    assert ((sizes >= least) & (sizes <= length)).all()
    offset = least - 1
    covered = [
        (user, position)
        for user, first, size in zip(users, firsts, sizes, strict=True)
        for position in range(first + offset, first + size)
    ]
    expected = [
        (user, histories.starts[user] + position)
        for user, count in enumerate(counts)
        for position in range(offset, count)
    ]
    assert sorted(covered) == expected


def test_negatives_are_uniform_over_the_items_that_a_user_lacks(rng: np.random.Generator) -> None:
    train = recommending.make_random_data(rng, n_users=6, n_items=9).train
    unseen = UnseenItems.from_interactions(train, "cpu")
    users = torch.arange(6)
    sampled = unseen.sample(users, 20_000, torch.Generator().manual_seed(3)).numpy()
    has_item = train.binary.toarray() > 0
    for user in range(6):
        shares = np.bincount(sampled[user], minlength=9) / 20_000
        expected = ~has_item[user] / (~has_item[user]).sum()
        assert shares == pytest.approx(expected, abs=0.02)
        assert (shares[has_item[user]] == 0).all()


MODEL = GRU4Rec(embedding_size=3, layers=2, max_length=5, dropout=0.0, device="cpu")


N_ITEMS = 7


def make_parameters(*, double: bool = False) -> dict[str, Any]:
    arrays = MODEL._sample_weights(N_ITEMS, np.random.default_rng(2))
    rng = np.random.default_rng(3)
    kind = torch.float64 if double else torch.float32
    return {
        name: torch.tensor(rng.normal(size=array.shape), dtype=kind, requires_grad=double)
        for name, array in arrays.items()
    }


def test_vectors_equal_those_of_the_recurrence_written_out() -> None:
    parameters = make_parameters()
    codes = [3, 1, 4]
    inputs = [parameters["items.weight"][code] for code in codes]
    for layer in range(2):
        w, u, b, c = (
            parameters[f"gru.{kind}_l{layer}"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        state, outputs = torch.zeros(3), []
        for x in inputs:
            (r, z, n), (hr, hz, hn) = (w @ x + b).split(3), (u @ state + c).split(3)
            update = (z + hz).sigmoid()
            new = (n + (r + hr).sigmoid() * hn).tanh()
            state = (1 - update) * new + update * state
            outputs.append(state)
        inputs = outputs
    vectors = MODEL.encode_positions(parameters, torch.tensor([codes]))
    torch.testing.assert_close(vectors[0], torch.stack(inputs))


def test_cross_entropies_by_hand() -> None:
    scores = torch.tensor([[0.0, float(np.log(3.0)), 0.0]])
    target = torch.tensor([1])
    assert sum_cross_entropy(scores, target).item() == pytest.approx(np.log(5 / 3))
    sampled = sum_sampled_cross_entropy(scores[:, 1], scores[:, :1])
    assert sampled.item() == pytest.approx(np.log(4 / 3))
    binary = sum_binary_cross_entropy(scores[:, 1], scores[:, :1])
    assert binary.item() == pytest.approx(np.log(4 / 3) + np.log(2))


MODEL_SASREC = SASRec(embedding_size=4, layers=2, heads=2, max_length=5, dropout=0.5, device="cpu")


PAPER = replace(MODEL_SASREC, normalize_inputs=False, shift_windows=False)


each_form = pytest.mark.parametrize("model", [MODEL_SASREC, PAPER], ids=["default", "paper"])


def make_parameters_sasrec(model: SASRec, *, double: bool = False) -> dict[str, Any]:
    """Return random weights large enough that every input matters."""
    shapes = model._list_shapes(N_ITEMS)
    rng = np.random.default_rng(2)
    kind = torch.float64 if double else torch.float32
    return {
        name: torch.tensor(rng.normal(size=shape), dtype=kind, requires_grad=double)
        for name, shape in shapes.items()
    }


@each_form
def test_later_items_do_not_change_earlier_vectors(model: SASRec) -> None:
    parameters = make_parameters_sasrec(model)
    history = torch.tensor([[1, 2, 3, 4, 5]])
    vectors = model.encode_positions(parameters, history)
    for position in range(5):
        changed = history.clone()
        changed[0, position] = 6
        others = model.encode_positions(parameters, changed)
        is_equal = torch.isclose(vectors, others, atol=1e-6).all(dim=2)[0]
        assert is_equal.tolist() == [p < position for p in range(5)]


@pytest.mark.parametrize(("model", "expected"), [(MODEL_SASREC, [-1, 1]), (PAPER, [1, -1])])
def test_normalized_inputs_by_hand(model: SASRec, expected: list[float]) -> None:
    # The vector (9, 3) plus the position (3, 1) is (12, 4), and its normalized form (1, -1) plus
    # the bias (0, 3) is (1, 2). Layers of zeros add nothing; the output is normalized
    model = replace(model, embedding_size=2, heads=1, max_length=1)
    arrays = {name: torch.zeros(shape) for name, shape in model._list_shapes(1).items()}
    arrays |= {"items.weight": torch.tensor([[9.0, 3.0]]), "positions": torch.tensor([[3.0, 1.0]])}
    arrays |= {name: torch.ones(2) for name in arrays if name.endswith("norm.scale")}
    if model.normalize_inputs:
        arrays["input_norm.bias"] = torch.tensor([0.0, 3.0])
    torch.testing.assert_close(
        model.encode(arrays, torch.tensor([[0]])), torch.tensor([expected], dtype=torch.float32)
    )


def test_attention_by_hand() -> None:
    # Keys 0 and ln 3 times the query 1: weights 1/4 and 3/4 of the values 8 and 4; the first
    # position reads itself only
    queries = torch.ones(1, 2, 1)
    keys = torch.tensor([[[0.0], [float(np.log(3.0))]]])
    values = torch.tensor([[[8.0], [4.0]]])
    visible = see_items(torch.ones(1, 2, dtype=torch.bool), causal=True)
    drop = create_dropout(0.5, None)
    attended = attend(queries, keys, values, visible, 1, drop)
    torch.testing.assert_close(attended, torch.tensor([[[8.0], [5.0]]]))
    hidden = see_items(torch.tensor([[False, True]]), causal=True)
    attended = attend(queries, keys, values, hidden, 1, drop)
    torch.testing.assert_close(attended, torch.tensor([[[0.0], [4.0]]]))


def test_loss_predicts_each_successor_once() -> None:
    # With vectors of 0 all scores are equal: each of the 3 + 1 successors costs ln 7
    parameters = {
        name: torch.zeros(shape) for name, shape in MODEL_SASREC._list_shapes(N_ITEMS).items()
    }
    items, windows = torch.arange(6), [torch.tensor(codes) for codes in ([0, 1], [0, 4], [4, 2])]
    unseen = UnseenItems.from_interactions(make_chain(N_ITEMS, 3, 4)[0].train, "cpu")
    noise = torch.Generator().manual_seed(1)
    loss = MODEL_SASREC._sum_losses(unseen, parameters, items, *windows, noise)
    assert loss.item() == pytest.approx(4 * np.log(7), rel=1e-5)
    # one negative a position: 4 times ln 2 for the next item and as much for the negative
    binary = replace(MODEL_SASREC, loss="binary_cross_entropy", negatives=1)
    loss = binary._sum_losses(unseen, parameters, items, *windows, noise)
    assert loss.item() == pytest.approx(8 * np.log(2), rel=1e-5)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(Contradiction, match="3 heads cannot share vectors of 4") as error:
        SASRec(embedding_size=4, heads=3)
    assert error.value.where == "heads"
    with pytest.raises(Contradiction, match="negatives, which are 0") as error:
        SASRec(loss="binary_cross_entropy")
    assert error.value.where == "negatives"


MODEL_BERT4REC = BERT4Rec(
    embedding_size=4, layers=2, heads=2, max_length=5, dropout=0.0, device="cpu"
)


PADDING, MASK = N_ITEMS, N_ITEMS + 1


def make_parameters_bert4rec(*, double: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    kind = torch.float64 if double else torch.float32
    return {
        name: torch.tensor(rng.normal(size=shape), dtype=kind, requires_grad=double)
        for name, shape in MODEL_BERT4REC._list_shapes(N_ITEMS).items()
    }


def test_items_on_both_sides_are_read_and_a_masked_item_is_not() -> None:
    parameters = make_parameters_bert4rec()
    vectors = MODEL_BERT4REC.encode_positions(parameters, torch.tensor([[1, 2, MASK, 4, 5]]))
    for position in (0, 1, 3, 4):
        changed = torch.tensor([[1, 2, MASK, 4, 5]])
        changed[0, position] = 6
        others = MODEL_BERT4REC.encode_positions(parameters, changed)
        assert not torch.isclose(vectors[0, 2], others[0, 2], atol=1e-6).all()


def test_masks_have_the_stated_shares() -> None:
    is_item = torch.ones(20_000, 10, dtype=torch.bool)
    is_item[:, :4] = False  # padding
    noise = torch.Generator().manual_seed(4)
    model = replace(MODEL_BERT4REC, mask_share=0.3, last_share=0.0)
    is_masked = model.choose_masked(is_item, noise).numpy()
    assert not is_masked[:, :4].any()
    assert is_masked.any(axis=1).all()
    assert is_masked[:, 4:9].mean() == pytest.approx(0.3, abs=0.01)
    # the last item also where no other is: 0.3 + 0.7^6
    assert is_masked[:, 9].mean() == pytest.approx(0.3 + 0.7**6, abs=0.01)
    only_last = replace(model, last_share=0.5).choose_masked(is_item, noise).numpy()
    share = (only_last.sum(axis=1) == 1) & only_last[:, 9]
    # half of the windows, and of the others those without another masked item
    assert share.mean() == pytest.approx(0.5 + 0.5 * 0.7**5, abs=0.01)
    assert replace(model, last_share=1.0).choose_masked(is_item, noise).sum().item() == 20_000


def test_loss_is_that_of_the_masked_items_only() -> None:
    # With weights of 0 all scores are equal: each masked item costs ln 7
    parameters = {
        name: torch.zeros(shape) for name, shape in MODEL_BERT4REC._list_shapes(N_ITEMS).items()
    }
    items, windows = torch.arange(6), (torch.tensor([0, 4]), torch.tensor([4, 2]))
    for share, n_masked in ((1.0, 2), (0.0, 6)):
        model = replace(MODEL_BERT4REC, mask_share=1.0, last_share=share)
        noise = torch.Generator().manual_seed(1)
        loss = model._sum_losses(parameters, items, *windows, noise)
        assert loss.item() == pytest.approx(n_masked * np.log(7), rel=1e-5)

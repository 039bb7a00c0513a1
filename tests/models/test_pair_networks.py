from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.dataset import Attributes, Split, Vocabulary
from recbias.models import pair_networks
from recbias.models.pair_networks import (
    DeepFM,
    DeepFMTensors,
    Fields,
    NeuMF,
    _NeuMFTensors,
    _Side,
    score_block,
    select_columns,
    sum_crossed_losses,
)
from recbias.models.training import Dense
from support.models import recommending

CPU = torch.device("cpu")


def replace_parameters(tensors: _NeuMFTensors, values: list[Any]) -> _NeuMFTensors:
    """Return the model with other tensors, in the order of its parameters."""
    p, q, m, n, w1, b1, w2, b2, w3, b3, w4, b4 = values
    layers = [Dense(w1, b1), Dense(w2, b2), Dense(w3, b3)]
    return _NeuMFTensors(p, q, m, n, layers, Dense(w4, b4))


def test_score_by_hand() -> None:
    # f = 1: p q = 2 · 3 with weight 0.5. The network on (1, -2): four units 1 - 2 · 0.25 = 0.5,
    # two units 4 · 0.5 - 1 = 1, one unit 1 + 1 = 2 with weight 10; b = 0.125
    def fill(shape: tuple[int, ...], value: float) -> Any:
        return torch.full(shape, float(value))

    first = Dense(torch.tensor([[1.0] * 4, [0.25] * 4]), torch.zeros(4))
    layers = [first, Dense(fill((4, 2), 1), fill((2,), -1)), Dense(fill((2, 1), 1), fill((1,), 0))]
    tensors = _NeuMFTensors(
        fill((1, 1), 2),
        fill((1, 1), 3),
        fill((1, 1), 1),
        fill((1, 1), -2),
        layers,
        Dense(torch.tensor([[0.5], [10.0]]), torch.tensor([0.125])),
    )
    code = torch.tensor([0])
    assert tensors.score(code, code).tolist() == [3 + 20 + 0.125]
    assert score_block(tensors.state(), np.array([0])).tolist() == [[23.125]]
    assert tensors.state()["user_factors"].tolist() == [[1.0]]


def test_exported_scores_equal_scores_of_pairs(rng: np.random.Generator) -> None:
    tensors = _NeuMFTensors.initialize((5, 7), 4, CPU, rng)
    for tensor in tensors.parameters():
        tensor.data.normal_(generator=torch.Generator().manual_seed(tensor.numel()))
    users, items = (torch.from_numpy(codes.ravel()) for codes in np.mgrid[:5, :7])
    pairs = tensors.score(users, items).detach().numpy().reshape(5, 7)
    np.testing.assert_allclose(score_block(tensors.state(), np.arange(5)), pairs, rtol=1e-4)


@pytest.mark.slow
def test_quality_on_movielens(movielens: Split) -> None:
    # two of the seven default epochs and fewer negatives; the default reaches 0.27
    data = movielens.training_data()
    fitted = NeuMF(epochs=2, negatives=2, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.18


HAND = {
    "user_factors": np.array([[1, 2]], "f4"),
    "item_factors": np.array([[3, 1], [0, 1]], "f4"),
    "item_bias": np.array([0, 0.5], "f4"),
    "user_hidden": np.array([[1, -1]], "f4"),
    "item_hidden": np.array([[1, 0], [-4, 3]], "f4"),
    "deep.0.weight": np.array([[2], [-1]], "f4"),
    "deep.0.bias": np.array([1], "f4"),
}


# item 0: 3 + 2 + 0, relu(2, -1) = (2, 0), 2 · 2 + 1 = 5; item 1: 2 + 0.5, relu(-3, 2) = (0, 2),
# -2 + 1 = -1
def test_scores_by_hand() -> None:
    users = np.array([0], dtype=np.int32)
    np.testing.assert_allclose(score_block(HAND, users), [[10, 1.5]])
    # σ(5) = 0.993307, σ(-1) = 0.268941
    squashed = score_block(HAND, users, sigmoid=True)
    np.testing.assert_allclose(squashed, [[5.993307, 2.768941]], rtol=1e-6)


SMALL = DeepFM(
    embedding_size=8, hidden_sizes=(8,), epochs=30, batch_size=64, learning_rate=0.01, device="cpu"
)


MODELS = [SMALL, replace(SMALL, variant="elliot", epochs=80)]


def test_crossed_loss_equals_the_loss_over_a_table_of_all_pairs(rng: np.random.Generator) -> None:
    products, offsets = (
        torch.tensor(rng.normal(size=6, scale=3), requires_grad=True) for _ in range(2)
    )
    labels = torch.tensor([1.0, 0, 1, 1, 0, 0], dtype=torch.float64)

    def sum_over_table() -> Any:
        table = torch.sigmoid(offsets[:, None] + products[None, :])
        losses = -table.log() * labels[None, :] - (1 - table).log() * (1 - labels[None, :])
        return losses.sum() / 6

    expected = torch.autograd.grad(sum_over_table(), (products, offsets))
    gradients = torch.autograd.grad(
        sum_crossed_losses(products, offsets, labels), (products, offsets)
    )
    assert sum_crossed_losses(products, offsets, labels).item() == pytest.approx(
        sum_over_table().item()
    )
    for gradient, reference in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, reference)


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_applies_the_sigmoid_when_ranking() -> None:
    data, _ = recommending.make_checkerboard(12)
    fitted = replace(MODELS[1], epochs=2).fit(data, np.random.default_rng(0))
    assert fitted.sigmoid
    assert MODELS[1].restore(fitted.state()).sigmoid


def make_fields() -> tuple[Fields, Fields]:
    """Return the fields of three users with two ages and four items with three genres."""
    ages, genres = {"age": [1.0, 2.0, 1.0]}, {"genres": ["A|B", "C", None, "B"]}
    users, items = (
        Attributes(Vocabulary.of([str(n) for n in range(len(rows))]), pd.DataFrame({name: rows}))
        for table in (ages, genres)
        for name, rows in table.items()
    )
    return Fields.from_attributes(3, users, ("age",)), Fields.from_attributes(
        4, items, ("genres",)
    )


def sample_parameters(tensors: DeepFMTensors, rng: np.random.Generator) -> list[Any]:
    return [
        torch.tensor(rng.normal(size=tensor.shape), requires_grad=True)
        for tensor in tensors.parameters()
    ]


def replace_parameters_deepfm(tensors: DeepFMTensors, values: Any) -> DeepFMTensors:
    """Return the model with other tensors, in the order of its parameters."""
    vectors, weights, item_vectors, item_weights, offset, *layers = values
    users, items = (
        _Side(table, biases, side.values, side.shares.to(table.dtype), side.widths)
        for table, biases, side in (
            (vectors, weights, tensors.users),
            (item_vectors, item_weights, tensors.items),
        )
    )
    deep = [Dense(*layer) for layer in zip(layers[::2], layers[1::2], strict=True)]
    return DeepFMTensors(users, items, offset, deep)


def test_score_terms_by_hand() -> None:
    # fields of the pair (user 1, item 0): user 1 with vector 2 and weight 1, age 2 with 3 and 10,
    # item 0 with 5 and 100, and the mean of the genres A with 1 and 0 and B with 3 and 2000
    users, items = make_fields()
    sides = (
        _Side(
            torch.tensor([[0.0], [2], [0], [0], [3]]),
            torch.tensor([[0.0], [1], [0], [0], [10]]),
            torch.from_numpy(users.values),
            torch.from_numpy(users.shares[..., None]),
            users.widths,
        ),
        _Side(
            torch.tensor([[5.0], [0], [0], [0], [1], [3], [0]]),
            torch.tensor([[100.0], [0], [0], [0], [0], [2000], [0]]),
            torch.from_numpy(items.values),
            torch.from_numpy(items.shares[..., None]),
            items.widths,
        ),
    )
    deep = [Dense(torch.tensor([[1.0], [10], [100], [1000]]), torch.tensor([0.5]))]
    tensors = DeepFMTensors(*sides, torch.tensor([0.25]), deep)
    terms = tensors.compute_terms(torch.tensor([1]), torch.tensor([0]))
    # products of two fields: 2·5 + 2·2 + 3·5 + 3·2 across sides, 2·3 and 5·2 within a side
    assert terms.products.item() == 35
    assert terms.linear.item() == 0.25 + 1 + 10 + 100 + 1000 + 6 + 10
    assert terms.deep.item() == 2 + 30 + 500 + 2000 + 0.5
    assert terms.squares.item() == 4 + 9 + 25 + 4


@pytest.mark.parametrize("has_attributes", [True, False])
@pytest.mark.parametrize("hidden", [(), (6,), (6, 3)])
def test_exported_scores_equal_scores_of_pairs_up_to_a_constant_per_user(
    has_attributes: bool,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_networks, "ROW_BLOCK", 2)
    sides = make_fields()
    if not has_attributes:
        sides = (Fields.from_attributes(3, None, ()), Fields.from_attributes(4, None, ()))
    initial = DeepFMTensors.initialize(sides, (2, *hidden), device=CPU, rng=rng)
    tensors = replace_parameters_deepfm(
        initial, [value.detach().float() for value in sample_parameters(initial, rng)]
    )
    users, items = (torch.from_numpy(codes.ravel()) for codes in np.mgrid[:3, :4])
    pairs = tensors.compute_terms(users, items).logits.numpy().reshape(3, 4)
    scores = score_block(tensors.state(), np.arange(3))
    offsets = pairs[:, :1] - scores[:, :1]
    np.testing.assert_allclose(scores + offsets, pairs, rtol=1e-4, atol=1e-4)


def make_attributes(kind: str = "item", **columns: Any) -> Attributes:
    frame = pd.DataFrame(columns)
    return Attributes(Vocabulary.of([f"x{n}" for n in range(len(frame))]), frame, kind)


def test_slots_by_hand() -> None:
    attributes = make_attributes(genres=["B|A", None, "A"], year=[1999.0, 2001.0, np.nan])
    fields = Fields.from_attributes(3, attributes, ("genres", "year"))
    # values 0 to 2 are the rows, 3 and 4 the genres A and B, 5 and 6 the years
    assert fields.widths == (1, 2, 1)
    assert fields.n_values == 7
    row_values = [
        {int(value): float(share) for value, share in zip(*row, strict=True) if share}
        for row in zip(fields.values, fields.shares, strict=True)
    ]
    assert row_values == [{0: 1, 3: 0.5, 4: 0.5, 5: 1}, {1: 1, 6: 1}, {2: 1, 3: 1}]


def test_auto_selects_columns_with_many_rows_per_value() -> None:
    attributes = make_attributes(
        title=[f"film {n}" for n in range(40)],
        genres=["A|B", "C"] * 20,
        year=[1990.0, 1991.0] * 20,
        price=np.arange(40) / 7,
        note=[None] * 40,
    )
    assert select_columns(attributes, "auto", "item_features") == ("genres", "year")
    assert select_columns(None, "auto", "item_features") == ()
    assert select_columns(attributes, "none", "item_features") == ()
    assert select_columns(attributes, ("title",), "item_features") == ("title",)

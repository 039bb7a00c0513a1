from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.models.neural import deepfm_tensors
from recbias.models.neural.deepfm_tensors import DeepFMTensors, Side
from recbias.models.neural.feature_fields import Fields
from recbias.models.neural.pair_network import pair_scores
from recbias.models.training.layers import Dense

CPU = torch.device("cpu")


def fields() -> tuple[Fields, Fields]:
    """Three users of two ages, four items of three genres."""
    ages, genres = {"age": [1.0, 2.0, 1.0]}, {"genres": ["A|B", "C", None, "B"]}
    users, items = (
        Attributes(Vocabulary.of([str(n) for n in range(len(rows))]), pd.DataFrame({name: rows}))
        for table in (ages, genres)
        for name, rows in table.items()
    )
    return Fields.of(3, users, ("age",)), Fields.of(4, items, ("genres",))


def doubles(tensors: DeepFMTensors, rng: np.random.Generator) -> list[Any]:
    return [
        torch.tensor(rng.normal(size=each.shape), requires_grad=True)
        for each in tensors.parameters()
    ]


def with_values(like: DeepFMTensors, values: Any) -> DeepFMTensors:
    """The same model of other tensors, in the order of its parameters."""
    vectors, weights, item_vectors, item_weights, offset, *layers = values
    users, items = (
        Side(table, biases, each.values, each.shares.to(table.dtype), each.widths)
        for table, biases, each in (
            (vectors, weights, like.users),
            (item_vectors, item_weights, like.items),
        )
    )
    deep = [Dense(*each) for each in zip(layers[::2], layers[1::2], strict=True)]
    return DeepFMTensors(users, items, offset, deep)


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    drawn = DeepFMTensors.drawn(fields(), (2, 3, 2), device=CPU, rng=rng)
    users, items = torch.tensor([0, 1, 2]), torch.tensor([0, 2, 3])

    def outcome(*values: Any) -> Any:
        parts = with_values(drawn, values).parts(users, items)
        return parts.logits.sigmoid().sum() + parts.squares.sum()

    assert torch.autograd.gradcheck(outcome, doubles(drawn, rng))


def test_parts_by_hand() -> None:
    # fields of the pair (user 1, item 0): user 1 with vector 2 and weight 1, age 2 with 3 and 10;
    # item 0 with 5 and 100; the mean of genre A with 1 and B with 3, and weights 0 and 2000
    users, items = fields()
    sides = (
        Side(
            torch.tensor([[0.0], [2], [0], [0], [3]]),
            torch.tensor([[0.0], [1], [0], [0], [10]]),
            torch.from_numpy(users.values),
            torch.from_numpy(users.shares[..., None]),
            users.widths,
        ),
        Side(
            torch.tensor([[5.0], [0], [0], [0], [1], [3], [0]]),
            torch.tensor([[100.0], [0], [0], [0], [0], [2000], [0]]),
            torch.from_numpy(items.values),
            torch.from_numpy(items.shares[..., None]),
            items.widths,
        ),
    )
    deep = [Dense(torch.tensor([[1.0], [10], [100], [1000]]), torch.tensor([0.5]))]
    tensors = DeepFMTensors(*sides, torch.tensor([0.25]), deep)
    parts = tensors.parts(torch.tensor([1]), torch.tensor([0]))
    # the products of all two fields: 2·5 + 2·2 + 3·5 + 3·2 across, 2·3 and 5·2 within
    assert parts.products.item() == 35
    assert parts.linear.item() == 0.25 + 1 + 10 + 100 + 1000 + 6 + 10
    assert parts.deep.item() == 2 + 30 + 500 + 2000 + 0.5
    assert parts.squares.item() == 4 + 9 + 25 + 4


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("hidden", [(), (6,), (6, 3)])
def test_blocks_of_scores_are_the_scores_of_pairs_but_for_the_users_own(
    known: bool,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deepfm_tensors, "ROWS_AT_ONCE", 2)
    sides = fields() if known else (Fields.of(3, None, ()), Fields.of(4, None, ()))
    drawn = DeepFMTensors.drawn(sides, (2, *hidden), device=CPU, rng=rng)
    tensors = with_values(drawn, [each.detach().float() for each in doubles(drawn, rng)])
    users, items = (torch.from_numpy(each.ravel()) for each in np.mgrid[:3, :4])
    pairs = tensors.parts(users, items).logits.numpy().reshape(3, 4)
    found = pair_scores(tensors.state(), np.arange(3))
    own = pairs[:, :1] - found[:, :1]
    np.testing.assert_allclose(found + own, pairs, rtol=1e-4, atol=1e-4)


def test_embeddings_are_sums_over_fields(rng: np.random.Generator) -> None:
    tensors = DeepFMTensors.drawn(fields(), (2, 3), device=CPU, rng=rng)
    values = tensors.items.vectors.detach().numpy()
    # item 0 and half of A and of B; item 2 has no genre
    found = tensors.state()["item_factors"]
    np.testing.assert_allclose(found[0], values[0] + values[4] / 2 + values[5] / 2, rtol=1e-6)
    np.testing.assert_allclose(found[2], values[2], rtol=1e-6)

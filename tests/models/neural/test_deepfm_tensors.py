from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.dataset import Attributes, Vocabulary
from recbias.models import deepfm
from recbias.models.deepfm import DeepFMTensors, Fields, _Side
from recbias.models.neumf import score_block
from recbias.models.training import Dense

CPU = torch.device("cpu")


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


def replace_parameters(tensors: DeepFMTensors, values: Any) -> DeepFMTensors:
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


def test_gradients_equal_finite_differences(rng: np.random.Generator) -> None:
    initial = DeepFMTensors.initialize(make_fields(), (2, 3, 2), device=CPU, rng=rng)
    users, items = torch.tensor([0, 1, 2]), torch.tensor([0, 2, 3])

    def sum_terms(*values: Any) -> Any:
        terms = replace_parameters(initial, values).compute_terms(users, items)
        return terms.logits.sigmoid().sum() + terms.squares.sum()

    assert torch.autograd.gradcheck(sum_terms, sample_parameters(initial, rng))


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
    monkeypatch.setattr(deepfm, "ROW_BLOCK", 2)
    sides = make_fields()
    if not has_attributes:
        sides = (Fields.from_attributes(3, None, ()), Fields.from_attributes(4, None, ()))
    initial = DeepFMTensors.initialize(sides, (2, *hidden), device=CPU, rng=rng)
    tensors = replace_parameters(
        initial, [value.detach().float() for value in sample_parameters(initial, rng)]
    )
    users, items = (torch.from_numpy(codes.ravel()) for codes in np.mgrid[:3, :4])
    pairs = tensors.compute_terms(users, items).logits.numpy().reshape(3, 4)
    scores = score_block(tensors.state(), np.arange(3))
    offsets = pairs[:, :1] - scores[:, :1]
    np.testing.assert_allclose(scores + offsets, pairs, rtol=1e-4, atol=1e-4)

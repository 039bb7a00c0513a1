from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.errors import Contradiction
from recbias.models.sequential import SASRec, UnseenItems, attend, create_dropout, see_items
from support.models.sequence_worlds import make_chain

MODEL = SASRec(embedding_size=4, layers=2, heads=2, max_length=5, dropout=0.5, device="cpu")
PAPER = replace(MODEL, normalize_inputs=False, shift_windows=False)
N_ITEMS = 7
each_form = pytest.mark.parametrize("model", [MODEL, PAPER], ids=["default", "paper"])


def make_parameters(model: SASRec, *, double: bool = False) -> dict[str, Any]:
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
    parameters = make_parameters(model)
    history = torch.tensor([[1, 2, 3, 4, 5]])
    vectors = model.encode_positions(parameters, history)
    for position in range(5):
        changed = history.clone()
        changed[0, position] = 6
        others = model.encode_positions(parameters, changed)
        is_equal = torch.isclose(vectors, others, atol=1e-6).all(dim=2)[0]
        assert is_equal.tolist() == [p < position for p in range(5)]


@pytest.mark.parametrize(("model", "expected"), [(MODEL, [-1, 1]), (PAPER, [1, -1])])
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
    parameters = {name: torch.zeros(shape) for name, shape in MODEL._list_shapes(N_ITEMS).items()}
    items, windows = torch.arange(6), [torch.tensor(codes) for codes in ([0, 1], [0, 4], [4, 2])]
    unseen = UnseenItems.from_interactions(make_chain(N_ITEMS, 3, 4)[0].train, "cpu")
    noise = torch.Generator().manual_seed(1)
    loss = MODEL._sum_losses(unseen, parameters, items, *windows, noise)
    assert loss.item() == pytest.approx(4 * np.log(7), rel=1e-5)
    # one negative a position: 4 times ln 2 for the next item and as much for the negative
    binary = replace(MODEL, loss="binary_cross_entropy", negatives=1)
    loss = binary._sum_losses(unseen, parameters, items, *windows, noise)
    assert loss.item() == pytest.approx(8 * np.log(2), rel=1e-5)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(Contradiction, match="3 heads cannot share vectors of 4") as error:
        SASRec(embedding_size=4, heads=3)
    assert error.value.where == "heads"
    with pytest.raises(Contradiction, match="negatives, which are 0") as error:
        SASRec(loss="binary_cross_entropy")
    assert error.value.where == "negatives"

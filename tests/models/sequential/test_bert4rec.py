from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.sequential import BERT4Rec

MODEL = BERT4Rec(embedding_size=4, layers=2, heads=2, max_length=5, dropout=0.0, device="cpu")
N_ITEMS = 7
PADDING, MASK = N_ITEMS, N_ITEMS + 1


def make_parameters(*, double: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    kind = torch.float64 if double else torch.float32
    return {
        name: torch.tensor(rng.normal(size=shape), dtype=kind, requires_grad=double)
        for name, shape in MODEL._list_shapes(N_ITEMS).items()
    }


def test_items_on_both_sides_are_read_and_a_masked_item_is_not() -> None:
    parameters = make_parameters()
    vectors = MODEL.encode_positions(parameters, torch.tensor([[1, 2, MASK, 4, 5]]))
    for position in (0, 1, 3, 4):
        changed = torch.tensor([[1, 2, MASK, 4, 5]])
        changed[0, position] = 6
        others = MODEL.encode_positions(parameters, changed)
        assert not torch.isclose(vectors[0, 2], others[0, 2], atol=1e-6).all()


def test_masks_have_the_stated_shares() -> None:
    is_item = torch.ones(20_000, 10, dtype=torch.bool)
    is_item[:, :4] = False  # padding
    noise = torch.Generator().manual_seed(4)
    model = replace(MODEL, mask_share=0.3, last_share=0.0)
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
    parameters = {name: torch.zeros(shape) for name, shape in MODEL._list_shapes(N_ITEMS).items()}
    items, windows = torch.arange(6), (torch.tensor([0, 4]), torch.tensor([4, 2]))
    for share, n_masked in ((1.0, 2), (0.0, 6)):
        model = replace(MODEL, mask_share=1.0, last_share=share)
        noise = torch.Generator().manual_seed(1)
        loss = model._sum_losses(parameters, items, *windows, noise)
        assert loss.item() == pytest.approx(n_masked * np.log(7), rel=1e-5)

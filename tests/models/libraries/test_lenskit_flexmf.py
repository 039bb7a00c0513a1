from __future__ import annotations

import numpy as np
import pytest

from recbias.models.lenskit import (
    LensKitFlexMFImplicit,
    to_lenskit_dataset,
    train_scorer,
)
from recbias.testing import make_checkerboard

SMALL = {"embedding_size": 8, "batch_size": 32}


@pytest.mark.parametrize("layers", [0, 2])
def test_scores_equal_those_of_the_library_up_to_a_constant_per_user(layers: int) -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.flexmf import FlexMFImplicitScorer

    data = make_checkerboard()
    scorer = FlexMFImplicitScorer(
        embedding_size=8, batch_size=32, epochs=2, convolution_layers=layers
    )
    train_scorer(scorer, data, np.random.default_rng(0))
    model = LensKitFlexMFImplicit(epochs=2, layers=layers, **SMALL)  # type: ignore[arg-type]
    ours = model.fit(data, np.random.default_rng(0)).scores(np.array([4], dtype=np.int32))[0]
    items = ItemList(
        item_nums=np.arange(data.train.n_items), vocabulary=to_lenskit_dataset(data.train).items
    )
    gap = ours - scorer(RecQuery(user_id=4), items).scores()
    assert np.ptp(gap) < 1e-5

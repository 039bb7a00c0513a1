from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recbias.core.dataset import Ids, Reviews, TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.models.text import (
    require_reviews,
)
from support.worlds.small_worlds import make_interactions

# item 1 has no training row: the classes are the items 0, 2 and 3
DATA = TrainingData(make_interactions([(0, 0), (0, 2), (1, 3)], n_items=4))


def make_texts(*texts: str) -> Ids:
    return np.array(texts, dtype=object)


def make_reviews(*items: int) -> Reviews:
    codes = np.array(items, dtype=np.int32)
    return Reviews(np.zeros_like(codes), codes, make_texts(*(f"of {item}" for item in items)))


def test_training_reviews_are_required() -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        require_reviews(DATA)
    with pytest.raises(NothingLeft, match="no review"):
        require_reviews(replace(DATA, reviews=make_reviews()))
    assert len(require_reviews(replace(DATA, reviews=make_reviews(0, 2, 2)))) == 3

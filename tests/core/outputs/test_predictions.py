from __future__ import annotations

import numpy as np

from recbias.core.evidence import Predictions


def test_the_length_is_the_number_of_texts() -> None:
    ids = np.array(["a", "b"], dtype=object)
    items, ranked = np.array([0, 1], dtype=np.int32), np.array([[0, 1], [0, 1]], dtype=np.int32)
    assert len(Predictions(ids, items, ranked)) == 2

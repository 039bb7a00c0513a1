from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from recbias.models.ranking.sparse_state import arrays_of, matrix_of


def test_a_matrix_comes_back_whole(rng: np.random.Generator) -> None:
    matrix = csr_array((rng.random((7, 4)) < 0.4).astype(np.float32))
    again = matrix_of(arrays_of(matrix))
    assert again.shape == (7, 4)
    assert np.array_equal(again.toarray(), matrix.toarray())


def test_an_empty_matrix_keeps_its_shape() -> None:
    assert matrix_of(arrays_of(csr_array((3, 5), dtype=np.float32))).shape == (3, 5)

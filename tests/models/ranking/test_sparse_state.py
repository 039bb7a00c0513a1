from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from recbias.models.fitted import restore_matrix, store_matrix


def test_matrix_is_restored(rng: np.random.Generator) -> None:
    matrix = csr_array((rng.random((7, 4)) < 0.4).astype(np.float32))
    restored = restore_matrix(store_matrix(matrix))
    assert restored.shape == (7, 4)
    assert np.array_equal(restored.toarray(), matrix.toarray())


def test_empty_matrix_keeps_its_shape() -> None:
    assert restore_matrix(store_matrix(csr_array((3, 5), dtype=np.float32))).shape == (3, 5)

from __future__ import annotations

import numpy as np
import pytest

from recbias.core.dataset import freeze


def test_a_frozen_array_cannot_be_written() -> None:
    array = freeze(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0

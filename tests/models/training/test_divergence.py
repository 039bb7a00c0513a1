from __future__ import annotations

from typing import Any

import pytest

from recbias.core.errors import OutOfRange
from recbias.models.training import (
    Schedule,
    validate_learning_rate,
)


def create_schedule(**changes: Any) -> Schedule:
    defaults: dict[str, Any] = {"name": "M", "epochs": 9, "batch_size": 4096, "learning_rate": 0.1}
    return Schedule(**(defaults | changes))


def test_learning_rate_that_is_zero_in_float32_raises() -> None:
    validate_learning_rate(create_schedule(learning_rate=1e-40))  # a subnormal number
    with pytest.raises(OutOfRange, match="1e-60 is 0 in float32"):
        validate_learning_rate(create_schedule(learning_rate=1e-60))

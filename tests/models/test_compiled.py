from __future__ import annotations

from typing import Any

import numpy as np

from recbias.models.compiled import compiled


def summed(values: Any) -> Any:
    total = 0.0
    for place in range(values.size):
        total += values[place]
    return total


def test_a_loop_gives_what_it_gives_uncompiled() -> None:
    values = np.arange(10.0)
    assert compiled(summed)(values) == summed(values) == 45
    assert compiled(summed) is compiled(summed)


def test_what_is_not_finite_stays_so() -> None:
    assert np.isnan(compiled(summed)(np.array([1.0, np.nan])))
    assert compiled(summed)(np.array([1.0, np.inf])) == np.inf


def test_what_cannot_be_kept_is_compiled_all_the_same() -> None:
    # code that comes from no file has no place beside it
    found: dict[str, Any] = {}
    exec(compile("def twice(x):\n    return 2 * x\n", "<nowhere>", "exec"), found)
    assert compiled(found["twice"])(4) == 8

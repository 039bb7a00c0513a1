from __future__ import annotations

import numpy as np

from recbias.runner.environment import environment, forget_peak, peak_memory_mb


def test_the_environment_names_versions_and_no_secret() -> None:
    found = environment()
    assert found["python"]
    assert isinstance(found["libraries"], dict)
    assert found["libraries"]["numpy"] == np.__version__


def test_the_peak_grows_with_what_is_held_and_can_be_forgotten() -> None:
    forget_peak()
    before = peak_memory_mb()
    held = np.ones(40 * 2**20 // 8)
    grown = peak_memory_mb()
    assert grown > before + 30
    assert held.sum() > 0
    del held
    forget_peak()
    assert peak_memory_mb() <= grown

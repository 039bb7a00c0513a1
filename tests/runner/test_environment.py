from __future__ import annotations

import numpy as np

from recbias.runner.address import describe_environment


def test_the_environment_lists_library_versions() -> None:
    environment = describe_environment()
    assert environment["python"]
    assert isinstance(environment["libraries"], dict)
    assert environment["libraries"]["numpy"] == np.__version__

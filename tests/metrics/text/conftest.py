"""Fixtures of the metric tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recbias.core.context import collect_warnings


@pytest.fixture
def stage_warnings() -> Iterator[list[str]]:
    """Collect the warnings of the test, as a stage does."""
    with collect_warnings() as messages:
        yield messages

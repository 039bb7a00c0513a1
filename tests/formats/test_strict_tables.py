from __future__ import annotations

import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.delimited.layout import SKIPPING
from recbias.formats.strict_tables import every_line


@pytest.mark.parametrize(
    ("before", "after"), [(SKIPPING, "mend the line"), ("keep one row", "keep one row")]
)
def test_nobody_is_told_to_skip_lines(before: str, after: str) -> None:
    with pytest.raises(MalformedLine) as caught, every_line():
        raise MalformedLine("2 cells instead of 3", where="a.csv:7", remedy=before)
    assert str(caught.value) == "a.csv:7: 2 cells instead of 3"
    assert caught.value.remedy == after

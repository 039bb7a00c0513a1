from __future__ import annotations

import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.delimited.layout import SKIP_HINT
from recbias.formats.strict_tables import require_every_line


@pytest.mark.parametrize(
    ("remedy", "expected"), [(SKIP_HINT, "correct the line"), ("keep one row", "keep one row")]
)
def test_errors_do_not_suggest_skipping_lines(remedy: str, expected: str) -> None:
    with pytest.raises(MalformedLine) as caught, require_every_line():
        raise MalformedLine("2 cells instead of 3", where="a.csv:7", remedy=remedy)
    assert str(caught.value) == "a.csv:7: 2 cells instead of 3"
    assert caught.value.remedy == expected

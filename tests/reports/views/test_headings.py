from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.wording import make_heading


@given(st.text(alphabet="ab=(),@10& []", max_size=30))
def test_any_title_has_a_heading(title: str) -> None:
    assert isinstance(make_heading(title), str)

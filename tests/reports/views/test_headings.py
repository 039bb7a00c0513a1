from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.wording import make_heading


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("nDCG", "nDCG"),
        ("nDCG(by=gender)@10", "nDCG@10 by gender"),
        ("nDCG(by=gender, gap=ratio)@10", "nDCG@10, ratio of groups by gender"),
        ("nDCG(by=age in [1, 2], gap=std)", "nDCG, standard deviation of groups by age in [1, 2]"),
        (
            "REC-ST(label=truth.gender, by=gender, gap=difference)@10",
            "REC-ST@10 (label truth.gender), gap by gender",
        ),
        (
            "association(label=age, attribute=price)@5",
            "association@5 (label age, attribute price)",
        ),
        ("my own (draft) metric@5", "my own (draft) metric@5"),
        ("unbalanced(a=1", "unbalanced(a=1"),
        ("", ""),
    ],
)
def test_settings_become_a_readable_heading(title: str, heading: str) -> None:
    assert make_heading(title) == heading


@given(st.text(alphabet="ab=(),@10& []", max_size=30))
def test_any_title_has_a_heading(title: str) -> None:
    assert isinstance(make_heading(title), str)

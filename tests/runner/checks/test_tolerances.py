from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import OutOfRange, UnknownName, UserError, WrongType
from recbias.core.measures import Direction
from recbias.runner.gates import (
    Tolerance,
    Tolerances,
    is_within,
    measure_distance,
    measure_worsening,
    parse_tolerance,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.05", Tolerance("", 0.05)),
        ("0", Tolerance("", 0.0)),
        ("nDCG=0.01", Tolerance("nDCG", 0.01)),
        ("nDCG(by=age >= 25, gap=std)@10=1e-3", Tolerance("nDCG(by=age >= 25, gap=std)@10", 1e-3)),
    ],
)
def test_a_tolerance_is_a_number_with_or_without_its_metric(
    text: str, expected: Tolerance
) -> None:
    assert parse_tolerance(text) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("nDCG", WrongType), ("nDCG=", WrongType), ("", WrongType), ("nDCG=x", WrongType)),
        *(("-1", OutOfRange), ("nDCG=nan", OutOfRange), ("inf", OutOfRange)),
    ],
)
def test_other_text_is_refused(text: str, kind: type[UserError]) -> None:
    with pytest.raises(kind):
        parse_tolerance(text)


def test_the_most_specific_name_of_a_metric_counts() -> None:
    tolerances = Tolerances([*map(parse_tolerance, ("0.1", "ndcg=0.2", "nDCG@5=0.3"))])
    assert tolerances.find_limit(["nDCG@5", "nDCG"]) == 0.3
    assert tolerances.find_limit(["nDCG@10", "nDCG"]) == 0.2
    assert tolerances.find_limit(["HR@10", "HR"]) == 0.1
    assert Tolerances([Tolerance("HR", 0.1)]).find_limit(["nDCG"]) == math.inf


def test_a_tolerance_of_an_unknown_metric_is_refused() -> None:
    with pytest.raises(UnknownName) as caught:
        Tolerances([Tolerance("nDGC", 0.1)]).require_known(["nDCG", "HR"])
    assert caught.value.lines() == [
        "error: --fail-over: no compared metric is called 'nDGC'",
        "help: did you mean nDCG?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "direction", "expected"),
    [
        (0.5, 0.25, "higher", 0.25),
        (0.25, 0.5, "higher", -0.25),
        (0.25, 0.5, "lower", 0.25),
        (-0.5, 0.25, "zero", -0.25),  # 0.5 from 0, then 0.25
        (-0.25, 0.75, "none", 0.5),
        (0.5, math.nan, "higher", math.inf),
        (math.nan, 0.5, "higher", 0.0),
        (math.nan, math.nan, "lower", 0.0),
    ],
)
def test_worsening_is_the_change_in_the_bad_direction(
    old: float, new: float, direction: Direction, expected: float
) -> None:
    assert measure_worsening(old, new, direction) == expected


directions: st.SearchStrategy[Direction] = st.sampled_from(["higher", "lower", "zero", "none"])
numbers = st.floats(-10, 10)


@given(old=numbers, new=numbers, direction=directions)
def test_a_change_and_its_reverse_are_never_both_worse(
    old: float, new: float, direction: Direction
) -> None:
    there, back = (measure_worsening(*pair, direction) for pair in ((old, new), (new, old)))
    assert there == -back
    assert there <= abs(new - old) + 1e-12


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(0.5, 0.75, 0.25), (math.nan, math.nan, 0.0), (math.nan, 0.5, math.inf)],
)
def test_value_undefined_on_one_side_differs_infinitely(
    a: float, b: float, expected: float
) -> None:
    assert measure_distance(a, b) == expected
    assert is_within(measure_distance(a, b), 0.25) == (expected < 1)

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.queries.groups import Groups, group_by
from recbias.statistics.group_gaps import MOST_PAIRS, by_group, gap


def figure(values: list[float]) -> Measurement:
    ids = np.array([f"u{each}" for each in range(len(values))], dtype=object)
    return Measurement.from_units(UnitScores("user", ids, np.array(values)))


def grouped(labels: Sequence[str | None]) -> Groups:
    ids = Vocabulary.of([str(each) for each in range(len(labels))])
    return group_by(Attributes(ids, pd.DataFrame({"g": labels}), "query"), "g")


def drawn() -> np.random.Generator:
    return np.random.default_rng(5)


def test_each_group_has_its_mean_and_its_counts() -> None:
    # F: 0.5, 1.0, NaN -> mean 0.75 of 2, 1 undefined;  M: 0.25 -> 0.25 of 1;  no label: left out
    found = by_group(figure([0.5, 1.0, math.nan, 0.25, 9.0]), grouped(["F", "F", "F", "M", None]))
    assert [(each.group, each.value, each.n, each.undefined) for each in found] == [
        ("g=F", 0.75, 2, 1),
        ("g=M", 0.25, 1, 0),
    ]
    assert found[0].units is not None
    assert found[0].units.ids.tolist() == ["u0", "u1", "u2"]
    assert [(each.a, each.b) for each in found[0].contrasts] == [("g=F", "g=M")]
    assert math.isnan(found[0].contrasts[0].p)


def test_gaps_by_hand() -> None:
    # means 0.2, 0.5, 0.8: difference 0.6, ratio 0.25, std 0.3
    values, labels = [0.1, 0.3, 0.4, 0.6, 0.7, 0.9], list("aabbcc")
    groups = grouped(list(labels))
    for kind, value in (("difference", 0.6), ("ratio", 0.25), ("std", 0.3)):
        found = gap(figure(values), groups, kind, rng=drawn())  # type: ignore[arg-type]
        assert found.value == pytest.approx(value)
        assert found.n == 6
        assert math.isnan(found.ci_low)
        assert found.replicates is None


def test_of_three_groups_the_test_is_that_all_have_one_mean() -> None:
    groups = grouped(list("aabbcc"))
    (test,) = gap(
        figure([0.1, 0.3, 0.4, 0.6, 0.7, 0.9]), groups, "difference", rng=drawn()
    ).contrasts
    assert (test.test, test.a, test.b, test.n) == ("welch_anova", "g=c", "g=a", 6)
    # each variance 0.02: F = (2 * (0.3^2 + 0.3^2) / 0.02 / 2) / (1 + 2/8 * 3 * (2/3)^2 / 1) = 6.75
    assert test.statistic == pytest.approx(6.75)
    assert gap(figure([0.1] * 6), groups, "std", rng=drawn()).contrasts == ()


def test_of_two_groups_there_is_an_interval() -> None:
    found = gap(figure([0.1, 0.3, 0.4, 0.6]), grouped(list("aabb")), "difference", rng=drawn())
    assert found.ci_low < found.value < found.ci_high
    assert found.replicates is not None


def test_a_ratio_to_nothing_has_no_interval() -> None:
    found = gap(figure([0.0, 0.0, 0.4, 0.6]), grouped(list("aabb")), "ratio", rng=drawn())
    assert found.value == 0.0
    assert math.isnan(found.ci_low)


def test_one_group_or_an_empty_one_has_no_gap() -> None:
    assert math.isnan(
        gap(figure([1.0, 2.0]), grouped(["a", "a"]), "difference", rng=drawn()).value
    )
    found = gap(figure([1.0, math.nan]), grouped(["a", "b"]), "difference", rng=drawn())
    assert math.isnan(found.value)
    assert (found.n, found.undefined) == (0, 2)


def test_a_group_of_one_has_no_interval() -> None:
    found = gap(figure([1.0, 2.0, 3.0]), grouped(["a", "a", "b"]), "difference", rng=drawn())
    assert found.value == 1.5
    assert math.isnan(found.ci_low)


def test_a_ratio_of_negative_means_is_undefined() -> None:
    found = gap(figure([-1.0, -1.0, 1.0, 1.0]), grouped(list("aabb")), "ratio", rng=drawn())
    assert math.isnan(found.value)


def test_the_interval_holds_a_planted_difference() -> None:
    rng = np.random.default_rng(0)
    labels = grouped(["a"] * 80 + ["b"] * 60)
    held = 0
    for _ in range(200):
        values = np.concatenate([rng.normal(0.2, 0.1, 80), rng.normal(0.5, 0.2, 60)])
        found = gap(figure(values.tolist()), labels, "difference", rng=drawn(), n_samples=300)
        held += found.ci_low <= 0.3 <= found.ci_high
    assert 180 <= held <= 199  # 95% of 200 is 190; four standard errors are 12


def test_without_a_difference_one_test_in_twenty_is_significant() -> None:
    rng = np.random.default_rng(1)
    labels = grouped(["a"] * 40 + ["b"] * 25)
    p = [by_group(figure(rng.random(65).tolist()), labels)[0].contrasts[0].p for _ in range(600)]
    assert 0.02 <= np.mean(np.array(p) < 0.05) <= 0.085


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from("ab")), min_size=6, max_size=30))
def test_shifting_and_scaling(rows: list[tuple[float, str]]) -> None:
    values, labels = [each for each, _ in rows], [each for _, each in rows]
    groups = grouped(list(labels))
    one = gap(figure(values), groups, "difference", rng=drawn(), n_samples=20)
    two = gap(figure([2 * each + 3 for each in values]), groups, "difference", rng=drawn())
    if math.isnan(one.value):
        assert math.isnan(two.value)
    else:
        assert two.value == pytest.approx(2 * one.value, abs=1e-9)


def test_a_label_with_very_many_values_is_not_tested() -> None:
    n = int(math.sqrt(2 * MOST_PAIRS)) + 2
    found = by_group(
        figure([float(each) for each in range(n)]), grouped([f"g{i}" for i in range(n)])
    )
    assert found[0].contrasts == ()


def test_a_figure_without_units_is_refused() -> None:
    with pytest.raises(ValueError, match="no groups"):
        by_group(Measurement(1.0, 1, 0), grouped(["a"]))

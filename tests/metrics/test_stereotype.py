from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence
from recbias.data.demo import Demo
from recbias.data.movielens import MovieLens1M
from recbias.detectors.names import Names
from recbias.metrics.labels import HitBad, MrrBad, RecST
from support.worlds.evidence_worlds import make_evidence, make_lists, make_vocabulary

NAN = math.nan

# item:    0    1    2    3    4    5    6
# label:   1    0    1    0    -    0    1     graded: 0.9 0.2 0.5 0 - 0.1 1
LABEL = [1.0, 0.0, 1.0, 0.0, NAN, 0.0, 1.0]
GRADE = [0.9, 0.2, 0.5, 0.0, NAN, 0.1, 1.0]


def make_catalogue(**columns: Any) -> Attributes:
    frame = pd.DataFrame({"bad": LABEL, "grade": GRADE, **columns})
    return Attributes(make_vocabulary("i", 7), frame)


def make_facts(lists: list[list[int]], **fields: Any) -> Evidence:
    return make_evidence(
        make_lists(lists, outside=["new"]), **{"n_items": 7, "items": make_catalogue(), **fields}
    )


def measure_values(metric: Any, lists: list[list[int]]) -> list[float]:
    (measurement,) = metric.measure(make_facts(lists))
    return measurement.units.values.tolist()  # type: ignore[no-any-return]


LISTS = [[0, 1, 2], [1, 3, 6], [1, 3, 5], [2, 0, 6]]


def test_hit_bad_by_hand() -> None:
    assert measure_values(HitBad(label="bad"), LISTS) == [1, 1, 0, 1]
    assert measure_values(HitBad(label="bad", k=2), LISTS) == [1, 0, 0, 1]


def test_mrr_bad_by_hand() -> None:
    # the first stereotyped item is at rank 1, 3, nowhere, 1
    assert measure_values(MrrBad(label="bad"), LISTS) == [1, 1 / 3, 0, 1]
    assert measure_values(MrrBad(label="bad", k=2), LISTS) == [1, 0, 0, 1]


def test_rec_st_by_hand() -> None:
    # weights 3, 2, 1 of 6 in all: (3 + 1) / 6, 1 / 6, 0, 6 / 6
    assert measure_values(RecST(label="bad"), LISTS) == pytest.approx([2 / 3, 1 / 6, 0, 1])
    # weights 2, 1 of 3
    assert measure_values(RecST(label="bad", k=2), LISTS) == pytest.approx([2 / 3, 0, 0, 1])


def test_grades_count_above_0_or_from_a_threshold_on() -> None:
    lists = [[3, 5, 2], [3, 0, 1]]  # grades 0, 0.1, 0.5 and 0, 0.9, 0.2
    assert measure_values(HitBad(label="grade"), lists) == [1, 1]
    assert measure_values(MrrBad(label="grade"), lists) == [1 / 2, 1 / 2]
    assert measure_values(MrrBad(label="grade", threshold=0.5), lists) == [1 / 3, 1 / 2]
    assert measure_values(HitBad(label="grade", threshold=0.7), lists) == [0, 1]
    # (2 * 0.1 + 1 * 0.5) / 6 and (2 * 0.9 + 0.2) / 6
    assert measure_values(RecST(label="grade"), lists) == pytest.approx([0.7 / 6, 2 / 6])
    assert measure_values(RecST(label="grade", threshold=0.5), lists) == pytest.approx(
        [1 / 6, 2 / 6]
    )


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@pytest.mark.parametrize("stranger", [4, 7], ids=["missing label", "outside the catalogue"])
def test_items_without_a_label_are_left_out_and_said(stranger: int) -> None:
    lists = [[stranger, 0, 1], [1, stranger, 3], [stranger, 1, 3]]
    with collect_warnings() as warnings:
        assert measure_values(HitBad(label="bad"), lists) == [1, 0, 0]
    message = "positions of the lists hold an item without the label 'bad' and are excluded"
    assert warnings == [f"the metric: 3 {message}"]
    # ranks stay: the first stereotyped item is at rank 2
    assert measure_values(MrrBad(label="bad"), lists) == [1 / 2, 0, 0]
    # the weight of the place goes out of the denominator: 2 / (6 - 3)
    assert measure_values(RecST(label="bad"), lists) == pytest.approx([2 / 3, 0, 0])
    full = [[stranger, 0, 2], [0, 2, stranger]]
    assert measure_values(RecST(label="bad"), full) == [1, 1]


def draw_lists(n_items: int, rng: np.random.Generator, n: int = 2_000) -> list[list[int]]:
    chances = rng.random((n, n_items))
    return np.argpartition(chances, 10, axis=1)[:, :10].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8])
def test_random_lists_of_the_demo_world_have_the_share_that_is_planted(
    share: float, rng: np.random.Generator
) -> None:
    items = Demo(stereotyped=share).load(Path(), rng).items
    assert items is not None
    lists = make_lists(draw_lists(300, rng))
    of = make_evidence(lists, n_items=300, items=items)
    (measurement,) = RecST(label="stereotype").measure(of)
    # the spread of a list is sqrt(share (1 - share) 385 / 55²), or 0.36 sqrt(share (1 - share))
    error = 0.36 * math.sqrt(share * (1 - share) / 2_000)
    assert measurement.value == pytest.approx(share, abs=4 * error)
    assert measurement.ci_high - measurement.ci_low == pytest.approx(2 * 1.96 * error, rel=0.1)
    # a list of 10 of 300 has none with about (1 - share)^10
    (hit,) = HitBad(label="stereotype").measure(of)
    assert hit.value == pytest.approx(1 - (1 - share) ** 10, abs=0.03)


@pytest.mark.real_data
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_lists_of_movielens_have_the_share_of_labelled_films(
    real_data: Path, rng: np.random.Generator
) -> None:
    items = MovieLens1M(side=("cast",)).load(real_data, rng).items
    assert items is not None
    labels = Names(from_="cast").label(items, rng)["gender"]
    labelled = Attributes(items.ids, items.frame.assign(gender=labels))
    lists = make_lists(draw_lists(len(labels), rng))
    of = make_evidence(lists, n_items=len(labels), items=labelled)
    (measurement,) = RecST(label="gender").measure(of)
    assert measurement.value == pytest.approx(labels.mean(), abs=0.02)

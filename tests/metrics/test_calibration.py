from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Interactions
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn, WrongType
from recbias.core.evidence import Evidence
from recbias.metrics import calibration
from recbias.metrics.calibration import CalibrationJS, CalibrationKL
from support.worlds.evidence_worlds import (
    make_evidence,
    make_lists,
    make_user_queries,
    make_vocabulary,
)
from support.worlds.evidence_worlds import measure_queries as measure

METRICS = (CalibrationKL, CalibrationJS)
GENRES = ["A", "A|B", "B", "C", None, "A"]
"""Item 4 has no genre."""


def make_train(histories: list[dict[int, float]], n_items: int = 6) -> Interactions:
    """Return histories as ratings by item."""
    rows = [(user, *pair) for user, items in enumerate(histories) for pair in items.items()]
    users, items, ratings = zip(*rows, strict=True) if rows else ((), (), ())
    return Interactions(
        np.array(users, dtype=np.int32),
        np.array(items, dtype=np.int32),
        np.array(ratings, dtype=np.float32),
        None,
        make_vocabulary("u", len(histories)),
        make_vocabulary("i", n_items),
    )


def make_world(
    lists: list[list[int]], histories: list[dict[int, float]], **columns: Any
) -> Evidence:
    frame = pd.DataFrame({"genre": GENRES, **columns})
    return make_evidence(
        make_lists(lists, outside=["new"]),
        n_items=6,
        train=make_train(histories),
        items=Attributes(make_vocabulary("i", 6), frame),
    )


def test_kl_by_hand() -> None:
    # history A, A|B, B, A: p = (2.5, 1.5) / 4;  list A, C: q = (0.5, 0, 0.5)
    # 0.625 ln(0.625 / 0.50125) + 0.375 ln(0.375 / 0.00375) = 0.137904 + 1.726939
    evidence = make_world([[0, 3]], [{0: 1, 1: 1, 2: 1, 5: 1}])
    p_a, p_b = 0.625, 0.375
    q_a, q_b = 0.99 * 0.5 + 0.01 * p_a, 0.01 * p_b
    expected = p_a * math.log(p_a / q_a) + p_b * math.log(p_b / q_b)
    assert measure(CalibrationKL(attribute="genre"), evidence) == pytest.approx(
        [expected], abs=1e-9
    )
    assert expected == pytest.approx(1.864843, abs=1e-6)


def test_js_by_hand() -> None:
    # weights 1 and 1/2: q = (A 2/3, C 1/3);  history B: p = (B 1)
    assert measure(CalibrationJS(attribute="genre"), make_world([[0, 3]], [{2: 1}])) == [1.0]
    # history A, B: p = (1/2, 1/2);  q = (2/3, 0, 1/3);  m = (7/12, 1/4, 1/6)
    p_part = 0.5 * math.log2(0.5 / (7 / 12)) + 0.5 * math.log2(2)
    q_part = 2 / 3 * math.log2((2 / 3) / (7 / 12)) + 1 / 3 * math.log2(2)
    evidence = make_world([[0, 3]], [{0: 1, 2: 1}])
    assert measure(CalibrationJS(attribute="genre"), evidence) == pytest.approx(
        [(p_part + q_part) / 2], abs=1e-9
    )


def test_a_list_in_the_proportions_of_the_history_is_calibrated() -> None:
    evidence = make_world([[5, 2]], [{0: 3, 2: 5}])
    assert measure(CalibrationKL(attribute="genre"), evidence) == pytest.approx([0.0], abs=1e-12)
    equal_ranks = CalibrationJS(attribute="genre", discount="none")
    assert measure(equal_ranks, evidence) == pytest.approx([0.0], abs=1e-12)
    assert measure(CalibrationJS(attribute="genre"), evidence)[0] > 0


def test_ratings_and_ranks_are_weights() -> None:
    # ratings 1 and 3: p = (1/4, 3/4);  weights 1 and 1 / log2(3): q in that proportion
    evidence = make_world([[0, 2]], [{5: 1, 2: 3}])
    second = 1 / math.log2(3)
    q = np.array([1, second]) / (1 + second)
    metric = CalibrationKL(attribute="genre", weight="rating", discount="log", smoothing=0.2)
    expected = entropy([0.25, 0.75], 0.8 * q + 0.2 * np.array([0.25, 0.75]))
    assert measure(metric, evidence) == pytest.approx([expected], abs=1e-9)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@pytest.mark.parametrize("metric", METRICS)
def test_histories_and_lists_without_the_attribute_are_undefined_and_counted(metric: Any) -> None:
    histories: list[dict[int, float]] = [{4: 1}, {0: 1}, {0: 1}, {0: 1}, {5: 1}]
    lists = [[0], [4], [], [6], [0, 4]]
    with collect_warnings() as warnings:
        (measurement,) = metric(attribute="genre").measure(make_world(lists, histories))
    assert measurement.value == pytest.approx(0.0, abs=1e-12)
    assert (measurement.n, measurement.undefined) == (1, 4)
    message = "positions of the lists hold an item without the attribute 'genre' and are excluded"
    assert warnings == [f"the metric: 3 {message}"]


@pytest.mark.parametrize("metric", METRICS)
def test_a_query_that_is_no_user_has_no_history(metric: Any) -> None:
    evidence = make_evidence(
        make_lists([[0]]),
        n_items=6,
        train=make_train([{0: 1}]),
        items=Attributes(make_vocabulary("i", 6), pd.DataFrame({"genre": GENRES})),
        queries=make_user_queries(1, users=[-1]),
    )
    assert math.isnan(measure(metric(attribute="genre"), evidence)[0])


@pytest.mark.parametrize("metric", METRICS)
def test_queries_of_some_users_have_the_histories_of_those(metric: Any) -> None:
    lists, histories = [[0, 2], [1, 3], [0, 3]], [{0: 1.0, 1: 2.0}, {2: 1.0}, {0: 1.0, 3: 1.0}]
    every = measure(metric(attribute="genre"), make_world(lists, histories))
    some = make_evidence(
        make_lists([lists[2], lists[0], lists[1]]),
        n_items=6,
        train=make_train(histories),
        items=Attributes(make_vocabulary("i", 6), pd.DataFrame({"genre": GENRES})),
        queries=make_user_queries(3, users=[2, 0, -1]),
    )
    values = measure(metric(attribute="genre"), some)
    assert values == pytest.approx([every[2], every[0], math.nan], nan_ok=True)


def test_a_graded_label_counts_by_its_degree() -> None:
    # history 0.5: p = (0.5, 0.5); list 1 and 0.5: q = (0.75, 0.25)
    label = [1.0, 0.5, 0.5, math.nan, 0.0, 0.2]
    evidence = make_world([[0, 1]], [{2: 1}], label=label)
    metric = CalibrationJS(attribute="label", discount="none")
    expected = jensenshannon([0.5, 0.5], [0.75, 0.25], base=2) ** 2
    assert measure(metric, evidence) == pytest.approx([expected], abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("attribute", "error", "message"),
    [
        ("genres", UnknownColumn, "no column 'genres'"),
        ("price", WrongType, "'price' holds numbers that are no categories"),
        ("empty", NothingLeft, "no item has 'empty'"),
    ],
)
def test_an_attribute_without_categories_is_refused_before_training(
    metric: Any, attribute: str, error: type[Exception], message: str
) -> None:
    evidence = make_world([[0]], [{0: 1}], price=[1.5, 2, 3, 4, 5, 6], empty=[math.nan] * 6)
    for step in (metric(attribute=attribute).check, metric(attribute=attribute).measure):
        with pytest.raises(error, match=message) as caught:
            step(evidence)
        assert caught.value.where == "attribute"  # type: ignore[attr-defined]


def test_negative_ratings_cannot_be_weights() -> None:
    with pytest.raises(OutOfRange, match="a rating is -2") as caught:
        measure(CalibrationKL(attribute="genre", weight="rating"), make_world([[0]], [{0: -2}]))
    assert caught.value.remedy == "choose weight: equal"


def sample_world(seed: int) -> tuple[Evidence, list[list[int]], list[dict[int, float]]]:
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(6)[: rng.integers(1, 6)].tolist() for _ in range(8)]
    histories = [
        {int(item): float(rng.integers(1, 6)) for item in rng.permutation(6)[: rng.integers(1, 6)]}
        for _ in range(8)
    ]
    return make_world(lists, histories), lists, histories


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_those_of_scipy(seed: int) -> None:
    evidence, lists, histories = sample_world(seed)
    metrics = CalibrationKL(attribute="genre"), CalibrationJS(attribute="genre", weight="rating")
    kl, js = (measure(metric, evidence) for metric in metrics)

    def share(weights: dict[int, float]) -> Any:
        shares = np.zeros(3)
        for item, weight in weights.items():
            for value in (GENRES[item] or "").split("|"):
                if value:
                    shares["ABC".index(value)] += weight / len((GENRES[item] or "").split("|"))
        return shares / shares.sum() if shares.sum() else np.full(3, np.nan)

    for row, (listed, history) in enumerate(zip(lists, histories, strict=True)):
        p, q = share(dict.fromkeys(history, 1.0)), share(dict.fromkeys(listed, 1.0))
        assert kl[row] == pytest.approx(entropy(p, 0.99 * q + 0.01 * p), abs=1e-9, nan_ok=True)
        p, q = share(history), share({item: 1 / (r + 1) for r, item in enumerate(listed)})
        distance = np.nan if np.isnan(p + q).any() else jensenshannon(p, q, base=2)
        assert js[row] == pytest.approx(distance**2, abs=1e-9, nan_ok=True)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@pytest.mark.parametrize("metric", METRICS)
def test_sparse_shares_of_many_values_give_the_same_values(
    metric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = [sample_world(seed)[0] for seed in range(10)]
    of_arrays = [measure(metric(attribute="genre"), evidence) for evidence in worlds]
    monkeypatch.setattr(calibration, "DENSE_VALUES", 0)
    of_sparse = [measure(metric(attribute="genre"), evidence) for evidence in worlds]
    np.testing.assert_allclose(of_sparse, of_arrays, rtol=1e-12, atol=1e-15)

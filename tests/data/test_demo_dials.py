"""The settings of the demo dataset that plant a difference: what they change and what they do not.

Their effects on the picks are measured in ``test_demo_effects``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.dataset import Dataset
from recbias.core.errors import OutOfRange, UserError
from recbias.data.demo import Demo
from support.specs import make_small_spec


def sample_demo(seed: int = 1, **settings: Any) -> Dataset:
    return Demo(**settings).load(Path(), np.random.default_rng(seed))


def test_cohort_b_has_its_share_of_users_and_shorter_histories() -> None:
    world = sample_demo(n_users=4001, n_items=400, cohort_length=0.7, cohort_share=0.25)
    assert world.users is not None
    in_b = world.users.frame["cohort"].to_numpy() == "B"
    assert in_b.sum() == 1000
    counts = world.interactions.user_counts()
    assert counts[in_b].mean() / counts[~in_b].mean() == pytest.approx(np.exp(-0.7), rel=0.05)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"n_items": 40, "stereotyped": 0.01}, "stereotyped"),  # round(0.4) = 0 items
        ({"n_items": 40, "stereotyped": 0.99}, "stereotyped"),
        ({"n_items": 40, "misleading": 0.01}, "misleading"),
        ({"n_items": 10, "provider": 1.0}, "studios"),  # 20 studios
        ({"studios": 1, "provider": 1.0}, "provider"),
        ({"n_users": 1}, "preference"),
        ({"n_users": 1, "preference": 0, "cohort_noise": 0.5}, "cohort_noise"),
        ({"n_users": 10_000_000, "n_items": 1_000_000}, "n_users"),  # 10^13 pairs
        ({"n_users": 10_000_000, "n_items": 1_000}, "per_user"),  # 4 * 10^8 interactions
    ],
)
def test_a_size_that_cannot_be_sampled_or_hold_a_difference_is_refused(
    settings: dict[str, Any], where: str, tmp_path: Path
) -> None:
    with pytest.raises(OutOfRange) as caught:
        Demo(**settings)
    assert caught.value.where == where
    assert caught.value.remedy
    spec = make_small_spec(dataset={"name": "demo", **settings})
    with pytest.raises(UserError, match=rf"dataset\.{where}: "):
        recbias.plan(spec, out=tmp_path)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Return the values of a world without differences, of one with them, and of pure noise."""
    world = {"name": "demo", "n_users": 400, "n_items": 100, "per_user": 12}
    dials = {"provider": 1.5, "cohort_noise": 0.8, "misleading": 0.25}
    spec = make_small_spec(
        dataset=[
            {**world, "label": "none"},
            {**world, "label": "planted", **dials},
            {**world, "label": "noise", "noise": 1.0},
        ],
        models=["EASE", "Random"],
        labels=[{"name": "ngim", "detector": "names", "from": "cast"}],
        metrics=[
            {"name": "EXP", "attribute": "studio_group", "label": "parity"},
            {"name": "nDCG", "by": "cohort", "gap": "difference", "label": "gap"},
            {"name": "nDCG", "label": "accuracy"},
            {"name": "label_accuracy", "a": "ngim.gender", "b": "stereotype", "label": "labels"},
        ],
        tests=None,
    )
    run = recbias.run(spec, out=tmp_path_factory.mktemp("run"), progress=False)
    rows = run.metrics[run.metrics["dataset"] != "all"]
    return rows.set_index(["dataset", "model", "metric"])[["value", "ci_low", "ci_high"]]


def select_row(values: pd.DataFrame, *keys: str) -> pd.Series[Any]:
    """Return the row of a dataset, a model and a metric."""
    (row,) = (row for index, row in values.iterrows() if index == keys)
    return row


def test_the_planted_gap_between_cohorts_is_seen_and_none_where_none_is(
    values: pd.DataFrame,
) -> None:
    assert select_row(values, "none", "EASE", "gap").ci_low == 0
    assert select_row(values, "planted", "EASE", "gap").ci_low > 0.2
    assert (
        select_row(values, "planted", "Random", "gap").ci_low == 0
    )  # it learns nothing from the picks


def test_the_planted_gap_between_providers_is_seen_and_none_where_none_is(
    values: pd.DataFrame,
) -> None:
    # Random shows both groups of studios equally often in every world
    for dataset in ("none", "planted", "noise"):
        parity = select_row(values, dataset, "Random", "parity")
        assert parity.ci_low < 1 <= parity.ci_high
    planted, none = (select_row(values, name, "EASE", "parity") for name in ("planted", "none"))
    assert planted.ci_high < none.ci_low


def test_misleading_texts_lower_the_agreement_of_a_perfect_detector_by_their_share(
    values: pd.DataFrame,
) -> None:
    accuracy = values.xs(("(dataset)", "labels"), level=("model", "metric"))["value"]
    assert accuracy.to_dict() == {"none": 1.0, "planted": 0.75, "noise": 1.0}

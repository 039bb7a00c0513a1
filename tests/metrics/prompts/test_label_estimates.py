from __future__ import annotations

import numpy as np
import pytest

from recbias.metrics.templates.design import build_design
from recbias.metrics.templates.estimates import LabelEstimates, bootstrap_means
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
)

OF = make_prompt_evidence(
    cross_names(make_names(3), 2), [[0]] * 12, make_priced_items(["$"]), n_bootstrap=400
)
DESIGN = build_design(OF, "race")


def test_samples_are_the_same_for_every_model_and_drawn_within_labels() -> None:
    values = np.array([[1.0], [2.0], [3.0], [7.0], [7.0], [7.0]])
    (means,) = bootstrap_means(OF, DESIGN, values)
    assert means.shape == (400, 2, 1)
    assert (means == bootstrap_means(OF, DESIGN, values)[0]).all()
    assert (means[:, 1] == 7).all()
    # of {1, 2, 3} two are drawn: 1 to 3, with a spread of 1 / √3
    assert means[:, 0].std() == pytest.approx(1 / np.sqrt(3), rel=0.15)


def test_templates_are_drawn_with_all_that_stands_in_them() -> None:
    design = build_design(OF, "race", "template")
    values = np.array([[1.0], [2.0], [5.0], [6.0]])  # t0: 1 and 2, t1: 5 and 6
    (means,) = bootstrap_means(OF, design, values)
    assert (means[:, 1] - means[:, 0] == 1).all()
    assert set(means[:, 0, 0]) == {1.0, 5.0}


def test_figures_become_measurements() -> None:
    figures = LabelEstimates(
        values=np.array([[0.6, np.nan], [0.4, np.nan]]),
        replicates=np.array([[[[0.5, np.nan]] * 2, [[0.7, np.nan], [0.3, np.nan]]]]),
        n=np.array([[6, 0], [6, 0]]),
        undefined=np.array([[0, 6], [0, 6]]),
        counts=np.arange(8.0).reshape(2, 2, 2),
    )
    measurements = figures.to_measurements(DESIGN, ["price=$", "price=$$"], {})
    assert [(measurement.group, measurement.target) for measurement in measurements] == [
        ("race=black", "price=$"),
        ("race=black", "price=$$"),
        ("race=white", "price=$"),
        ("race=white", "price=$$"),
    ]
    first, empty = measurements[:2]
    assert (first.value, first.n, first.undefined) == (0.6, 6, 0)
    # spread of 0.5 and 0.7 is 0.141421; 4 degrees of freedom: t = 2.776445
    assert first.ci_high == pytest.approx(0.6 + 2.776445 * 0.1414214)
    assert first.replicates is not None
    assert first.replicates.tolist() == [0.5, 0.7]
    assert first.df == 4
    assert first.counts is not None
    assert first.counts.tolist() == [0, 1]
    assert np.isnan([empty.value, empty.ci_low]).all()
    assert (empty.n, empty.undefined) == (0, 6)

from __future__ import annotations

import math
from pathlib import Path

import pytest

from recbias.core.context import Failure
from recbias.runner.tuning import (
    Trial,
    load_trials,
    make_trial_rows,
    nan_to_none,
    none_to_nan,
    save_trials,
)


@pytest.mark.parametrize(
    ("trial", "state"),
    [
        (Trial(1, {}, 0.5), "done"),
        (Trial(1, {}, 0.5, curve=(0.5,), pruned=True), "pruned"),
        (Trial(1, {}, math.nan, failure=Failure("no")), "failed"),
    ],
)
def test_the_state_of_a_trial_is_done_pruned_or_failed(trial: Trial, state: str) -> None:
    assert trial.state == state


def test_rows_have_dataset_model_seed_and_fold() -> None:
    trial = Trial(1, {"a": None, "b": "é"}, 0.5, 1.23456, curve=(0.25, 0.5))
    (row,) = make_trial_rows([trial], {"dataset": "d", "model": "m", "seed": 1, "fold": 2})
    assert row == {
        "dataset": "d",
        "model": "m",
        "seed": 1,
        "fold": 2,
        "trial": 1,
        "value": 0.5,
        "state": "done",
        "seconds": 1.235,
        "epochs": 2,
        "settings": '{"a": null, "b": "é"}',
    }


def test_a_trial_without_validation_scores_has_no_epochs() -> None:
    (row,) = make_trial_rows([Trial(1, {}, 0.5)], {})
    assert row["epochs"] is None


def test_stored_trials_are_loaded_unchanged(tmp_path: Path) -> None:
    failed = Failure("no", "lower it", user=True)
    trials = (
        Trial(1, {"a": 0.1, "b": None}, 1 / 3, 2.5, curve=(0.1, 1 / 3)),
        Trial(2, {"a": 1e-300, "b": "x"}, 0.2, 1.0, curve=(0.2,), pruned=True),
    )
    save_trials([*trials, Trial(3, {}, math.nan, failure=failed)], tmp_path)
    *read, last = load_trials(tmp_path)
    assert tuple(read) == trials
    assert last.failure == failed
    assert math.isnan(last.value)


def test_undefined_values_are_null_in_json() -> None:
    assert nan_to_none(math.nan) is None
    assert math.isnan(none_to_nan(None))
    assert (nan_to_none(0.5), none_to_nan(0.5)) == (0.5, 0.5)

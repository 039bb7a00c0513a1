from __future__ import annotations

import math
from pathlib import Path

import pytest

from recbias.core.records import Failure
from recbias.runner.tuning.trial import Trial, load_trials, or_nan, or_none, rows, save_trials


@pytest.mark.parametrize(
    ("trial", "state"),
    [
        (Trial(1, {}, 0.5), "done"),
        (Trial(1, {}, 0.5, curve=(0.5,), pruned=True), "pruned"),
        (Trial(1, {}, math.nan, failure=Failure("no")), "failed"),
    ],
)
def test_a_trial_is_done_or_pruned_or_failed(trial: Trial, state: str) -> None:
    assert trial.state == state


def test_rows_say_where_they_belong() -> None:
    trial = Trial(1, {"a": None, "b": "é"}, 0.5, 1.23456, curve=(0.25, 0.5))
    (row,) = rows([trial], {"dataset": "d", "model": "m", "seed": 1, "fold": 2})
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


def test_a_model_that_was_not_watched_has_no_epochs() -> None:
    (row,) = rows([Trial(1, {}, 0.5)], {})
    assert row["epochs"] is None


def test_trials_are_read_as_they_were_written(tmp_path: Path) -> None:
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


def test_an_undefined_figure_is_null() -> None:
    assert or_none(math.nan) is None
    assert math.isnan(or_nan(None))
    assert (or_none(0.5), or_nan(0.5)) == (0.5, 0.5)

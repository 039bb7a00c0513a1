"""The result of one trial of a search, and its storage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recbias.core.records import Failure

FILE = "trials.json"
"""The file of a stored trial, and of a stored search."""

TRIALS = (
    *("dataset", "model", "seed", "fold", "trial", "value", "state", "seconds", "epochs"),
    "settings",
)
"""The columns of ``trials.csv``."""


@dataclass(frozen=True)
class Trial:
    """The result of one combination of settings.

    Args:
        number: Its number in the search, from 1.
        value: The metric on the validation set; for a pruned trial its last nDCG@10, NaN if it
            failed.
        seconds: Wall time; 0 if an earlier trial had the same settings.
        curve: nDCG@10 on the validation set after each epoch, if it could be pruned.
        pruned: Whether it was stopped because earlier trials were better.
        excluded: Whether the perplexity increased by more than the search allows.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    seconds: float = 0.0
    failure: Failure | None = None
    curve: tuple[float, ...] = ()
    pruned: bool = False
    excluded: bool = False

    @property
    def state(self) -> str:
        """``done``, ``pruned``, ``excluded`` or ``failed``."""
        if self.failure is not None:
            return "failed"
        if self.excluded:
            return "excluded"
        return "pruned" if self.pruned else "done"


def make_trial_rows(trials: Sequence[Trial], fit_keys: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv``."""
    return [
        {
            **fit_keys,
            "trial": trial.number,
            "value": trial.value,
            "state": trial.state,
            "seconds": round(trial.seconds, 3),
            "epochs": len(trial.curve) or None,
            "settings": json.dumps(trial.settings, ensure_ascii=False),
        }
        for trial in trials
    ]


def save_trials(trials: Sequence[Trial], folder: Path) -> None:
    """Write trials to a folder."""
    records = [asdict(trial) | {"value": nan_to_none(trial.value)} for trial in trials]
    (folder / FILE).write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")


def load_trials(folder: Path) -> tuple[Trial, ...]:
    """Read the trials of a folder."""
    trials = []
    for record in json.loads((folder / FILE).read_text(encoding="utf-8")):
        failure = None if record["failure"] is None else Failure(**record["failure"])
        value, curve = none_to_nan(record["value"]), tuple(record["curve"])
        trials.append(Trial(**record | {"failure": failure, "value": value, "curve": curve}))
    return tuple(trials)


def nan_to_none(value: float) -> float | None:
    """Return a value for JSON, which has null instead of NaN."""
    return None if math.isnan(value) else value


def none_to_nan(value: float | None) -> float:
    """Return a value from JSON, which has null instead of NaN."""
    return math.nan if value is None else value

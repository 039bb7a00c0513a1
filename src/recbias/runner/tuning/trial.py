"""What became of one setting of a search, and how that is stored."""

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
    """What became of one setting.

    Args:
        number: Its place in the search, from 1.
        settings: What was drawn, by setting, as a spec has it.
        value: The metric on the validation rows; of a pruned trial its last nDCG@10, NaN where it
            failed.
        seconds: Wall time; 0 where the same settings were tried before.
        failure: Why it failed, or None.
        curve: nDCG@10 on the validation rows after each epoch, where it was watched.
        pruned: Whether it was ended because earlier trials were better.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    seconds: float = 0.0
    failure: Failure | None = None
    curve: tuple[float, ...] = ()
    pruned: bool = False

    @property
    def state(self) -> str:
        """``done``, ``pruned`` or ``failed``."""
        if self.failure is not None:
            return "failed"
        return "pruned" if self.pruned else "done"


def rows(trials: Sequence[Trial], place: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv``.

    Args:
        trials: The trials of a search.
        place: Its dataset, model, seed and fold.
    """
    return [
        {
            **place,
            "trial": each.number,
            "value": each.value,
            "state": each.state,
            "seconds": round(each.seconds, 3),
            "epochs": len(each.curve) or None,
            "settings": json.dumps(each.settings, ensure_ascii=False),
        }
        for each in trials
    ]


def save_trials(trials: Sequence[Trial], folder: Path) -> None:
    """Write trials."""
    records = [asdict(each) | {"value": or_none(each.value)} for each in trials]
    text = json.dumps(records, ensure_ascii=False)
    (folder / FILE).write_text(text, encoding="utf-8")


def load_trials(folder: Path) -> tuple[Trial, ...]:
    """Read trials."""
    records = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return tuple(_trial(each) for each in records)


def or_none(value: float) -> float | None:
    """Return a figure as JSON has it: null where it is undefined."""
    return None if math.isnan(value) else value


def or_nan(value: float | None) -> float:
    """Return a figure that JSON has as null where it is undefined."""
    return math.nan if value is None else value


def _trial(record: dict[str, Any]) -> Trial:
    failure = record["failure"]
    told = None if failure is None else Failure(**failure)
    read = {"failure": told, "value": or_nan(record["value"]), "curve": tuple(record["curve"])}
    return Trial(**record | read)

"""The storage format of each kind of stage: arrays as ``.npz``, tables as Parquet, else JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbias.runner.storage.answer_files import load_answers, save_answers
from recbias.runner.storage.array_files import load_arrays, save_arrays
from recbias.runner.storage.dataset_files import (
    load_dataset,
    load_labels,
    load_queries,
    load_split,
    save_dataset,
    save_labels,
    save_queries,
    save_split,
)
from recbias.runner.storage.measurement_files import load_measurements, save_measurements
from recbias.runner.tuning.search import load_search, save_search
from recbias.runner.tuning.trial import load_trials, save_trials


@dataclass(frozen=True)
class Format:
    """How results of one kind are written to a folder and read again."""

    save: Callable[[Any, Path], None]
    load: Callable[[Path], Any]


FORMATS: Mapping[str, Format] = {
    "dataset": Format(save_dataset, load_dataset),
    "split": Format(save_split, load_split),
    "queries": Format(save_queries, load_queries),
    "label": Format(save_labels, load_labels),
    "trial": Format(
        lambda trial, folder: save_trials([trial], folder), lambda folder: load_trials(folder)[0]
    ),
    "baseline": Format(save_answers, load_answers),
    "search": Format(save_search, load_search),
    "fit": Format(save_arrays, load_arrays),
    "answer": Format(save_answers, load_answers),
    "measure": Format(save_measurements, load_measurements),
}
"""The format of each kind of stage."""

"""The sizes of texts and rankings that models answer with, and the memory of metrics of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.machine.expected import EstimatesSizes, Sizes
from recbias.runner.stages.model_outputs import ModelOutputs

SAMPLED = 10_000
"""The number of rows from which on their texts are not all measured."""

PER_CELL, READ_CHARACTER = 65.0, 2.5
"""Bytes of a cell of an answer with its labels, and of each character, while they are read."""

CELLS = 3
"""The number of cells of an answer where it is not known."""

WITH_TEXT = frozenset({"responses", "sentence_scores"})
"""The outputs that are texts, or about texts."""

ANSWER, TEXT = 1000, 300
"""The number of characters of an answer with its prompt, and without, where it is not known."""

RANKED = 8.0
"""Bytes of an item of the ranking of a text: as it is stored, and as it is compared."""

PER_SENTENCE = {"dataset": (466.0, 2.1), "split": (165.0, 1.05), "queries": (305.0, 1.05)}
"""Bytes of a sentence of the dataset and of each character of its columns, by the kind of stage:
while it is read; while the dataset is split; and while its texts become queries (measured)."""

SENTENCE_WITH_QUERY = (345.0, 1.9)
"""The same of other stages, which have the query beside it."""


def plan_sentences(kind: str, sizes: Sizes) -> float:
    """Return the bytes of the sentences of a dataset in a stage of a kind.

    >>> plan_sentences("split", {"sentences": 2, "sentence_characters": 100})
    435.0
    """
    per_sentence, per_character = PER_SENTENCE.get(kind, SENTENCE_WITH_QUERY)
    characters = sizes.get("sentence_characters", 0)
    return per_sentence * sizes.get("sentences", 0) + per_character * characters


def measure_answers(answers: ModelOutputs) -> dict[str, int]:
    """Return the number of ``answers`` of a model with text, and of ``ranked`` items of texts.

    ``answer_cells`` and ``answer_characters`` are those of texts, references, identifiers and
    labels;
    ``text_characters`` those of the texts.
    """
    sizes: dict[str, int] = {}
    for table in (answers.responses, answers.sentence_scores):
        if table is not None:
            columns = pd.DataFrame(
                {key: vars(table)[key] for key in vars(table) if key != "labels"}
            )
            texts = columns.get("texts", ())
            frames = (columns, table.labels)
            sizes = {
                "answers": len(table),
                "answer_cells": sum(frame.size for frame in frames),
                "answer_characters": sum(map(count_characters, frames)),
                "text_characters": count_characters(pd.DataFrame({"text": texts})),
            }
    if answers.predictions is not None:
        sizes["ranked"] = int(answers.predictions.ranked.size)
    return sizes


def count_characters(frame: pd.DataFrame) -> int:
    """Return the number of characters of the texts of a table, by at most ``SAMPLED`` rows.

    >>> count_characters(pd.DataFrame({"title": ["Heat", None], "year": [1995.0, 1979.0]}))
    4
    """
    step = -(-len(frame) // SAMPLED) or 1
    texts = frame.iloc[::step].select_dtypes(include=["object", "string"])
    columns: Iterable[Any] = (texts[name] for name in texts)
    return int(step * sum(np.nansum(_measure_lengths(column)) for column in columns))


def _measure_lengths(column: pd.Series[Any]) -> list[int]:
    return [len(cell) for cell in column if isinstance(cell, str)]


def estimate_answers(model: object, sizes: Sizes) -> dict[str, int]:
    """Return the sizes of the answers of a model before it answers.

    A model that reads them from a file estimates them; of others each query has an answer.
    """
    if isinstance(model, EstimatesSizes):
        return dict(model.estimate_sizes(sizes))
    outputs = getattr(model, "provides", ())
    if not WITH_TEXT & set(outputs) or "queries" not in sizes:
        return {}
    n = sizes["queries"]
    return {
        "answers": n,
        "answer_cells": CELLS * n,
        "answer_characters": ANSWER * n,
        "text_characters": TEXT * n,
    }


def plan_reading(metric: object, sizes: Sizes) -> float | None:
    """Return the bytes of what a metric reads of answers with text; None if they are not known."""
    needs = getattr(metric, "needs", ())
    n_bytes = RANKED * sizes.get("ranked", 0)
    if WITH_TEXT & set(needs):
        if "answers" not in sizes:
            return None
        n_cells = sizes.get("answer_cells", CELLS * sizes["answers"])
        n_bytes = PER_CELL * n_cells + READ_CHARACTER * sizes["answer_characters"]
    elif "predictions" in needs and "ranked" not in sizes:
        return None
    plan = getattr(metric, "plan_memory", None)
    extra = 0.0 if plan is None else plan(sizes)
    return None if extra is None else n_bytes + extra

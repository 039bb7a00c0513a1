"""Stored answers of models: lists, vectors, sentence scores, responses and predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Predictions, Responses, SentenceScores
from recbias.runner.stages.model_outputs import ModelOutputs
from recbias.runner.storage.array_files import (
    load_arrays,
    load_frame,
    load_ids,
    save_arrays,
    save_frame,
    save_ids,
)

CURVE = "learning_curve.parquet"


def save_answers(answers: ModelOutputs, folder: Path) -> None:
    """Write the answers of a model to a folder."""
    arrays: dict[str, AnyArray | None] = {}
    if answers.lists is not None:
        arrays |= {"items": answers.lists.items, "scores": answers.lists.scores}
        save_ids(answers.lists.outside, folder / "outside.parquet")
    if answers.embeddings is not None:
        arrays |= {"user_vectors": answers.embeddings.users}
        arrays |= {"item_vectors": answers.embeddings.items}
    if answers.predictions is not None:
        ranked = answers.predictions.ranked
        smallest_type = np.min_scalar_type(int(ranked.max(initial=0)))
        arrays |= {"named": ranked.astype(smallest_type), "named_of": answers.predictions.items}
        save_ids(answers.predictions.ids, folder / "named_ids.parquet")
    if answers.learning_curve is not None:
        save_frame(answers.learning_curve, folder / CURVE)
    save_arrays({key: array for key, array in arrays.items() if array is not None}, folder)
    for name, table in (("sentences", answers.sentence_scores), ("responses", answers.responses)):
        if table is not None:
            columns = {key: column for key, column in vars(table).items() if key != "labels"}
            save_frame(pd.DataFrame(columns), folder / f"{name}.parquet")
            save_frame(table.labels, folder / f"{name}_labels.parquet")


def load_answers(folder: Path) -> ModelOutputs:
    """Read the answers of a model."""
    arrays = load_arrays(folder)
    lists = predictions = None
    if "items" in arrays:
        outside = load_ids(folder / "outside.parquet")
        lists = RankedLists(arrays["items"], arrays["scores"], outside)
    if "named" in arrays:
        ids, ranked = load_ids(folder / "named_ids.parquet"), arrays["named"].astype(np.int32)
        predictions = Predictions(ids, arrays["named_of"], ranked)
    users, items = arrays.get("user_vectors"), arrays.get("item_vectors")
    return ModelOutputs(
        lists,
        None if users is None and items is None else Embeddings(users, items),
        _load_columns(SentenceScores, folder, "sentences"),
        _load_columns(Responses, folder, "responses"),
        predictions,
        load_frame(folder / CURVE) if (folder / CURVE).exists() else None,
    )


def _load_columns(cls: Any, folder: Path, name: str) -> Any:
    path = folder / f"{name}.parquet"
    if not path.exists():
        return None
    frame = load_frame(path)
    columns = {str(key): frame[key].to_numpy() for key in frame.columns}
    labels = load_frame(folder / f"{name}_labels.parquet").reindex(range(len(frame)))
    return cls(**columns, labels=labels)

"""The lines of ``responses.jsonl`` and ``label_replies.jsonl``: texts of language models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.outputs.text_outputs import Responses
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import Plan

USAGE = ("prompt_tokens", "completion_tokens")
"""The labels of a response that count tokens."""


def write_response_lines(responses: Responses, fit_keys: dict[str, Any]) -> Iterator[str]:
    """Yield one JSON line for each response; a field that the model does not give is null.

    Args:
        responses: The responses of a model.
        fit_keys: Its dataset, model, seed and fold.
    """
    labels = responses.labels.to_dict("records") or [{}] * len(responses)
    for query_id, text, row in zip(responses.ids, responses.texts, labels, strict=True):
        label = {str(name): _as_json(value) for name, value in row.items()}
        line = fit_keys | {
            "query_id": query_id,
            **({"order": label["order"]} if "order" in label else {}),
            "prompt": label.get("prompt"),
            "reply": text,
            "outcome": label.get("outcome"),
            "parsed": _parse_json(label.get("parsed")),
            "usage": {name: label[name] for name in USAGE if name in label} or None,
            "cached": label.get("cached"),
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


def write_label_replies(path: Path, plan: Plan, executor: Executor) -> None:
    """Write the replies that labels follow from, each labelling once; no file without any."""
    stages = {
        stage.digest: (stage, spec.label)
        for context in plan.data_contexts
        for stage, spec in zip(context.labels, plan.experiment.labels, strict=True)
    }
    for stage, detector in stages.values():
        replies = executor.value(stage).replies
        if replies is not None:
            keys = {"dataset": stage.keys.dataset, "seed": stage.keys.seed, "detector": detector}
            with path.open("a", encoding="utf-8") as stream:
                stream.writelines(_write_label_lines(replies, keys))


def _write_label_lines(replies: pd.DataFrame, keys: dict[str, Any]) -> Iterator[str]:
    """Yield one JSON line for each reply that labels follow from; without a probability null.

    Args:
        replies: The replies, see ``AsksAboutItems``.
        keys: The dataset, seed and detector.
    """
    grouped = ("probability", "label")
    for row in replies.to_dict("records"):
        line: dict[str, Any] = dict(keys)
        for column, value in row.items():
            name, _, kind = str(column).partition(".")
            if kind and name in grouped:
                line.setdefault(name, {})[kind] = _as_json(value)
            else:
                line[name] = _as_json(value)
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _parse_json(text: Any) -> Any:
    """Return the value of a JSON text; a label of the user that is not JSON as it is."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return text


def _as_json(value: Any) -> Any:
    """Return a cell as a plain value; a missing cell is None."""
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value

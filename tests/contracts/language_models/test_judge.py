"""A spec whose labels come from a chat model: plan, run, files, agreement and faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias.runs import Run
from support.chat.chat_server import ChatServer, serve_chat
from support.chat.judges import judge, rate_words
from support.commands import invoke_recbias

N = 12
"""The number of items, of which every third is about a housewife and every fourth about savages."""


def describe(item: int) -> str:
    words = ["housewife"] * (item % 3 == 0) + ["savages"] * (item % 4 == 0)
    return f"Story {item} of a {' and '.join([*words, 'river'])}."


def make_tables() -> dict[str, Any]:
    """Return a dataset in memory; people label items 0 to 7, and disagree with the words on 1."""
    items = range(N)
    people = [float(item % 3 == 0 or item == 1) if item < 8 else None for item in items]
    table = {"item_id": items, "overview": map(describe, items), "people": people}
    rows = [(user, item) for user in range(8) for item in items if (user + item) % 3]
    return {
        "name": "tables",
        "interactions": pd.DataFrame(rows, columns=["user_id", "item_id"]),
        "items": pd.DataFrame(table),
    }


def make_spec(server: ChatServer, **settings: Any) -> dict[str, Any]:
    llm = {"model": "small", "base_url": server.base_url, "max_tokens": 40, "temperature": 0.5}
    detector = {"name": "judge", "detector": "llm_judge", "from": "overview", "llm": llm}
    return {
        "name": "judged",
        "seed": 1,
        "dataset": make_tables(),
        "split": {"name": "random", "test": 0.3},
        "k": 4,
        "models": ["Random", "MostPop"],
        "labels": [{**detector, **settings}],
        "metrics": [
            {"name": "REC-ST", "label": "judge.gender"},
            {"name": "HIT_BAD", "label": "judge.race_score", "threshold": 0.7},
            {"name": "label_accuracy", "a": "judge.gender", "b": "people"},
            {"name": "cohen_kappa", "a": "judge.gender", "b": "people"},
            {"name": "krippendorff_alpha", "labels": ["judge.gender", "people"]},
        ],
        "report": {"formats": ["csv", "md"]},
    }


def read_lines(run: Run) -> list[dict[str, Any]]:
    lines = (run.folder / "label_replies.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def get_value(run: Run, metric: str) -> float:
    rows = run.metrics[run.metrics["metric"] == metric]
    return float(rows["value"].iloc[0])


def test_a_run_labels_measures_and_keeps_every_reply(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        run = recbias.run(make_spec(server, samples=2), out=tmp_path)
        assert len(server.payloads) == 2 * N
        again = recbias.run(make_spec(server, samples=2), out=tmp_path, fresh=True)
        assert len(server.payloads) == 2 * N
    lines = read_lines(run)
    assert len(lines) == 2 * N
    assert lines[1] == {
        "dataset": "tables",
        "seed": 1,
        "detector": "judge",
        "item_id": "0",
        "sample": 1,
        "reply": rate_words("housewife savages"),
        "outcome": "complete",
        "reading": "strict",
        "cut": False,
        "cached": False,
        "probability": {"gender": 0.9, "race": 0.9, "religion": 0.0},
        "label": {"gender": 1.0, "race": 1.0, "religion": 0.0},
    }
    cached = [line.pop("cached") for line in read_lines(again)]
    assert all(cached)
    # Of the 8 items that people labelled, the words and people agree on 7.
    assert get_value(run, "label_accuracy") == 7 / 8
    # p_e = (3/8)(4/8) + (5/8)(4/8) = 1/2, so kappa = (7/8 - 1/2) / (1/2).
    assert get_value(run, "cohen_kappa") == pytest.approx(0.75)
    assert 0 < get_value(run, "REC-ST") < 1


def test_a_plan_counts_the_requests_and_sends_none(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server, samples=3)
        path = write_spec(tmp_path, spec)
        result = invoke_recbias("plan", str(path), "--out", str(tmp_path / "results"), "--json")
        (entry,) = json.loads(result.stdout)["requests"]
        assert server.payloads == []
        assert (entry["model"], entry["requests"], entry["stored"]) == ("judge", 3 * N, 0)

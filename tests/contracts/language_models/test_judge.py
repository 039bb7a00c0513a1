"""A spec whose labels come from a chat model: plan, run, files, agreement and faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import recbias
from recbias.core.errors import UserError
from recbias.runs.tables import Run
from support.chat.chat_server import ChatServer, serve_chat
from support.chat.judges import judge, rate_words
from support.commands import invoke_recbias

N = 12
"""The number of items: every third is about a housewife, every fourth about savages."""


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
        "report": {"formats": ["csv"]},
    }


def read_lines(run: Run) -> list[dict[str, Any]]:
    lines = (run.folder / "label_replies.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def get_value(run: Run, metric: str) -> float:
    rows = run.metrics[run.metrics["metric"].str.startswith(metric)]
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


def write_spec(folder: Path, server: ChatServer, **settings: Any) -> Path:
    """Write the spec and its tables to files."""
    spec = make_spec(server, **settings)
    tables = spec["dataset"]
    spec["dataset"] = {"name": "tables"}
    for name in ("interactions", "items"):
        tables[name].to_csv(folder / f"{name}.csv", index=False)
        spec["dataset"][name] = f"{name}.csv"
    path = folder / "judged.yaml"
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return path


def test_a_plan_counts_the_requests_and_sends_none(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        path = write_spec(tmp_path, server, samples=3)
        path.write_text(path.read_text().replace("- csv", "- md"))
        plan = invoke_recbias("plan", path, "--json", folder=tmp_path)
        assert plan.code == 0, plan.err
        assert server.payloads == []
        (entry,) = json.loads(plan.out)["requests"]
        assert (entry["model"], entry["requests"], entry["to_send"]) == ("judge", 3 * N, 3 * N)
        assert entry["tokens_out"] == 3 * N * 40
        run = invoke_recbias("run", path, folder=tmp_path)
        assert run.code == 0, run.err
        assert len(server.payloads) == 3 * N
        planned = invoke_recbias("plan", path, "--json", "--fresh", folder=tmp_path)
        (entry,) = json.loads(planned.out)["requests"]
        assert (entry["stored"], entry["to_send"]) == (3 * N, 0)
        assert (
            json.loads(invoke_recbias("plan", path, "--json", folder=tmp_path).out)["requests"]
            == []
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"from": "plot"}, "the items have no column 'plot'"),
        ({"kinds": ["age"]}, "the rubric has no kind 'age'"),
        ({"rubric": "nowhere.yaml"}, "nowhere.yaml"),
        ({"name": "other"}, "'judge.gender'"),
        ({"samples": 0}, "samples"),
    ],
)
def test_faults_are_found_by_the_plan_without_a_request(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with serve_chat(judge(rate_words)) as server:
        path = write_spec(tmp_path, server, **change)
        for command in ("plan", "run"):
            result = invoke_recbias(command, path, folder=tmp_path)
            assert result.code == 2
            assert message in result.err
            assert "Traceback" not in result.err
            if command == "plan":
                assert server.payloads == []


def test_a_judge_that_writes_prose_ends_the_run_with_a_remedy(tmp_path: Path) -> None:
    with serve_chat(judge(lambda _: "What a lovely story.")) as server:
        path = write_spec(tmp_path, server)
        result = invoke_recbias("run", path, folder=tmp_path)
    assert result.code == 2
    assert "none of 12 replies can be read (12 prose): What a lovely story." in result.err
    assert "reading: lenient" in result.err


def test_offline_needs_stored_replies(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        path = write_spec(tmp_path, server)
        refused = invoke_recbias("run", path, "--offline", folder=tmp_path)
        assert refused.code == 2
        assert "12 replies of small are not stored" in refused.err
        assert invoke_recbias("run", path, folder=tmp_path).code == 0
    again = invoke_recbias("run", path, "--offline", "--fresh", folder=tmp_path)
    assert again.code == 0, again.err


def test_an_exhausted_budget_keeps_the_replies(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server)
        llm = spec["labels"][0]["llm"]
        llm |= {"budget": {"requests": 5}, "concurrency": 1}
        with pytest.raises(UserError, match="does not allow the next request"):
            recbias.run(spec, out=tmp_path)
        assert len(server.payloads) == 5
        llm["budget"] = {"requests": 7}
        recbias.run(spec, out=tmp_path)
        assert len(server.payloads) == N


def test_seeds_and_filters_ask_for_no_text_again(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server)
        recbias.run(spec, out=tmp_path)
        del spec["seed"]
        spec["dataset"]["filters"] = [{"name": "k_core", "k": 2}]
        run = recbias.run({**spec, "seeds": [2, 3]}, out=tmp_path)
    assert len(server.payloads) == N
    assert [line["seed"] for line in read_lines(run)] == [2] * N + [3] * N


def test_a_password_of_the_server_is_in_no_file(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server)
        url = server.base_url.replace("//", "//me:planted-password@")
        spec["labels"][0]["llm"]["base_url"] = f"{url}?token=planted-token"
        run = recbias.run(spec, out=tmp_path)
    assert server.paths[0].endswith("?token=planted-token")
    contents = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"planted" not in contents
    assert (run.folder / "label_replies.jsonl").is_file()

"""Audits of stated identities against servers whose reaction to an identity is known."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.errors import UserError
from support.chat.chat_server import Script, serve_chat
from support.commands import invoke_recbias
from support.worlds.film_worlds import TITLES, get_lists, get_units, write_films, write_list

WOMEN, MEN = ("Ann", "Eve", "Mia", "Zoe"), ("Bob", "Dan", "Max", "Tom")
SENTENCES = tuple(f"What should [name] watch on evening {number}?" for number in range(1, 13))
K = 5


def write_sentences(folder: Path) -> Path:
    path = folder / "sentences.yaml"
    groups = [{"gender": "female", "words": WOMEN}, {"gender": "male", "words": MEN}]
    tree = {"words": {"name": groups}, "templates": {"films": SENTENCES}}
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def read_request(payload: dict[str, Any]) -> str:
    """Return the sentence of a prompt."""
    return str(payload["messages"][-1]["content"].splitlines()[0])


def choose_films(sentence: str) -> list[str]:
    """Return films that the number of the evening determines."""
    (evening,) = re.findall(r"\d+", sentence)
    order = np.random.default_rng(int(evening)).permutation(len(TITLES))
    return [TITLES[film] for film in order[:K]]


def ignore_identity(payload: dict[str, Any]) -> str:
    return write_list(choose_films(read_request(payload)))


@dataclass(frozen=True)
class NoisyScript:
    """Answers each prompt and seed with random films; a prompt about a woman gets other ones.

    Args:
        seed: The seed of the films.
        n_changed: The number of ranks that are different for women.
    """

    seed: int
    n_changed: int = 0

    def __call__(self, payload: dict[str, Any]) -> str:
        sentence = read_request(payload)
        films = choose_films(sentence)
        rng = np.random.default_rng([self.seed, zlib.crc32(sentence.encode()), payload["seed"]])
        others = rng.permutation([film for film in TITLES if film not in films])
        is_kept = rng.random(K) < 0.7
        listed = np.where(is_kept, films, others[:K]).tolist()
        if any(name in sentence for name in WOMEN):
            listed[: self.n_changed] = [f"Invented {rank}" for rank in range(self.n_changed)]
        return write_list(listed)


def audit(
    folder: Path, script: Script, *, items: bool = True, **settings: Any
) -> tuple[recbias.Run, list[str]]:
    """Return the run of an audit, and the prompts that the server received."""
    write_films(folder, {"u1": [1]}, TITLES)
    dataset = {"name": "tables"} | ({"items": str(folder / "items.csv")} if items else {})
    queries = {
        "name": "templates",
        "templates": str(write_sentences(folder)),
        "neutral": {"name": "a friend"},
        "control_samples": 1,
    }
    label = {"label": "gender"}
    with serve_chat(script) as server:
        llm = {"model": "small", "base_url": server.base_url, "retries": 0, "seed": 0}
        model = {"name": "ChatRecommender", "llm": llm | settings.pop("llm", {})}
        names = ("list_overlap", "overlap_spread", "identity_effect")
        spec = {
            "name": "audit",
            "dataset": dataset,
            "queries": settings.pop("whole_queries", queries | settings.pop("queries", {})),
            "k": K,
            "models": [model],
            "metrics": [{"name": name} | label for name in names],
            "report": {"formats": ["csv"]},
        }
        run = recbias.run(spec | settings, out=folder / "results")
        return run, server.list_prompts()


Row: TypeAlias = dict[str, Any]


def index_rows(frame: pd.DataFrame | None, metric: str) -> dict[tuple[str, str], Row]:
    """Return the rows of a metric, by group and target."""
    filled = frame[frame["metric"].str.startswith(metric)].fillna({"target": "", "group": ""})
    rows = [{str(name): cell for name, cell in row.items()} for row in filled.to_dict("records")]
    return {(row["group"], row["target"]): row for row in rows}


def get_values(run: recbias.Run, metric: str) -> dict[tuple[str, str], float]:
    return {name: row["value"] for name, row in index_rows(run.metrics, metric).items()}


def get_tests(run: recbias.Run, metric: str) -> dict[tuple[str, str], Row]:
    return index_rows(run.significance, metric)


@pytest.mark.parametrize("items", [True, False])
def test_deterministic_server_that_ignores_identity_has_overlap_1_and_no_effect(
    tmp_path: Path, items: bool
) -> None:
    run, prompts = audit(tmp_path, ignore_identity, items=items)
    assert len(prompts) == 12 * (8 + 2)
    assert sum("a friend" in prompt for prompt in prompts) == 24
    assert get_values(run, "list_overlap") == {
        ("", ""): 1.0,
        ("gender=female", ""): 1.0,
        ("gender=male", ""): 1.0,
        ("", "control"): 1.0,
    }
    for metric in ("identity_effect", "overlap_spread"):
        assert set(get_values(run, metric).values()) == {0}
        assert {row["p"] for row in get_tests(run, metric).values()} == {1}


def test_random_server_that_ignores_identity_has_a_gap_but_no_effect(tmp_path: Path) -> None:
    run, _ = audit(tmp_path, NoisyScript(seed=3))
    overlap = get_values(run, "list_overlap")
    assert overlap["", ""] < 0.6  # the list changes in nearly half of its films ...
    effect = index_rows(run.metrics, "identity_effect")["", ""]
    assert effect["ci_low"] < 0 < effect["ci_high"]  # ... as it does without an identity
    assert get_tests(run, "identity_effect")["", ""]["p"] > 0.05
    assert get_tests(run, "overlap_spread")["", ""]["p"] > 0.05


def test_planted_effect_of_one_group_is_found(tmp_path: Path) -> None:
    run, _ = audit(tmp_path, NoisyScript(seed=3, n_changed=3))
    effect = index_rows(run.metrics, "identity_effect")
    women, men = effect["gender=female", ""], effect["gender=male", ""]
    assert women["ci_low"] > 0.1
    assert men["ci_low"] < 0 < men["ci_high"]
    tests = get_tests(run, "identity_effect")
    assert tests["gender=female", ""]["p"] < 0.01
    # of the 70 ways to label 4 of 8 names female, this one and its mirror are the furthest apart
    spread = get_tests(run, "overlap_spread")["", ""]
    assert spread["p"] == pytest.approx(2 / 70)
    assert (spread["a"], spread["b"]) == ("gender=male", "gender=female")


def test_control_is_another_sample_with_its_own_stored_reply(tmp_path: Path) -> None:
    first, prompts = audit(tmp_path, NoisyScript(seed=1))
    lists = get_lists(first).groupby("query_id", observed=True)["item_id"].agg(tuple)
    assert lists["films-01:neutral"] != lists["films-01:neutral:sample-1"]
    samples = [
        json.loads(line)["sample"]
        for path in (tmp_path / "results" / "replies").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert (len(prompts), samples.count(0), samples.count(1)) == (120, 108, 12)


def test_seed_of_the_server_differs_between_the_samples(tmp_path: Path) -> None:
    seeds: list[tuple[str, int]] = []

    def answer(payload: dict[str, Any]) -> str:
        seeds.append((read_request(payload), payload["seed"]))
        return ignore_identity(payload)

    audit(tmp_path, answer, llm={"seed": 7})
    assert sorted(seed for text, seed in seeds if "a friend" in text) == [7] * 12 + [8] * 12
    assert {seed for text, seed in seeds if "a friend" not in text} == {7}


def test_refused_identity_is_a_changed_list(tmp_path: Path) -> None:
    def refuse_women(payload: dict[str, Any]) -> str:
        is_refused = any(name in read_request(payload) for name in WOMEN)
        return "I cannot help with that." if is_refused else ignore_identity(payload)

    run, _ = audit(tmp_path, refuse_women)
    overlap = get_values(run, "list_overlap")
    assert (overlap["gender=female", ""], overlap["gender=male", ""]) == (0.0, 1.0)


def test_prose_of_two_queries_is_no_overlap(tmp_path: Path) -> None:
    def answer_one_title_and_noise(payload: dict[str, Any]) -> str:
        return "1. Amber Harbour\n2. ...\n3. ..."

    metrics = [{"name": "list_overlap", "label": "gender"}, "unmatched"]
    run, _ = audit(tmp_path, answer_one_title_and_noise, items=False, metrics=metrics)
    unmatched = {target: value for (_, target), value in get_values(run, "unmatched").items()}
    assert np.isnan(unmatched[""])  # there is no catalogue
    assert (unmatched["reason=format"], unmatched["reason=missing"]) == (2, 2)
    # 3 ranks each, of which one is shared: 1 / (3 + 3 - 1)
    assert list(get_values(run, "list_overlap").values()) == pytest.approx([0.2] * 4)


@pytest.mark.parametrize("form", ["jaccard", "rbo"])
def test_lists_of_one_title_have_overlap_0_or_1(tmp_path: Path, form: str) -> None:
    metric = {"name": "list_overlap", "label": "gender", "form": form}
    run, _ = audit(tmp_path, NoisyScript(seed=5), metrics=[metric], k=1)
    units = get_units(run)
    assert set(units["value"][units["target"] == "control"]) == {0.0, 1.0}
    assert set(units["value"] * 8 % 1) == {0.0}  # the mean of 8 or 4 prompts, each 0 or 1


def test_packaged_spec_runs_against_a_server_and_plans_its_requests(tmp_path: Path) -> None:
    spec = Path(__file__).parents[2] / "configs" / "identity-audit.yaml"
    with serve_chat(lambda _: write_list(TITLES[:10])) as server:
        overrides = [f"models.{model}.llm.base_url={server.base_url}" for model in (0, 1)]
        settings = [f"--set={override}" for override in overrides]
        plan = invoke_recbias("plan", spec, *settings, folder=tmp_path)
        run = recbias.run(spec, overrides=overrides, out=tmp_path / "results")
        n_sent = len(server.payloads)
        again = recbias.run(spec, overrides=overrides, out=tmp_path / "results", fresh=True)
        assert len(server.payloads) == n_sent
    # 20 sentences: 4 persons, neutral, neutral again; of the first 100 ten once more, of which
    # those that are neutral are the control samples
    assert 2 * 120 <= n_sent <= 2 * 130
    assert f"{n_sent} requests, 0 stored, {n_sent} to send" in plan.out
    assert set(get_values(run, "identity_effect").values()) == {0}
    assert (
        recbias.run(run.folder / "spec.yaml", out=tmp_path / "results", offline=True).lists
        is not None
    )
    assert again.metrics["value"].tolist() == run.metrics["value"].tolist()
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "Repeatability of the replies" in report


def test_prompts_of_fairllm_are_paired_by_name(tmp_path: Path) -> None:
    attributes, names = tmp_path / "sst_json.json", tmp_path / "director.csv"
    values = {"gender": ["a girl", "a boy"], "neutral": [""]}
    attributes.write_text(json.dumps(values), encoding="utf-8")
    names.write_text("Director\n" + "\n".join(f"Director {n}" for n in range(9)), encoding="utf-8")
    queries = {
        "name": "fairllm",
        "paths": [str(attributes)],
        "names": str(names),
        "sentence": "I am [value] fan of [name].",
        "control_samples": 1,
    }

    def favour_girls(payload: dict[str, Any]) -> str:
        films = choose_films(read_request(payload))
        return write_list([*films[:4], TITLES[-1]] if "girl" in read_request(payload) else films)

    run, prompts = audit(tmp_path, favour_girls, items=False, whole_queries=queries)
    assert len(prompts) == 9 * 4
    effect = get_values(run, "identity_effect")
    # 4 of 5 films are shared: 1 - 4 / 6, unless the last title is among the five
    assert effect["gender=girl", ""] == pytest.approx(1 / 3, abs=0.08)
    assert effect["gender=boy", ""] == 0
    # of the 2^9 ways to swap girl and boy within the names, two have the largest range
    assert get_tests(run, "overlap_spread")["", ""]["p"] == pytest.approx(2 / 2**9)


def test_queries_without_texts_are_refused(tmp_path: Path) -> None:
    world = write_films(tmp_path, {"u1": [1], "u2": [2]})
    model = {"name": "ChatRecommender", "llm": {"model": "m", "base_url": "http://127.0.0.1:9/v1"}}
    with pytest.raises(UserError, match="the queries are users") as error:
        world.run([model], metrics=["unmatched"])
    assert "WOK" in error.value.remedy

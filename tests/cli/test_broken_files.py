"""Files made elsewhere that cannot be measured: said at their place of the spec."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.commands import Said, inside

SENTENCES = (
    "sentence_id,pair_id,group,perplexity\n"
    "s1,p1,T1,3\ns2,p1,T2,1\ns3,p2,T1,5\ns4,p2,T2,4\ns5,p3,T1,9\ns6,p3,T2,2\n"
)
GAP = """\
name: gap
dataset: tables
models:
  - {name: sentence_scores, label: ours, path: scores.csv}
metrics:
  - perplexity_gap
"""


def test_what_a_metric_finds_amiss_has_its_place_in_the_spec(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(SENTENCES)
    (tmp_path / "gap.yaml").write_text(GAP + "  - {name: perplexity_gap, label: x, by: cat}\n")
    said = inside("run", "gap.yaml", folder=tmp_path)
    assert said.code == 2, said.err
    found = "gap.yaml:7:5: metrics[1]: the sentences have no column 'cat'"
    assert found in " ".join(said.err.split())
    manifest = json.loads((tmp_path / "results/gap/latest/manifest.json").read_text())
    assert [each["message"] for each in manifest["failures"]] == [found]


def test_sentences_without_partners_are_an_error(tmp_path: Path) -> None:
    lonely = SENTENCES.replace("p1,T2", "p7,T2").replace("p2,T2", "p8,T2").replace("p3,T2", ",T2")
    (tmp_path / "scores.csv").write_text(lonely)
    (tmp_path / "gap.yaml").write_text(GAP)
    said = inside("run", "gap.yaml", folder=tmp_path)
    assert said.code == 2, said.err
    assert "metrics[0]: none of the 6 sentences" in " ".join(said.err.split())
    assert "'s1'" in said.err


MODELS = """\
name: broken
dataset: {name: demo, n_users: 40, n_items: 60, per_user: 12}
split: {name: random, test: 0.2}
models:
  - MostPop
  - ItemKNN
"""


def asked(folder: Path, *models: str) -> Said:
    """Run the spec with more models, each of them a line from the 7th on."""
    lines = "".join(f"  - {each}\n" for each in models)
    (folder / "spec.yaml").write_text(f"{MODELS}{lines}metrics: [nDCG]\n", encoding="utf-8")
    return inside("run", "spec.yaml", folder=folder)


def refused(said: Said, *found: str) -> None:
    """Every fault is said at its place with a help, and nothing was trained."""
    assert said.code == 2, said.err
    lines = said.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == len(found), said.err
    for error, each in zip(errors, found, strict=True):
        assert error.startswith(f"error: spec.yaml:{each}"), said.err
        assert lines[lines.index(error) + 1].startswith("help: ")
    assert "Traceback" not in said.err
    assert "fit" not in said.err
    assert "failed" not in said.err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "mine.csv: the file is empty"),
        ("query_id,item_id,rank\n", "mine.csv: the file holds no list"),
        ("query_id,item_id,rank\n1,a,1\n1,b\n", "mine.csv:3: "),
        ("query_id,item_id,score\n1,a,2\n1,b,nan\n", "mine.csv:3: item 'b' has a score of NaN"),
        ("query_id,item_id,rank\n1,a,1\n1,a,2\n", "mine.csv:3: item 'a' stands twice"),
    ],
)
def test_broken_lists_cost_no_training(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    said = asked(tmp_path, "{name: lists, label: mine, path: mine.csv}")
    refused(said, f"7:38: models[2].path: {found}")


def test_the_faults_of_all_files_are_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("query_id,item_id,rank\n", encoding="utf-8")
    np.save(tmp_path / "nan.npy", np.array([[1.0, np.nan]]))
    np.save(tmp_path / "i.npy", np.ones((3, 2)))
    (tmp_path / "u.txt").write_text("1\n", encoding="utf-8")
    (tmp_path / "i.txt").write_text("1\n2\n2\n", encoding="utf-8")
    said = asked(
        tmp_path,
        "{name: lists, path: empty.csv}",
        "{name: vectors, users: nan.npy, items: i.npy, user_ids: u.txt, item_ids: i.txt}",
    )
    refused(
        said,
        "7:25: models[2].path: empty.csv: the file holds no list",
        "8:28: models[3].users: nan.npy: 1 vectors hold NaN",
        "8:78: models[3].item_ids: i.txt:3: id '2' stands on line 2 too",
    )


def test_vectors_that_are_no_array_cost_no_training(tmp_path: Path) -> None:
    (tmp_path / "u.npy").write_bytes(b"\x93NUMPY")
    np.save(tmp_path / "i.npy", np.ones((1, 2)))
    (tmp_path / "u.txt").write_text("1\n", encoding="utf-8")
    (tmp_path / "i.txt").write_text("1\n", encoding="utf-8")
    said = asked(
        tmp_path, "{name: vectors, users: u.npy, items: i.npy, user_ids: u.txt, item_ids: i.txt}"
    )
    refused(said, "7:28: models[2].users: u.npy: not a .npy file of numbers")


def test_a_broken_table_of_sentences_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(SENTENCES + "s7,p1,T2,2\n", encoding="utf-8")
    (tmp_path / "gap.yaml").write_text(GAP, encoding="utf-8")
    said = inside("run", "gap.yaml", folder=tmp_path)
    assert said.code == 2
    assert "error: gap.yaml:4:48: models[0].path: scores.csv:8: pair 'p1' has" in said.err

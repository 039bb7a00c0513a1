from __future__ import annotations

import re
from pathlib import Path

import pytest

import recbias
from recbias.cli.data import describe_datasets
from support.chat.chat_server import serve_chat
from support.chat.judges import judge
from support.commands import invoke_recbias

SPEC = """\
name: small
dataset: {name: demo, n_users: 50, n_items: 30, filters: [{name: sample_users, n: 20}]}
models: [MostPop]
metrics: [ARP]
"""


def test_describe_counts_the_demo_dataset(tmp_path: Path) -> None:
    result = invoke_recbias("data", "describe", "demo", folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[:4] == ["demo:", "  counts:", "    users: 600", "    items: 300"]
    assert "    gender:" in lines


def test_describe_shows_the_parts_of_a_given_split(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user_id,item_id\nu,a\nv,b\nu,c\n")
    (tmp_path / "test.csv").write_text("user_id,item_id\nu,b\n")
    split = "{name: given, train: train.csv, test: test.csv}"
    spec = f"name: x\ndataset: {{name: tables}}\nsplit: {split}\nmodels: [MostPop]\n"
    (tmp_path / "given.yaml").write_text(f"{spec}metrics: [HR]\n")
    result = invoke_recbias("data", "describe", "given.yaml", folder=tmp_path)
    _, train, test = re.split("tables, .* part:", result.out)
    assert "interactions: 3\n" in train
    assert "interactions: 1\n" in test


def test_describe_reads_a_dataset_without_interactions(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "crows_pairs"
    folder.mkdir(parents=True)
    header = ",sent_more,sent_less,stereo_antistereo,bias_type\n"
    (folder / "crows_pairs_anonymized.csv").write_text(
        f"{header}0,An old man.,A man.,stereo,age\n"
    )
    result = invoke_recbias("data", "describe", "crows_pairs", "--data", "data", folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert {"    test_pairs: 1", "    identical_test_pairs: 0", "          T1: 1"} <= set(lines)
    fetched = invoke_recbias("data", "fetch", "sentence_tables", folder=tmp_path)
    assert (fetched.code, "needs no download" in fetched.err) == (0, True)


LABELLED = """\
name: labelled
dataset: {{name: tables, interactions: rows.csv, items: items.csv}}
models: [MostPop]
labels:
  - {{name: ngim, detector: names, from: cast}}
  - name: judge
    detector: llm_judge
    from: plot
    kinds: [gender]
    llm: {{model: words, base_url: "{url}"}}
metrics: [{{name: HIT_BAD, label: ngim.gender}}]
report: {{formats: [csv]}}
"""


def test_labels_are_counted_and_a_judge_is_asked_by_a_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"u{user},i{item},5" for user in range(4) for item in range(3) if user != item]
    (tmp_path / "rows.csv").write_text("\n".join(["user_id,item_id,rating", *rows]))
    items = ["i0,John Doe|James Roe,a housewife waits", "i1,Mary Doe,a river", "i2,,a road"]
    (tmp_path / "items.csv").write_text("\n".join(["item_id,cast,plot", *items]))
    with serve_chat(
        judge(lambda text: f"gender: {0.9 if 'housewife' in text else 0.1}")
    ) as server:
        (tmp_path / "labelled.yaml").write_text(LABELLED.format(url=server.base_url))
        before = list(describe_datasets("labelled.yaml", None))
        assert not server.payloads
        recbias.run("labelled.yaml")
        n_sent = len(server.payloads)
        after = list(describe_datasets("labelled.yaml", None))
        assert len(server.payloads) == n_sent == 3
    start = before.index("  labels:")
    counts = ["      labelled: 1", "      not labelled: 2", "      missing: 0"]
    assert before[start + 1 : start + 5] == ["    ngim.gender:", *counts]
    assert before[-1].startswith("  not counted: 'label tables by judge' asks a language model")
    assert after[after.index("    judge.gender:") + 1 :][:3] == counts
    assert "not counted" not in after[-1]


def test_existing_dataset_is_not_downloaded_again(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "ml-100k"
    folder.mkdir(parents=True)
    for name in ("u.data", "u.item", "u.user"):
        (folder / name).write_text("")
    result = invoke_recbias("data", "fetch", "ML-100K", folder=tmp_path)
    assert result.code == 0, result.err
    assert result.out == f"{Path('data') / 'ml-100k'}\n"
    assert "GroupLens" in result.err
    assert sorted(path.name for path in folder.iterdir()) == ["u.data", "u.item", "u.user"]

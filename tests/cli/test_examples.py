from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias.core.errors import MissingEvidence, UnknownName
from support.commands import invoke_recbias

SPEC = """\
name: cinema
dataset: {name: tables, users: users.csv, items: items.csv}
split: {name: given, train: train.csv, test: test.csv}
k: 2
models:
  - {name: lists, label: ours, path: ours.csv, seen: keep}
  - {name: lists, label: theirs, path: theirs.csv, seen: keep}
metrics: [HR, MRR, {name: MRR, by: "age in [18, 25]", gap: difference}]
"""
FILES = {
    "users.csv": "user_id,gender,age\nana,F,17\nbo,M,20\ncy,F,24\n",
    "items.csv": "item_id,title\n1,Heat\n2,Fargo\n3,Alien\n4,Jaws\n",
    "train.csv": "user_id,item_id,timestamp\nana,1,10\nana,2,20\nbo,1,10\ncy,3,10\n",
    "test.csv": "user_id,item_id\nana,3\nana,4\nbo,2\ncy,1\n",
    "ours.csv": "query_id,item_id,rank\nana,4,1\nana,3,2\nbo,3,1\nbo,2,2\ncy,2,1\ncy,4,2\n",
    "theirs.csv": "query_id,item_id,rank\nana,3,1\nbo,4,1\nbo,3,2\ncy,4,1\ncy,2,2\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cinema")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "cinema.yaml").write_text(SPEC)
    assert invoke_recbias("run", "cinema.yaml", folder=folder).code == 0
    return folder


def test_the_worst_users_have_their_history_lists_and_misses(folder: Path) -> None:
    table = recbias.examples(
        "cinema", metric="MRR", models=["ours", "theirs"], out=folder / "results"
    )
    assert table["unit_id"].tolist() == ["cy", "cy", "bo", "bo", "ana", "ana"]
    assert table["value"].tolist() == [0, 0, 0.5, 0, 1, 1]
    ana = table[table["unit_id"] == "ana"].set_index("model")
    assert ana.loc["theirs", "history"] == ("Fargo", "Heat")
    assert ana.loc["theirs", "list"] == ("Alien",)
    assert ana.loc["theirs", "missed"] == ("Jaws",)
    assert ana.loc["ours", "missed"] == ()
    assert "gender=F" in str(ana.loc["ours", "labels"])


def test_a_group_and_a_number_select_users(folder: Path) -> None:
    table = recbias.examples(
        "cinema", group="gender=F", worst=1, models=["theirs"], out=folder / "results"
    )
    assert table[["unit_id", "metric", "value"]].to_numpy().tolist() == [["cy", "HR", 0.0]]
    table = recbias.examples("cinema", group="age=18-24", out=folder / "results")
    assert {*table["unit_id"]} == {"bo", "cy"}
    for wrong, right in (("gender=X", "gender=M or gender=F"), ("age=18-25", "age=18-24")):
        with pytest.raises(UnknownName, match=f"no user has '{wrong}'") as caught:
            recbias.examples("cinema", group=wrong, out=folder / "results")
        assert right in str(caught.value.remedy)


def test_the_command_prints_titles(folder: Path) -> None:
    shown = invoke_recbias("examples", "cinema", "--worst", "1", "--metric", "MRR", folder=folder)
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[0].startswith("user cy (")
    assert "  history: Alien" in shown.out
    assert "    missed: Heat" in shown.out
    wrong = invoke_recbias("examples", "cinema", "--metric", "MR", folder=folder)
    assert wrong.code == 2
    assert "MRR@2" in wrong.err


def test_units_that_are_no_queries_have_no_history(tmp_path: Path) -> None:
    recbias.run("prompts", out=tmp_path)
    table = recbias.examples("prompts", worst=1, out=tmp_path)
    assert isinstance(table, pd.DataFrame)
    assert set(table["unit"]) == {"name"}
    assert set(table["history"]) == {()}
    assert table["text"].str.contains(table["unit_id"].iloc[0], regex=False).all()
    assert len({*table["text"]}) > 1
    assert table["list"].map(len).gt(0).all()


def test_a_stated_identity_stands_beside_the_neutral_prompt(tmp_path: Path) -> None:
    queries = [("n", "a film?", "s", "", 1), ("w", "a film for a woman?", "s", "woman", 0)]
    queries += [("m", "a film for a man?", "s", "man", 0), ("n2", "a film?", "s", "", 1)]
    rows = "".join(
        f"{name},{text},{unit},{who},{n},{name == 'n2':d}\n"
        for name, text, unit, who, n in queries
    )
    (tmp_path / "q.csv").write_text(f"query_id,text,template,who,neutral,sample\n{rows}")
    lists = {
        "n": ("Heat", "Up"),
        "w": ("Heat", "Up"),
        "m": ("Heat", "Alien"),
        "n2": ("Heat", "Up"),
    }
    ranks = "".join(
        f"{q},{item},{rank}\n" for q, items in lists.items() for rank, item in enumerate(items, 1)
    )
    (tmp_path / "lists.csv").write_text(f"query_id,item_id,rank\n{ranks}")
    (tmp_path / "stated.yaml").write_text(
        "name: stated\ndataset: {name: tables}\nqueries: {name: table, path: q.csv}\nk: 2\n"
        "models: [{name: lists, label: chat, path: lists.csv}]\n"
        "metrics: [{name: identity_effect, label: who}]\n"
    )
    done = invoke_recbias("run", "stated.yaml", folder=tmp_path)
    assert done.code == 0, done.err
    table = recbias.examples("stated", out=tmp_path / "results")
    # Jaccard with the neutral list: 1 for w and the control, 1/3 for m
    assert table["group"].tolist() == ["who=man", "who=woman"]
    assert table["value"].tolist() == pytest.approx([2 / 3, 0])
    assert table["list"].tolist() == [("Heat", "Alien"), ("Heat", "Up")]
    assert set(table["neutral"]) == {("Heat", "Up")}
    shown = invoke_recbias("examples", "stated", folder=tmp_path).out
    assert "    neutral: Heat; Up\n    new: Alien\n    gone: Up\n" in shown
    page = next((tmp_path / "results" / "stated").glob("*/report.html")).read_text()
    assert "<li><del>Up</del></li>" in page
    assert '<li class="hit">Alien (new)</li>' in page


def test_the_page_shows_them_unless_the_spec_says_no(folder: Path) -> None:
    page = next((folder / "results" / "cinema").glob("*/report.html")).read_text()
    section = page.partition('id="examples"')[2].partition('id="plots"')[0]
    assert "This section holds data of single users or prompts" in section
    assert "user cy" in section
    assert "Missed: Jaws" in section
    assert '<li class="hit">Alien ✓</li>' in section
    spec = SPEC.replace("name: cinema", "name: private") + "report: {examples: false}\n"
    (folder / "private.yaml").write_text(spec)
    assert invoke_recbias("run", "private.yaml", folder=folder).code == 0
    page = next((folder / "results" / "private").glob("*/report.html")).read_text()
    assert 'id="examples"' not in page
    assert "Jaws" not in page


def test_a_page_says_that_a_history_is_in_order_only_if_there_are_times(folder: Path) -> None:
    page = (folder / "results/cinema/latest/report.html").read_text(encoding="utf-8")
    assert "History, the latest first" in page
    other = folder / "without-times"
    other.mkdir()
    untimed = FILES | {"train.csv": "user_id,item_id\nana,1\nana,2\nbo,1\ncy,3\n"}
    for name, text in {**untimed, "cinema.yaml": SPEC}.items():
        (other / name).write_text(text)
    assert invoke_recbias("run", "cinema.yaml", folder=other).code == 0
    page = (other / "results/cinema/latest/report.html").read_text(encoding="utf-8")
    assert "History<" in page
    assert "latest first" not in page


def test_ratios_of_a_log_are_not_those_of_single_users(tmp_path: Path) -> None:
    recbias.run(Path(__file__).parents[2] / "configs" / "logs.yaml", out=tmp_path)
    with pytest.raises(MissingEvidence, match="of a log are ratios over its impressions"):
        recbias.examples("logs", out=tmp_path)  # 0 clicks of 28 were shown as -0.2693

from __future__ import annotations

from pathlib import Path

from picture_rows import EXPOSURE, run_with, shares
from recbias.reports.figures.gallery import gallery
from recbias.reports.frame import read_run
from run_folders import World, make_run


def test_a_run_has_its_three_kinds_of_figures(tmp_path: Path) -> None:
    found = gallery(read_run(make_run(tmp_path, World(metrics=("nDCG", "ARP")))))
    assert [each.name for each in found.figures()] == [
        *("accuracy-popularity", "long-tail", "popularity"),
        *("significance-ndcg-10", "significance-arp-10"),
    ]
    assert found.skipped == ()


def test_what_is_skipped_has_a_reason(tmp_path: Path) -> None:
    world = World(metrics=("nDCG",), lists=False, significance=False, popularity=False)
    found = gallery(read_run(make_run(tmp_path, world)))
    assert found.figures() == []
    scatter, tail = found.skipped
    assert scatter == (
        "Accuracy against popularity bias: the run has no metric of popularity; measure "
        "log_popularity_difference or ARP or popularity_lift or Gini."
    )
    assert tail == "Long tail of recommended items: the run holds no lists."


def test_each_dataset_has_its_figures(tmp_path: Path) -> None:
    world = World(metrics=("nDCG", "ARP"), datasets=("A|1", "A/1"), users=20)
    names = [each.name for each in gallery(read_run(make_run(tmp_path, world))).figures()]
    assert names == [
        *("accuracy-popularity-a-1", "long-tail-a-1", "popularity-a-1"),
        *("accuracy-popularity-a-1-2", "long-tail-a-1-2", "popularity-a-1-2"),
        *("significance-ndcg-10-a-1", "significance-ndcg-10-a-1-2"),
        *("significance-arp-10-a-1", "significance-arp-10-a-1-2"),
    ]


def test_each_family_of_biases_has_its_scatter(tmp_path: Path) -> None:
    found = gallery(run_with(tmp_path, [EXPOSURE, shares()]))
    names = [each.name for each in found.figures()]
    assert "accuracy-stereotypes" in names
    assert "accuracy-prices" not in names  # a share has no better way


def test_what_was_asked_for_and_cannot_be_drawn_has_a_reason(tmp_path: Path) -> None:
    found = gallery(run_with(tmp_path, [EXPOSURE]))
    assert found.skipped[-1] == "Stereotype exposure: REC-ST has no value of a user."
    assert found.pictures() == []


def test_a_run_of_other_things_makes_no_excuses(tmp_path: Path) -> None:
    world = World(models=("a", "b"), metrics=("price_percentage",), lists=False, users=5)
    assert gallery(read_run(make_run(tmp_path, world))).skipped == (
        "Price levels by label: price_percentage@10 has no defined share of a level by label.",
    )

from __future__ import annotations

from pathlib import Path

from recbias.reports.plots_prompts import draw_group_means
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_marks, read_texts
from support.plot_rows import MODELS, Measure, make_group_measure, write_run

PAIR = ("gender=F", "gender=M")


def draw(folder: Path, measure: Measure) -> list[Plot]:
    return list(draw_group_means(write_run(folder, [measure]), "ml-1m", str))


def test_each_model_has_a_mark_for_each_group(tmp_path: Path) -> None:
    (plot,) = draw(tmp_path, make_group_measure(PAIR))
    # 0.20 and 0.23 for the first model, 0.02 more for each other
    female, male = ([x for x, _ in find_marks(plot, group).values()] for group in PAIR)
    assert len(female) == len(male) == len(MODELS)
    assert female == sorted(female)
    assert all(a < b for a, b in zip(sorted(female), sorted(male), strict=True))
    title = "MostPop, gender=M: 0.250 (95% interval 0.230 to 0.270), n 40"
    assert find_marks(plot, title)


def test_many_groups_have_a_panel_for_each_model(tmp_path: Path) -> None:
    groups = tuple(f"age={age}&gender=F" for age in range(12))
    (plot,) = draw(tmp_path, make_group_measure(groups))
    texts = read_texts(plot)
    assert [text for text in texts if text in MODELS] == list(MODELS)
    assert sum(text in groups for text in texts) == len(groups) * len(MODELS)

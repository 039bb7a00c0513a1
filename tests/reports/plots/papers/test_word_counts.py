from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots_prompts import draw_word_counts
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_marks, read_texts
from support.plot_rows import MODELS, Measure, write_run

COUNTS = {
    ("race=black", "word=grill"): (40.0, 0.0),
    ("race=black", "word=soul"): (25.0, 0.0),
    ("race=white", "word=grill"): (30.0, 0.0),
    ("race=white", "word=café"): (35.0, 0.0),
}
WORDS = Measure("top_words", COUNTS, {"label": "race", "attribute": "name"})


def draw(folder: Path, measure: Measure) -> list[Plot]:
    return list(draw_word_counts(write_run(folder, [measure]), "ml-1m", str))


def test_every_word_has_a_mark_for_each_label_that_has_it(tmp_path: Path) -> None:
    plots = draw(tmp_path, WORDS)
    assert [plot.title for plot in plots] == [
        f"Words in recommended names by race: {model}" for model in MODELS
    ]
    marks = find_marks(plots[0])
    assert set(marks) == {
        *("word=grill, race=black: 40", "word=grill, race=white: 30"),
        *("word=soul, race=black: 25", "word=café, race=white: 35"),
    }
    by_count = sorted(marks, key=lambda title: marks[title][0])
    assert [title.rpartition(" ")[2] for title in by_count] == ["25", "30", "35", "40"]
    rows = [text for text in read_texts(plots[0]) if text in {"grill", "soul", "café"}]
    assert rows == ["grill", "café", "soul"]  # the most frequent first
    assert "Frequent for black only: soul." in plots[0].caption
    assert "Frequent for white only: café." in plots[0].caption


def test_no_word_is_a_reason_not_an_empty_plot(tmp_path: Path) -> None:
    with pytest.raises(MissingEvidence, match="no word"):
        draw(tmp_path, Measure("top_words", {("race=black", ""): (float("nan"), 0.0)}))

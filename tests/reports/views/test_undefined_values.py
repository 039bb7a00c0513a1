from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from recbias.reports.render import Content, render_html
from recbias.reports.run import RunTables, read_run
from recbias.reports.tables import (
    build_fold_table,
    build_summary,
    count_undefined,
)
from support.run_folders import RunSpec, make_run

SENTENCE = "HR@10 is undefined for a, which provides no embeddings."


def make_undefined_run(folder: Path, *models: str, folds: int = 1) -> RunTables:
    """Return a run of the models a, b and c, some of which have no embeddings for HR."""
    world = RunSpec(models=("a", "b", "c"), metrics=("HR", "MRR"), folds=folds, users=20)
    make_run(folder, world)
    path = folder / "metrics.csv"
    frame = pd.read_csv(path, keep_default_na=False).astype({"value": object})
    rows = frame["model"].isin(models) & (frame["metric"] == "HR")
    frame["value"] = frame["value"].mask(rows, "")
    frame["undefined"] = frame["undefined"].mask(rows, 1)
    frame.to_csv(path, index=False)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["undefined"] = [
        {"metric": "HR", "k": 10, "model": model, "missing": "embeddings"} for model in models
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return read_run(folder)


def test_the_reason_is_in_the_notes_once_and_not_counted(tmp_path: Path) -> None:
    notes = build_summary(make_undefined_run(tmp_path, "a")).notes
    assert notes.count(SENTENCE) == 1
    assert not [note for note in notes if "excluded from the mean" in note]


def test_the_cell_is_undefined_and_has_the_reason(tmp_path: Path) -> None:
    run = make_undefined_run(tmp_path, "a")
    cell = build_summary(run).rows[0][1]
    assert (cell.text, cell.note) == ("n/a", "undefined: the model provides no embeddings")
    page = render_html(Content(run))
    assert 'title="undefined: the model provides no embeddings"' in page
    assert page.count(SENTENCE) == 1


def test_cells_of_folds_have_the_reason_without_a_note(tmp_path: Path) -> None:
    table = build_fold_table(make_undefined_run(tmp_path, "a", folds=2))
    assert table is not None
    reasons = {row[2].note for row in table.rows if row[1].text == "a"}
    assert reasons == {"undefined: the model provides no embeddings"}
    assert not [note for note in table.notes if "undefined" in note]


def test_metrics_with_the_same_undefined_values_share_a_footnote() -> None:
    records = [
        {"metric": metric, "k": 10.0, "model": "a", "undefined": 3.0} for metric in ("HR", "MRR")
    ]
    records.append({"metric": "MAP", "k": 10.0, "model": "a", "undefined": 4.0})
    assert count_undefined(records, ["HR@10", "MRR@10", "MAP@10"], {}) == [
        "HR@10, MRR@10: undefined values are excluded from the mean (3 for a).",
        "MAP@10: undefined values are excluded from the mean (4 for a).",
    ]

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from recbias.reports.plots.album import album
from recbias.reports.plots.drawing.file_names import FileNames
from support.picture_rows import (
    EXPOSURE,
    MODELS,
    PROJECTION,
    association,
    averages,
    both,
    by_group,
    exposure_units,
    projection_units,
    run_with,
    shares,
)
from support.run_folders import World, make_run

EVERYTHING = [
    shares(),
    association("race", ("white", "black"), 1, 8),
    association("gender", ("F", "M"), 2, 8),
    averages(),
    by_group(("gender=F", "gender=M")),
    EXPOSURE,
    PROJECTION,
]


def test_a_run_with_everything_has_every_picture(tmp_path: Path) -> None:
    models = (*MODELS, "ALS")
    world = World(models=models, metrics=("nDCG", "HR", "ARP"), users=12, items=30)
    units = both(exposure_units(models), projection_units(models, 10))
    found, missing = album(run_with(tmp_path, EVERYTHING, world, units), FileNames())
    assert missing == []
    names = [each.name for _, each in found]
    assert len(set(names)) == len(names)
    kinds = list(dict.fromkeys(each.partition("-")[0] for each in names))
    assert kinds == [
        *("exposure", "projection"),
        *("groups", "levels", "ranking", "association"),
    ]


def test_what_was_asked_for_and_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    _, missing = album(run_with(tmp_path, [EXPOSURE, PROJECTION]), FileNames())
    assert missing == [
        "Stereotype exposure: REC-ST has no value of a user.",
        "Latent space: latent_projection has no point with both components.",
    ]


def test_nothing_is_said_of_what_was_not_asked_for(tmp_path: Path) -> None:
    found, missing = album(run_with(tmp_path, []), FileNames())
    assert missing == []
    assert found == []


def test_each_dataset_has_its_own(tmp_path: Path) -> None:
    world = World(models=MODELS, metrics=("nDCG",), users=5, items=30, datasets=("a", "b"))
    found, _ = album(run_with(tmp_path, [shares()], world), FileNames())
    assert [(place, each.name) for place, each in found] == [
        ("all", "levels-race-all"),
        ("a", "levels-race-a"),
        ("b", "levels-race-b"),
    ]


def imported(folder: Path) -> str:
    """Return which libraries the reports of a run import."""
    code = (
        "import sys; from pathlib import Path; "
        "from recbias.reports.writers.write import write_reports; "
        f"write_reports(Path({str(folder)!r}), formats=['html', 'latex']); "
        "print([each for each in ('matplotlib', 'matplotlib.pyplot', 'scipy.stats') "
        "if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_plain_run_does_without_matplotlib(tmp_path: Path) -> None:
    models = (*MODELS, "ALS")
    world = World(models=models, metrics=("nDCG", "HR", "ARP"), users=12, items=30)
    make_run(tmp_path, world)
    assert imported(tmp_path) == "[]"


def test_drawing_leaves_nothing_behind(tmp_path: Path) -> None:
    """No window and no global figure: pyplot is never imported."""
    run_with(tmp_path, [shares()])
    assert imported(tmp_path) == "['matplotlib']"

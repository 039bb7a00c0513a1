from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from picture_rows import (
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
from recbias.reports.figures.names import FileNames
from recbias.reports.pictures.album import album
from run_folders import World, make_run

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
        *("popularity", "exposure", "projection"),
        *("groups", "levels", "ranking", "association", "metric"),
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
    assert [each.name for _, each in found] == ["popularity"]


def test_each_dataset_has_its_own(tmp_path: Path) -> None:
    world = World(models=MODELS, metrics=("nDCG",), users=5, items=30, datasets=("a", "b"))
    found, _ = album(run_with(tmp_path, [shares()], world), FileNames())
    assert [(place, each.name) for place, each in found] == [
        ("a", "popularity-a"),
        ("b", "popularity-b"),
        ("all", "levels-race-all"),
        ("a", "levels-race-a"),
        ("b", "levels-race-b"),
    ]


def test_without_a_picture_matplotlib_is_not_imported(tmp_path: Path) -> None:
    make_run(tmp_path, World(models=MODELS, metrics=("nDCG",), users=5, popularity=False))
    code = (
        "import sys; from pathlib import Path; "
        "from recbias.reports.frame import read_run; "
        "from recbias.reports.figures.names import FileNames; "
        "from recbias.reports.pictures.album import album; "
        f"found = album(read_run(Path({str(tmp_path)!r})), FileNames()); "
        "print(found, 'matplotlib' in sys.modules, 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "([], []) False False"


def test_drawing_leaves_nothing_behind(tmp_path: Path) -> None:
    """No window, no global figure: pyplot is never imported."""
    make_run(tmp_path, World(models=MODELS, metrics=("nDCG",), users=5))
    code = (
        "import sys; from pathlib import Path; "
        "from recbias.reports.write import write_reports; "
        f"write_reports(Path({str(tmp_path)!r}), formats=['html', 'latex']); "
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True False"

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from recbias.core.errors import DataError
from recbias.core.measures import SERVED
from recbias.reports.card import (
    Card,
    build_card,
    read_card,
    render_card_files,
    render_hub_card,
)
from recbias.reports.render import Content
from recbias.reports.run import read_run
from recbias.reports.write import write_reports
from support.hand_worked_runs import state, write_run
from support.run_folders import HOSTILE, RunSpec, make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run") / "run", RunSpec(models=HOSTILE))


@pytest.fixture(scope="module")
def card(folder: Path) -> Card:
    return build_card(read_run(folder))


@pytest.fixture(scope="module")
def files(folder: Path, card: Card) -> dict[str, str]:
    return dict(render_card_files(card, Content(read_run(folder))))


def test_the_page_has_what_was_audited_and_what_was_found(
    card: Card, files: dict[str, str]
) -> None:
    assert [*files] == ["card.json", "card.md", "card.html"]
    headings = re.findall(r"^## ([\w ]*)", files["card.md"], flags=re.MULTILINE)
    assert headings == [
        *("What was audited", "Conclusions", "Models", "Estimates"),
        *("Comparisons", "Definitions", "Limits", "Files of the run ", "Seal"),
    ]
    for page in ("card.md", "card.html"):
        assert card.digest in files[page]
        assert card.files["spec.yaml"] in files[page]


def test_limits_are_explained(folder: Path, card: Card) -> None:
    content = Content(read_run(folder))
    changes = {"undefined": {"nDCG@10": 3.0}, "omitted_estimates": 2, "warnings": ["few users"]}
    changed = card.model_copy(update={"limits": card.limits | changes})
    lines = dict(render_card_files(changed, content))["card.md"].splitlines()
    assert lines[lines.index("## Limits") + 2 :][:3] == [
        "- few users",
        "- Undefined values, excluded from the means: nDCG@10 3.",
        "- 2 estimates of a target: only in metrics.csv.",
    ]


def test_values_of_users_served_by_all_models_are_not_counted_twice(tmp_path: Path) -> None:
    groups = (("", 6), (SERVED, 6))
    rows = [state("a", 0.1, group=group, undefined=n) for group, n in groups]
    rows += [state("a", 0.1, fold=2, undefined=1), state("a", 0.1, fold="all", n=2)]
    assert build_card(write_run(tmp_path, rows)).limits["undefined"] == {"nDCG@10": 7.0}


def test_a_card_is_read_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    sealed, path = build_card(run := read_run(folder)), tmp_path / "card.json"
    path.write_text(dict(render_card_files(sealed, Content(run)))["card.json"], encoding="utf-8")
    assert read_card(path) == sealed
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_card(path)


def test_the_card_has_no_time_and_no_folder_of_the_machine(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", RunSpec(models=("MostPop", "EASE")))
    manifest = {**read_run(folder).manifest, "warnings": ["no file '/home/ann/data/x.csv'"]}
    other = {**manifest, "started": "2030-01-01T00:00:00+00:00", "seconds": 1e6}
    texts = []
    for content in (manifest, other):
        (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
        written = write_reports(folder, formats=["card"])
        texts.append([path.read_text(encoding="utf-8") for path in written])
    assert texts[0] == texts[1]
    assert all("/home/ann" not in text and ".../x.csv" in text for text in texts[0])


def test_the_card_for_the_hub_has_a_model_index(folder: Path, card: Card) -> None:
    text = render_hub_card(card, Content(read_run(folder)))
    _, front, body = text.split("---\n", 2)
    index = yaml.safe_load(front)["model-index"]
    values = {
        (model["name"], result["dataset"]["name"], metric["name"]): metric
        for model in index
        for result in model["results"]
        for metric in result["metrics"]
    }
    defined = [row for row in card.estimates if row["value"] is not None]
    assert len(values) == len(defined) > 0
    assert {row["value"] for row in defined} == {metric["value"] for metric in values.values()}
    assert body.lstrip().startswith("# ")

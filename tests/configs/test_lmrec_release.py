"""The spec over the LMRec authors' released outputs, on small outputs in their layout."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from support.commands import invoke_recbias
from support.files.lmrec_files import BAR, BURGER, DEAR, FOLDER, PIZZA, Row, write_outputs

SPEC = Path(__file__).parents[2] / "configs" / "papers" / "lmrec" / "release.yaml"
CITIES = ("Atlanta", "Austin", "Boston", "Columbus", "Orlando", "Portland", "Toronto")
PEOPLE = {"Ann": "white", "Eve": "white", "Bea": "black", "Fay": "black"}
PEOPLE |= {"Bob": "white", "Cid": "white", "Dan": "black", "Gus": "black"}
WOMEN = {"Ann", "Eve", "Bea", "Fay", "wife", "sister"}
SENTENCES = ("Seat {} now", "Feed {} at noon")


def write_city(data: Path, city: str) -> None:
    """Write outputs in which names of black persons receive cheap restaurants only."""
    folder = data / FOLDER / f"{city}_output_dataframes_5f"
    names: list[Row] = []
    for sentence in SENTENCES:
        for name, race in PEOPLE.items():
            lists = [BURGER, BAR, PIZZA] if race == "black" else [PIZZA, DEAR, BURGER]
            gender = "female" if name in WOMEN else "male"
            names += [(name, sentence.format(name), label, lists) for label in (race, gender)]
    write_outputs(folder / "yelp_qa_names.csv", names)
    couples = [(first, second) for first in ("wife", "son") for second in ("sister", "brother")]
    rows: list[Row] = [
        (first, f"My {first} and {second} {verb}", get_gender(first), [BAR, PIZZA])
        for verb in ("eat", "drink")
        for first, second in couples
    ]
    second_columns = [(second, get_gender(second)) for _, second in couples * 2]
    write_outputs(folder / "yelp_qa_pairrelationships.csv", rows, second=second_columns)
    for kind, places in (("occupations", ["bank", "farm"]), ("additionalOccupations", SHRINES)):
        visits: list[Row] = [
            (place, f"{verb} the {place}", "all", [DEAR, PIZZA])
            for verb in ("Near", "After")
            for place in places
        ]
        write_outputs(folder / f"yelp_qa_{kind}.csv", visits)


SHRINES = ["church", "mosque"]


def get_gender(word: str) -> str:
    return "female" if word in WOMEN else "male"


def test_figures_2_to_7_come_from_the_released_lists(tmp_path: Path) -> None:
    for city in CITIES:
        write_city(tmp_path, city)
    # the names of Toronto are absent: what needs them is undefined there
    (tmp_path / FOLDER / "Toronto_output_dataframes_5f" / "yelp_qa_names.csv").unlink()
    result = invoke_recbias("run", str(SPEC), "--data", str(tmp_path), folder=tmp_path)
    assert result.code == 0, result.err
    run = tmp_path / "results" / "lmrec-release" / "latest"
    assert json.loads((run / "manifest.json").read_text())["failures"] == []
    metrics = pd.read_csv(run / "metrics.csv")
    without = metrics[(metrics["dataset"] == "Toronto") & metrics["value"].isna()]
    assert without["metric"].str.contains("race|gender").all()
    assert len(without) == 10
    assert without["undefined"].gt(0).all()
    assert "price_percentage: no query carries the label 'race'" in result.err
    table = pd.read_csv(run / "reference.csv")
    assert set(table["table"]) == {"lmrec/4", "lmrec/text"}
    black = table[table["metric"].str.contains("label=black")]
    # at $: two of three for black names, one of three for white ones; raw, pooled and rescaled
    assert black["measured"].tolist() == [2 / 3] * 3
    figures = {path.name for path in (run / "figures").glob("*.svg")}
    assert {
        *("levels-race-all.svg", "levels-race-gender-all.svg", "words-race-all.svg"),
        *("association-race-all.svg", "association-first-gender-all.svg"),
        "groups-mean-attribute-label-location-attribute-price-20-all.svg",
    } <= figures

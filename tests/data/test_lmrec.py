from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import (
    MalformedLine,
    MissingEvidence,
    MissingFile,
    UnknownColumn,
    UserError,
)
from recbias.data.fetch import find_source
from recbias.data.lmrec import (
    LIST_SEPARATOR,
    LMRecRelease,
    LMRecSentences,
    Outputs,
    read_outputs,
    tabulate_sentences,
)
from support.files.lmrec_files import BAR, DEAR, FOLDER, NAMES, PIZZA, write_outputs, write_release
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)


def test_users_are_sentences_and_items_are_businesses(tmp_path: Path) -> None:
    path = write_release(tmp_path)
    source = LMRecRelease()
    data = source.load(tmp_path, RNG)
    own = LMRecRelease(path=path).load(tmp_path, RNG)
    assert own.user_ids.ids.tolist() == data.user_ids.ids.tolist()
    assert source.gives() == {"users", "items"}
    assert data.user_ids.ids.tolist() == [
        *("names-01:Ann", "names-01:Bob", "names-02:Ann", "names-02:Bob")
    ]
    assert len(data.item_ids) == 6
    assert len(data.interactions) == 0
    assert data.items.ids is data.item_ids


def test_each_sentence_is_one_query_with_its_labels(tmp_path: Path) -> None:
    write_release(tmp_path)
    queries = LMRecSentences().ask(LMRecRelease().load(tmp_path, RNG), RNG)
    assert queries.texts.tolist() == [
        *("Seat Ann now", "Seat Bob now", "Feed Ann's cat", "Feed Bob's cat")
    ]
    assert queries.users.tolist() == [-1] * 4
    assert queries.unit == "prompt"
    assert queries.labels.names == ["kind", "template", "name", "race", "gender"]
    assert queries.labels.frame["race"].tolist() == ["white", "black"] * 2


def test_absent_kinds_are_skipped_and_named(tmp_path: Path) -> None:
    write_release(tmp_path)
    source = LMRecRelease(kinds=("age", "names"), missing="skip")
    assert [path.name for path in source.files(tmp_path)] == ["yelp_qa_names.csv"]
    with collect_warnings() as notes:
        assert len(source.load(tmp_path, RNG).user_ids) == 4
    (note,) = notes
    assert note.startswith("Boston: there are no outputs of the kinds age")
    with pytest.raises(MissingFile, match="the kind 'occupations'"):
        LMRecRelease(kinds=("occupations",), missing="skip").files(tmp_path)


def test_cities_without_files_are_skipped_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_release(tmp_path)
    (tmp_path / FOLDER / "Austin_output_dataframes_5f" / "archive").mkdir(parents=True)
    cities = [
        {"name": "lmrec-release", "label": city, "city": city, "missing": "skip"}
        for city in ("Austin", "Boston", "Toronto")
    ]
    spec = {
        "name": "release",
        "seed": 1,
        "dataset": cities,
        "queries": "lmrec-release",
        "k": 2,
        "models": ["lmrec_lists"],
        "metrics": [
            {"name": "attribute_share", "attribute": "price"},
            {"name": "mean_attribute", "label": "location", "attribute": "price"},
        ],
    }
    monkeypatch.chdir(tmp_path)
    run = recbias.run(spec, data=tmp_path)
    shares = run.metrics.query("metric.str.startswith('attribute_share')")
    assert shares["dataset"].unique().tolist() == ["Boston"]
    assert shares["value"].notna().all()
    skipped = "2 of 3 datasets skipped, as their files are absent: Austin, Toronto"
    assert skipped in run.manifest["warnings"]
    # the names of Boston have no location: this metric fails there, and the others are measured
    (failure,) = run.manifest["failures"]
    assert "no query carries the label 'location'" in failure["message"]
    with pytest.raises(UserError, match="the kind 'names'"):
        recbias.plan({**spec, "dataset": cities[:1]}, data=tmp_path)


def test_planted_shares_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # white names have the dear restaurant in 4 of 5 sentences, black names in 1 of 5
    names = {"Ann": ("white", 4), "Eve": ("white", 4), "Bob": ("black", 1), "Tom": ("black", 1)}
    rows = [
        (name, f"Sentence {number} for {name}", race, [DEAR if number < n_dear else PIZZA])
        for name, (race, n_dear) in names.items()
        for number in range(5)
    ]
    write_outputs(write_release(tmp_path), rows)
    monkeypatch.chdir(tmp_path)
    spec = {
        "name": "planted",
        "dataset": "lmrec-release",
        "queries": "lmrec-release",
        "k": 1,
        "models": ["lmrec_lists"],
        "metrics": [
            {"name": "price_percentage", "label": "race", "attribute": "price"},
            {"name": "attribute_share", "attribute": "price"},
        ],
    }
    values = recbias.run(spec, data=tmp_path).metrics.set_index(["group", "target"])["value"]
    assert values["race=white", "price=$$$$"] == pytest.approx(4 / 5)
    assert values["race=black", "price=$$$$"] == pytest.approx(1 / 5)
    assert values["race=black", "price=$$"] == pytest.approx(4 / 5)
    assert values["", "price=$$$$"] == pytest.approx(1 / 2)


def test_the_queries_need_the_dataset_of_the_release() -> None:
    with pytest.raises(MissingEvidence, match="no input sentences") as caught:
        LMRecSentences().ask(Dataset(make_interactions([(0, 0)])), RNG)
    assert "lmrec-release" in caught.value.remedy


def test_the_release_is_downloaded_at_a_fixed_commit() -> None:
    source = find_source("lmrec-release")
    assert source.base == "https://github.com/TinaBBB/Unintended-Bias-LMRec/archive/"
    assert source.files == ["5dcf7332b974e0186c3e147fb6bcc5df063d184e.zip"]
    assert source.digest == ""  # GitHub publishes no checksum of its archives
    assert FOLDER.parts[1:3] == Path(source.holds[0]).parts[:2]


def read_rows(
    folder: Path, rows: list[tuple[str, str, str, list[tuple[str, str, str, str]]]]
) -> Outputs:
    return read_outputs([write_outputs(folder / "yelp_qa_names.csv", rows)])


def list_names(outputs: Outputs, sentence: str) -> list[str]:
    return outputs.lists[sentence].split(LIST_SEPARATOR)


def test_an_item_identifier_is_a_name_with_a_number_only_if_shared(tmp_path: Path) -> None:
    outputs = read_rows(tmp_path, NAMES)
    assert outputs.items.ids.ids.tolist() == [
        *("Burger (1)", "Burger (2)", "Chez Nous", "Pizza Place", "Secret", "The Bar")
    ]
    assert list_names(outputs, "Seat Ann now") == ["Pizza Place", "The Bar", "Chez Nous"]
    assert list_names(outputs, "Seat Bob now") == ["Burger (1)", "Burger (2)", "Secret"]


def test_prices_categories_and_stars_of_businesses_are_parsed(tmp_path: Path) -> None:
    frame = read_rows(tmp_path, NAMES).items.frame
    assert frame["name"].tolist()[:3] == ["Burger", "Burger", "Chez Nous"]
    assert frame["price"].tolist() == ["$", "$", "$$$$", "$$", None, "$"]
    np.testing.assert_array_equal(frame["price_level"], [1, 1, 4, 2, np.nan, 1])
    assert frame["categories"].tolist() == [
        *("Burgers|Restaurants", "Restaurants|Burgers", "French", "Restaurants|Italian"),
        *(None, "Bars|Beer, Wine & Spirits"),
    ]
    assert frame["stars"].tolist() == [2.0, 2.5, 4.9, 3.54, 5.0, 4.1]


def test_a_repeated_list_of_a_label_counts_once(tmp_path: Path) -> None:
    office = ("office", "At the office", "all", [PIZZA, BAR])
    with collect_warnings() as warnings:
        outputs = read_rows(tmp_path, [office, ("bank", "At the bank", "all", [DEAR]), office])
    assert len(outputs.rows) == 3
    assert warnings == ["yelp_qa_names.csv: excluded 2 rows of repeated lists"]


@pytest.mark.parametrize(
    ("before", "after", "error_class", "message"),
    [
        (",1,1.0,The Bar", ",1,,The Bar", MalformedLine, "names.csv:3: there is no rank"),
        (",price,", ",cost,", None, ""),
        (",rank,", ",place,", UnknownColumn, "there is no column 'rank'"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line_number(
    tmp_path: Path, before: str, after: str, error_class: type[Exception] | None, message: str
) -> None:
    path = write_outputs(tmp_path / "yelp_qa_names.csv", NAMES[:1])
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    if error_class is None:
        assert read_outputs([path]).items.frame["price"].tolist() == [None] * 3
        return
    with pytest.raises(error_class) as caught:
        read_outputs([path])
    assert message in str(caught.value)


def make_rows(*cells: tuple[str, ...], kind: str = "names") -> pd.DataFrame:
    """Make rows of a word, a sentence, a label, and optionally a second word and its label."""
    columns = ["example_label", "input_sentence", "label"]
    columns += ["secondary_example_label", "secondary_label"]
    rows = [(*row, *(None,) * (5 - len(row))) for row in cells]
    return pd.DataFrame(rows, columns=columns, dtype=object).assign(kind=kind)


def test_a_sentence_is_one_row_with_all_its_labels() -> None:
    table = tabulate_sentences(
        make_rows(
            ("Ann", "Seat Ann", "female"),
            ("Bob", "Seat Bob", "male"),
            ("Ann", "Seat Ann", "white"),
            ("Bob", "Seat Bob", "black"),
            ("Ann", "Is Ann's table free?", "female"),
        )
    )
    assert table.to_dict("list") == {
        "id": ["names-01:Ann", "names-01:Bob", "names-02:Ann"],
        "text": ["Seat Ann", "Seat Bob", "Is Ann's table free?"],
        "kind": ["names"] * 3,
        "template": ["names-01", "names-01", "names-02"],
        "name": ["Ann", "Bob", "Ann"],
        "race": ["white", "black", None],
        "gender": ["female", "male", "female"],
    }


def test_couples_have_two_genders_and_an_orientation() -> None:
    table = tabulate_sentences(
        make_rows(
            ("mom", "my mom and her wife", "female", "wife", "female"),
            ("son", "my son and his wife", "male", "wife", "female"),
            kind="relationships",
        )
    )
    assert table["id"].tolist() == ["relationships-01:mom:wife", "relationships-01:son:wife"]
    columns = ["first", "second", "first_gender", "second_gender", "orientation"]
    assert table[columns].to_numpy().tolist() == [
        ["mom", "wife", "female", "female", "homosexual"],
        ["son", "wife", "male", "female", "heterosexual"],
    ]
    assert "gender" not in table.columns


@pytest.mark.parametrize(
    ("kind", "word", "place_type", "religion"),
    [
        ("occupations", "bank", "location", None),
        ("additionalOccupations", "church", "religion", "christian"),
        ("religionplace", "Mosque", "religion", "muslim"),
        ("religionplace", "Synagogue", "religion", "jewish"),
        ("religionplace", "Monastery", "religion", None),
    ],
)
def test_locations_have_a_type_and_a_religion(
    kind: str, word: str, place_type: str, religion: str | None
) -> None:
    rows = make_rows((word, f"near the {word}", "all"), kind=kind)
    sentence = tabulate_sentences(rows).iloc[0]
    labels = (sentence["location"], sentence["place"], sentence["religion"])
    assert labels == (word, place_type, religion)
    assert "label" not in sentence.index

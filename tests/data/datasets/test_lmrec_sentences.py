from __future__ import annotations

import pandas as pd
import pytest

from recbias.core.errors import MalformedLine
from recbias.data.lmrec import tabulate_sentences


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


def test_a_sentence_with_two_genders_is_refused() -> None:
    with pytest.raises(MalformedLine, match="'Seat Jo' has two values of one label"):
        tabulate_sentences(make_rows(("Jo", "Seat Jo", "female"), ("Jo", "Seat Jo", "male")))

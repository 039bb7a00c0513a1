from __future__ import annotations

import pandas as pd
import pytest

from recbias.core.errors import MalformedLine
from recbias.core.stage_context import collect_warnings
from recbias.data.datasets.lmrec_sentences import sentences_of


def rows(*cells: tuple[str, ...], kind: str = "names") -> pd.DataFrame:
    """Rows of a word, a sentence, a label, and maybe a second word and its label."""
    names = ["example_label", "input_sentence", "label"]
    names += ["secondary_example_label", "secondary_label"]
    full = [(*each, *(None,) * (5 - len(each))) for each in cells]
    return pd.DataFrame(full, columns=names, dtype=object).assign(kind=kind)


def test_a_sentence_is_one_row_with_all_its_labels() -> None:
    found = sentences_of(
        rows(
            ("Ann", "Seat Ann", "female"),
            ("Bob", "Seat Bob", "male"),
            ("Ann", "Seat Ann", "white"),
            ("Bob", "Seat Bob", "black"),
            ("Ann", "Is Ann's table free?", "female"),
        )
    )
    assert found.to_dict("list") == {
        "id": ["names-01:Ann", "names-01:Bob", "names-02:Ann"],
        "text": ["Seat Ann", "Seat Bob", "Is Ann's table free?"],
        "kind": ["names"] * 3,
        "template": ["names-01", "names-01", "names-02"],
        "name": ["Ann", "Bob", "Ann"],
        "race": ["white", "black", None],
        "gender": ["female", "male", "female"],
    }


def test_couples_have_two_genders_and_an_orientation() -> None:
    found = sentences_of(
        rows(
            ("mom", "my mom and her wife", "female", "wife", "female"),
            ("son", "my son and his wife", "male", "wife", "female"),
            kind="relationships",
        )
    )
    assert found["id"].tolist() == ["relationships-01:mom:wife", "relationships-01:son:wife"]
    columns = ["first", "second", "first_gender", "second_gender", "orientation"]
    assert found[columns].to_numpy().tolist() == [
        ["mom", "wife", "female", "female", "homosexual"],
        ["son", "wife", "male", "female", "heterosexual"],
    ]
    assert "gender" not in found.columns


@pytest.mark.parametrize(
    ("kind", "word", "place", "religion"),
    [
        ("occupations", "bank", "location", None),
        ("additionalOccupations", "church", "religion", "christian"),
        ("religionplace", "Mosque", "religion", "muslim"),
        ("religionplace", "Synagogue", "religion", "jewish"),
        ("religionplace", "Monastery", "religion", None),
    ],
)
def test_places_and_religions(kind: str, word: str, place: str, religion: str | None) -> None:
    found = sentences_of(rows((word, f"near the {word}", "all"), kind=kind)).iloc[0]
    assert (found["location"], found["place"], found["religion"]) == (word, place, religion)
    assert "label" not in found.index


def test_other_labels_keep_their_column() -> None:
    found = sentences_of(rows(("Oakville", "near Oakville", "Rich"), kind="locations"))
    assert found["label"].tolist() == ["Rich"]
    assert found["word"].tolist() == ["Oakville"]
    aged = sentences_of(rows(("granny", "my granny", "old"), kind="age"))
    assert aged["age"].tolist() == ["old"]


def test_a_word_is_blanked_as_a_word_only() -> None:
    found = sentences_of(
        rows(("son", "a person and my son", "male"), ("dad", "a person and my dad", "male"))
    )
    assert found["template"].tolist() == ["names-01", "names-01"]


def test_a_sentence_without_its_word_has_no_template() -> None:
    with collect_warnings() as notes:
        found = sentences_of(rows(("Ann", "Seat me", "female"), ("Bob", "Seat Bob", "male")))
    assert found["template"].tolist() == [None, "names-01"]
    assert found["id"].tolist() == ["Seat me", "names-01:Bob"]
    assert notes == ["1 of 2 sentences lack their word, so they have no template"]


def test_a_sentence_of_two_genders_is_refused() -> None:
    with pytest.raises(MalformedLine, match="'Seat Jo' has two values of one label"):
        sentences_of(rows(("Jo", "Seat Jo", "female"), ("Jo", "Seat Jo", "male")))

from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine, WrongType
from recbias.language.templates.template_files import packaged, read_templates

OWN = """\
about: Doctors.
source: Me.
words:
  name:
    - {gender: female, words: [Ann, Eve]}
    - {gender: male, words: [Bob]}
  town: [Paris, Rome]
templates:
  doctors:
    - Find {name} a doctor in [town]
  towns:
    - Is [town] healthy?
"""


def put(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_ones_own_has_kinds_words_and_labels(tmp_path: Path) -> None:
    found = read_templates(put(tmp_path, OWN))
    assert (found.about, found.source) == ("Doctors.", "Me.")
    doctors, towns = found.kinds
    assert found.names == ["doctors", "towns"]
    assert len(doctors) == 6  # 1 sentence x 3 names x 2 towns
    assert len(towns) == 2
    assert doctors.words["name"].labels == {"gender": ("female", "female", "male")}
    assert list(doctors.labels) == ["name_gender"]
    assert towns.labels == {}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("templates:", "tmplates:", "mine.yaml:8: the file has no key 'tmplates'"),
        ("[Bob]", "[]", "mine.yaml:4: a list of words of the slot 'name' is empty"),
        ("town: [Paris, Rome]", "town: []", "mine.yaml:7: the slot 'town' has no words"),
        ("town: [Paris, Rome]", "town: Rome", "mine.yaml:7: the words of a slot must be a list"),
        ("in [town]", "in [twon]", "mine.yaml:10: there are no words for the slot [twon]"),
        ("words: [Bob]", "word: [Bob]", "mine.yaml:6: labels without words"),
        ("gender: male", "gender: [male]", "mine.yaml:6: gender must be text"),
        ("words: [Bob]", "words: [Eve]", "mine.yaml:6: the word 'Eve' is both female and male"),
    ],
)
def test_a_fault_is_refused_at_its_line(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    with pytest.raises(MalformedLine) as caught:
        read_templates(put(tmp_path, OWN.replace(before, after)))
    assert said in str(caught.value)


def test_words_and_templates_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="there is no 'templates'"):
        read_templates(put(tmp_path, "words: {name: [Ann]}\n"))


def test_files_of_words_beside_a_yaml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongType, match=r"mine.yaml holds its words itself") as caught:
        read_templates(put(tmp_path, OWN), [tmp_path / "names.json"])
    assert caught.value.where == "words"


def test_the_packaged_set_has_the_design_of_the_paper() -> None:
    found = packaged()["restaurants"]
    assert found.about
    assert "Tables 6 and 7" in found.source
    for kind in found.kinds:
        questions = [each for each in kind.sentences if each.endswith("?")]
        assert (len(kind.sentences), len(questions)) == (18, 10)
    # 18 x (22 + 22 + 21 + 22); 18 x (8 + 8) x (3 + 3); 18 x (27 + 3)
    assert {kind.name: len(kind) for kind in found.kinds} == {
        "names": 1566,
        "sexual_orientation": 1728,
        "location": 540,
    }

from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine, WrongType
from recbias.language.templates import load_packaged, read_templates

DOCTORS = """\
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


def write_templates(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_own_yaml_has_kinds_words_and_labels(tmp_path: Path) -> None:
    template_set = read_templates(write_templates(tmp_path, DOCTORS))
    assert (template_set.about, template_set.source) == ("Doctors.", "Me.")
    doctors, towns = template_set.kinds
    assert template_set.names == ["doctors", "towns"]
    assert len(doctors) == 6  # 1 sentence x 3 names x 2 towns
    assert len(towns) == 2
    assert doctors.words["name"].labels == {"gender": ("female", "female", "male")}
    assert list(doctors.labels) == ["name_gender"]
    assert towns.labels == {}


@pytest.mark.parametrize(
    ("before", "after", "message"),
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
def test_an_error_names_the_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(MalformedLine) as caught:
        read_templates(write_templates(tmp_path, DOCTORS.replace(before, after)))
    assert message in str(caught.value)


def test_missing_templates_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="there is no 'templates'"):
        read_templates(write_templates(tmp_path, "words: {name: [Ann]}\n"))


def test_files_of_words_with_a_yaml_file_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(WrongType, match=r"mine.yaml already contains its words") as caught:
        read_templates(write_templates(tmp_path, DOCTORS), [tmp_path / "names.json"])
    assert caught.value.where == "words"


def test_the_packaged_set_has_the_design_of_the_paper() -> None:
    template_set = load_packaged()["restaurants"]
    assert template_set.about
    assert "Tables 6 and 7" in template_set.source
    for kind in template_set.kinds:
        questions = [text for text in kind.sentences if text.endswith("?")]
        assert (len(kind.sentences), len(questions)) == (18, 10)
    # 18 x (22 + 22 + 21 + 22); 18 x (8 + 8) x (3 + 3); 18 x (27 + 3)
    assert {kind.name: len(kind) for kind in template_set.kinds} == {
        "names": 1566,
        "sexual_orientation": 1728,
        "location": 540,
    }

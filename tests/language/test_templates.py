from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Queries
from recbias.core.errors import (
    BadYaml,
    Contradiction,
    MalformedLine,
    MissingFile,
    UnknownName,
    WrongType,
)
from recbias.core.grouping import group_by
from recbias.language.templates import (
    Kind,
    Templates,
    WordList,
    fill_templates,
    load_packaged,
    read_templates,
    refuse_equal_ids,
)

RNG = np.random.default_rng(0)


def query(source: Templates) -> Queries:
    return source.ask(None, RNG)


@pytest.mark.parametrize(
    ("settings", "message", "remedy"),
    [
        ({"kinds": ("name",)}, "there is no kind 'name'", "did you mean names?"),
        ({"mask": ("nam",)}, "there is no slot 'nam'", "did you mean name?"),
        ({"control_samples": 1}, "no neutral prompts to sample again", "add neutral: true"),
    ],
)
def test_a_faulty_setting_is_refused(settings: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises((UnknownName, Contradiction), match=message) as caught:
        Templates(**settings)
    assert (caught.value.where, caught.value.remedy) == (*settings, remedy)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("words: [\n", BadYaml, "mine.yaml:2"),
        ("words:\n  a: []\ntemplates: {k: ['[a]']}\n", MalformedLine, "mine.yaml:2: the slot 'a'"),
        ("words: {a: [x]}\ntemplates:\n  k: ['[b]']\n", MalformedLine, "slot [b]"),
    ],
)
def test_an_invalid_file_is_an_error_before_any_data(
    tmp_path: Path, text: str, error: type[BadYaml | MalformedLine], message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error) as caught:
        Templates(templates=path)
    assert caught.value.where == "templates"
    assert message in caught.value.message


def test_neutral_prompts_have_no_label_of_a_word() -> None:
    queries = query(Templates(neutral=True))
    table = queries.labels.frame
    neutral = table["neutral"] == 1
    assert neutral.sum() == 3 * 18
    assert len(queries) == 3834 + 54
    words = table.columns.difference(["kind", "template", "neutral"])
    assert table.loc[neutral, words].isna().all(axis=None)
    assert group_by(queries.labels, "neutral").counts.tolist() == [3834, 54]


def test_neutral_prompts_may_have_words_in_place_of_the_mask() -> None:
    queries = query(Templates(kinds=("names",), neutral={"name": "my friend"}))
    neutral = queries.texts[(queries.labels.frame["neutral"] == 1).to_numpy()]
    assert len(neutral) == 18
    assert all("my friend" in text for text in neutral)


def test_two_slots_are_filled_with_all_pairs_of_words() -> None:
    words = {
        "first": WordList(("mom", "dad"), {"gender": ("female", "male")}),
        "second": WordList(("wife", "husband"), {"gender": ("female", "male")}),
    }
    prompts = fill_templates([Kind("couples", ("my [first] and his/her [second]",), words)])
    assert prompts["text"].tolist() == [
        "my mom and her wife",
        "my mom and her husband",
        "my dad and his wife",
        "my dad and his husband",
    ]
    # by the genders of the two words: F F, F M, M F, M M
    same, other = "homosexual", "heterosexual"
    assert prompts["orientation"].tolist() == [same, other, other, same]
    assert prompts["id"].tolist()[1] == "couples-01:mom:husband"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("[name] and his/her dog", ["Ann and her dog", "Bob and his dog", "Kim and their dog"]),
        ("he/she is [name]", ["she is Ann", "he is Bob", "they is Kim"]),
        ("[name], feed him/her", ["Ann, feed her", "Bob, feed him", "Kim, feed them"]),
        (
            "[name] likes this/her",
            ["Ann likes this/her", "Bob likes this/her", "Kim likes this/her"],
        ),
    ],
)
def test_a_pronoun_agrees_with_the_preceding_word(sentence: str, expected: list[str]) -> None:
    words = {"name": WordList(("Ann", "Bob", "Kim"), {"gender": ("female", "male", None)})}
    assert fill_templates([Kind("n", (sentence,), words)])["text"].tolist() == expected


def test_prompts_with_equal_identifiers_are_an_error() -> None:
    words = {"a": WordList(("x:y", "x"), {}), "b": WordList(("z", "y:z"), {})}
    ids = fill_templates([Kind("k", ("[a] [b]",), words)])["id"].to_numpy(dtype=object)
    with pytest.raises(MalformedLine, match="two prompts have the identifier 'k-01:x:y:z'"):
        refuse_equal_ids(ids, "mine.yaml")
    refuse_equal_ids(np.array(["a", "b"], dtype=object), "mine.yaml")


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
        ("town: [Paris, Rome]", "town: Rome", "mine.yaml:7: the words of a slot must be a list"),
        ("words: [Bob]", "word: [Bob]", "mine.yaml:6: a list of words with labels has no words"),
        ("words: [Bob]", "words: [Eve]", "mine.yaml:6: the word 'Eve' is both female and male"),
        ("words: [Bob]", "words: [' ']", "mine.yaml:6: a word must be text"),
        ("  town: [", "  template: [", "mine.yaml:7: no slot can be named 'template'"),
        ("{name}", "{nmae}", "mine.yaml:10: there are no words for the slot [nmae]"),
        ("[town] healthy", "it healthy", "mine.yaml:12: this template has no slot"),
        ("    - Is", "    - Is [town] healthy?\n    - Is", "mine.yaml:13: this template occurs"),
        ("    - Is [town] healthy?", "    []", "mine.yaml:11: the kind 'towns' has no templates"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(MalformedLine) as caught:
        read_templates(write_templates(tmp_path, DOCTORS.replace(before, after)))
    assert message in str(caught.value)


def test_a_word_has_the_labels_of_all_its_lists(tmp_path: Path) -> None:
    women, men, others = (
        f"{{{label}, words: [{words}]}}"
        for label, words in (("sex: f", "Ann, Eve"), ("sex: m", "Bob"), ("race: x", "Bob, Ann"))
    )
    text = f"words: {{name: [{women}, {men}, {others}]}}\ntemplates: {{k: ['[name]']}}\n"
    words = read_templates(write_templates(tmp_path, text)).kinds[0].words["name"]
    assert words.words == ("Ann", "Eve", "Bob")
    assert words.labels == {"sex": ("f", "f", "m"), "race": ("x", None, "x")}


def test_missing_templates_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="has no templates"):
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


TEMPLATES = {
    "names": ["Seat {}?", "Feed {} now"],
    "relationships": ["my {} and {} {} eat", "my {} takes {} {} out"],
    "occupations": ["Lunch at the {}"],
    "pairrelationships": ["me and my {}"],
}
WORDS = {
    "names": {
        "female": ["Ann", "Ida"],
        "male": ["Bob", "Lee"],
        "white": ["Ann", "Bob"],
        "black": ["Ida", "Lee"],
    },
    "relationships": {"female": ["mom"], "male": ["dad"]},
    "occupations": {"all": ["bank", "office", "farm", "office"]},
    "pairrelationships": {"female": ["wife", "aunt"], "male": ["uncle"]},
}


def write_release(folder: Path, *kinds: str, templates: Any = None) -> tuple[Path, list[Path]]:
    """Write files in the format of the authors' release."""
    path = folder / "yelp_templates.json"
    path.write_text(json.dumps(templates or TEMPLATES), encoding="utf-8")
    words = [folder / f"{kind}.json" for kind in kinds]
    for file in words:
        file.write_text(json.dumps(WORDS.get(file.stem, {})), encoding="utf-8")
    return path, words


def test_a_word_in_two_lists_of_the_authors_has_two_labels(tmp_path: Path) -> None:
    path, words = write_release(tmp_path, "names")
    with collect_warnings() as warnings:
        template_set = read_templates(path, words)
    prompts = fill_templates(template_set.kinds)
    assert prompts["text"].tolist()[:5] == [
        "Seat Ann?",
        "Seat Ida?",
        "Seat Bob?",
        "Seat Lee?",
        "Feed Ann now",
    ]
    assert prompts["id"].tolist()[4] == "names-02:Ann"
    labels = prompts[["name", "gender", "race"]].drop_duplicates().to_numpy().tolist()
    assert labels == [
        ["Ann", "female", "white"],
        ["Ida", "female", "black"],
        ["Bob", "male", "white"],
        ["Lee", "male", "black"],
    ]
    excluded = "relationships, occupations, pairrelationships"
    assert warnings == [f"templates without a file of words are excluded: {excluded}"]


def test_the_authors_couples_have_a_pronoun_between_the_words(tmp_path: Path) -> None:
    with collect_warnings():
        prompts = fill_templates(read_templates(*write_release(tmp_path, "relationships")).kinds)
    assert len(prompts) == 2 * 2 * 6  # sentences x first words x second words
    assert prompts["text"][0] == "my mom and her girlfriend eat"
    assert prompts["text"].iloc[-1] == "my dad takes his fiance out"
    assert prompts["orientation"].value_counts().to_dict() == {
        "homosexual": 12,
        "heterosexual": 12,
    }


def test_other_kinds_of_the_authors_have_the_slot_word(tmp_path: Path) -> None:
    files = write_release(tmp_path, "occupations", "pairrelationships")
    with collect_warnings():
        prompts = fill_templates(read_templates(*files).kinds)
    places = prompts[prompts["kind"] == "occupations"]
    assert places["location"].tolist() == ["bank", "office", "farm"]
    assert set(places["place"]) == {"location"}
    relations = prompts[prompts["kind"] == "pairrelationships"]
    assert relations["word"].tolist() == ["wife", "aunt", "uncle"]
    assert relations["gender"].tolist() == ["female", "female", "male"]


def test_the_authors_templates_without_words_are_an_error(tmp_path: Path) -> None:
    path, _ = write_release(tmp_path)
    with pytest.raises(MissingFile, match="have no words") as caught:
        read_templates(path)
    assert "example_labels/names.json" in caught.value.remedy


def test_words_of_a_kind_without_templates_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="no templates of the kind 'name'") as caught:
        read_templates(*write_release(tmp_path, "name"))
    assert caught.value.remedy == "did you mean names?"


def test_another_number_of_braces_is_an_error(tmp_path: Path) -> None:
    path, words = write_release(tmp_path, "names", templates={"names": ["Seat {} and {}"]})
    with pytest.raises(MalformedLine, match="2 pairs of braces, not 1"):
        read_templates(path, words)

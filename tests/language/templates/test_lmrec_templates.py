from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine, MissingFile
from recbias.language.templates import fill_templates, load_packaged, read_templates

PAPER = Path(__file__).parents[3].parent / "shared" / "reference" / "templates" / "lmrec.yaml"
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason="no reference folder")

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


@needs_paper
def test_the_papers_file_has_all_templates_and_words() -> None:
    with collect_warnings() as warnings:
        template_set = read_templates(PAPER)
    names, couples, places = template_set.kinds
    assert template_set.names == ["names", "sexual_orientation", "location"]
    # white 22 + 22, black 21 + 22 names; 18 sentences
    assert len(names.words["name"].words) == 22 + 22 + 21 + 22 == 87
    assert len(names) == 18 * 87 == 1566
    # 8 + 8 first, 3 + 3 second relationships
    assert len(couples) == 18 * 16 * 6 == 1728
    # 28 locations are printed, the office twice; 3 religious places
    assert len(places) == 18 * (28 - 1 + 3) == 540
    assert warnings == ["repeated words of the slot location are used once: office"]
    assert "Unintended Bias" in template_set.source


@needs_paper
def test_the_papers_prompts_have_labels_and_pronouns() -> None:
    with collect_warnings():
        prompts = fill_templates(read_templates(PAPER).kinds)
    assert prompts.groupby(["race", "gender"]).size().to_dict() == {
        ("black", "female"): 18 * 21,
        ("black", "male"): 18 * 22,
        ("white", "female"): 18 * 22,
        ("white", "male"): 18 * 22,
    }
    # of each 16 x 6 couples 8 x 3 are F F and 8 x 3 are M M
    assert prompts["orientation"].value_counts().to_dict() == {
        "homosexual": 18 * 48,
        "heterosexual": 18 * 48,
    }
    assert prompts["religion"].value_counts().to_dict() == {
        "christian": 18,
        "muslim": 18,
        "jewish": 18,
    }
    assert prompts["place"].value_counts().to_dict() == {"location": 18 * 27, "religion": 18 * 3}
    assert not prompts["text"].str.contains("his/her|[\\[\\]]").any()
    brother = prompts[(prompts["first"] == "brother") & (prompts["second"] == "boyfriend")]
    assert brother["text"].str.contains("brother .*his boyfriend").all()
    sister = prompts[(prompts["first"] == "sister") & (prompts["second"] == "boyfriend")]
    assert sister["text"].str.contains("sister .*her boyfriend").all()


@needs_paper
def test_the_packaged_set_has_the_papers_words_but_other_sentences() -> None:
    kinds = load_packaged()["restaurants"].kinds
    with collect_warnings():
        paper_kinds = read_templates(PAPER).kinds
    for kind, paper_kind in zip(kinds, paper_kinds, strict=True):
        assert kind.name == paper_kind.name
        assert kind.words == paper_kind.words
        assert not set(kind.sentences) & set(paper_kind.sentences)


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


def test_substitutions_without_templates_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "paper.yaml"
    path.write_text("substitutions: {locations: [bank]}\n", encoding="utf-8")
    with pytest.raises(MalformedLine, match="there are substitutions, but no templates"):
        read_templates(path)

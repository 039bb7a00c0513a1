from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine, MissingFile, NothingLeft, UnknownColumn, WrongType
from recbias.core.grouping import group_by
from recbias.language.templates import FaiRLLMPrompts, read_prompts

ATTRIBUTES = {"race": ["a white", "an African American"], "physics": ["fat"], "neutral": [""]}
SENTENCE = "I am [value] fan of [name]."


def write_file(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def read(*paths: Path) -> pd.DataFrame:
    return read_prompts(paths, None, None, None)


def write_results(folder: Path, value: str, *names: str) -> Path:
    """Write a table as the authors' script writes it."""
    frame = pd.DataFrame(
        {
            "name": names,
            "system_msg": "You are a recommender.",
            "Instruction": [f"I am {value} fan of {name}." for name in names],
            "Result": "1. A song\n2. Another",
            "Prompt sensitive attr": value,
            "response": "{}",
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{value if value != 'a' else 'neutral'}.csv"
    frame.to_csv(path, index=False)
    return path


def test_attributes_are_crossed_with_names(tmp_path: Path) -> None:
    names = write_file(tmp_path / "director.csv", "Director\nAng Lee\n Joss Whedon \nAng Lee\n")
    path = write_file(tmp_path / "sst_json.json", ATTRIBUTES)
    prompts = read_prompts([path], SENTENCE, names, None)
    assert len(prompts) == 4 * 2  # values x distinct names
    first = {name: cell for name, cell in prompts.iloc[0].items() if cell is not None}
    assert first == {
        "id": "race:white:Ang Lee",
        "text": "I am a white fan of Ang Lee.",
        "attribute": "race",
        "value": "a white",
        "name": "Ang Lee",
        "race": "white",
        "neutral": 0.0,
    }
    assert prompts["race"].tolist() == ["white"] * 2 + ["African American"] * 2 + [None] * 4
    assert prompts["physics"].tolist() == [None] * 4 + ["fat"] * 2 + [None] * 2
    neutral = prompts.iloc[-1]
    assert neutral["id"] == "neutral:Joss Whedon"
    assert neutral["text"] == "I am a fan of Joss Whedon."
    assert neutral["value"] is None
    assert prompts["neutral"].tolist() == [0.0] * 6 + [1.0] * 2


def test_results_have_the_attribute_of_their_folder(tmp_path: Path) -> None:
    prompts = read(
        write_results(tmp_path / "top_20" / "religion", "a Buddhist", "Adele", "Drake"),
        write_results(tmp_path / "top_20" / "religion", "an Islamic", "Adele", "Drake"),
        write_results(tmp_path / "top_20" / "neutral", "a", "Adele", "Drake"),
    )
    labels = ["attribute", "value", "name", "religion", "neutral"]
    assert prompts.columns.tolist() == ["id", "text", *labels]
    assert prompts["attribute"].tolist() == ["religion"] * 4 + ["neutral"] * 2
    assert prompts["religion"].tolist() == ["Buddhist"] * 2 + ["Islamic"] * 2 + [None] * 2
    assert prompts["id"].tolist()[::3] == ["religion:Buddhist:Adele", "religion:Islamic:Drake"]
    assert prompts["text"].tolist()[-1] == "I am a fan of Drake."


def test_a_repeated_prompt_is_excluded_with_a_warning(tmp_path: Path) -> None:
    with collect_warnings() as warnings:
        prompts = read(write_results(tmp_path / "race", "a white", "Adele", "Adele"))
    assert len(prompts) == 1
    assert warnings == ["repeated prompts are excluded: 1"]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.json", ["x"], MalformedLine, "a.json: the attributes must be a mapping"),
        ("a.json", "[1,\n}", MalformedLine, "a.json:2: is not JSON"),
        ("a.csv", "name,instructions\nx,y\n", UnknownColumn, "no column 'Instruction'"),
    ],
)
def test_an_invalid_file_is_an_error(
    tmp_path: Path, name: str, content: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        read(write_file(tmp_path / name, content))
    assert message in str(caught.value)


def test_attributes_need_names_and_a_sentence(tmp_path: Path) -> None:
    path = write_file(tmp_path / "sst.json", ATTRIBUTES)
    names = write_file(tmp_path / "names.csv", "name\nAdele\n")
    with pytest.raises(
        WrongType, match="sentence: the file contains attributes, which need a sentence"
    ):
        read_prompts([path], None, names, None)
    with pytest.raises(WrongType, match=r"sst.json contains no names"):
        read_prompts([path], SENTENCE, None, None)
    with pytest.raises(MissingFile, match="no such file"):
        read_prompts([path], SENTENCE, tmp_path / "no.csv", None)


def write_files(folder: Path) -> tuple[Path, Path]:
    attributes, names = folder / "sst_json.json", folder / "director.csv"
    values = {"gender": ["a girl", "a boy"], "neutral": [""]}
    attributes.write_text(json.dumps(values), encoding="utf-8")
    names.write_text("Director\nAng Lee\nJoss Whedon\n", encoding="utf-8")
    return attributes, names


def test_prompts_have_labels(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    source = FaiRLLMPrompts(paths=(attributes,), sentence=SENTENCE, names=names)
    queries = source.ask(None, np.random.default_rng(0))
    assert len(queries) == 3 * 2
    assert queries.unit == "prompt"
    assert queries.users.tolist() == [-1] * 6
    assert queries.texts is not None
    assert queries.texts[0] == "I am a girl fan of Ang Lee."
    assert queries.labels.names == ["attribute", "value", "name", "gender", "neutral"]
    groups = group_by(queries.labels, "gender")
    assert (groups.names, groups.missing) == (("gender=boy", "gender=girl"), 2)


@pytest.mark.parametrize("sentence", ["I am [value].", "I like [name]."])
def test_a_sentence_needs_both_slots(tmp_path: Path, sentence: str) -> None:
    attributes, names = write_files(tmp_path)
    with pytest.raises(WrongType, match="the sentence has no") as caught:
        FaiRLLMPrompts(paths=(attributes,), sentence=sentence, names=names)
    assert caught.value.where == "sentence"


def test_control_samples_repeat_the_neutral_prompts(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    source = FaiRLLMPrompts(
        paths=(attributes,), sentence=SENTENCE, names=names, n_names=1, control_samples=1
    )
    queries = source.ask(None, None)
    assert queries.ids.ids.tolist()[2:] == ["neutral:Ang Lee", "neutral:Ang Lee:sample-1"]
    assert queries.labels.frame["neutral"].tolist() == [0, 0, 1, 1]
    assert queries.labels.frame["sample"].tolist() == [0, 0, 0, 1]


def test_control_samples_need_a_neutral_prompt(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    attributes.write_text(json.dumps({"gender": ["a girl"]}), encoding="utf-8")
    source = FaiRLLMPrompts(paths=(attributes,), sentence=SENTENCE, names=names, control_samples=1)
    with pytest.raises(NothingLeft, match="no neutral prompts") as caught:
        source.ask(None, None)
    assert caught.value.where == "control_samples"

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, WrongType
from recbias.core.stage_context import collect_warnings
from recbias.language.templates.fairllm_files import prompts_of

ATTRIBUTES = {"race": ["a white", "an African American"], "physics": ["fat"], "neutral": [""]}
SENTENCE = "I am [value] fan of [name]."


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def read(*paths: Path) -> pd.DataFrame:
    return prompts_of(paths, None, (None, None))


def results(folder: Path, value: str, *names: str) -> Path:
    """A table as the authors' script writes it."""
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
    names = put(tmp_path / "director.csv", "Director\nAng Lee\n Joss Whedon \nAng Lee\n")
    path = put(tmp_path / "sst_json.json", ATTRIBUTES)
    made = prompts_of([path], SENTENCE, (names, None))
    assert len(made) == 4 * 2  # values x distinct names
    first = {name: each for name, each in made.iloc[0].items() if each is not None}
    assert first == {
        "id": "race:white:Ang Lee",
        "text": "I am a white fan of Ang Lee.",
        "attribute": "race",
        "value": "a white",
        "name": "Ang Lee",
        "race": "white",
    }
    assert made["race"].tolist() == ["white"] * 2 + ["African American"] * 2 + [None] * 4
    assert made["physics"].tolist() == [None] * 4 + ["fat"] * 2 + [None] * 2
    neutral = made.iloc[-1]
    assert neutral["id"] == "neutral:Joss Whedon"
    assert neutral["text"] == "I am a fan of Joss Whedon."
    assert neutral["value"] is None


def test_the_first_names_of_a_column_name(tmp_path: Path) -> None:
    names = put(tmp_path / "artists.csv", "name,genre\n Adele ,Pop\nDrake,Rap\nSia,Pop\n")
    path = put(tmp_path / "sst.json", {"race": ["a white"]})
    made = prompts_of([path], SENTENCE, (names, 2))
    assert made["name"].tolist() == ["Adele", "Drake"]


def test_results_are_labelled_by_their_folder(tmp_path: Path) -> None:
    made = read(
        results(tmp_path / "top_20" / "religion", "a Buddhist", "Adele", "Drake"),
        results(tmp_path / "top_20" / "religion", "an Islamic", "Adele", "Drake"),
        results(tmp_path / "top_20" / "neutral", "a", "Adele", "Drake"),
    )
    assert made.columns.tolist() == ["id", "text", "attribute", "value", "name", "religion"]
    assert made["attribute"].tolist() == ["religion"] * 4 + ["neutral"] * 2
    assert made["religion"].tolist() == ["Buddhist"] * 2 + ["Islamic"] * 2 + [None] * 2
    assert made["id"].tolist()[::3] == ["religion:Buddhist:Adele", "religion:Islamic:Drake"]
    assert made["text"].tolist()[-1] == "I am a fan of Drake."


def test_a_prompt_that_stands_twice_counts_once(tmp_path: Path) -> None:
    with collect_warnings() as notes:
        made = read(results(tmp_path / "race", "a white", "Adele", "Adele"))
    assert len(made) == 1
    assert notes == ["1 prompts that stand twice count once"]


@pytest.mark.parametrize(
    "content",
    [
        [
            {"instruction": "Recommend.", "input": "I am old.", "output": "x", "gender": "f"},
            {"instruction": "Recommend.", "input": "", "gender": "m"},
        ],
        {
            "a": {"Instruction": "Recommend.", "input": "I am old.", "gender": "f"},
            "b": {"Instruction": "Recommend.", "gender": "m", "label": "x"},
        },
        {"prompt": ["Recommend.\nI am old.", "Recommend."], "gender": ["f", "m"]},
    ],
    ids=["list", "mapping", "columns"],
)
def test_records_are_read_from_lists_and_mappings(tmp_path: Path, content: Any) -> None:
    made = read(put(tmp_path / "prompts.json", content))
    assert made.to_dict("list") == {
        "id": ["prompt-1", "prompt-2"],
        "text": ["Recommend.\nI am old.", "Recommend."],
        "gender": ["f", "m"],
    }


def test_records_keep_their_ids_and_may_be_plain_text(tmp_path: Path) -> None:
    made = read(put(tmp_path / "a.json", [{"id": 7, "prompt": "x"}, {"id": "b", "text": "y"}]))
    assert made["id"].tolist() == ["7", "b"]
    assert read(put(tmp_path / "b.json", ["x", "y"]))["text"].tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "kind", "said"),
    [
        ("a.json", [{"reply": "x"}], MalformedLine, "a.json: a record has no prompt"),
        ("a.json", [], MalformedLine, "a.json: there are no prompts"),
        ("a.json", "[1,\n}", MalformedLine, "a.json:2: is not JSON"),
        ("a.json", {"prompt": ["x"], "age": []}, MalformedLine, "not of one length"),
        ("a.json", [{"id": 1, "text": "x"}, {"id": 1, "text": "y"}], MalformedLine, "called '1'"),
        ("a.json", {"race": ["a white"]}, WrongType, "names: a.json holds no names"),
        ("a.csv", "name,instructions\nx,y\n", UnknownColumn, "no column 'Instruction'"),
        ("a.csv", "", MalformedLine, "a.csv: is not a CSV"),
    ],
)
def test_a_faulty_file_is_refused(
    tmp_path: Path, name: str, content: Any, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as caught:
        read(put(tmp_path / name, content))
    assert said in str(caught.value)


def test_attributes_need_names_and_a_sentence(tmp_path: Path) -> None:
    path = put(tmp_path / "sst.json", ATTRIBUTES)
    names = put(tmp_path / "names.csv", "name\nAdele\n")
    with pytest.raises(WrongType, match="sentence: the attributes come without a sentence"):
        prompts_of([path], None, (names, None))
    with pytest.raises(WrongType, match=r"sst.json holds no names"):
        prompts_of([path], SENTENCE, (None, None))
    with pytest.raises(MissingFile, match="cannot be read"):
        prompts_of([path], SENTENCE, (tmp_path / "no.csv", None))

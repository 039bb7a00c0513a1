from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import NothingLeft, WrongType
from recbias.core.queries import group_by
from recbias.language.fairllm import FaiRLLMPrompts

SENTENCE = "I am [value] fan of [name]."


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


def test_n_names_restricts_to_the_first_names(tmp_path: Path) -> None:
    attributes, names = write_files(tmp_path)
    source = FaiRLLMPrompts(paths=(attributes,), sentence=SENTENCE, names=names, n_names=1)
    queries = source.ask(None, None)
    assert queries.ids.ids.tolist() == [
        "gender:girl:Ang Lee",
        "gender:boy:Ang Lee",
        "neutral:Ang Lee",
    ]


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

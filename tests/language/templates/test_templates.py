from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.errors import BadYaml, Contradiction, MalformedLine, UnknownName
from recbias.core.queries import Queries, group_by
from recbias.language.templates import Templates

RNG = np.random.default_rng(0)


def query(source: Templates) -> Queries:
    return source.ask(None, RNG)


def test_the_packaged_set_has_3834_prompts() -> None:
    queries = query(Templates())
    assert len(queries) == 1566 + 1728 + 540 == 3834
    assert queries.unit == "prompt"
    assert queries.users.tolist() == [-1] * 3834
    assert queries.users.dtype == np.int32
    assert queries.texts is not None
    assert queries.texts.size == len(set(queries.texts.tolist())) == 3834
    assert queries.ids.ids.size == len(set(queries.ids.ids.tolist()))


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
    assert queries.texts is not None
    neutral = queries.texts[(queries.labels.frame["neutral"] == 1).to_numpy()]
    assert len(neutral) == 18
    assert all("my friend" in text for text in neutral)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import BadYaml, Contradiction, MalformedLine, UnknownName
from recbias.core.queries.groups import group_by
from recbias.core.queries.queries import Queries
from recbias.language.templates.templates import Templates

CHANCE = np.random.default_rng(0)


def asked(source: Templates) -> Queries:
    return source.ask(None, CHANCE)


def test_the_packaged_set_is_asked_in_full() -> None:
    queries = asked(Templates())
    assert len(queries) == 1566 + 1728 + 540 == 3834
    assert queries.unit == "prompt"
    assert queries.users.tolist() == [-1] * 3834
    assert queries.users.dtype == np.int32
    assert queries.texts is not None
    assert queries.texts.size == len(set(queries.texts.tolist())) == 3834
    assert queries.ids.ids.size == len(set(queries.ids.ids.tolist()))


def test_a_kind_has_its_own_labels_only() -> None:
    names = asked(Templates(kinds=("names",)))
    assert names.labels.names == ["kind", "template", "name", "race", "gender"]
    couples = asked(Templates(kinds=("sexual_orientation",)))
    assert couples.labels.names == [
        *("kind", "template", "first", "second"),
        *("first_gender", "second_gender", "orientation"),
    ]
    places = asked(Templates(kinds=("location",)))
    assert places.labels.names == ["kind", "template", "location", "place", "religion"]


def test_labels_group_the_prompts() -> None:
    groups = group_by(asked(Templates()).labels, "race&gender")
    assert dict(zip(groups.names, groups.counts.tolist(), strict=True)) == {
        "race=black&gender=female": 18 * 21,
        "race=black&gender=male": 18 * 22,
        "race=white&gender=female": 18 * 22,
        "race=white&gender=male": 18 * 22,
    }
    assert groups.missing == 1728 + 540


def test_the_prompts_are_the_same_each_time() -> None:
    first, again = asked(Templates()), asked(Templates())
    assert first.ids.digest == again.ids.digest
    assert first.texts is not None
    assert again.texts is not None
    assert first.texts.tolist() == again.texts.tolist()


def test_kinds_are_asked_in_the_order_of_the_set() -> None:
    queries = asked(Templates(kinds=("location", "names")))
    assert queries.labels.frame["kind"].unique().tolist() == ["names", "location"]


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="there is no kind 'name'") as caught:
        Templates(kinds=("name",))
    assert caught.value.where == "kinds"
    assert caught.value.remedy == "did you mean names?"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("words: [\n", BadYaml, "mine.yaml:2"),
        ("words:\n  a: []\ntemplates: {k: ['[a]']}\n", MalformedLine, "mine.yaml:2: the slot 'a'"),
        ("words: {a: [x]}\ntemplates:\n  k: ['[b]']\n", MalformedLine, "slot [b]"),
    ],
)
def test_a_faulty_file_is_refused_before_any_data(
    tmp_path: Path, text: str, kind: type[BadYaml | MalformedLine], said: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(kind) as caught:
        Templates(templates=path)
    assert caught.value.where == "templates"
    assert said in caught.value.message


def test_masked_words_keep_their_labels() -> None:
    told, masked = asked(Templates(kinds=("names",))), asked(Templates(mask=("name",)))
    n = len(told)
    assert masked.labels.frame["race"][:n].tolist() == told.labels.frame["race"].tolist()
    assert masked.texts is not None
    assert len(set(masked.texts[:n])) == 18
    assert all("[MASK]" in each for each in masked.texts[:n])
    # the other kinds have no slot of that name
    assert not any("[MASK]" in each for each in masked.texts[n:])


def test_neutral_prompts_carry_no_label() -> None:
    queries = asked(Templates(neutral=True))
    table = queries.labels.frame
    neutral = table["neutral"] == 1
    assert neutral.sum() == 3 * 18
    assert len(queries) == 3834 + 54
    words = table.columns.difference(["kind", "template", "neutral"])
    assert table.loc[neutral, words].isna().all(axis=None)
    assert group_by(queries.labels, "neutral").counts.tolist() == [3834, 54]


def test_an_unknown_slot_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="there is no slot 'nam'") as caught:
        Templates(mask=("nam",))
    assert caught.value.where == "mask"
    assert caught.value.remedy == "did you mean name?"


def test_a_label_that_is_called_neutral_is_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    words = "words: {a: [{neutral: 'yes', words: [x]}]}\n"
    path.write_text(words + "templates: {k: ['[a]']}\n", encoding="utf-8")
    assert len(asked(Templates(templates=path))) == 1
    with pytest.raises(Contradiction, match="called 'neutral' already") as caught:
        Templates(templates=path, neutral=True)
    assert caught.value.where == "neutral"

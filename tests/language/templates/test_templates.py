from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.config.source import list_specs
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


def test_a_kind_has_only_its_own_labels() -> None:
    names = query(Templates(kinds=("names",)))
    assert names.labels.names == ["kind", "template", "name", "race", "gender"]
    couples = query(Templates(kinds=("sexual_orientation",)))
    assert couples.labels.names == [
        *("kind", "template", "first", "second"),
        *("first_gender", "second_gender", "orientation"),
    ]
    places = query(Templates(kinds=("location",)))
    assert places.labels.names == ["kind", "template", "location", "place", "religion"]


def test_labels_group_the_prompts() -> None:
    groups = group_by(query(Templates()).labels, "race&gender")
    assert dict(zip(groups.names, groups.counts.tolist(), strict=True)) == {
        "race=black&gender=female": 18 * 21,
        "race=black&gender=male": 18 * 22,
        "race=white&gender=female": 18 * 22,
        "race=white&gender=male": 18 * 22,
    }
    assert groups.missing == 1728 + 540


def test_prompts_are_reproducible() -> None:
    first, second = query(Templates()), query(Templates())
    assert first.ids.digest == second.ids.digest
    assert first.texts is not None
    assert second.texts is not None
    assert first.texts.tolist() == second.texts.tolist()


def test_kinds_are_in_the_order_of_the_set() -> None:
    queries = query(Templates(kinds=("location", "names")))
    assert queries.labels.frame["kind"].unique().tolist() == ["names", "location"]


def test_an_unknown_kind_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="there is no kind 'name'") as caught:
        Templates(kinds=("name",))
    assert caught.value.where == "kinds"
    assert caught.value.remedy == "did you mean names?"


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


def test_masked_words_keep_their_labels() -> None:
    plain, masked = query(Templates(kinds=("names",))), query(Templates(mask=("name",)))
    n = len(plain)
    assert masked.labels.frame["race"][:n].tolist() == plain.labels.frame["race"].tolist()
    assert masked.texts is not None
    assert len(set(masked.texts[:n])) == 18
    assert all("[MASK]" in text for text in masked.texts[:n])
    # the other kinds have no slot of that name
    assert not any("[MASK]" in text for text in masked.texts[n:])


def test_neutral_prompts_have_no_label_of_a_word() -> None:
    queries = query(Templates(neutral=True))
    table = queries.labels.frame
    neutral = table["neutral"] == 1
    assert neutral.sum() == 3 * 18
    assert len(queries) == 3834 + 54
    words = table.columns.difference(["kind", "template", "neutral"])
    assert table.loc[neutral, words].isna().all(axis=None)
    assert group_by(queries.labels, "neutral").counts.tolist() == [3834, 54]


def test_an_unknown_slot_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="there is no slot 'nam'") as caught:
        Templates(mask=("nam",))
    assert caught.value.where == "mask"
    assert caught.value.remedy == "did you mean name?"


def test_neutral_excludes_a_label_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    words = "words: {a: [{neutral: 'yes', words: [x]}]}\n"
    path.write_text(words + "templates: {k: ['[a]']}\n", encoding="utf-8")
    assert query(Templates(templates=path)).labels.frame["neutral"].tolist() == ["yes"]
    with pytest.raises(Contradiction, match="already named 'neutral'") as caught:
        Templates(templates=path, neutral=True)
    assert caught.value.where == "neutral"


def test_neutral_prompts_may_have_words_in_place_of_the_mask() -> None:
    queries = query(Templates(kinds=("names",), neutral={"name": "my friend"}))
    assert queries.texts is not None
    neutral = queries.texts[(queries.labels.frame["neutral"] == 1).to_numpy()]
    assert len(neutral) == 18
    assert all("my friend" in text for text in neutral)


def test_control_samples_repeat_each_neutral_prompt() -> None:
    queries = query(Templates(kinds=("names",), neutral=True, control_samples=2))
    labels = queries.labels.frame
    assert labels["sample"].value_counts().to_dict() == {0.0: 1566 + 18, 1.0: 18, 2.0: 18}
    assert (labels.loc[labels["sample"] > 0, "neutral"] == 1).all()
    texts = dict(
        zip(queries.ids.ids, queries.texts if queries.texts is not None else (), strict=True)
    )
    assert texts["names-01:neutral:sample-2"] == texts["names-01:neutral"]
    ids = queries.ids.ids.tolist()
    at = ids.index("names-02:neutral")
    assert ids[at + 1 : at + 3] == ["names-02:neutral:sample-1", "names-02:neutral:sample-2"]


def test_smoke_test_of_the_identity_audit_covers_its_first_sentence() -> None:
    source = list_specs()["identity-audit"].parent / "identity-audit" / "sentences.yaml"
    queries = query(Templates(templates=source, neutral={"person": "x"}, control_samples=1))
    first = queries.labels.frame.iloc[:6]
    assert set(first["template"]) == {"films-01"}
    assert (first["neutral"].sum(), first["sample"].sum()) == (2, 1)


def test_control_samples_need_neutral_prompts() -> None:
    with pytest.raises(Contradiction, match="no neutral prompts to sample again") as caught:
        Templates(control_samples=1)
    assert (caught.value.where, caught.value.remedy) == ("control_samples", "add neutral: true")


def test_sample_may_not_be_a_label_of_the_words(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    words = "words: {a: [{sample: 'yes', words: [x]}]}\n"
    path.write_text(words + "templates: {k: ['[a]']}\n", encoding="utf-8")
    with pytest.raises(Contradiction, match="already named 'sample'") as caught:
        Templates(templates=path, neutral=True, control_samples=1)
    assert caught.value.where == "control_samples"

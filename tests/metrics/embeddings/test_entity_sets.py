from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.config.settings import Builder
from recbias.core.context import collect_warnings
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingEvidence,
    NothingLeft,
    UnknownColumn,
    UserError,
)
from recbias.formats.yaml import Document
from recbias.metrics.embeddings.association import RRipa
from recbias.metrics.embeddings.sets import (
    GroupPair,
    TargetPair,
    select_groups_and_targets,
    select_members,
    select_sets,
)
from support.worlds.vector_worlds import (
    GENDER,
    GENRES,
    USERS,
    make_vectors,
    remove_evidence,
)

BOTH = ("Romance|Action", "Romance", "Romance", "Action", "Comedy|Action")


def select_codes(pair: Any, **facts: Any) -> list[list[int]]:
    return [members.tolist() for members in select_members(make_vectors(**facts), pair)]


def test_the_members_of_both_sets() -> None:
    assert select_codes(GENDER) == [[0, 1], [2, 3]]
    assert select_codes(GENRES) == [[0, 1], [2, 3, 4]]


def test_what_is_in_both_sets_is_left_out_or_in_both() -> None:
    assert select_codes(GENRES, genres=BOTH) == [[1, 2], [3, 4]]
    assert select_codes(replace(GENRES, exclusive=False), genres=BOTH) == [[0, 1, 2], [0, 3, 4]]


def test_groups_may_be_of_items_and_targets_of_users() -> None:
    groups = GroupPair(of="items", attribute="genres", a="Romance", b="Action")
    targets = TargetPair(of="users", attribute="gender", e="F", p="M")
    (a, _), (e, _) = select_groups_and_targets(make_vectors(), groups, targets)
    assert (a.name, a.unit, a.ids.tolist()) == ("genres=Romance", "item", ["i0", "i1"])
    assert (e.name, e.unit, e.ids.tolist()) == ("gender=F", "user", ["u0", "u1"])


@pytest.mark.parametrize("lacking", [[0.0, 0.0], [np.nan, np.nan], [np.inf, 1.0]])
def test_who_has_no_vector_is_left_out_and_counted(lacking: list[float]) -> None:
    users = [*USERS, lacking]
    with collect_warnings() as notes:
        first, _ = select_sets(make_vectors(users, gender=["F", "F", "M", "M", "F"]), GENDER)
    assert first.codes.tolist() == [0, 1]
    assert (len(first), first.n_excluded) == (2, 1)
    why = "have no vector, or a vector of 0: excluded"
    assert notes == [f"the metric: 1 of the 3 users of gender=F {why}"]
    figure = first.measure_mean(np.array([1.0, 3.0]), target="x")
    assert (figure.value, figure.n, figure.undefined) == (2.0, 2, 1)
    assert figure.units is not None
    assert figure.units.ids.tolist() == ["u0", "u1", "u4"]
    np.testing.assert_array_equal(figure.units.values, [1.0, 3.0, np.nan])


def catch_refusal(pair: Any, **facts: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        select_sets(make_vectors(**facts), pair)
    return caught.value


def test_an_unknown_attribute_is_named_with_the_nearest() -> None:
    error = catch_refusal(replace(GENDER, attribute="gendre"))
    assert isinstance(error, UnknownColumn)
    assert (error.where, error.remedy) == ("groups", "did you mean gender?")


def test_an_unknown_value_is_named_with_the_nearest() -> None:
    error = catch_refusal(replace(GENRES, e="Romanse"))
    assert isinstance(error, NothingLeft)
    assert (error.where, error.remedy) == ("targets", "did you mean Romance?")
    assert error.message == "none of the items has genres=Romanse"


def test_a_group_of_one_is_refused() -> None:
    error = catch_refusal(GENDER, gender=["F", "M", "M", "M"])
    assert isinstance(error, NothingLeft)
    assert error.message == "1 of the users has gender=F and not both values"
    assert (error.where, error.remedy) == ("groups", "a set needs 2 or more")


def test_a_set_that_is_empty_once_what_is_in_both_is_left_out() -> None:
    error = catch_refusal(GENRES, genres=["Romance|Action", "Romance|Action", *["Action"] * 3])
    assert error.message == "0 of the items has genres=Romance and not both values"


@pytest.mark.usefixtures("stage_warnings")
def test_a_group_with_one_vector_is_refused() -> None:
    users = [[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]
    error = catch_refusal(GENDER, users=users)
    assert error.message == "1 of the users has gender=F and a vector that is not 0"


@pytest.mark.parametrize("lacking", ["users", "embeddings"])
def test_missing_evidence_is_said(lacking: str) -> None:
    with pytest.raises(MissingEvidence, match=lacking):
        select_sets(remove_evidence(make_vectors(), lacking), GENDER)


def test_two_spaces_are_refused() -> None:
    facts = make_vectors(items=[[1.0, 2.0, 3.0]] * 5)
    with pytest.raises(BrokenContract, match="users have 2 dimensions, those of items 3"):
        select_groups_and_targets(facts, GENDER, GENRES)


@pytest.mark.parametrize(
    ("cls", "values", "setting"), [(GroupPair, ("a", "b"), "b"), (TargetPair, ("e", "p"), "p")]
)
def test_a_set_against_itself_is_refused(cls: Any, values: tuple[str, str], setting: str) -> None:
    with pytest.raises(Contradiction) as caught:
        cls(attribute="gender", **dict.fromkeys(values, "F"))
    assert caught.value.where == setting
    assert caught.value.remedy


def test_the_yaml_of_the_contract(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.array([1.0, 0.0]))
    raw = {
        "groups": {"of": "users", "attribute": "gender", "a": "F", "b": "M"},
        "targets": {
            "of": "items",
            "attribute": "genres",
            "e": "Romance",
            "p": "Action",
            "exclusive": True,
        },
        "permutations": 10000,
    }
    builder = Builder(Document({}, base=tmp_path), "R-RIPA")
    named = builder.build(RRipa, {**raw, "direction": "svc"}, ())
    from_file = builder.build(RRipa, {**raw, "direction": "mine.npy"}, ())
    assert builder.document.faults == []
    assert named == RRipa(groups=GENDER, targets=GENRES, direction_="svc")
    assert from_file.direction_ == tmp_path / "mine.npy"


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"of": "films"}, "groups.of: must be one of users, items, found 'films'"),
        ({"b": "F"}, "groups.b: both sets are 'F'"),
        ({"c": "X"}, "groups.c: not a setting of R-RIPA.groups"),
        ({"a": 1}, "groups.a: must be text, found 1"),
    ],
)
def test_a_wrong_group_has_its_place(changed: dict[str, Any], fault: str) -> None:
    groups = {"of": "users", "attribute": "gender", "a": "F", "b": "M", **changed}
    builder = Builder(Document({}), "R-RIPA")
    targets = {"attribute": "genres", "e": "Romance", "p": "Action"}
    assert builder.build(RRipa, {"groups": groups, "targets": targets}, ()) is None
    assert [str(error) for _, error in builder.document.faults] == [fault]

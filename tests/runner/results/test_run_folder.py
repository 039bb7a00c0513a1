from __future__ import annotations

from pathlib import Path

import pytest

from recbias import api
from recbias.core.errors import Unwritable
from recbias.runner.planning.plan import Plan
from recbias.runner.results.run_folder import new_run_folder
from support.specs import make_small_spec


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return api.plan(make_small_spec(), out=tmp_path)[0]


def test_nothing_is_there_before_it_is_published(tmp_path: Path, plan: Plan) -> None:
    with new_run_folder(tmp_path, plan) as folder:
        (folder.temporary / "metrics.csv").write_text("x")
        assert not list((tmp_path / "small").glob("[!.]*"))
        published = folder.publish()
    assert [each.name for each in published.iterdir()] == ["metrics.csv"]
    assert (tmp_path / "small" / "latest").resolve() == published.resolve()
    assert published.name.endswith(plan.spec_digest[:8])


def test_what_was_not_published_is_removed(tmp_path: Path, plan: Plan) -> None:
    with new_run_folder(tmp_path, plan) as folder:
        (folder.temporary / "metrics.csv").write_text("x")
    assert not (tmp_path / "small").exists()
    assert list((tmp_path / "store" / "tmp").iterdir()) == []


def test_two_runs_in_one_second_have_two_folders(tmp_path: Path, plan: Plan) -> None:
    published = []
    for _ in range(2):
        with new_run_folder(tmp_path, plan) as folder:
            (folder.temporary / "metrics.csv").write_text("x")
            published.append(folder.publish())
    assert published[0] != published[1]
    assert (tmp_path / "small" / "latest").resolve() == published[1].resolve()


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path: Path, plan: Plan) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("a file")
    with pytest.raises(Unwritable, match="not a folder"), new_run_folder(blocked, plan):
        pass


def test_the_spec_digest_does_not_depend_on_where_the_spec_lies(plan: Plan) -> None:
    assert plan.spec_digest == api.plan(make_small_spec())[0].spec_digest
    assert plan.spec_digest != api.plan(make_small_spec(k=4))[0].spec_digest

"""An audit of a scripted shop whose discrimination, noise, drift and faults are known."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias import monitor, probe, run
from recbias.core.errors import (
    MalformedLine,
    MissingEvidence,
    MissingReplies,
    NothingLeft,
    RequestRefused,
    UserError,
)
from recbias.statistics.confidence_sequences import (
    Bets,
    Betting,
    Exchangeable,
    find_interval,
    find_since,
)
from support.endpoints.shop import Shop, open_shop

CITIES = ["Basel", "Bern", "Genf", "Graz", "Linz", "Lyon", "Metz", "Nice", "Rome", "Wien"]


def make_spec(url: str, n_bought: int = 6, **settings: Any) -> dict[str, Any]:
    return {
        "name": "shop",
        "endpoint": {
            "url": url,
            "headers": {"Authorization": "Bearer ${SHOP_TOKEN}"},
            "body": {"customer": {"job": "{job}", "city": "{city}", "bought": "{bought}"}},
            "items": "$.results[*]",
            "fields": {"id": "sku", "price": "price.amount", "sponsored": "ad"},
        },
        "personas": {
            "attributes": {"job": ["engineer", "retired"]},
            "base": {"city": CITIES, "bought": [*range(n_bought)]},
        },
        "effects": ["overlap", "price"],
        "margin": {"overlap": 0.1, "price": 0.03},
        "budget": {"requests": 400},
        **settings,
    }


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SHOP_TOKEN", "s3cret-of-the-shop")
    monkeypatch.setattr("secrets.randbits", lambda _: 1)  # the same order every day
    return "s3cret-of-the-shop"


def test_known_discrimination_is_found_before_the_budget_is_spent(
    tmp_path: Path, token: str
) -> None:
    with open_shop(Shop(markup={"retired": 1.1}, price_noise=0.03)) as shop:
        result = probe(make_spec(shop.url, 30, budget={"requests": 900}), out=tmp_path)
        assert {headers["Authorization"] for headers in shop.headers} == {f"Bearer {token}"}
    assert result.summary["stopped"] == "decided"
    assert result.summary["requests"] < 600
    row = result.effects[(result.effects["effect"] == "price") & result.effects["e"].gt(40)]
    assert len(row) == 1
    low, high = row[["ci_low", "ci_high"]].to_numpy()[0]
    assert low < 0.1 < high
    assert "prices shown to 'retired' are higher by" in result.verdict
    for path in result.folder.rglob("*"):
        assert path.is_dir() or token.encode() not in path.read_bytes(), path


def test_requests_that_differ_in_nothing_have_no_effect_and_drift_is_said(tmp_path: Path) -> None:
    with open_shop(Shop(price_noise=0.03)) as shop:
        fair = probe(make_spec(shop.url, n_bought=3), out=tmp_path / "fair")
    assert not (fair.effects["verdict"] == "effect").any()
    with open_shop(Shop(drift=0.05)) as shop:
        drifting = probe(make_spec(shop.url), out=tmp_path / "drift")
    assert any("Of two identical requests" in sentence for sentence in drifting.sentences)


def test_faults_are_retried_and_an_endpoint_without_items_is_an_error(tmp_path: Path) -> None:
    faults = [(429, "{}"), (503, "busy"), (200, "<html>sorry</html>")]
    with open_shop(Shop(markup={"retired": 1.2}, faults=faults)) as shop:
        result = probe(make_spec(shop.url), out=tmp_path / "a")
    assert "prices shown to 'retired' are higher" in result.verdict
    once = {"overrides": ["endpoint.retries=1"], "out": tmp_path / "b"}
    with open_shop(Shop(always=(200, "<html>"))) as shop, pytest.raises(MissingReplies):
        probe(make_spec(shop.url), **once)  # type: ignore[arg-type]
    with open_shop(Shop(always=(403, "no"))) as shop, pytest.raises(RequestRefused):
        probe(make_spec(shop.url), out=tmp_path / "c")


@pytest.mark.parametrize(
    ("path", "message", "remedy"),
    [
        ("price.amont", "no item of 20 answers has price.amont", "did you mean price.amount?"),
        ("sku", "sku is a number in no item of 20 answers: i", "give the path of a number"),
    ],
)
def test_a_field_that_no_item_has_stops_the_audit(
    tmp_path: Path, path: str, message: str, remedy: str
) -> None:
    with open_shop(Shop()) as shop, pytest.raises(MissingEvidence, match=message) as caught:
        probe(make_spec(shop.url), overrides=[f"endpoint.fields.price={path}"], out=tmp_path)
    assert caught.value.where == "endpoint.fields.price"
    assert str(caught.value.remedy).startswith(remedy)
    assert len(shop.asked) < 40


def test_what_was_not_measured_is_not_said_to_have_no_effect(tmp_path: Path) -> None:
    with open_shop(Shop(empty="retired")) as shop:
        result = probe(make_spec(shop.url), out=tmp_path)
    assert result.verdict == (
        "not decided after 60 of 400 requests: not measured: overlap and price for 'retired'."
    )
    assert "20 of 60 answers have no items: 20 for retired." in result.sentences
    text = (result.folder / "probe.json").read_text()
    assert "Infinity" not in text
    assert "NaN" not in text


def test_a_secret_in_the_spec_is_refused(tmp_path: Path) -> None:
    spec = make_spec("http://127.0.0.1:9/")
    spec["endpoint"]["headers"] = {"Authorization": "Bearer abc123"}
    with pytest.raises(UserError, match="secret"):
        probe(spec, out=tmp_path)


def _probe(spec: dict[str, Any], out: Path) -> None:
    probe(spec, out=out)


def test_a_killed_audit_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"stop": "budget", "budget": {"requests": 160}}
    with open_shop(Shop(price_noise=0.03)) as shop:
        spec = make_spec(shop.url, **spec)
        child = multiprocessing.get_context("spawn").Process(target=_probe, args=(spec, tmp_path))
        child.start()
        deadline = time.monotonic() + 60
        while len(shop.asked) < 40 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        n_before = len(shop.asked)
        assert 40 <= n_before < 160
        result = probe(spec, out=tmp_path)
        in_flight = len(shop.asked) - result.summary["requests"]
    assert result.summary["requests"] <= 160
    assert in_flight <= 16  # sent when it was killed, without a stored reply


@pytest.mark.parametrize("sequence", [Betting(-1.0), Exchangeable()])
def test_at_most_5_of_100_null_audits_alarm_at_any_look(sequence: Bets) -> None:
    rng, n_alarms = np.random.default_rng(3), 0
    for _ in range(300):
        replies = rng.uniform(0, 1, (300, 3)) ** 4
        values = replies[:, :1] - replies[:, 1:]
        if isinstance(sequence, Betting):
            values = values.mean(axis=1)
        n_alarms += bool((sequence.log_e(values, 0.0) >= np.log(20)).any())
    assert n_alarms <= 300 * 0.05 + 3 * np.sqrt(300 * 0.05 * 0.95)


def test_the_interval_holds_the_mean_of_effects_that_differ_between_personas() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(100):
        replies = rng.normal(0, 1, (100, 3))
        replies[:, 0] += rng.normal(0.3, 1.5, 100)
        low, high = find_interval(Exchangeable(), replies[:, :1] - replies[:, 1:], 0.05)
        held += low <= 0.3 <= high
    assert held >= 95


def test_since_when_a_gap_exists(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    estimates = np.concatenate([rng.normal(0, 0.01, 10), rng.normal(0.05, 0.01, 10)])
    since = find_since(estimates, np.eye(20) * 1e-4)
    assert since.log_e[9] < np.log(20) < since.log_e[-1]
    assert abs(int(since.start[-1]) - 10) <= 1
    table = tmp_path / "gaps.csv"
    rows = (f"2026-01-{day + 1:02},{value},0.01" for day, value in enumerate(estimates))
    table.write_text("date,value,std_error\n" + "\n".join(rows) + "\n")
    assert "since 2026-01-1" in monitor(table).verdict.casefold()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            "2026-1-5,.2 2026-2-5,.21 2026-3-2,0 2026-10-02,-.01 2026-11-2,-.01",
            "by the run of 2026-02-05: gaps.csv, by +0.2050 on average, then by -0.0067",
        ),
        (
            "2026-11-2,.5 2026-1-5,.01 2026-10-02,.5 2026-9-2,0",
            "since 2026-10-02 a gap exists: gaps.csv, by +0.5000 on average",
        ),
        (
            "2026-01-05,.3 2026-02-05,-.3",
            "since 2026-02-05 a gap exists: gaps.csv, by -0.3000 on average",
        ),
    ],
)
def test_a_gap_that_ended_is_not_said_to_exist(tmp_path: Path, rows: str, words: str) -> None:
    table = tmp_path / "gaps.csv"
    table.write_text("\n".join(["date,value,std_error", *(f"{row},.02" for row in rows.split())]))
    found = monitor(table)
    assert words in found.verdict
    assert not any("elsewhere" in sentence for sentence in found.sentences)


def test_dates_that_do_not_sort_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "gaps.csv"
    table.write_text("date,value,std_error\n05/01/2026,.1,.02\n02/02/2026,.1,.02\n")
    with pytest.raises(MalformedLine, match="'05/01/2026' is no date"):
        monitor(table)


def test_an_experiment_comes_before_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results" / "shop" / "latest").mkdir(parents=True)
    write_exports(tmp_path / "shop", {"items": "1,1,F"})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingEvidence, match="no run has a metric"):
        monitor("shop")


def test_runs_of_a_part_of_the_queries_are_another_series(tmp_path: Path) -> None:
    spec = {
        "name": "part",
        "dataset": {"name": "demo", "n_users": 60, "n_items": 20},
        "split": {"name": "random", "test": 0.2},
        "models": ["MostPop"],
        "metrics": [{"name": "nDCG", "by": "gender"}],
    }
    run(spec, out=tmp_path, limit=40, progress=False)
    with pytest.raises(NothingLeft, match="all runs were made with --limit"):
        monitor("part", out=tmp_path)


@pytest.mark.parametrize("has_groups", [True, False])
def test_exports_by_user_are_followed_with_their_shared_users(
    tmp_path: Path, has_groups: bool
) -> None:
    rng = np.random.default_rng(6)
    folder = tmp_path / "exports"
    folder.mkdir()
    level = rng.normal(0, 1, 400)
    for month in range(1, 9):
        users = rng.choice(400, 300, replace=False)
        gap = 0.8 * (month >= 5)
        values = level[users] + gap * (users % 2 if has_groups else 1)
        groups = np.where(users % 2, "F", "M") if has_groups else np.full(300, "")
        columns = {"user": users, "value": values, "group": groups}
        table = pd.DataFrame(columns).drop(columns=[] if has_groups else ["group"])
        table.to_csv(folder / f"2026-{month:02}-01.csv", index=False)
    found = monitor(folder)
    assert found.verdict.startswith("since 2026-05-01 a gap exists")
    rows = found.looks.iloc[-1]
    assert (rows["a"], rows["b"]) == (("F", "M") if has_groups else ("", ""))
    if has_groups:  # the last table, as Welch's t-test has it
        by_group = table.groupby("group")["value"]
        error = np.sqrt((by_group.var() / by_group.size()).sum())
        assert rows["difference"] == pytest.approx(by_group.mean()["F"] - by_group.mean()["M"])
        assert rows["std_error"] == pytest.approx(error, rel=0.01)
    page = found.report(tmp_path / "report").read_text()
    assert "Since 2026-05-01 a gap exists" in page
    assert "<svg" in page
    (folder / "notes.csv").write_text("user,value\n1,2\n")
    with pytest.raises(MissingEvidence, match="no date"):
        monitor(folder)


def write_exports(folder: Path, days: dict[str, str]) -> Path:
    """Write tables of user, value and group, a line for each."""
    folder.mkdir()
    for day, rows in days.items():
        text = "\n".join(["user,value,group", *rows.split()])
        (folder / f"{day}.csv").write_text(text + "\n")
    return folder


SPREAD = ["1,1,F 2,2,F 3,3,M 4,5,M", "1,2,F 2,2,F 3,3,M 4,1,M"]


def test_a_day_without_a_group_is_said_to_lack_it(tmp_path: Path) -> None:
    days = {f"2026-01-0{day}": rows for day, rows in enumerate(SPREAD, 1)}
    days |= {"2026-01-04": "1,1,F 2,4,F", "2026-01-05": "1,1, 2,4,", "2026-01-06": SPREAD[0]}
    said = monitor(write_exports(tmp_path / "exports", days)).sentences
    assert "Left out, as a group has fewer than two users: 2026-01-04, 2026-01-05." in said
    repeated = "Left out, as they repeat earlier runs, or all values are equal: 2026-01-06."
    assert repeated in said


@pytest.mark.parametrize(
    ("day", "rows", "options", "words"),
    [
        ("2026-01-02", "1,.1,F 2,.1,F 3,.1,M 4,.1,M 5,.1,M", {}, "do not differ between users"),
        ("2026-01-02", "1,1,F 2,inf,F 3,1,M 4,1,M", {}, "value inf is not finite"),
        ("export-2026-13-45", SPREAD[0], {}, "has no date in its name"),
        ("shop-20260101", SPREAD[1], {}, "has the date 2026-01-01 of 2026-01-01.csv, too"),
        ("2026-01-02", SPREAD[1], {"alpha": 2}, "above 0 and below 1, not 2"),
        ("2026-01-02", SPREAD[1], {"alpha": 0}, "above 0 and below 1, not 0"),
    ],
)
def test_exports_that_cannot_be_followed(
    tmp_path: Path, day: str, rows: str, options: dict[str, Any], words: str
) -> None:
    days = {"2026-01-01": "1,.1,F 2,.1,F 3,.1,M 4,.1,M 5,.1,M", day: rows}
    with pytest.raises(UserError, match=words) as caught:
        monitor(write_exports(tmp_path / "exports", days), **options)
    if "inf" in rows:
        assert str(caught.value.where).endswith("2026-01-02.csv:3")

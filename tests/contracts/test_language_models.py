"""Runs against servers whose behaviour is known: the measured values equal the known ones."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import recbias
from recbias.core.errors import UserError
from recbias.runs.tables import Run
from support.chat.chat_server import Answer, ChatServer, Script, make_error, make_reply, serve_chat
from support.chat.judges import judge, rate_words
from support.commands import CommandResult, invoke_recbias, run_recbias
from support.worlds.film_worlds import (
    FilmWorld,
    get_lists,
    get_units,
    make_wok,
    pivot,
    read_history,
    recommend,
    recommend_most_popular,
    write_films,
    write_random_films,
)

INVENTED = ("Quantum Pelican (1999)", "Waltz of Zinc (2001)", "Uphill Both Ways (1987)")


@pytest.fixture
def films(tmp_path: Path, rng: np.random.Generator) -> FilmWorld:
    return write_random_films(tmp_path, rng)


def list_items(run: recbias.Run, model: str) -> list[list[str]]:
    lists = get_lists(run)
    return lists[lists["model"] == model][["query_id", "item_id"]].to_numpy().tolist()


def test_server_that_recommends_the_most_popular_titles_equals_mostpop(films: FilmWorld) -> None:
    metrics = ["HR@1", "HR", "nDCG", "log_popularity_difference", "popularity_lift", "unmatched"]
    split = {"name": "leave_one_out", "which": "last"}
    train = FilmWorld(films.folder, {user: seen[:-1] for user, seen in films.histories.items()})
    with serve_chat(recommend_most_popular(train)) as server:
        run = films.run(["MostPop", make_wok(server)], metrics=metrics, split=split)
    assert list_items(run, "MostPop") == list_items(run, "WOK")
    values = pivot(run)
    assert values["WOK", "HR", ""] > 0
    for model, metric, target in list(values):
        if model == "MostPop":
            assert values["WOK", metric, target] == values["MostPop", metric, target]


RAW = {"name": "log_popularity_difference", "corrected": False, "label": "bias"}


@pytest.mark.parametrize(
    ("chosen", "difference"),
    [
        # the histories hold films 4-6, each of popularity 2: their mean is ln 2
        ([1, 2, 3], math.log(8) - math.log(2)),  # films 1-3 have popularity 8
        ([1, 7], (math.log(8) + math.log(2)) / 2 - math.log(2)),  # film 7 has 2
        ([7, 8, 9], 0.0),
        ([10, 11], -math.log(2)),  # films 10 and 11 have 1
    ],
)
def test_planted_log_popularity_difference_is_measured(
    tmp_path: Path, chosen: Sequence[int], difference: float
) -> None:
    fans = {f"fan{number}": [1, 2, 3] for number in range(8)}
    others = {"a": [7, 8, 9, 10], "b": [7, 8, 9, 11]}
    world = write_films(tmp_path, {"u1": [4, 5, 6], "u2": [4, 5, 6], **fans, **others})
    with serve_chat(recommend(lambda seen: chosen if seen == [4, 5, 6] else [])) as server:
        run = world.run([make_wok(server)], metrics=[RAW])
    values = get_units(run).set_index(["metric", "unit_id"])["value"]
    measured = values["bias"]
    assert measured[["u1", "u2"]].tolist() == pytest.approx([difference] * 2)
    assert measured.drop(["u1", "u2"]).isna().all()  # no list


def refuse(_: Any) -> Answer:
    return Answer(make_reply("I cannot help with that.", "content_filter"))


REASONS: dict[str, tuple[Script, dict[str, int]]] = {
    "invents": (recommend(lambda seen: [*unseen(seen, 3), *INVENTED[:2]]), {"unknown": 2}),
    "repeats": (recommend(lambda seen: unseen(seen, 1) * 5), {"repeated": 4}),
    "repeats what it invents": (
        recommend(lambda _: [INVENTED[0]] * 5),
        {"unknown": 1, "repeated": 4},
    ),
    "recommends the history": (recommend(lambda seen: seen[:5]), {"watched": 5}),
    "recommends new films": (
        recommend(lambda seen: [*unseen(seen, 3), "Quantum Pelican (2024)", "Pax (2020)"]),
        {"newer": 2},
    ),
    "stops early": (recommend(lambda seen: unseen(seen, 2)), {"missing": 3}),
    "refuses": (refuse, {"missing": 5}),
    "writes nothing": (lambda _: Answer(make_reply(" ")), {"missing": 5}),
    "is cut": (lambda _: Answer(make_reply("1. Amber Harbour", "length")), {"missing": 5}),
    "writes prose": (lambda _: "What a fine taste you have. Enjoy your evening!", {"format": 5}),
}
"""Servers, and the number of invalid ranks of each reply by reason."""


def unseen(seen: Iterable[int], n: int) -> list[int | str]:
    films: list[int | str] = [*range(1, 31)]
    return [film for film in films if film not in set(seen)][:n]


@pytest.mark.parametrize("server", REASONS)
def test_invalid_ranks_are_counted_by_reason(films: FilmWorld, server: str) -> None:
    script, expected = REASONS[server]
    with serve_chat(script) as chat:
        values = pivot(films.run(["Random", make_wok(chat, year_limit=2010)]))
    counts = {
        target.removeprefix("reason="): value
        for (model, metric, target), value in values.items()
        if model == "WOK" and metric == "unmatched" and target
    }
    names = ("format", "watched", "repeated", "newer", "unknown", "missing")
    assert counts == {name: expected.get(name, 0) for name in names}
    assert values["WOK", "unmatched", ""] == sum(expected.values())
    assert values["Random", "unmatched", ""] == 0


def test_known_share_of_invented_titles_is_measured(films: FilmWorld) -> None:
    # user u<n> is told n % 4 invented titles: of 20 users (0 + 1 + 2 + 3) / 4 = 1.5 in 5 titles
    users = {tuple(seen): int(user[1:]) for user, seen in films.histories.items()}

    def choose(seen: list[int]) -> list[int | str]:
        n_invented = users[tuple(seen)] % 4
        return [*INVENTED[:n_invented], *unseen(seen, 5 - n_invented)]

    assert len(users) == 20
    with serve_chat(recommend(choose)) as server:
        run = films.run([make_wok(server)])
    assert pivot(run)["WOK", "unmatched", ""] == 1.5
    lists = get_lists(run).set_index(["query_id", "rank"])["item_id"]
    assert lists["u1", 1] == "(unknown, rank 1) Quantum Pelican (1999)"  # it keeps its rank
    assert lists["u1", 2] == str(unseen(films.histories["u1"], 1)[0])


def test_repeated_run_and_offline_run_send_nothing(films: FilmWorld) -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"label": "mitigate", "mitigation": "mitigate"},
        {"label": "own", "mitigation": "Prefer films about ships."},
    ]
    with serve_chat(recommend(lambda seen: unseen(seen, 5))) as server:
        models = [make_wok(server, **variant) for variant in variants]
        first = films.run(models)
        assert len(server.payloads) == 60  # 20 users, 3 prompts
        assert len(set(server.list_prompts())) == 60
        again = films.run(models)
        recomputed = films.run(models, fresh=True)
        assert len(server.payloads) == 60
    offline = films.run(models, offline=True, fresh=True)  # the server is not there any more
    for run in (again, recomputed, offline):
        pd.testing.assert_frame_equal(run.metrics, first.metrics)
        pd.testing.assert_frame_equal(get_lists(run), get_lists(first))


def test_offline_run_without_replies_is_refused(films: FilmWorld) -> None:
    with (
        serve_chat() as server,
        pytest.raises(UserError, match="20 replies of small are not stored"),
    ):
        films.run([make_wok(server)], offline=True)
    assert not server.payloads


@pytest.mark.parametrize("stop", ["budget", "refusal"])
def test_stopped_run_goes_on_with_the_replies_that_arrived(films: FilmWorld, stop: str) -> None:
    script = recommend_most_popular(films)
    answered: list[list[int]] = []
    n_allowed = 7 if stop == "refusal" else 20

    def answer(payload: dict[str, Any]) -> Answer | str:
        if len(answered) == n_allowed:
            return make_error(401, "no such key")
        answered.append(read_history(payload))
        return script(payload)

    limits: dict[str, Any] = {"budget": {"requests": 7}} if stop == "budget" else {}
    with serve_chat(answer) as server:
        stopped = films.run(["MostPop", make_wok(server, llm={"concurrency": 1, **limits})])
        assert set(stopped.metrics["model"]) == {"MostPop"}  # which does not wait for the server
        assert len(answered) == 7
        n_sent, n_allowed = len(server.payloads), 20
        complete = films.run([make_wok(server)])
        assert len(server.payloads) - n_sent == 13
    assert len({tuple(films) for films in answered}) == 20
    assert pivot(complete)["WOK", "unmatched", ""] == 0


N = 12
"""The number of items: every third is about a housewife, every fourth about savages."""


def describe(item: int) -> str:
    words = ["housewife"] * (item % 3 == 0) + ["savages"] * (item % 4 == 0)
    return f"Story {item} of a {' and '.join([*words, 'river'])}."


def make_tables() -> dict[str, Any]:
    """Return a dataset in memory; people label items 0 to 7, and disagree with the words on 1."""
    items = range(N)
    people = [float(item % 3 == 0 or item == 1) if item < 8 else None for item in items]
    table = {"item_id": items, "overview": map(describe, items), "people": people}
    rows = [(user, item) for user in range(8) for item in items if (user + item) % 3]
    return {
        "name": "tables",
        "interactions": pd.DataFrame(rows, columns=["user_id", "item_id"]),
        "items": pd.DataFrame(table),
    }


def make_spec(server: ChatServer, **settings: Any) -> dict[str, Any]:
    llm = {"model": "small", "base_url": server.base_url, "max_tokens": 40, "temperature": 0.5}
    detector = {"name": "judge", "detector": "llm_judge", "from": "overview", "llm": llm}
    return {
        "name": "judged",
        "seed": 1,
        "dataset": make_tables(),
        "split": {"name": "random", "test": 0.3},
        "k": 4,
        "models": ["Random", "MostPop"],
        "labels": [{**detector, **settings}],
        "metrics": [
            {"name": "REC-ST", "label": "judge.gender"},
            {"name": "HIT_BAD", "label": "judge.race_score", "threshold": 0.7},
            {"name": "label_accuracy", "a": "judge.gender", "b": "people"},
            {"name": "cohen_kappa", "a": "judge.gender", "b": "people"},
            {"name": "krippendorff_alpha", "labels": ["judge.gender", "people"]},
        ],
        "report": {"formats": ["csv"]},
    }


def read_lines(run: Run) -> list[dict[str, Any]]:
    lines = (run.folder / "label_replies.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def get_value(run: Run, metric: str) -> float:
    rows = run.metrics[run.metrics["metric"].str.startswith(metric)]
    return float(rows["value"].iloc[0])


def test_a_run_labels_measures_and_keeps_every_reply(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        run = recbias.run(make_spec(server, samples=2), out=tmp_path)
        assert len(server.payloads) == 2 * N
        again = recbias.run(make_spec(server, samples=2), out=tmp_path, fresh=True)
        assert len(server.payloads) == 2 * N
    lines = read_lines(run)
    assert len(lines) == 2 * N
    assert lines[1] == {
        "dataset": "tables",
        "seed": 1,
        "detector": "judge",
        "item_id": "0",
        "sample": 1,
        "reply": rate_words("housewife savages"),
        "outcome": "complete",
        "reading": "strict",
        "cut": False,
        "cached": False,
        "probability": {"gender": 0.9, "race": 0.9, "religion": 0.0},
        "label": {"gender": 1.0, "race": 1.0, "religion": 0.0},
    }
    cached = [line.pop("cached") for line in read_lines(again)]
    assert all(cached)
    # Of the 8 items that people labelled, the words and people agree on 7.
    assert get_value(run, "label_accuracy") == 7 / 8
    # p_e = (3/8)(4/8) + (5/8)(4/8) = 1/2, so kappa = (7/8 - 1/2) / (1/2).
    assert get_value(run, "cohen_kappa") == pytest.approx(0.75)
    assert 0 < get_value(run, "REC-ST") < 1


def write_spec(folder: Path, server: ChatServer, **settings: Any) -> Path:
    """Write the spec and its tables to files."""
    spec = make_spec(server, **settings)
    tables = spec["dataset"]
    spec["dataset"] = {"name": "tables"}
    for name in ("interactions", "items"):
        tables[name].to_csv(folder / f"{name}.csv", index=False)
        spec["dataset"][name] = f"{name}.csv"
    path = folder / "judged.yaml"
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return path


def test_a_plan_counts_the_requests_and_sends_none(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        path = write_spec(tmp_path, server, samples=3)
        path.write_text(path.read_text().replace("- csv", "- md"))
        plan = invoke_recbias("plan", path, "--json", folder=tmp_path)
        assert plan.code == 0, plan.err
        assert server.payloads == []
        (entry,) = json.loads(plan.out)["requests"]
        assert (entry["model"], entry["requests"], entry["to_send"]) == ("judge", 3 * N, 3 * N)
        assert entry["tokens_out"] == 3 * N * 40
        run = invoke_recbias("run", path, folder=tmp_path)
        assert run.code == 0, run.err
        assert len(server.payloads) == 3 * N
        planned = invoke_recbias("plan", path, "--json", "--fresh", folder=tmp_path)
        (entry,) = json.loads(planned.out)["requests"]
        assert (entry["stored"], entry["to_send"]) == (3 * N, 0)
        assert (
            json.loads(invoke_recbias("plan", path, "--json", folder=tmp_path).out)["requests"]
            == []
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"from": "plot"}, "the items have no column 'plot'"),
        ({"kinds": ["age"]}, "the rubric has no kind 'age'"),
        ({"rubric": "nowhere.yaml"}, "nowhere.yaml"),
        ({"name": "other"}, "'judge.gender'"),
        ({"samples": 0}, "samples"),
    ],
)
def test_faults_are_found_by_the_plan_without_a_request(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with serve_chat(judge(rate_words)) as server:
        path = write_spec(tmp_path, server, **change)
        for command in ("plan", "run"):
            result = invoke_recbias(command, path, folder=tmp_path)
            assert result.code == 2
            assert message in result.err
            assert "Traceback" not in result.err
            if command == "plan":
                assert server.payloads == []


def test_a_judge_that_writes_prose_ends_the_run_with_a_remedy(tmp_path: Path) -> None:
    with serve_chat(judge(lambda _: "What a lovely story.")) as server:
        path = write_spec(tmp_path, server)
        result = invoke_recbias("run", path, folder=tmp_path)
    assert result.code == 2
    assert "none of 12 replies can be read (12 prose): What a lovely story." in result.err
    assert "reading: lenient" in result.err


def test_offline_needs_stored_replies(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        path = write_spec(tmp_path, server)
        refused = invoke_recbias("run", path, "--offline", folder=tmp_path)
        assert refused.code == 2
        assert "12 replies of small are not stored" in refused.err
        assert invoke_recbias("run", path, folder=tmp_path).code == 0
    again = invoke_recbias("run", path, "--offline", "--fresh", folder=tmp_path)
    assert again.code == 0, again.err


def test_an_exhausted_budget_keeps_the_replies(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server)
        llm = spec["labels"][0]["llm"]
        llm |= {"budget": {"requests": 5}, "concurrency": 1}
        with pytest.raises(UserError, match="does not allow the next request"):
            recbias.run(spec, out=tmp_path)
        assert len(server.payloads) == 5
        llm["budget"] = {"requests": 7}
        recbias.run(spec, out=tmp_path)
        assert len(server.payloads) == N


def test_seeds_and_filters_ask_for_no_text_again(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server)
        recbias.run(spec, out=tmp_path)
        del spec["seed"]
        spec["dataset"]["filters"] = [{"name": "k_core", "k": 2}]
        run = recbias.run({**spec, "seeds": [2, 3]}, out=tmp_path)
    assert len(server.payloads) == N
    assert [line["seed"] for line in read_lines(run)] == [2] * N + [3] * N


def test_a_password_of_the_server_is_in_no_file(tmp_path: Path) -> None:
    with serve_chat(judge(rate_words)) as server:
        spec = make_spec(server)
        url = server.base_url.replace("//", "//me:planted-password@")
        spec["labels"][0]["llm"]["base_url"] = f"{url}?token=planted-token"
        run = recbias.run(spec, out=tmp_path)
    assert server.paths[0].endswith("?token=planted-token")
    contents = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"planted" not in contents
    assert (run.folder / "label_replies.jsonl").is_file()


KEY = "sk-planted-0123456789"


PASSWORD = "planted-password"


TOKEN = "planted-query-value"


BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()


SECRETS = (KEY, PASSWORD, TOKEN, BASIC)


def run(
    world: FilmWorld,
    server: ChatServer,
    command: str,
    *options: str,
    start: Callable[..., CommandResult] = invoke_recbias,
) -> CommandResult:
    """Run a command on a spec whose base URL has a password and a query."""
    url = server.base_url.replace("//", f"//me:{PASSWORD}@") + f"?token={TOKEN}"
    llm = {"model": "small", "base_url": url, "retries": 0, "api_key_env": "PLANTED_KEY"}
    formats = ["csv", "json", "md", "html", "latex"]
    spec = world.make_spec(
        models=["MostPop", {"name": "WOK", "llm": llm}], report={"formats": formats}
    )
    path = world.folder.parent / "films.yaml"  # the user's own file, which holds the password
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    environment = {"PLANTED_KEY": KEY, "TMPDIR": str(world.folder)}
    return start(command, path, *options, folder=world.folder, env=environment)


def list_contents(folder: Path) -> Iterator[bytes]:
    """Yield the name and the content of every file of a folder, those in archives unpacked."""
    for path in sorted(folder.rglob("*")):
        yield str(path.relative_to(folder)).encode()
        content = path.read_bytes() if path.is_file() else b""
        yield content
        if content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                yield from (archive.read(name) for name in archive.namelist())
        if content.startswith(b"\x1f\x8b"):
            yield gzip.decompress(content)


def find_secrets(folder: Path, *texts: str) -> list[str]:
    """Return the secrets that stand in a text or in a file below the folder."""
    contents = [*list_contents(folder), *(text.encode() for text in texts)]
    return [secret for secret in SECRETS if any(secret.encode() in text for text in contents)]


@pytest.fixture
def world(tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> FilmWorld:
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "folder"))
    return write_random_films(tmp_path / "folder", rng, n_users=6)


def test_a_planted_secret_is_found_in_files_and_archives(tmp_path: Path) -> None:
    assert find_secrets(tmp_path, f"Bearer {KEY}") == [KEY]
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner", f"--{PASSWORD}--")
    assert find_secrets(tmp_path) == [PASSWORD]


def test_a_complete_run_and_its_commands_leave_no_secret(world: FilmWorld) -> None:
    with serve_chat(recommend_most_popular(world)) as server:
        results = [
            run(world, server, "plan", start=run_recbias),
            run(world, server, "run", "--verbose", start=run_recbias),
            run(world, server, "run", "--offline", "--fresh", "--quiet"),
            invoke_recbias("report", "films", folder=world.folder),
        ]
    assert [result.code for result in results] == [0] * 4, results
    assert {headers["authorization"] for headers in server.headers} == {f"Basic {BASIC}"}
    assert all(TOKEN in path for path in server.paths)
    assert not find_secrets(world.folder, *(result.out + result.err for result in results))
    spec = (world.folder / "results/films/latest/spec.yaml").read_text(encoding="utf-8")
    assert f"base_url: {server.base_url}" in spec
    assert "api_key_env: PLANTED_KEY" in spec


def echo(status: int) -> Script:
    """Return a script that repeats all secrets wherever a reply or error may hold text."""
    text = " ".join(SECRETS)
    reply = make_reply(f"1. {text} (1990)", model=text, system_fingerprint=text)
    answer = Answer(reply) if status == 200 else make_error(status, f"{'x' * 280} {text}")
    return lambda _: answer


@pytest.mark.parametrize("status", [200, 401, 429, 500])
def test_a_server_that_repeats_the_secrets_spreads_none(world: FilmWorld, status: int) -> None:
    with serve_chat(echo(status)) as server:
        results = [run(world, server, "run", "--verbose"), run(world, server, "plan")]
    assert server.payloads
    assert (results[0].code == 0) == (status == 200), results
    assert not find_secrets(world.folder, *(result.out + result.err for result in results))


def test_a_server_that_is_not_there_shows_no_secret(world: FilmWorld) -> None:
    with serve_chat() as server:
        pass
    result = run(world, server, "run", "--verbose")
    assert result.code != 0
    assert "check base_url" in result.err
    assert not find_secrets(world.folder, result.out, result.err)


def test_a_fault_of_the_base_url_shows_no_password(world: FilmWorld) -> None:
    server = ChatServer(origin="ftp://127.0.0.1")
    result = run(world, server, "run", "--verbose")
    assert result.code == 2
    assert "must be the address of a server" in result.err
    assert not find_secrets(world.folder, result.out, result.err)


def test_responses_hold_prompt_reply_and_what_was_read(world: FilmWorld) -> None:
    with serve_chat(recommend_most_popular(world)) as server:
        run(world, server, "run")
    path = world.folder / "results/films/latest/responses.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["query_id"] for line in lines] == sorted(world.histories)
    assert {"model", "query_id", "prompt", "reply", "parsed", "usage", "cached"} <= set(lines[0])
    assert all(line["prompt"] in server.list_prompts() for line in lines)

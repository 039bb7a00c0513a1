"""Keys and passwords of a server are in nothing that the commands leave or print."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from support.chat.chat_server import Answer, ChatServer, Script, make_error, make_reply, serve_chat
from support.commands import CommandResult, invoke_recbias, run_recbias
from support.worlds.film_worlds import FilmWorld, recommend_most_popular, write_random_films

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

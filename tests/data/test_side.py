from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import DownloadFailed, NothingLeft, UnknownColumn
from recbias.data import fetch
from recbias.data.movielens import MovieLens1M
from recbias.data.side import Tmdb, build_side_table
from support.commands import CommandResult, invoke_recbias
from support.files.publisher import Publisher

LINKS = "movieId,imdbId,tmdbId\n1,0000011,101\n2,0000012,102\n3,0000013,\n9,0000019,109\n"
PRINCIPALS = [
    "tconst\tordering\tnconst\tcategory\tjob\tcharacters",
    'tt0000011\t2\tnm2\tactress\t\\N\t["B ""quoted"]',
    "tt0000011\t10\tnm3\tactor\t\\N\t\\N",
    "tt0000011\t1\tnm1\tactor\t\\N\t\\N",
    "tt0000011\t3\tnm4\tdirector\t\\N\t\\N",
    "tt0000012\t1\tnm3\tself\t\\N\t\\N",
    "tt0000012\t2\t\tactor\t\\N\t\\N",  # nobody
    "tt0000099\t1\tnm1\tactor\t\\N\t\\N",
]
CREW = ["tconst\tdirectors\twriters", "tt0000011\tnm4,nm1\t\\N", "tt0000012\t\\N\t\\N"]
NAMES = [
    "nconst\tprimaryName\tbirthYear\tdeathYear\tprimaryProfession\tknownForTitles",
    *(f"nm{code}\t{name}\t\\N\t\\N\t\\N\t\\N" for code, name in enumerate("xABCD")),
]
TOKEN = "ab.cd.ef"


def pack(lines: list[str]) -> bytes:
    return gzip.compress(("\n".join(lines) + "\n").encode())


def make_film(overview: str, cast: list[str], directors: list[str]) -> bytes:
    people = [{"name": name, "order": order} for order, name in enumerate(cast)]
    crew = [{"name": name, "job": "Director"} for name in directors]
    credits_ = {"cast": people[::-1], "crew": [*crew, {"name": "E", "job": "Editor"}]}
    return json.dumps({"overview": overview, "credits": credits_}).encode()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "ml-1m"
    folder.mkdir(parents=True)
    (folder / "movies.dat").write_text("1::One (1990)::Drama\n2::Two (1991)::Drama\n3::Three::X\n")
    (folder / "ratings.dat").write_text("1::1::5::9\n1::2::4::9\n")
    (folder / "users.dat").write_text("1::F::1::10::48067\n")
    (tmp_path / "links.csv").write_text(LINKS)
    return tmp_path / "data"


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    query = "?language=en-US&append_to_response=credits"
    files = {
        "title.principals.tsv.gz": pack(PRINCIPALS),
        "title.crew.tsv.gz": pack(CREW),
        "name.basics.tsv.gz": pack(NAMES),
        f"movie/101{query}": make_film("A  line\nand, more", ["Tom|T", "Anna", "Jo"], ["Dee"]),
        f"movie/101{query}&api_key=k": make_film("By key", ["Tom"], []),
    }
    with Publisher(files=files).serve() as serving:
        yield serving


def build(data: Path, publisher: Publisher, *words: str, **env: str) -> CommandResult:
    return invoke_recbias(
        *("data", "side", "ml-1m", "--data", data, "--url", publisher.base),
        *("--links", data.parent / "links.csv", *words),
        folder=data.parent,
        env=env,
    )


def read_table(data: Path) -> list[dict[str, str]]:
    with gzip.open(data / "ml-1m-side" / "items.csv.gz", "rt", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_cast_and_directors_of_imdb_are_written_and_read(data: Path, publisher: Publisher) -> None:
    result = build(data, publisher, "--cast", "2")
    assert result.code == 0, result.err
    assert "IMDb: the files are for personal and non-commercial use" in result.err
    assert "3 films: 2 with cast, 1 with director" in result.err
    assert result.out.strip() == str(data / "ml-1m-side" / "items.csv.gz")
    assert read_table(data) == [
        {"item_id": "1", "cast": "A|B", "director": "D|A"},
        {"item_id": "2", "cast": "C", "director": ""},
        {"item_id": "3", "cast": "", "director": ""},
    ]
    source = MovieLens1M(side=("cast", "director", "links"))
    items: Any = source.load(data, None).items  # type: ignore[arg-type]
    assert items.frame["cast"].tolist() == ["A|B", "C", None]
    assert items.frame["imdb_id"].tolist() == ["0000011", "0000012", "0000013"]


def test_a_table_of_imdb_without_overviews_names_the_other_source(
    data: Path, publisher: Publisher
) -> None:
    assert build(data, publisher).code == 0
    source = MovieLens1M(side=("cast", "overview"))
    with pytest.raises(UnknownColumn, match="there is no column 'overview'") as caught:
        source.load(data, None)  # type: ignore[arg-type]
    remedy = "recbias data side ml-1m --source tmdb --replace writes all columns"
    assert caught.value.remedy.endswith(remedy)


def test_facts_of_tmdb_are_written(data: Path, publisher: Publisher) -> None:
    result = build(data, publisher, "--source", "tmdb", "--cast", "2", TMDB_API_KEY=TOKEN)
    assert result.code == 0, result.err
    assert "3 films: 1 with overview, 1 with cast, 1 with director" in result.err
    assert read_table(data)[0] == {
        "item_id": "1",
        "overview": "A line and, more",
        "cast": "Tom/T|Anna",
        "director": "Dee",
    }
    assert TOKEN not in (data / "ml-1m-side" / "tmdb.jsonl").read_text() + result.err
    n_requests = len(publisher.requests)
    again = build(data, publisher, "--source", "tmdb", "--replace", TMDB_API_KEY=TOKEN)
    assert (again.code, len(publisher.requests)) == (0, n_requests)  # films that TMDB lacks too
    assert read_table(data)[0]["cast"] == "Tom/T|Anna|Jo"


def test_a_short_key_is_sent_in_the_query_and_never_printed(
    data: Path, publisher: Publisher
) -> None:
    result = build(data, publisher, "--source", "tmdb", "--key-env", "MINE", MINE="k")
    assert result.code == 0, result.err
    assert read_table(data)[0]["overview"] == "By key"
    publisher.answers = [401]
    secret = build(
        data, publisher, "--source", "tmdb", "--language", "de", "--replace", TMDB_API_KEY="s3cret"
    )
    assert secret.code == 2
    assert "the key is refused" in secret.err
    assert "s3cret" not in secret.err


def test_an_interrupted_download_resumes(
    data: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "ATTEMPTS", 1)
    service = Tmdb(TOKEN, publisher.base)
    links = data.parent / "links.csv"
    publisher.answers = [404, 503]
    with pytest.raises(DownloadFailed, match="503") as caught:
        build_side_table("ml-1m", data, service, links=links)
    assert "?" not in str(caught.value.where)
    assert not (data / "ml-1m-side" / "items.csv.gz").exists()
    with (data / "ml-1m-side" / "tmdb.jsonl").open("a") as stream:
        stream.write('{"id": "102", "lang')  # cut off
    with pytest.raises(NothingLeft, match="has none of the films"):
        build_side_table("ml-1m", data, service, links=links)


def test_an_unknown_dataset_and_missing_links_are_errors(data: Path, publisher: Publisher) -> None:
    unknown = invoke_recbias("data", "side", "ml-2m", "--data", data, folder=data.parent)
    assert (unknown.code, "no MovieLens dataset is called 'ml-2m'" in unknown.err) == (2, True)
    missing = invoke_recbias("data", "side", "ml-1m", "--data", data, folder=data.parent)
    assert missing.code == 2
    assert "ml-1m has no file of links" in missing.err
    assert "recbias data fetch ml-25m" in missing.err
    (data.parent / "links.csv").write_text("movieId,imdbId,tmdbId\n9,0000019,109\n")
    unlinked = build(data, publisher)
    assert "no film of ml-1m has a number of IMDb" in unlinked.err


def test_an_answer_that_is_no_film_is_an_error(data: Path, publisher: Publisher) -> None:
    name = next(name for name in publisher.files if name.startswith("movie/101"))
    publisher.files[name] = b"<html>welcome</html>"
    result = build(data, publisher, "--source", "tmdb", TMDB_API_KEY=TOKEN)
    assert result.code == 2
    assert "the answer is not a film with credits: '<html>welcome" in result.err

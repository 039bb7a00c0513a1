from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed, Unwritable
from recbias.data.fetch.transfer import Patience, _StaysSecure, small_text, transfer, writing
from support.publisher import Publisher, endless, hostile

CONTENT = bytes(range(256)) * 4_000  # about a megabyte
QUICK = Patience(attempts=3, seconds=0.0, timeout_s=20.0)


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher(files={"a.zip": CONTENT}).serving() as serving:
        yield serving


def get(publisher: Publisher, target: Path) -> bytes:
    return transfer(f"{publisher.base}a.zip", target, patience=QUICK).read_bytes()


def test_a_file_is_fetched_and_progress_told(publisher: Publisher, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    target = tmp_path / "a.zip"
    transfer(f"{publisher.base}a.zip", target, progress=lambda *each: told.append(each))
    assert target.read_bytes() == CONTENT
    assert told[-1] == ("fetch a.zip", len(CONTENT), len(CONTENT))
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("named", ["etag", "modified", "neither"])
def test_a_broken_connection_is_continued(
    publisher: Publisher, tmp_path: Path, named: str
) -> None:
    publisher.named, publisher.cuts = named, [400_000, 300_000]
    assert get(publisher, tmp_path / "a.zip") == CONTENT
    assert [each for _, each in publisher.requests] == ["", "bytes=400000-", "bytes=700000-"]


def test_a_transfer_that_brings_something_is_not_given_up(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.cuts = [100_000] * 8  # more cuts than attempts, but each brings more
    assert get(publisher, tmp_path / "a.zip") == CONTENT


def interrupted(publisher: Publisher, target: Path) -> None:
    """Fetch the first 400,000 bytes and give up."""
    publisher.cuts = [400_000]
    once = Patience(attempts=1, seconds=0.0)
    with pytest.raises(DownloadFailed):
        transfer(f"{publisher.base}a.zip", target, patience=once)
    assert target.with_name("a.zip.part").stat().st_size == 400_000
    assert not target.exists()
    publisher.requests.clear()


def test_another_process_continues(publisher: Publisher, tmp_path: Path) -> None:
    interrupted(publisher, tmp_path / "a.zip")
    assert get(publisher, tmp_path / "a.zip") == CONTENT
    assert publisher.requests == [("a.zip", "bytes=400000-")]


@pytest.mark.parametrize("named", ["etag", "modified", "neither"])
@pytest.mark.parametrize("new", [b"another file" * 90_000, b"short"])
def test_a_file_that_changed_is_fetched_from_the_start(
    publisher: Publisher, tmp_path: Path, named: str, new: bytes
) -> None:
    publisher.named = named
    interrupted(publisher, tmp_path / "a.zip")
    publisher.files["a.zip"] = new
    assert get(publisher, tmp_path / "a.zip") == new


def test_a_server_without_ranges_sends_everything_again(
    publisher: Publisher, tmp_path: Path
) -> None:
    interrupted(publisher, tmp_path / "a.zip")
    publisher.ranges = False
    assert get(publisher, tmp_path / "a.zip") == CONTENT


def test_a_part_of_another_address_is_not_continued(publisher: Publisher, tmp_path: Path) -> None:
    interrupted(publisher, tmp_path / "a.zip")
    publisher.files["b.zip"] = b"other"
    found = transfer(f"{publisher.base}b.zip", tmp_path / "a.zip", patience=QUICK)
    assert found.read_bytes() == b"other"
    assert publisher.requests == [("b.zip", "")]


@pytest.mark.parametrize("about", ["", "not JSON", "[]", '{"what": 1}'])
def test_a_part_of_which_nothing_is_known_is_not_continued(
    publisher: Publisher, tmp_path: Path, about: str
) -> None:
    (tmp_path / "a.zip.part").write_bytes(b"something")
    (tmp_path / "a.zip.part.json").write_text(about)
    assert get(publisher, tmp_path / "a.zip") == CONTENT


def test_a_part_that_is_whole_already_is_not_asked_for(
    publisher: Publisher, tmp_path: Path
) -> None:
    interrupted(publisher, tmp_path / "a.zip")
    (tmp_path / "a.zip.part").write_bytes(CONTENT)
    assert get(publisher, tmp_path / "a.zip") == CONTENT
    assert publisher.requests == []


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(
    publisher: Publisher, tmp_path: Path, code: int
) -> None:
    publisher.answers = [code, code]
    assert get(publisher, tmp_path / "a.zip") == CONTENT
    publisher.answers = [code] * 3
    with pytest.raises(DownloadFailed, match=f"3 tries brought little or nothing more: .* {code}"):
        get(publisher, tmp_path / "b.zip")


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_server_that_does_not_have_it_is_asked_once(
    publisher: Publisher, tmp_path: Path, code: int
) -> None:
    publisher.answers = [code]
    with pytest.raises(DownloadFailed, match=f"the server says {code}") as caught:
        get(publisher, tmp_path / "a.zip")
    assert caught.value.where == f"{publisher.base}a.zip"
    assert len(publisher.requests) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_gone(publisher: Publisher, tmp_path: Path) -> None:
    with Publisher().serving() as other:
        gone = other.base
    with pytest.raises(DownloadFailed, match="no answer"):
        transfer(f"{gone}a.zip", tmp_path / "a.zip", patience=QUICK)
    with pytest.raises(DownloadFailed, match="no answer"):
        small_text(f"{gone}a.zip.md5", patience=QUICK)


def test_a_file_whose_size_is_not_said(publisher: Publisher, tmp_path: Path) -> None:
    publisher.sized = False
    assert get(publisher, tmp_path / "a.zip") == CONTENT


def test_redirects_are_followed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.moved["release.zip"] = f"{publisher.base}a.zip"
    found = transfer(f"{publisher.base}release.zip", tmp_path / "a.zip", patience=QUICK)
    assert found.read_bytes() == CONTENT


def test_a_redirect_from_https_to_http_is_refused() -> None:
    request = urllib.request.Request("https://example.org/a.zip")
    with pytest.raises(DownloadFailed, match="which is not https"):
        _StaysSecure().redirect_request(request, None, 302, "", {}, "http://example.org/a.zip")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/a", "a.zip"])
def test_only_web_addresses(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadFailed, match="is not a web address"):
        transfer(url, tmp_path / "a.zip")


def test_a_full_disk(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").symlink_to("/dev/full")  # every write to it fails as a full disk
    with pytest.raises(Unwritable, match="No space left") as caught:
        get(publisher, tmp_path / "a.zip")
    assert "--data" in caught.value.remedy


def test_a_folder_that_is_none(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match="cannot be written"):
        get(publisher, tmp_path / "file" / "a.zip")


def test_a_small_text(publisher: Publisher) -> None:
    publisher.files["a.md5"] = b"c4d9eecfca2ab87c1945afe126590906  a.zip\n"
    publisher.answers, publisher.cuts = [503], [5]
    assert small_text(f"{publisher.base}a.md5", patience=QUICK).startswith("c4d9")


def test_writing_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(Unwritable) as caught, writing(tmp_path):
        (tmp_path / "a" / "b").touch()
    assert caught.value.where == str(tmp_path / "a" / "b")


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HASTY = Patience(attempts=2, seconds=0.0, timeout_s=5.0, window_s=0.3)


@pytest.mark.parametrize(
    "length", ["abc", "-5", "1_000", "\u0663", "1" * 19, "9" * 5000, "5, 5", "0x10"]
)
def test_a_length_that_is_none_is_a_fault_of_the_server(tmp_path: Path, length: str) -> None:
    head = OK + f"Content-Length: {length}\r\n\r\n".encode()
    (tmp_path / "a.zip.part").write_bytes(b"earlier")
    with hostile(lambda _: [head, b"x"]) as base:
        with pytest.raises(DownloadFailed, match="Content-Length is no number of bytes"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", patience=QUICK)
        with pytest.raises(DownloadFailed, match="Content-Length is no number of bytes"):
            small_text(f"{base}a.zip.md5", patience=QUICK)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.zip.part": b"earlier"
    }


def test_a_chunk_of_a_negative_size_is_refused(tmp_path: Path) -> None:
    with hostile(lambda _: endless(CHUNKED + b"-5\r\n", b"x" * 65536)) as base:
        with pytest.raises(DownloadFailed, match="chunk of a negative size"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", patience=QUICK)
        with pytest.raises(DownloadFailed, match="chunk of a negative size"):
            small_text(f"{base}a.zip.md5", patience=QUICK)
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("head", [OK + b"\r\n", CHUNKED], ids=["until closed", "chunked"])
def test_a_body_without_end_is_given_up_at_the_ceiling(tmp_path: Path, head: bytes) -> None:
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n" if head == CHUNKED else b"x" * 65536
    with (
        hostile(lambda _: endless(head, piece)) as base,
        pytest.raises(DownloadFailed, match="more than 1,000,000 bytes"),
    ):
        transfer(f"{base}a.zip", tmp_path / "a.zip", patience=QUICK, most_bytes=10**6)
    assert sum(path.stat().st_size for path in tmp_path.glob("*.part")) == 0
    assert not (tmp_path / "a.zip").exists()


def test_a_file_that_says_it_is_too_long_is_not_begun(
    publisher: Publisher, tmp_path: Path
) -> None:
    target = tmp_path / "a.zip"
    with pytest.raises(DownloadFailed, match="more than 1,000 bytes"):
        transfer(f"{publisher.base}a.zip", target, patience=QUICK, most_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_the_rest_of_a_file_may_not_be_longer_than_the_file(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.named = "neither"
    interrupted(publisher, tmp_path / "a.zip")
    part = tmp_path / "a.zip.part"
    head = b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 400000-1023999/1024000\r\n\r\n"
    with hostile(lambda _: endless(head, b"x" * 65536)) as base:
        about = tmp_path / "a.zip.part.json"
        about.write_text(about.read_text().replace(publisher.base, base))
        with pytest.raises(DownloadFailed, match="more than 1,024,000 bytes"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", patience=QUICK)
    assert part.read_bytes() == CONTENT[:400_000]


def dripping(head: bytes, piece: bytes) -> Iterable[bytes]:
    yield head
    while True:
        time.sleep(0.02)
        yield piece


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (OK + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (OK + b"\r\n", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED + b"5;", b"x"),
        (CHUNKED + b"0\r\n", b"a: b\r\n" * 500),
        (OK + b"A: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["sized", "unsized", "chunks", "chunk size", "trailer", "header", "continue"],
)
def test_a_server_that_drips_is_given_up(tmp_path: Path, head: bytes, piece: bytes) -> None:
    began = time.monotonic()
    with hostile(lambda _: dripping(head, piece)) as base:
        with pytest.raises(DownloadFailed, match=r"2 tries .* only [0-9]+ bytes came in"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", patience=HASTY)
        with pytest.raises(DownloadFailed, match=r"only [0-9]+ bytes came in"):
            small_text(f"{base}a.zip.md5", patience=HASTY)
    assert time.monotonic() - began < 5
    assert not (tmp_path / "a.zip").exists()


def test_a_server_that_gives_a_byte_a_try_is_given_up(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.cuts = [1] * 100
    with pytest.raises(DownloadFailed, match="3 tries brought little"):
        get(publisher, tmp_path / "a.zip")
    assert len(publisher.requests) == 3


def test_a_slow_server_that_keeps_the_rate_is_heard_out(tmp_path: Path) -> None:
    patient = Patience(attempts=1, window_s=0.1, least_bytes=1000)
    body = [b"x" * 5000] * 30

    def slowly(_: bytes) -> Iterator[bytes]:
        yield OK + b"Content-Length: 150000\r\n\r\n"
        for piece in body:
            time.sleep(0.01)
            yield piece

    with hostile(slowly) as base:
        target = transfer(f"{base}a.zip", tmp_path / "a.zip", patience=patient)
    assert target.read_bytes() == b"".join(body)


def test_a_redirect_to_no_address_is_a_fault_of_the_server(tmp_path: Path) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://[x/\r\nContent-Length: 0\r\n\r\n"
    with (
        hostile(lambda _: [moved]) as base,
        pytest.raises(DownloadFailed, match="makes no sense"),
    ):
        transfer(f"{base}a.zip", tmp_path / "a.zip", patience=QUICK)

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed
from recbias.data.fetch import RetryPolicy, SecureRedirects, fetch_text, transfer
from support.files.publisher import repeat_forever, serve_bytes

POLICY = RetryPolicy(attempts=3, pause_s=0.0, timeout_s=20.0)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
IMPATIENT = RetryPolicy(attempts=2, pause_s=0.0, timeout_s=5.0, window_s=0.3)


@pytest.mark.parametrize(
    "length", ["abc", "-5", "1_000", "\u0663", "1" * 19, "9" * 5000, "5, 5", "0x10"]
)
def test_an_invalid_content_length_is_refused(tmp_path: Path, length: str) -> None:
    head = OK + f"Content-Length: {length}\r\n\r\n".encode()
    (tmp_path / "a.zip.part").write_bytes(b"earlier")
    with serve_bytes(lambda _: [head, b"x"]) as base:
        with pytest.raises(DownloadFailed, match="Content-Length is not a number of bytes"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", policy=POLICY)
        with pytest.raises(DownloadFailed, match="Content-Length is not a number of bytes"):
            fetch_text(f"{base}a.zip.md5", policy=POLICY)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.zip.part": b"earlier"
    }


def test_a_chunk_of_a_negative_size_is_refused(tmp_path: Path) -> None:
    with serve_bytes(lambda _: repeat_forever(CHUNKED + b"-5\r\n", b"x" * 65536)) as base:
        with pytest.raises(DownloadFailed, match="chunk of a negative size"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", policy=POLICY)
        with pytest.raises(DownloadFailed, match="chunk of a negative size"):
            fetch_text(f"{base}a.zip.md5", policy=POLICY)
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("head", [OK + b"\r\n", CHUNKED], ids=["until closed", "chunked"])
def test_an_endless_body_is_refused_at_the_maximum_size(tmp_path: Path, head: bytes) -> None:
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n" if head == CHUNKED else b"x" * 65536
    with (
        serve_bytes(lambda _: repeat_forever(head, piece)) as base,
        pytest.raises(DownloadFailed, match="more than 1,000,000 bytes"),
    ):
        transfer(f"{base}a.zip", tmp_path / "a.zip", policy=POLICY, max_bytes=10**6)
    assert sum(path.stat().st_size for path in tmp_path.glob("*.part")) == 0
    assert not (tmp_path / "a.zip").exists()


def send_slowly(head: bytes, piece: bytes) -> Iterable[bytes]:
    yield head
    while True:
        time.sleep(0.02)
        yield piece


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (OK + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        pytest.param(OK + b"\r\n", b"x", marks=pytest.mark.slow),
        pytest.param(CHUNKED + b"5;", b"x", marks=pytest.mark.slow),
        pytest.param(CHUNKED + b"0\r\n", b"a: b\r\n" * 500, marks=pytest.mark.slow),
        pytest.param(OK + b"A: ", b"x", marks=pytest.mark.slow),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", marks=pytest.mark.slow),
    ],
    ids=["sized", "chunks", "unsized", "chunk size", "trailer", "header", "continue"],
)
def test_a_server_below_the_minimum_rate_is_given_up(
    tmp_path: Path, head: bytes, piece: bytes
) -> None:
    start = time.monotonic()
    with serve_bytes(lambda _: send_slowly(head, piece)) as base:
        with pytest.raises(DownloadFailed, match=r"2 attempts .* only [0-9]+ bytes in"):
            transfer(f"{base}a.zip", tmp_path / "a.zip", policy=IMPATIENT)
        with pytest.raises(DownloadFailed, match=r"only [0-9]+ bytes in"):
            fetch_text(f"{base}a.zip.md5", policy=IMPATIENT)
    assert time.monotonic() - start < 5
    assert not (tmp_path / "a.zip").exists()


def test_a_slow_server_above_the_minimum_rate_is_accepted(tmp_path: Path) -> None:
    policy = RetryPolicy(attempts=1, window_s=0.1, min_bytes=1000)
    body = [b"x" * 5000] * 30

    def send_pieces(_: bytes) -> Iterator[bytes]:
        yield OK + b"Content-Length: 150000\r\n\r\n"
        for piece in body:
            time.sleep(0.01)
            yield piece

    with serve_bytes(send_pieces) as base:
        target = transfer(f"{base}a.zip", tmp_path / "a.zip", policy=policy)
    assert target.read_bytes() == b"".join(body)


def test_a_redirect_to_an_invalid_address_is_refused(tmp_path: Path) -> None:
    response = b"HTTP/1.1 302 Found\r\nLocation: http://[x/\r\nContent-Length: 0\r\n\r\n"
    with (
        serve_bytes(lambda _: [response]) as base,
        pytest.raises(DownloadFailed, match="answer is invalid"),
    ):
        transfer(f"{base}a.zip", tmp_path / "a.zip", policy=POLICY)


@pytest.mark.parametrize("new_url", ["ftp://127.0.0.1/a", "file:///etc/passwd", "data:,x"])
def test_a_redirect_to_another_protocol_is_refused(tmp_path: Path, new_url: str) -> None:
    response = f"HTTP/1.1 302 Found\r\nLocation: {new_url}\r\nContent-Length: 0\r\n\r\n"
    with (
        serve_bytes(lambda _: [response.encode()]) as base,
        pytest.raises(DownloadFailed, match=r"which is not http|is not allowed"),
    ):
        transfer(f"{base}a.zip", tmp_path / "a.zip", policy=POLICY)


def test_a_redirect_from_https_to_http_is_refused() -> None:
    request = urllib.request.Request("https://example.org/a.zip")
    with pytest.raises(DownloadFailed, match="which is not https"):
        SecureRedirects().redirect_request(request, None, 302, "", {}, "http://example.org/a.zip")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/a", "a.zip"])
def test_an_address_that_is_not_http_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadFailed, match="is not a web address"):
        transfer(url, tmp_path / "a.zip")

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed
from recbias.data.fetch import RetryPolicy, _SecureRedirects, transfer
from support.files.publisher import repeat_forever, serve_bytes

POLICY = RetryPolicy(attempts=3, pause_s=0.0, timeout_s=20.0)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


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
        _SecureRedirects().redirect_request(request, None, 302, "", {}, "http://example.org/a.zip")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/a", "a.zip"])
def test_an_address_that_is_not_http_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadFailed, match="is not a web address"):
        transfer(url, tmp_path / "a.zip")

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed, Unwritable
from recbias.data.fetch import RetryPolicy, fetch_text, transfer
from support.files.publisher import Publisher, serve_bytes

CONTENT = bytes(range(256)) * 4_000  # about a megabyte
POLICY = RetryPolicy(attempts=3, pause_s=0.0, timeout_s=20.0)


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher(files={"a.zip": CONTENT}).serve() as serving:
        yield serving


def download(publisher: Publisher, target: Path) -> bytes:
    return transfer(f"{publisher.base}a.zip", target, policy=POLICY).read_bytes()


def test_a_file_is_downloaded_with_progress(publisher: Publisher, tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    target = tmp_path / "a.zip"
    transfer(f"{publisher.base}a.zip", target, progress=lambda *report: reports.append(report))
    assert target.read_bytes() == CONTENT
    assert reports[-1] == ("fetch a.zip", len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("header", ["etag", "modified"])
def test_a_broken_connection_is_resumed(publisher: Publisher, tmp_path: Path, header: str) -> None:
    publisher.named, publisher.cuts = header, [400_000, 300_000]
    assert download(publisher, tmp_path / "a.zip") == CONTENT
    ranges = [byte_range for _, byte_range in publisher.requests]
    assert ranges == ["", "bytes=400000-", "bytes=700000-"]


def interrupt_download(publisher: Publisher, target: Path) -> None:
    """Download the first 400,000 bytes and fail."""
    publisher.cuts = [400_000]
    policy = RetryPolicy(attempts=1, pause_s=0.0)
    with pytest.raises(DownloadFailed):
        transfer(f"{publisher.base}a.zip", target, policy=policy)
    assert target.with_name("a.zip.part").stat().st_size == 400_000
    assert not target.exists()
    publisher.requests.clear()


@pytest.mark.parametrize("header", ["etag", "modified", "neither"])
@pytest.mark.parametrize("content", [b"another file" * 90_000, b"short"])
def test_a_changed_file_is_downloaded_from_the_start(
    publisher: Publisher, tmp_path: Path, header: str, content: bytes
) -> None:
    publisher.named = header
    interrupt_download(publisher, tmp_path / "a.zip")
    publisher.files["a.zip"] = content
    assert download(publisher, tmp_path / "a.zip") == content


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_retried(publisher: Publisher, tmp_path: Path, code: int) -> None:
    publisher.answers = [code, code]
    assert download(publisher, tmp_path / "a.zip") == CONTENT
    publisher.answers = [code] * 3
    with pytest.raises(DownloadFailed, match=f"3 attempts with little or no progress: .* {code}"):
        download(publisher, tmp_path / "b.zip")


def test_redirects_are_followed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.moved["release.zip"] = f"{publisher.base}a.zip"
    path = transfer(f"{publisher.base}release.zip", tmp_path / "a.zip", policy=POLICY)
    assert path.read_bytes() == CONTENT


def test_a_full_disk_is_an_error_with_a_remedy(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").symlink_to("/dev/full")  # every write to it fails as a full disk
    with pytest.raises(Unwritable, match="No space left") as caught:
        download(publisher, tmp_path / "a.zip")
    assert "--data" in caught.value.remedy


def test_a_file_with_too_large_an_announced_size_is_refused(
    publisher: Publisher, tmp_path: Path
) -> None:
    target = tmp_path / "a.zip"
    with pytest.raises(DownloadFailed, match="more than 1,000 bytes"):
        transfer(f"{publisher.base}a.zip", target, policy=POLICY, max_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_a_text_ends_at_its_maximum_and_a_short_one_is_an_error() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n"
    policy = RetryPolicy(attempts=1, pause_s=0.0, timeout_s=1.0)
    with serve_bytes(lambda _: [head, b"x" * 90_000]) as base:
        assert fetch_text(f"{base}a.md5", policy=policy, max_bytes=10) == "x" * 10
    with serve_bytes(lambda _: [head, b"x"]) as base, pytest.raises(DownloadFailed):
        fetch_text(f"{base}a.md5", policy=policy)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed, Unwritable
from recbias.data.fetch import RetryPolicy, fetch_text, transfer, wrap_write_errors
from support.files.publisher import Publisher

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


def test_a_transfer_with_progress_is_not_given_up(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cuts = [100_000] * 8  # more cuts than attempts, with progress after each cut
    assert download(publisher, tmp_path / "a.zip") == CONTENT


def interrupt_download(publisher: Publisher, target: Path) -> None:
    """Download the first 400,000 bytes and fail."""
    publisher.cuts = [400_000]
    policy = RetryPolicy(attempts=1, pause_s=0.0)
    with pytest.raises(DownloadFailed):
        transfer(f"{publisher.base}a.zip", target, policy=policy)
    assert target.with_name("a.zip.part").stat().st_size == 400_000
    assert not target.exists()
    publisher.requests.clear()


def test_another_process_resumes(publisher: Publisher, tmp_path: Path) -> None:
    interrupt_download(publisher, tmp_path / "a.zip")
    assert download(publisher, tmp_path / "a.zip") == CONTENT
    assert publisher.requests == [("a.zip", "bytes=400000-")]


@pytest.mark.parametrize("header", ["etag", "modified", "neither"])
@pytest.mark.parametrize("content", [b"another file" * 90_000, b"short"])
def test_a_changed_file_is_downloaded_from_the_start(
    publisher: Publisher, tmp_path: Path, header: str, content: bytes
) -> None:
    publisher.named = header
    interrupt_download(publisher, tmp_path / "a.zip")
    publisher.files["a.zip"] = content
    assert download(publisher, tmp_path / "a.zip") == content


def test_a_server_without_ranges_sends_the_complete_file_again(
    publisher: Publisher, tmp_path: Path
) -> None:
    interrupt_download(publisher, tmp_path / "a.zip")
    publisher.ranges = False
    assert download(publisher, tmp_path / "a.zip") == CONTENT


def test_a_partial_file_of_another_address_is_not_resumed(
    publisher: Publisher, tmp_path: Path
) -> None:
    interrupt_download(publisher, tmp_path / "a.zip")
    publisher.files["b.zip"] = b"other"
    path = transfer(f"{publisher.base}b.zip", tmp_path / "a.zip", policy=POLICY)
    assert path.read_bytes() == b"other"
    assert publisher.requests == [("b.zip", "")]


@pytest.mark.parametrize("version", ["", "not JSON", "[]", '{"unknown": 1}'])
def test_a_partial_file_of_unknown_version_is_not_resumed(
    publisher: Publisher, tmp_path: Path, version: str
) -> None:
    (tmp_path / "a.zip.part").write_bytes(b"something")
    (tmp_path / "a.zip.part.json").write_text(version)
    assert download(publisher, tmp_path / "a.zip") == CONTENT


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_retried(publisher: Publisher, tmp_path: Path, code: int) -> None:
    publisher.answers = [code, code]
    assert download(publisher, tmp_path / "a.zip") == CONTENT
    publisher.answers = [code] * 3
    with pytest.raises(DownloadFailed, match=f"3 attempts with little or no progress: .* {code}"):
        download(publisher, tmp_path / "b.zip")


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_missing_file_is_requested_once(publisher: Publisher, tmp_path: Path, code: int) -> None:
    publisher.answers = [code]
    with pytest.raises(DownloadFailed, match=f"the server answers {code}") as caught:
        download(publisher, tmp_path / "a.zip")
    assert caught.value.where == f"{publisher.base}a.zip"
    assert len(publisher.requests) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_closed_server_is_refused(publisher: Publisher, tmp_path: Path) -> None:
    with Publisher().serve() as closed_publisher:
        base = closed_publisher.base
    with pytest.raises(DownloadFailed, match="no answer"):
        transfer(f"{base}a.zip", tmp_path / "a.zip", policy=POLICY)
    with pytest.raises(DownloadFailed, match="no answer"):
        fetch_text(f"{base}a.zip.md5", policy=POLICY)


def test_a_file_without_announced_size_is_downloaded(publisher: Publisher, tmp_path: Path) -> None:
    publisher.sized = False
    assert download(publisher, tmp_path / "a.zip") == CONTENT


def test_redirects_are_followed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.moved["release.zip"] = f"{publisher.base}a.zip"
    path = transfer(f"{publisher.base}release.zip", tmp_path / "a.zip", policy=POLICY)
    assert path.read_bytes() == CONTENT


def test_a_full_disk_is_an_error_with_a_remedy(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").symlink_to("/dev/full")  # every write to it fails as a full disk
    with pytest.raises(Unwritable, match="No space left") as caught:
        download(publisher, tmp_path / "a.zip")
    assert "--data" in caught.value.remedy


def test_a_target_folder_that_is_a_file_is_refused(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match="cannot be written"):
        download(publisher, tmp_path / "file" / "a.zip")


def test_a_small_text_is_retried_and_read(publisher: Publisher) -> None:
    publisher.files["a.md5"] = b"c4d9eecfca2ab87c1945afe126590906  a.zip\n"
    publisher.answers, publisher.cuts = [503], [5]
    assert fetch_text(f"{publisher.base}a.md5", policy=POLICY).startswith("c4d9")


def test_a_write_error_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(Unwritable) as caught, wrap_write_errors(tmp_path):
        (tmp_path / "a" / "b").touch()
    assert caught.value.where == str(tmp_path / "a" / "b")


def test_a_file_with_too_large_an_announced_size_is_refused(
    publisher: Publisher, tmp_path: Path
) -> None:
    target = tmp_path / "a.zip"
    with pytest.raises(DownloadFailed, match="more than 1,000 bytes"):
        transfer(f"{publisher.base}a.zip", target, policy=POLICY, max_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_attempts_with_one_byte_of_progress_are_given_up(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.cuts = [1] * 100
    with pytest.raises(DownloadFailed, match="3 attempts with little"):
        download(publisher, tmp_path / "a.zip")
    assert len(publisher.requests) == 3

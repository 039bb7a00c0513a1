from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import stat
import string
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from recbias.core.errors import DownloadFailed
from recbias.data.fetch import find_inner_folder, unpack

FILES = {"ml-1m/README": b"read me", "ml-1m/sub/ratings.dat": b"1::2::3::4\n"}


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("ml-1m/", b"")
        for name, content in files.items():
            packed.writestr(name, content)
    return path


def write_tar(path: Path, members: list[tarfile.TarInfo], content: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            packed.addfile(member, io.BytesIO(content))
    return path


def make_member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_a_zip_is_unpacked(tmp_path: Path, into: Path) -> None:
    unpack(write_zip(tmp_path / "a.zip", FILES), into)
    assert read_files(into) == FILES


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz"])
def test_a_tar_is_unpacked(tmp_path: Path, into: Path, name: str) -> None:
    members = [
        make_member("./", tarfile.DIRTYPE),
        make_member("./d", tarfile.DIRTYPE),
        make_member("d/f.txt"),
    ]
    unpack(write_tar(tmp_path / name, members, b"text"), into)
    assert read_files(into) == {"d/f.txt": b"text"}


def test_a_file_that_is_not_an_archive_is_copied(tmp_path: Path, into: Path) -> None:
    (tmp_path / "books.json.gz").write_bytes(b"packed")
    unpack(tmp_path / "books.json.gz", into)
    assert read_files(into) == {"books.json.gz": b"packed"}


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:/evil", "C:evil", "a\\..\\b"]
)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_path_outside_the_folder_is_refused(
    tmp_path: Path, into: Path, name: str, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        write_zip(path, {name: b"evil"})
    else:
        write_tar(path, [make_member(name)], b"evil")
    with pytest.raises(DownloadFailed, match="outside its folder"):
        unpack(path, into)
    assert read_files(tmp_path).keys() == {path.name}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, into: Path, kind: bytes) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [make_member("link", kind, "/etc/passwd")])
    with pytest.raises(DownloadFailed, match="a link or a device"):
        unpack(path, into)
    assert list(into.iterdir()) == []


def test_a_link_in_a_zip_is_refused(tmp_path: Path, into: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(link, "/etc/passwd")
    with pytest.raises(DownloadFailed, match="a link or a device"):
        unpack(tmp_path / "a.zip", into)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "other"])
def test_an_archive_that_unpacks_to_too_many_bytes_is_refused(
    tmp_path: Path, into: Path, kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        write_zip(path, {"zeros": bytes(3_000_000)})
    elif kind == "tar.gz":
        write_tar(path, [make_member("zeros")], bytes(3_000_000))
    else:
        path.write_bytes(bytes(3_000_000))
    with pytest.raises(DownloadFailed, match="unpacks to more than 2,000,000 bytes"):
        unpack(path, into, max_bytes=2_000_000)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("length", [0, 10, 0.5, 0.95])
def test_a_truncated_archive_is_refused(
    tmp_path: Path, into: Path, kind: str, length: float
) -> None:
    path = tmp_path / f"a.{kind}"
    content = bytes(range(256)) * 40
    if kind == "zip":
        write_zip(path, {"f": content})
    else:
        write_tar(path, [make_member("f")], content)
    archive = path.read_bytes()
    path.write_bytes(archive[: int(length if length >= 1 else length * len(archive))])
    with pytest.raises(DownloadFailed, match="damaged or truncated"):
        unpack(path, into)


def test_a_damaged_zip_is_refused(tmp_path: Path, into: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"the-member": b"some text to pack" * 50})
    content = bytearray(path.read_bytes())
    position = content.index(b"the-member") + len(b"the-member") + 5  # in the compressed text
    content[position] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(path, into)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "a/b"], ["a/b", "a"]])
def test_members_with_conflicting_paths_are_refused(
    tmp_path: Path, into: Path, names: list[str]
) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [make_member(name) for name in names], b"x")
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(path, into)


@pytest.mark.parametrize(
    ("files", "inner", "expected"),
    [
        (["ml-1m/ratings.dat"], "", "ml-1m"),
        (["ml-1m/ratings.dat", "__MACOSX/x"], "", "ml-1m"),
        (["ml-10M100K/ratings.dat", "other/x"], "ml-10M100K", "ml-10M100K"),
        (["ratings.csv", "books.csv"], "", ""),
        (["ratings.csv"], "missing", ""),
    ],
)
def test_the_inner_folder_of_the_dataset_is_found(
    into: Path, files: list[str], inner: str, expected: str
) -> None:
    for name in files:
        (into / name).parent.mkdir(exist_ok=True)
        (into / name).touch()
    assert find_inner_folder(into, inner) == into / expected


def test_an_archive_unpacks_to_at_most_30_times_its_size_and_100_mib(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("zeros.csv", "w") as stream,
    ):
        for _ in range(210):  # zeros compress to a thousandth and less
            stream.write(bytes(2**20))
    limit = 30 * path.stat().st_size + 100 * 2**20
    assert limit < 210 * 2**20
    (into := tmp_path / "into").mkdir()
    with pytest.raises(DownloadFailed, match=f"unpacks to more than {limit:,} bytes"):
        unpack(path, into)
    assert (into / "zeros.csv").stat().st_size <= limit


@pytest.mark.parametrize(
    ("names", "problem"),
    [(["a" * 256], "too long a name"), ([f"{n}/" for n in range(10_001)], "more than 10,000")],
)
def test_too_many_members_and_too_long_names_are_refused(
    tmp_path: Path, into: Path, names: list[str], problem: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    with pytest.raises(DownloadFailed, match=problem):
        unpack(tmp_path / "a.zip", into)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_of_a_tar_that_would_fill_the_memory_is_refused(
    tmp_path: Path, into: Path, kind: bytes
) -> None:
    path, header = tmp_path / "a.tar.gz", make_member("header", kind)
    header.size = 40 * 2**20
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(header.tobuf(tarfile.GNU_FORMAT))
        stream.write(bytes(header.size))
    with pytest.raises(DownloadFailed, match="a header of 41,943,040 bytes"):
        unpack(path, into)


LINKS = {
    "a link to a link to outside": [
        make_member("a", tarfile.SYMTYPE, "b"),
        make_member("b", tarfile.SYMTYPE, "/tmp"),
        make_member("a/evil"),
    ],
    "a hard link to a hard link": [
        make_member("f"),
        make_member("a", tarfile.LNKTYPE, "f"),
        make_member("b", tarfile.LNKTYPE, "a"),
    ],
    "a file through a link": [
        make_member("d", tarfile.DIRTYPE),
        make_member("d/x", tarfile.SYMTYPE, "../../out"),
        make_member("d/x"),
    ],
}


@pytest.mark.parametrize("chain", LINKS)
def test_chains_of_links_in_a_tar_are_refused(tmp_path: Path, into: Path, chain: str) -> None:
    path = write_tar(tmp_path / "a.tar.gz", LINKS[chain], b"x")
    with pytest.raises(DownloadFailed, match="a link or a device"):
        unpack(path, into)
    assert not any(file.is_symlink() for file in into.rglob("*"))
    assert read_files(tmp_path).keys() <= {path.name, "into/f"}


def pack_sparse(headers: dict[str, str], content: bytes) -> bytes:
    member = make_member("GNUSparseFile.0/f")
    member.size, member.pax_headers = len(content), headers
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as packed:
        packed.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def write_sparse_header(n_blocks: int = 0) -> bytes:
    """Return the header of GNU tar for a file of 1 TB, of which nothing is stored."""
    header = bytearray(make_member("f", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[482] = n_blocks > 0  # an extension of the map follows
    header[483:495] = b"\x80" + (10**12).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    more = bytearray(512)
    more[504] = 1
    return bytes(header) + bytes(more) * n_blocks + bytes(1024)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (write_sparse_header(), "a sparse file"),
        (write_sparse_header(30_000), "its headers are too long"),
        (
            pack_sparse({"GNU.sparse.map": "0,1", "GNU.sparse.size": str(10**12)}, b"x"),
            "a sparse file",
        ),
        (pack_sparse({"GNU.sparse.map": "0,a", "GNU.sparse.size": "1"}, b"x"), "damaged"),
        (
            pack_sparse({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, b"9999\n0\n1\n"),
            "damaged",
        ),
        (pack_sparse({"size": "-512"}, b"x"), "has 0 bytes, not -512"),
        (pack_sparse({"path": "a/" * 2000}, b"x"), "too long a name"),
    ],
)
def test_tars_that_are_not_what_their_headers_say_are_refused(
    tmp_path: Path, into: Path, content: bytes, problem: str
) -> None:
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(content, 1))
    with pytest.raises(DownloadFailed, match=problem):
        unpack(tmp_path / "a.tar.gz", into)


@pytest.mark.parametrize(
    "names",
    [
        ["Ratings.csv", "ratings.csv"],
        ["ml/ratings.csv", "ML/users.csv"],
        ["\u00e9.csv", "e\u0301.csv"],
        ["ratings.csv", "ratings.csv."],
    ],
)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_names_that_some_systems_do_not_distinguish_are_refused(
    tmp_path: Path, into: Path, names: list[str], kind: str
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        write_zip(path, dict.fromkeys(names, b"x"))
    else:
        write_tar(path, [make_member(name) for name in names], b"x")
    with pytest.raises(DownloadFailed, match="do not distinguish"):
        unpack(path, into)


def change_entry(path: Path, at: int, form: str, value: int) -> Path:
    """Change a field of the last entry in the list of members of a zip archive."""
    content = bytearray(path.read_bytes())
    start = content.rindex(b"PK\1\2") + at
    content[start : start + struct.calcsize(form)] = struct.pack(form, value)
    path.write_bytes(bytes(content))
    return path


@pytest.mark.parametrize(
    ("at", "form", "value", "problem"),
    [
        (24, "<I", 2**32 - 2, "has 60,000 bytes, not 4,294,967,294"),
        (24, "<I", 5, "Bad CRC"),
        (20, "<I", 3, "damaged"),
        (42, "<I", 2**31, "damaged"),
        (46, "<B", 0, "damaged"),  # a name that begins with NUL
    ],
)
def test_a_zip_whose_list_of_members_is_wrong_is_refused(
    tmp_path: Path, into: Path, at: int, form: str, value: int, problem: str
) -> None:
    path = write_zip(tmp_path / "a.zip", {"f": bytes(range(250)) * 240})
    with pytest.raises(DownloadFailed, match=problem):
        unpack(change_entry(path, at, form, value), into)


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (8, 1, "is encrypted"),
        (10, zipfile.ZIP_BZIP2, "is compressed by bzip2"),
        (10, zipfile.ZIP_LZMA, "is compressed by lzma"),
        (10, 99, "is compressed by an unknown method"),
    ],
)
def test_a_zip_that_is_packed_otherwise_is_not_said_to_be_damaged(
    tmp_path: Path, into: Path, at: int, value: int, problem: str
) -> None:
    path = write_zip(tmp_path / "a.zip", {"f": bytes(1000)})
    with pytest.raises(DownloadFailed, match=f"'f' {problem}, which is not supported") as caught:
        unpack(change_entry(path, at, "<H", value), into)
    assert "damaged" not in str(caught.value)
    assert "again with deflate" in caught.value.remedy


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar"])
@pytest.mark.parametrize(("pack", "method"), [(bz2.compress, "bzip2"), (lzma.compress, "xz")])
def test_another_format_under_the_name_of_a_known_one_is_named(
    tmp_path: Path, into: Path, name: str, pack: Callable[[bytes], bytes], method: str
) -> None:
    (tmp_path / name).write_bytes(pack(bytes(1000)))
    with pytest.raises(DownloadFailed, match=f"is compressed by {method}, which is not") as caught:
        unpack(tmp_path / name, into)
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize(
    ("of_name", "expected"), [(b"d\x8aj\x85 vu", "d\xe9j\xe0 vu"), (b"other", "d\xe8j\xe0 vu")]
)
def test_the_name_in_utf_8_that_info_zip_writes_is_read(
    tmp_path: Path, into: Path, of_name: bytes, expected: str
) -> None:
    """It counts only if its checksum is that of the name in the encoding of the system."""
    written, unicode = b"d\x8aj\x85 vu", "déjà vu".encode()
    entry = zipfile.ZipInfo("xxxx vu")
    field = struct.pack("<BI", 1, zlib.crc32(of_name)) + unicode
    entry.extra = struct.pack("<HH", 0x7075, len(field)) + field
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(entry, b"text")
    path = tmp_path / "a.zip"
    path.write_bytes(path.read_bytes().replace(b"xxxx vu", written))
    unpack(path, into)
    assert read_files(into) == {expected: b"text"}


@pytest.mark.parametrize("is_renamed", [False, True])
def test_members_of_a_zip_that_share_their_content_are_refused(
    tmp_path: Path, into: Path, is_renamed: bool
) -> None:
    path = write_zip(tmp_path / "a.zip", {"ff": bytes(100_000)})
    content = path.read_bytes()
    start, end = content.rindex(b"PK\1\2"), content.rindex(b"PK\5\6")
    entry = content[start:end]
    pairs = itertools.product(string.ascii_lowercase, repeat=2)
    names = [f"{a}{b}".encode() if is_renamed else b"ff" for a, b in pairs]
    entries = b"".join(entry[:46] + name + entry[48:] for name in names)
    sizes = struct.pack("<HHIIH", len(names), len(names), len(entries), start, 0)
    path.write_bytes(content[:start] + entries + content[end : end + 8] + sizes)
    with pytest.raises(DownloadFailed, match="damaged"):
        unpack(path, into)


def test_a_zip_whose_list_of_members_would_fill_the_memory_is_refused(
    tmp_path: Path, into: Path
) -> None:
    path = tmp_path / "a.zip"
    sizes = struct.pack("<HHIIH", 1, 1, 17 * 2**20, 0, 0)
    path.write_bytes(bytes(17 * 2**20) + b"PK\5\6\0\0\0\0" + sizes)
    with pytest.raises(DownloadFailed, match="a header of 17,825,792 bytes"):
        unpack(path, into)

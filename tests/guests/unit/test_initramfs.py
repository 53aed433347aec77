"""Archives of cpio's new ASCII format, read back by a reader of the format's text."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest

from tests.guests.initramfs import Archive


def entries(data: bytes) -> Iterator[tuple[str, int, bytes, tuple[int, int]]]:
    """Name, mode, data and device of each, up to the trailer."""
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        numbers = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, device, length = numbers[1], numbers[6], (numbers[9], numbers[10]), numbers[11]
        name = data[at + 110 : at + 110 + length]
        assert name[-1] == 0
        begin = -(-(at + 110 + length) // 4) * 4
        if name == b"TRAILER!!!\0":
            assert begin == len(data)
            return
        yield name[:-1].decode(), mode, data[begin : begin + size], device
        at = -(-(begin + size) // 4) * 4


def test_what_is_added_is_there_folders_first() -> None:
    archive = Archive()
    for length in range(6):  # each way to end between multiples of four
        archive.file(f"a/b/{'n' * (length + 1)}", bytes(range(length)))
    archive.file("a/run", b"#!", is_executable=True)
    archive.link("init", "a/run")
    archive.folder("a/b/c")
    archive.character_device("dev/console", 5, 1)
    found = list(entries(archive.to_bytes()))
    assert [name for name, mode, _, _ in found if stat.S_ISDIR(mode)] == ["a", "a/b", "a/b/c", "dev"]
    assert [name for name, *_ in found][:3] == ["a", "a/b", "a/b/n"]
    files = {name: (mode, data) for name, mode, data, _ in found if stat.S_ISREG(mode)}
    assert files.pop("a/run") == (stat.S_IFREG | 0o755, b"#!")
    assert files == {
        f"a/b/{'n' * (length + 1)}": (stat.S_IFREG | 0o644, bytes(range(length))) for length in range(6)
    }
    assert ("init", stat.S_IFLNK | 0o777, b"a/run", (0, 0)) in found
    assert ("dev/console", stat.S_IFCHR | 0o600, b"", (5, 1)) in found


@pytest.mark.parametrize("name", ["a", "/a", "b/../a"])
def test_a_name_is_below_the_root_and_new(name: str) -> None:
    archive = Archive()
    archive.file("a", b"")
    with pytest.raises(ValueError, match=r"archive already|no name below"):
        archive.file(name, b"")

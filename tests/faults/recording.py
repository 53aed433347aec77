"""A file system that keeps a log of every change, and a model of what a power failure may leave of it."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bamquery.storage.files.filesystem import POSIX, Buffer, FileSystem, WritableFile

PAGE = 4096


class KilledError(BaseException):
    """The process is gone: not even error handling runs any more."""


@dataclass(frozen=True)
class Operation:
    """One change; `file` numbers files by creation, since names come and go."""

    kind: str
    path: Path
    target: Path | None = None
    file: int = -1
    offset: int = 0
    data: bytes = b""
    site: str = ""
    """Where it was called from, for syncs."""


class RecordingFile:
    """A file of which every write and sync is logged."""

    def __init__(self, owner: RecordingFileSystem, inner: WritableFile, path: Path, number: int) -> None:
        self._owner = owner
        self._inner = inner
        self._path = path
        self._number = number

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(bytes(memoryview(buffer).cast("B")) for buffer in buffers)
        self._owner.log(Operation("write", self._path, file=self._number, offset=offset, data=data))
        self._inner.write_at(offset, buffers)

    def sync(self) -> None:
        self._owner.log(Operation("sync", self._path, file=self._number, site=call_site()))

    def close(self) -> None:
        self._inner.close()


class RecordingFileSystem:
    """Does everything for real and logs it. Syncs are only logged: nothing here needs them to happen.

    `without` names call sites whose syncs are left out, as if the line had been deleted. From operation
    number `killed_at` on, nothing happens but KilledError.
    """

    def __init__(
        self, inner: FileSystem = POSIX, without: frozenset[str] = frozenset(), killed_at: int | None = None
    ) -> None:
        self.operations: list[Operation] = []
        self._inner = inner
        self._without = without
        self._killed_at = killed_at
        self._files = 0
        self.first_left_out: int | None = None
        """How many operations came before the first sync that was left out."""

    @property
    def sites(self) -> list[str]:
        """Every place a sync was called from, in order of first use."""
        return list(dict.fromkeys(operation.site for operation in self.operations if operation.site))

    def revive(self) -> None:
        """Go on logging, as the process that comes after the one that was killed."""
        self._killed_at = None

    def log(self, operation: Operation) -> None:
        if self._killed_at is not None and len(self.operations) >= self._killed_at:
            raise KilledError
        if operation.site and operation.site in self._without:
            if self.first_left_out is None:
                self.first_left_out = len(self.operations)
            return
        self.operations.append(operation)

    def create(self, path: Path) -> WritableFile:
        if path.exists():
            raise FileExistsError(path)
        number = self._files
        self._files += 1
        self.log(Operation("create", path, file=number))
        return RecordingFile(self, self._inner.create(path), path, number)

    def publish(self, source: Path, target: Path) -> None:
        if target.exists():
            raise FileExistsError(target)
        self.log(Operation("publish", source, target))
        self._inner.publish(source, target)

    def link(self, source: Path, target: Path) -> None:
        if not target.exists():
            self.log(Operation("publish", source, target))
            self._inner.link(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self.log(Operation("remove", path))
            self._inner.remove(path)

    def make_directory(self, path: Path) -> None:
        if not path.is_dir():
            self.log(Operation("make_directory", path))
            self._inner.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self.log(Operation("remove_directory", path))
        self._inner.remove_directory(path)

    def sync_directory(self, path: Path) -> None:
        self.log(Operation("sync_directory", path, site=call_site()))


def call_site() -> str:
    """File and line of the nearest caller outside this module."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    assert frame is not None
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@dataclass
class FileNode:
    """A file: what is on stable storage, and the writes since."""

    synced: bytes = b""
    writes: list[tuple[int, bytes]] = field(default_factory=list)

    def after(self, writes: Sequence[tuple[int, bytes]]) -> bytes:
        content = bytearray(self.synced)
        for offset, data in writes:
            content.extend(bytes(max(0, offset + len(data) - len(content))))
            content[offset : offset + len(data)] = data
        return bytes(content)

    def sync(self) -> None:
        self.synced = self.after(self.writes)
        self.writes = []


@dataclass
class FolderNode:
    """A folder: for every name the nodes it may stand for after a crash, oldest first.

    The first is on stable storage; each later one became the name's meaning since the last sync.
    """

    names: dict[str, list[FileNode | FolderNode | None]] = field(default_factory=dict)

    def now(self, name: str) -> FileNode | FolderNode | None:
        return self.names.get(name, [None])[-1]

    def change(self, name: str, node: FileNode | FolderNode | None) -> None:
        self.names.setdefault(name, [None]).append(node)

    def sync(self) -> None:
        self.names = {name: [states[-1]] for name, states in self.names.items() if states[-1] is not None}


Tree = dict[str, bytes | None]
"""Relative path → content, or None for a folder."""
Content = Callable[[FileNode], bytes]
Entry = Callable[[list[FileNode | FolderNode | None]], FileNode | FolderNode | None]


class Disk:
    """What stable storage may hold after the operations so far, below `base`, which exists for good."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = FolderNode()
        self._files: dict[int, FileNode] = {}

    def apply(self, operation: Operation) -> None:
        if operation.kind == "sync_directory":
            self._folder(operation.path).sync()
            return
        folder = self._folder(operation.path.parent)
        name = operation.path.name
        match operation.kind:
            case "create":
                node = self._files[operation.file] = FileNode()
                folder.change(name, node)
            case "write":
                self._files[operation.file].writes.append((operation.offset, operation.data))
            case "sync":
                self._files[operation.file].sync()
            case "publish":
                assert operation.target is not None
                self._folder(operation.target.parent).change(operation.target.name, folder.now(name))
            case "remove" | "remove_directory":
                folder.change(name, None)
            case "make_directory":
                folder.change(name, FolderNode())
            case _:
                raise AssertionError(operation.kind)

    def left(self, entry: Entry, content: Content) -> Tree:
        """One possible outcome: `entry` and `content` choose for each name and file."""
        tree: Tree = {}

        def visit(folder: FolderNode, prefix: str) -> None:
            for name, states in sorted(folder.names.items()):
                node = entry(states)
                if isinstance(node, FolderNode):
                    tree[prefix + name] = None
                    visit(node, f"{prefix}{name}/")
                elif node is not None:
                    tree[prefix + name] = content(node)

        visit(self.root, "")
        return tree

    def extremes(self) -> list[tuple[str, Tree]]:
        """Nothing that was not synced, and everything."""
        return [
            ("nothing that was not synced", self.left(_lost, _dropped)),
            ("everything", self.left(_kept, _all)),
        ]

    def outcomes(self, seed: int, subsets: int) -> list[tuple[str, Tree]]:
        """The extremes, mixtures, and `subsets` outcomes in which every name and file has its own luck."""
        luck = random.Random(seed)
        found = [
            *self.extremes(),
            ("all names, no unsynced bytes", self.left(_kept, _dropped)),
            ("all names, zeros for unsynced bytes", self.left(_kept, _zeros)),
            ("all names, files cut short", self.left(_kept, lambda node: _truncated(node, luck))),
            ("all names, torn writes", self.left(_kept, lambda node: _torn(node, luck))),
        ]
        for number in range(subsets):
            contents: list[Content] = [
                _dropped,
                _zeros,
                _all,
                lambda node: _truncated(node, luck),
                lambda node: _torn(node, luck),
            ]
            tree = self.left(luck.choice, partial(_lucky, contents, luck))
            found.append((f"random outcome {number} of seed {seed}", tree))
        return found

    def _folder(self, path: Path) -> FolderNode:
        node: FileNode | FolderNode | None = self.root
        for part in path.relative_to(self.base).parts:
            assert isinstance(node, FolderNode), path
            node = node.now(part)
        assert isinstance(node, FolderNode), path
        return node


def _lost(states: list[FileNode | FolderNode | None]) -> FileNode | FolderNode | None:
    return states[0]


def _kept(states: list[FileNode | FolderNode | None]) -> FileNode | FolderNode | None:
    return states[-1]


def _dropped(node: FileNode) -> bytes:
    return node.synced


def _all(node: FileNode) -> bytes:
    return node.after(node.writes)


def _zeros(node: FileNode) -> bytes:
    return node.after([(offset, bytes(len(data))) for offset, data in node.writes])


def _lucky(contents: Sequence[Content], luck: random.Random, node: FileNode) -> bytes:
    return luck.choice(contents)(node)


def _truncated(node: FileNode, luck: random.Random) -> bytes:
    full = _all(node)
    return full[: luck.randint(len(node.synced), len(full))] if node.writes else full


def _torn(node: FileNode, luck: random.Random) -> bytes:
    """Of each write only some pages arrived."""
    pieces = []
    for offset, data in node.writes:
        for start in range(0, len(data), PAGE):
            if luck.random() < 0.5:
                pieces.append((offset + start, data[start : start + PAGE]))
    return node.after(pieces)


def digest(tree: Tree) -> bytes:
    """Equal for equal trees."""
    state = hashlib.blake2b(digest_size=16)
    for path, content in sorted(tree.items()):
        state.update(f"{path}\0{-1 if content is None else len(content)}\0".encode())
        state.update(content or b"")
    return state.digest()


def build(tree: Tree, folder: Path) -> None:
    """Make the outcome real in an empty folder."""
    for path, content in tree.items():
        if content is None:
            os.mkdir(folder / path)
        else:
            (folder / path).write_bytes(content)

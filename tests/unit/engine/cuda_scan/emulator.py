"""The scan's kernels on a CPU: compiled by g++ as they are, in memory of this process."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bamquery.engine
from tests.compiled_programs import compile_program, precompile
from tests.native.programs import REPOSITORY, compiler

KERNELS = Path(bamquery.engine.__file__).parent / "kernels"
FLAGS = [
    "-std=c++20",
    "-O1",
    "-shared",
    "-fPIC",
    "-fno-strict-aliasing",
    "-Wno-unknown-pragmas",
    "-fpermissive",
]
DEFINES = ["BAMQUERY_WARPS", "BAMQUERY_EXPLORE", "BAMQUERY_EMULATED"]
HEADER = Path("tests", "unit", "engine", "cuda_scan", "cuda_on_cpu.hpp")
"""Read by all of them, and most of what compiling one takes."""
_ONE_AT_A_TIME = threading.Lock()
"""Fibers of kernels share what tells a thread which it is."""
_KERNEL = re.compile(r"__global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\(")


class EmulatedKernel:
    """One kernel; `sizes` are the bytes of its parameters, as Gpu.load() finds them."""

    def __init__(self, library: Any, name: str) -> None:
        self.name = name
        self._run = getattr(library, f"run_{name}")
        count = getattr(library, f"count_{name}")()
        self.sizes = tuple(getattr(library, f"size_{name}")(at) for at in range(count))

    def run(self, packed: Sequence[bytes], grid: int, block: int) -> None:
        """All blocks, one after the other."""
        buffers = [ctypes.create_string_buffer(data, len(data)) for data in packed]
        addresses = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(b) for b in buffers])
        self.run_at(ctypes.addressof(addresses), grid, block)

    def run_at(self, addresses: int, grid: int, block: int) -> None:
        """The same for an array of the parameters' addresses."""
        with _ONE_AT_A_TIME:
            self._run(ctypes.c_void_p(addresses), grid, block)


class Emulator:
    """Compiles files of kernels into a folder, once each."""

    def __init__(
        self,
        folder: Path,
        *,
        kernels: Path = KERNELS,
        headers: Path = REPOSITORY,
        prelude: str = "",
        change: tuple[str, str] = ("", ""),
    ) -> None:
        """Files are those of `kernels`, after the `prelude` and with one text for another.

        Headers are those of `headers` where it has them.
        """
        self._folder = folder
        self._kernels = kernels
        self._headers = headers
        self._prelude = prelude
        self._change = change
        self._libraries: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._precompiled: Path | None = None

    def kernel(self, file: str, name: str, defines: tuple[str, ...]) -> EmulatedKernel:
        """A kernel of a file in the folder of kernels."""
        key = (file, defines)
        if key not in self._libraries:
            self._libraries[key] = self._compile(file, defines, len(self._libraries))
        return EmulatedKernel(self._libraries[key], name)

    def programs(self, texts: Sequence[str]) -> list[EmulatedKernel]:
        """The kernels `program` of generated texts, compiled together."""
        key = ("programs", tuple(texts))
        if key not in self._libraries:
            text = "\n".join(_of_program(number, text) for number, text in enumerate(texts))
            self._libraries[key] = self._make("programs", text, (), len(self._libraries))
        return [EmulatedKernel(self._libraries[key], f"program_{number}") for number in range(len(texts))]

    def _compile(self, file: str, defines: tuple[str, ...], number: int) -> Any:
        return self._make_kernels(file, (self._kernels / f"{file}.cu").read_text(), defines, number)

    def text_kernel(self, name: str, text: str) -> EmulatedKernel:
        """A kernel of a text."""
        key = (text, ())
        if key not in self._libraries:
            self._libraries[key] = self._make_kernels("text", text, (), len(self._libraries))
        return EmulatedKernel(self._libraries[key], name)

    def _make_kernels(self, file: str, text: str, defines: tuple[str, ...], number: int) -> Any:
        names = _KERNEL.findall(text) + [
            f"scan_gather_{bits}" for bits in (8, 16, 32, 64, 128, 384) if file == "scan_gather"
        ]
        names = [name for name in dict.fromkeys(names) if not name.endswith("_")]
        if self._change[0]:
            text = text.replace(*self._change)
        text = text.replace(
            "extern __shared__ __align__(16) byte flags[];",
            "byte* const flags = emulated::shared_memory;",
        )
        return self._make(file, text + "".join(f"\nEMULATE({name})" for name in names), defines, number)

    def _make(self, file: str, text: str, defines: tuple[str, ...], number: int) -> Any:
        source = self._folder / f"{Path(file).name}{number}.cpp"
        source.write_text(f'#include "{HEADER}"\n{self._prelude}{text}\n')
        library = source.with_suffix(".so")
        flags = [*FLAGS, *(f"-D{define}" for define in DEFINES), f"-iquote{self._headers}"]
        flags += [f"-iquote{REPOSITORY}"] if self._headers != REPOSITORY else []
        if self._precompiled is None and self._headers == REPOSITORY:
            self._precompiled = precompile(
                compiler(), flags, REPOSITORY, HEADER, self._folder / "precompiled"
            )
        flags += [f"-D{define}" for define in defines]
        compile_program(compiler(), flags, [source], library, precompiled=self._precompiled)
        return ctypes.CDLL(str(library))


def _of_program(number: int, text: str) -> str:
    """A generated text beside others, whose structures are called the same."""
    own = text.replace("program(Inputs", f"program_{number}(Inputs").replace(
        "extern __shared__ Word block_words[];",
        "Word* const block_words = reinterpret_cast<Word*>(emulated::shared_memory);",
    )
    before, _, behind = own.partition("namespace bamquery {\n")
    return (
        f"{before}namespace bamquery::of_{number} {{\n{behind}"
        f"namespace bamquery {{\nusing of_{number}::program_{number};\n}}\n"
        f"EMULATE(program_{number})\n"
    )

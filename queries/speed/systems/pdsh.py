"""cudf-polars' own queries, PDS-H, as the installed package has them.

They are read as text, not imported: their module wants a GPU and libraries of clusters, and its functions
scan Parquet by names. Here each is run with a function of ours that hands it its tables, wherever they lie.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from bamquery.queries.speed.constants.replacements import replace_pieces
from bamquery.queries.speed.constants.substitutions import Constants
from bamquery.queries.speed.systems.system import RefusedError

DISTRIBUTIONS: Final = ("cudf-polars-cu13", "cudf-polars-cu12")
_PLACES: Final = ("streaming/benchmarks/pdsh.py", "experimental/benchmarks/pdsh.py")
"""By version: since 26.06, and before."""
_CLASS: Final = "PDSHQueries"


@dataclass(frozen=True)
class Pdsh:
    """The functions of a package, one for each query.

    Attributes:
        version: of cudf-polars.
        functions: Python by name, without decorator and annotations, as `ast.unparse` writes it.
    """

    version: str
    functions: Mapping[str, str]

    @classmethod
    def find(cls) -> Pdsh | None:
        """Of the installed cudf-polars; None where there is none, or it has no such queries."""
        found = importlib.util.find_spec("cudf_polars")
        for folder in (found.submodule_search_locations or ()) if found is not None else ():
            for place in _PLACES:
                with suppress(FileNotFoundError):
                    return cls.parse((Path(folder) / place).read_text("utf-8"), cudf_polars_version())
        return None

    @classmethod
    def parse(cls, source: str, version: str) -> Pdsh | None:
        """Of a module's text."""
        classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
        functions = {
            node.name: _plain(node)
            for found in classes
            if found.name == _CLASS
            for node in found.body
            if isinstance(node, ast.FunctionDef) and node.name[1:].isdecimal()
        }
        return cls(version, functions) if functions else None

    def function(self, name: str) -> str:
        """Python for one of TPC-H's queries, known by the number that its name begins with; empty: none."""
        return self.functions.get(_function_name(name), "")

    def prepare(self, name: str, constants: Constants, get: Callable[[str], Any]) -> Callable[[], Any]:
        """What makes the lazy frame of one of TPC-H's queries, over tables that `get` hands out by name.

        Raises:
            RefusedError: the package has no such function.
            BamQueryError: it does not have the constants that are to be replaced.
        """
        import polars  # noqa: PLC0415 (which the peer needs)

        wanted = _function_name(name)
        if not self.function(name):
            raise RefusedError(f"cudf-polars {self.version} has no pdsh query {wanted}")
        names = {
            "pl": polars,
            "date": date,
            "get_data": lambda _path, table, *_suffix: get(table),
            "QueryResult": lambda frame, **_: frame,
        }
        text = replace_pieces(self.function(name), constants.python)
        exec(compile(text, f"pdsh {wanted}", "exec"), names)  # noqa: S102 (of an installed package)
        function: Any = names[wanted]
        configuration = SimpleNamespace(dataset_path="", suffix="", scale_factor=constants.scale)
        return lambda: function(configuration)


def cudf_polars_version() -> str:
    """Of the installed package; empty where none says."""
    for distribution in DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(distribution)
    return ""


def _function_name(name: str) -> str:
    return f"q{int(name[:2])}"


def _plain(node: ast.FunctionDef) -> str:
    node.decorator_list, node.returns = [], None
    for argument in node.args.args:
        argument.annotation = None
    return ast.unparse(node)

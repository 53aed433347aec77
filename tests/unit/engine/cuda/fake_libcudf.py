"""As much of pylibcudf and rmm as the cuda device calls, over Python values.

So what the device asks is tested without a GPU; what libcudf answers is tested on one (tests/gpu/engine).
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from types import ModuleType, SimpleNamespace

from tests.unit.engine.cuda.fake_columns import (
    BOOL,
    INT32,
    BinaryOperator,
    Column,
    DataType,
    NullOrder,
    NullPolicy,
    Order,
    OutOfBoundsPolicy,
    OutputIfEmptyList,
    Scalar,
    ScanType,
    SeparatorOnNulls,
    SideType,
    Sorted,
    Table,
    TypeId,
    UnaryOperator,
    size_of,
)
from tests.unit.engine.cuda.fake_functions import (
    _flags,
    apply_retention_mask,
    binary_operation,
    cast,
    concatenate,
    contains,
    copy_bitmask,
    copy_if_else,
    count_elements,
    encode,
    gather,
    hash_partition,
    interleave_columns,
    normalize,
    repeat,
    replace_nulls,
    scatter,
    sequence,
    slice_column,
    sort,
    stable_sorted_order,
    unary_operation,
)
from tests.unit.engine.cuda.fake_groups import GroupBy, GroupByRequest, count, minmax, reduce, scan
from tests.unit.engine.cuda.fake_strings import (
    _boolean_texts,
    _byte_counts,
    _concatenated,
    _digits,
    _joined_lists,
    _like,
    _stripped,
    _texts,
    _written,
)
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu, FakeMemory


class Stream:
    def __cuda_stream__(self):
        return (0, 1)


class FakeSession:
    """What `CudaSession` is to the device: kernels of ours are emulated."""

    name, limit, ordinal = "cuda:0", None, 0

    def __init__(self, emulator: Emulator) -> None:
        self.stream, self.memory = Stream(), object()
        self.gpu, self.driver_stream, self.lock = FakeGpu(emulator), object(), threading.RLock()

    @functools.cached_property
    def launcher(self):
        from bamquery.engine.cuda.launcher import Launcher

        return Launcher(self.gpu, self.lock)

    @functools.cached_property
    def program_kernels(self):
        from bamquery.engine.cuda.pipeline.program_kernels import ProgramKernels

        return ProgramKernels(self.gpu, self.lock, self.driver_stream)

    @functools.cached_property
    def read_back(self):
        from bamquery.engine.cuda.read_back import ReadBack

        return ReadBack(self)

    def allocate(self, nbytes: int, what: str, driver_stream: object = None) -> FakeMemory:
        return FakeMemory(nbytes)

    allocate_entered = allocate

    def enter(self) -> None:
        """Nothing to enter."""

    def synchronize(self, stream: object = None) -> None:
        """Nothing to wait for."""


def modules() -> dict[str, ModuleType]:
    """The modules by name, as `sys.modules` has them."""
    space = SimpleNamespace
    combine = space(
        concatenate=_concatenated,
        join_list_elements=_joined_lists,
        OutputIfEmptyList=OutputIfEmptyList,
        SeparatorOnNulls=SeparatorOnNulls,
    )
    functions = {
        "pylibcudf.aggregation": {n: (lambda *a, n=n: n) for n in ("sum", "min", "max", "any")}
        | {"Aggregation": str, "count": count},
        "pylibcudf.binaryop": {"BinaryOperator": BinaryOperator, "binary_operation": binary_operation},
        "pylibcudf.unary": {
            "UnaryOperator": UnaryOperator,
            "unary_operation": unary_operation,
            "is_null": _flags(lambda v: v is None),
            "is_valid": _flags(lambda v: v is not None),
            "is_nan": _flags(lambda v: isinstance(v, float) and math.isnan(v)),
            "cast": cast,
        },
        "pylibcudf.column_factories": {
            "make_empty_column": lambda kind, stream=None, mr=None: Column.from_values([], kind)
        },
        "pylibcudf.concatenate": {"concatenate": concatenate},
        "pylibcudf.copying": {
            "OutOfBoundsPolicy": OutOfBoundsPolicy,
            "copy_if_else": copy_if_else,
            "gather": gather,
            "scatter": scatter,
            "slice": slice_column,
        },
        "pylibcudf.filling": {"sequence": sequence, "repeat": repeat},
        "pylibcudf.groupby": {"GroupBy": GroupBy, "GroupByRequest": GroupByRequest},
        "pylibcudf.null_mask": {"copy_bitmask": copy_bitmask},
        "pylibcudf.partitioning": {"hash_partition": hash_partition},
        "pylibcudf.lists": {"count_elements": count_elements},
        "pylibcudf.reduce": {"minmax": minmax, "reduce": reduce, "scan": scan, "ScanType": ScanType},
        "pylibcudf.replace": {"replace_nulls": replace_nulls, "normalize_nans_and_zeros": normalize},
        "pylibcudf.reshape": {"interleave_columns": interleave_columns},
        "pylibcudf.search": {"contains": contains},
        "pylibcudf.sorting": {"sort": sort, "stable_sorted_order": stable_sorted_order},
        "pylibcudf.span": {"Span": object},
        "pylibcudf.stream_compaction": {"apply_retention_mask": apply_retention_mask},
        "pylibcudf.transform": {"encode": encode},
        "pylibcudf.types": {
            "TypeId": TypeId,
            "Order": Order,
            "NullOrder": NullOrder,
            "NullPolicy": NullPolicy,
            "Sorted": Sorted,
            "size_of": size_of,
        },
        "pylibcudf.strings.combine": vars(combine),
        "pylibcudf.strings.side_type": {"SideType": SideType},
        "pylibcudf.strings": {
            "attributes": space(count_bytes=_byte_counts, count_characters=_texts(len, INT32)),
            "case": space(to_lower=_texts(str.lower)),
            "combine": combine,
            "contains": space(like=_texts(_like, BOOL)),
            "find": space(
                contains=_texts(lambda v, part: part.decode() in v, BOOL),
                starts_with=_texts(lambda v, part: v.startswith(part.decode()), BOOL),
                ends_with=_texts(lambda v, part: v.endswith(part.decode()), BOOL),
                find=_texts(lambda v, part: v.find(part.decode()), INT32),
            ),
            "replace": space(
                replace=_texts(lambda v, what, by: v.replace(what.decode(), by.decode())),
            ),
            "slice": space(slice_strings=_texts(lambda v, start, stop, step: v[start:stop:step])),
            "strip": space(strip=_texts(_stripped)),
            "translate": space(translate=_texts(lambda v, table: v.translate(table))),
            "convert": space(
                convert_booleans=space(from_booleans=_boolean_texts),
                convert_datetime=space(from_timestamps=_written),
                convert_fixed_point=space(from_fixed_point=_digits),
                convert_integers=space(from_integers=_digits),
            ),
        },
        "rmm": {"DeviceBuffer": FakeMemory},
        "rmm.mr": {"DeviceMemoryResource": object},
        "rmm.pylibrmm.stream": {"Stream": Stream},
    }
    found: dict[str, ModuleType] = {}
    for name in ("rmm.pylibrmm", "pylibcudf", *functions):
        found[name] = ModuleType(name)
        for attribute, value in functions.get(name, {}).items():
            setattr(found[name], attribute, value)
    for name, module in found.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(found[parent], child, module)
    for attribute, value in {
        "Column": Column,
        "Scalar": Scalar,
        "Table": Table,
        "DataType": DataType,
        "TypeId": TypeId,
    }.items():
        setattr(found["pylibcudf"], attribute, value)
    return found


def install() -> list[str]:
    """Put the modules where imports find them; returns their names."""
    found = modules()
    sys.modules.update(found)
    return list(found)

"""Native parts of storage and engine: block reads, checksums, statistics, gathers, keys.

Buffers are anything with the buffer protocol. Bitmaps are Arrow's (least significant bit first), None where
all bits are set. Sizes are checked: a call that does not fit raises ValueError. Every function releases the
GIL while it works.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Buffer: TypeAlias = bytes | bytearray | memoryview | pa.Buffer | NDArray[Any]

def crc32c(data: Buffer, seed: int = 0) -> int:
    """CRC-32C of `data`, continued from `seed`: that of what lies before it."""

def strided_crcs(data: Buffer, stride: int) -> NDArray[np.uint32]:
    """CRC-32C of each run of `stride` bytes; the last may be shorter."""

def copy_bits(source: Buffer | None, source_bit: int, count: int, target: Buffer, target_bit: int) -> int:
    """Copy `count` bits and return how many are set."""

def set_bits(bits: Buffer | None, count: int) -> NDArray[np.int64]:
    """The places of set bits among the first `count`, ascending; None: all are set."""

def set_among(bits: Buffer, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indexes of those `places` whose bits are set, ascending. ValueError: there is no such bit."""

def copy_values(
    source: Buffer,
    source_row: int,
    rows: int,
    width: int,
    validity: Buffer | None,
    validity_bit: int,
    target: Buffer,
    target_row: int,
) -> None:
    """Copy values of 1, 2, 4, 8 or 16 bytes; those whose bit of `validity` is clear become zero."""

def vector_statistics(
    kind: str, values: Buffer, validity: Buffer | None, rows: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint32]]:
    """Of every vector: minimum and maximum (bytes of the kind's width), nulls, NaNs, CRC-32C of its values.

    Kinds: int8..int64, uint8..uint64, float32, float64, int128 and bool (values are bits, minimum and maximum
    bytes). Minimum and maximum are zero where a vector has only nulls and NaNs.
    """

def pack_vectors(
    kind: str,
    values: Buffer,
    validity: Buffer | None,
    rows: int,
    divisor: int,
    origin: int,
    exponents: bytes,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint32]]:
    """Pack whole vectors and a last one; arguments as `vector_statistics` takes them.

    Returns the payloads end to end, parameters of 16 bytes a vector (`PACKED_VECTOR`, offsets from the first
    payload) and CRC-32C of each payload. Integers are origin + n * divisor, modulo 2^64; `exponents` of
    decimals, ascending, are tried before all others.

    ValueError: an int128 does not fit 64 bits, or a vector of them 56; the payload exceeds 64 GiB.
    """

def packing_sample(kind: str, values: Buffer, validity: Buffer | None, rows: int) -> dict[str, Any]:
    """What rows say about how to pack their column; arguments as `vector_statistics` takes them.

    `fits`: False where an int128 needs more than 64 bits, and then nothing else is meant. `bits`: a row, with
    16 bytes of parameters a vector. `divisor`, `origin`: of all the rows. `exponents`: of most decimals, at
    most three. `distinct`: estimated number of distinct values.
    """

def unpack_vectors(
    kind: str,
    payload: Buffer,
    starts: NDArray[np.int64],
    parameters: Buffer,
    rows: NDArray[np.int64],
    divisor: int,
    origin: int,
    values: Buffer,
    bitmap: Buffer | None,
) -> int:
    """Decode vectors end to end into `values`, nulls as zeros, and `bitmap`; returns the number of nulls.

    Vector v has `rows[v]` rows and its payload at byte `starts[v]` of `payload`. Offsets in parameters are
    not looked at.

    ValueError: parameters are impossible; names the vector's number in this call.
    """

def compare_packed(
    kind: str,
    payload: Buffer,
    starts: NDArray[np.int64],
    parameters: Buffer,
    rows: NDArray[np.int64],
    divisor: int,
    origin: int,
    terms: NDArray[np.int64],
    bounds: Buffer,
    nulls_pass: bool,
    mask: Buffer,
) -> int:
    """Set bits of `mask` where rows pass, vectors end to end, and return how many do.

    All terms must hold: a term is (number of its intervals, whether it is negated). `bounds` are keys, a low
    and a high one an interval, both included, term after term: uint64, for int128 two words each, the low one
    first. Keys order as values do (storage/core/order_key.hpp). `nulls_pass`: nulls pass as well.
    """

class ThreadBudget:
    """Counts the threads that work for a query, so that those that are left share a native call's work."""

    def __init__(self, threads: int) -> None: ...
    @property
    def free(self) -> int:
        """Threads that do not work for it."""
    def begin(self) -> None:
        """The calling thread works for it, and for nothing else, until `end`."""
    @staticmethod
    def end() -> None:
        """The calling thread works for none."""
    @staticmethod
    def current() -> ThreadBudget | None:
        """That which the calling thread works for."""

def begin_large_arrays() -> bool:
    """Large arrays that numpy makes on this thread, in this context, are of the memory that is kept.

    False: somebody has set another allocator, which stays.
    """

def end_large_arrays() -> None:
    """They are numpy's own allocator's."""

def keep_large_memory(most: int) -> None:
    """Keep so many bytes of large arrays that are gone, from now on, and give back what is more."""

def release_large_memory(but: int) -> None:
    """Give the system what is kept, but for so many bytes."""

def large_memory() -> tuple[int, int]:
    """Bytes of large arrays' blocks: in use, and kept."""

class PackedColumn:
    """A packed column of a file, for functions that read several."""

    def __init__(
        self,
        kind: str,
        parameters: Buffer,
        column_rows: int,
        data_bytes: int,
        divisor: int,
        origin: int,
        base: int,
        checksums: NDArray[np.uint32],
    ) -> None: ...

def read_packed_columns(
    file: BlockFile,
    requests: Sequence[tuple[Any, ...]],
    verify: bool,
) -> list[tuple[int, int, int, int, int]]:
    """Read several columns: (column, what is wanted, places, values, bitmap, lengths).

    Wanted are 0: payloads of vectors, whose numbers `places` are, to `values`; 1: all rows of these vectors,
    decoded; 2: rows, whose ids `places` are, decoded. Places ascend. `lengths` are bytes of what codes stand
    for, None where they are no codes. Returns of each commands, blocks, the number of the first vector that
    differs from its checksum, or -1, nulls, and bytes of what the rows stand for, -1 where a code is beyond
    the lengths. What is behind one that differs is not read.

    ValueError: parameters are impossible, or places are none of the column's.
    """

FixedColumn: TypeAlias = tuple[Any, Any, int, int]
"""Bitmap or None, values, the first row, how many there are."""
StringColumn: TypeAlias = tuple[Any, Any, Any, int, int]
"""Bitmap or None, offsets of 8 bytes, data or None, the first row, how many there are: one at least."""

def gather_columns(
    columns: Sequence[FixedColumn],
    bits: Sequence[int],
    places: FixedColumn,
    width: int,
    values: Sequence[Any],
    bitmaps: Sequence[Any],
) -> list[int]:
    """Writes the columns' rows at places, which have `width` bytes, and returns how many of each are null.

    `bits`: of each column's values. A column with nulls, and each where a place is null, has a
    bitmap to write.

    Raises:
        ValueError: a place is outside.
    """

def gather_strings(
    column: StringColumn,
    places: FixedColumn,
    width: int,
    offsets: Any,
    bitmap: Any,
    allocate: Callable[[int], Any],
) -> tuple[Any, int]:
    """The same of strings: their bytes, in a buffer that `allocate` makes, and how many are null.

    Raises:
        ValueError: a place is outside, or a string.
    """

def append_values(columns: Sequence[FixedColumn], bits: int, values: Any, bitmap: Any) -> None:
    """Writes all values of columns, one after the other; `bitmap` is None where none has nulls."""

def append_strings(
    columns: Sequence[StringColumn], offsets: Any, bitmap: Any, allocate: Callable[[int], Any]
) -> Any:
    """The same of strings: their bytes, in a buffer that `allocate` makes.

    Raises:
        ValueError: a string is outside.
    """

def match_parts(
    offsets: pa.Buffer,
    data: pa.Buffer,
    begin: int,
    rows: int,
    parts: Sequence[bytes],
    at_start: bool,
    at_end: bool,
    shift: int,
) -> NDArray[np.uint8]:
    """A bitmap, from bit `shift` on, of the `rows` strings from `begin` on that have all parts in order.

    Offsets have 8 bytes. `at_start`, `at_end`: strings begin with the first part, end with the last.
    """

def select_rows(
    file: BlockFile,
    columns: Sequence[PackedColumn],
    kept: Sequence[bool],
    steps: Sequence[tuple[Any, ...]],
    vectors: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    verify: bool,
    located: bool,
) -> tuple[NDArray[np.int64] | None, int, list[tuple[int, int, int]], list[tuple[Any, ...]], int]:
    """Take steps vector by vector, each for rows that passed those before; reads are by vectors with such.

    A step is (None, [column], terms, bounds, nulls_pass, certain, string_bytes), a comparison of codes as
    `compare_packed` takes it, (NumberSet, [column]), or (Program, its inputs' columns). Of `certain` vectors
    (a byte each) all rows pass without a look. `rows` are those to ask about (None: all of `vectors`).

    Returns ids of rows that pass (None where all do, or not `located`), their number, of each step rows
    looked at, rows that passed and bytes of strings, of each column (vectors read, their lengths, payloads
    where `kept`, commands, blocks, the vector that differs from its checksum or -1), and the number of a
    program that fails, or -1; nothing else is said then.

    ValueError: parameters are impossible, or rows or vectors do not ascend or are none of the column's.
    """

def pick_rows(
    kind: str,
    payload: Buffer,
    starts: NDArray[np.int64],
    parameters: Buffer,
    rows: NDArray[np.int64],
    divisor: int,
    origin: int,
    begins: NDArray[np.int64],
    positions: NDArray[np.int64],
    values: Buffer,
    bitmap: Buffer | None,
) -> int:
    """Decode some rows of vectors in memory; returns how many are null.

    `positions` ascend: each vector's rows are those from its own of `begins` on, which ascend. Otherwise as
    `unpack_vectors`, for as many rows as there are positions; `bitmap` must be given where a vector has
    nulls.

    ValueError: parameters are impossible, or there is no such position.
    """

def fsst_symbols(symbols: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Symbols as files have them, by their codes: 256 times up to 8 bytes, and how many these are.

    ValueError: there are no such symbols.
    """

def fsst_train(offsets: Buffer, rows: int, data: Buffer, data_start: int) -> bytes:
    """Symbols that make strings short, as files have them: how many, each one's length, their bytes.

    `offsets` are int64, one more than `rows`, and count bytes of `data` from `data_start` on.

    ValueError: offsets do not ascend within the data.
    """

def fsst_pack(
    symbols: bytes, offsets: Buffer, rows: int, data: Buffer, data_start: int, validity: Buffer | None
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint32]]:
    """Pack whole vectors of strings and a last one; strings of nulls are empty.

    Returns the payloads end to end, parameters of 48 bytes a vector (`FSST_VECTOR`, offsets from the first
    payload) and CRC-32C of each payload.

    ValueError: the strings of a vector come to 4 GiB, or the symbols are not those that `fsst_train` makes.
    """

def fsst_unpack(
    symbols: bytes,
    payload: Buffer,
    starts: NDArray[np.int64],
    parameters: Buffer,
    rows: NDArray[np.int64],
    positions: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8], int]:
    """Strings of vectors that lie in `payload` as `unpack_vectors` has it, or of ascending positions of them.

    Returns offsets, bytes, a bitmap of valid rows and the number of nulls.

    ValueError: bytes cannot be such vectors; names the vector's number in this call.
    """

def check_fsst_column(
    parameters: Buffer, column_rows: int, data_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, tuple[int, str] | None]:
    """Where payloads start in a column's data, their sizes, and those of their codes of ends, in bytes.

    Then the bytes of all strings, as parameters say, and the first fault, a vector and what is wrong with it:
    parameters that are impossible, or payloads that do not lie end to end or fill `data_bytes`. With one, the
    arrays mean nothing. `parameters` are those of all vectors of a column of `column_rows` rows.

    ValueError: parameters are not as many as there are vectors.
    """

def fsst_places(
    parameters: Buffer, column_rows: int, data_bytes: int, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where in the column's data 16 bytes tell where each of ascending rows is; `parameters` of all vectors.

    Up to 16 bytes behind `data_bytes`, the size of all payloads, are among them.
    """

def fsst_ranges(
    parameters: Buffer, column_rows: int, data_bytes: int, rows: NDArray[np.int64], ends: Buffer
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], int]:
    """Starts and lengths, in the column's data, of rows whose 16 bytes at `fsst_places` are `ends`.

    With them a bitmap of valid rows and the number of nulls.

    ValueError: ends do not ascend within their parts; names the vector.
    """

def fsst_decode(
    symbols: bytes,
    parameters: Buffer,
    column_rows: int,
    data_bytes: int,
    rows: NDArray[np.int64],
    lengths: NDArray[np.int64],
    stored: Buffer,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets and bytes of rows, whose bytes at `fsst_ranges` are end to end in `stored`.

    ValueError: codes are no symbols; names the vector.
    """

def packed_parts(
    kind: str,
    payload: Buffer,
    starts: NDArray[np.int64],
    parameters: Buffer,
    rows: NDArray[np.int64],
    divisor: int,
    origin: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
    """Bounds and checksums of the parts of vectors; arguments as `unpack_vectors` takes them.

    Returns bounds of shape (vectors, 2, 8), each part's lowest step and then each part's highest; CRC-32C of
    each part's codes, eight a vector; and of what is behind the codes, one a vector. A part without values
    goes from 255 to 0. Vectors without parts have bounds from 0 to 255, and no checksums: 0.

    ValueError: parameters are impossible; names the vector's number in this call.
    """

def fetch_packed_rows(
    file: BlockFile,
    kind: str,
    parameters: Buffer,
    column_rows: int,
    data_bytes: int,
    divisor: int,
    origin: int,
    base: int,
    checksums: NDArray[np.uint32] | None,
    rows: NDArray[np.int64],
    values: Buffer,
    bitmap: Buffer,
) -> tuple[int, int, int, int]:
    """Decode ascending rows of a column out of the vectors that hold them, as these come from the file.

    Arguments are as `packed_places` and `unpack_rows` take them; the column's data start at byte `base`.
    `checksums` are CRC-32C of all its vectors. Returns commands, blocks, the number of the first vector that
    differs, or -1, and how many nulls there are: without one, `bitmap` is not filled.

    ValueError: parameters are impossible, naming the vector's number; or there is no such row.
    """

def check_packed_column(
    kind: str, parameters: Buffer, column_rows: int, data_bytes: int, null_counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], tuple[int, str] | None]:
    """Where payloads start in a column's data and how large they are, in bytes; and the first fault.

    Third, how many rows of each vector are to be expected to have something behind the codes, or plain
    values: see `count_packed_blocks`. A fault is a vector and what is wrong with it: parameters that are
    impossible, payloads that do not lie end to end or fill `data_bytes`, codes of NULL elsewhere than
    `null_counts` says. With one, the arrays mean nothing. Arguments are as `packed_places` takes them.

    ValueError: parameters, or counts, are not as many as there are vectors.
    """

def packed_places(
    kind: str, parameters: Buffer, column_rows: int, data_bytes: int, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where in the column's data the 8 bytes start that `unpack_rows` wants of each row; ascending.

    `parameters` are those of all vectors of a column of `column_rows` rows, whose payloads have `data_bytes`
    bytes together. Words end at most 8 bytes behind them. `rows` are ascending.

    ValueError: parameters are impossible, or there is no such row.
    """

def count_packed_blocks(
    kind: str,
    parameters: Buffer,
    column_rows: int,
    data_bytes: int,
    rows: NDArray[np.int64],
    base: int,
    block_size: int,
) -> tuple[int, int, float, float]:
    """What reading rows takes of a file in which the column's data start at `base`.

    Runs and blocks with codes; then those that have to be expected of `unpack_rest`, in blocks that have none
    of these codes.
    """

def unpack_rows(
    kind: str,
    parameters: Buffer,
    column_rows: int,
    data_bytes: int,
    divisor: int,
    origin: int,
    rows: NDArray[np.int64],
    words: Buffer,
    values: Buffer,
    bitmap: Buffer,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Values and bitmap of rows, made of the words at `packed_places`; nulls as zeros.

    Returns what is left to be read: positions in `rows`, and for each the place of 8 bytes for `unpack_rest`.
    """

def unpack_rest(
    kind: str,
    parameters: Buffer,
    column_rows: int,
    data_bytes: int,
    divisor: int,
    origin: int,
    rows: NDArray[np.int64],
    positions: NDArray[np.int64],
    words: Buffer,
    values: Buffer,
    bitmap: Buffer,
) -> None:
    """Put what `unpack_rows` left into values and bitmap; `positions` and `words` are of what it returned."""

KeyColumn: TypeAlias = tuple[NDArray[Any], Buffer | None, int]
"""Integers, or two words of 64 bits a row; the bitmap of values that are there (None: all); its first bit."""

def group_rows(keys: Sequence[KeyColumn]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The number of each row's keys, dense, by first appearance; each number's first row. Nulls are equal."""

def are_same_strings(
    offsets: NDArray[np.int64],
    data: Buffer,
    validity: Buffer | None,
    first_bit: int,
    codes: NDArray[np.int32],
    leaders: NDArray[np.int64],
) -> bool:
    """Whether each row's string is that of the first row of its group; null is the same as null."""

class KeyTable:
    """Rows that are found by their keys, by any number of threads at once."""

    @property
    def nbytes(self) -> int:
        """Memory held."""
    def mark(self, keys: Sequence[KeyColumn]) -> NDArray[np.uint8]:
        """1 for each row whose key is one of the table's, else 0."""
    def find_pairs(
        self, keys: Sequence[KeyColumn], start: int, rows: int, pairs: int
    ) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """For rows from `start` on the pairs of equal keys: rows there, and rows of the table, ascending.

        First is where it stopped: after `rows` rows, or after as many as have `pairs` pairs at most, or after
        one that has more.
        """

def key_table(keys: Sequence[KeyColumn], nulls_equal: Sequence[bool]) -> KeyTable | None:
    """Rows to be found; None where 64 bits are too few to tell their keys apart.

    Rows with a null are found where nulls are equal, and else never.
    """

class NumberSet:
    """Integers, to ask whether others are among them."""

    def __init__(self, members: NDArray[Any]) -> None: ...
    def contains(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Bits of the values that are members. They are of the members' type."""

def summarize_numbers(
    columns: Sequence[KeyColumn], wants_distinct: bool
) -> tuple[int, NDArray[Any], NDArray[Any] | None]:
    """Integers in columns of one type: how many are not null, their bounds, each once (if wanted), ascending.

    No bounds of no values; None for different ones where they are so far apart that a sort takes less time.
    """

def count_groups(
    codes: NDArray[Any] | None, rows: int, groups: int, validity: Buffer | None = None, first_bit: int = 0
) -> NDArray[np.int64]:
    """The rows of each group whose bit is set. Without codes there is one group, here and in what follows.

    ValueError: a row is of no group.
    """

def sum_whole(codes: NDArray[Any] | None, values: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Each group's sum, which wraps."""

def sum_checked(
    codes: NDArray[Any] | None, values: NDArray[np.int64], groups: int
) -> NDArray[np.int64] | None:
    """The same; None where one would wrap."""

def narrow_sums(words: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Numbers of two words each, low and high, in 64 bits; None where one does not fit."""

def sum_doubles(codes: NDArray[Any] | None, values: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Each group's sum, row by row from 0.0 on."""

def sum_pairs(
    codes: NDArray[Any] | None, y: NDArray[np.float64], x: NDArray[np.float64], groups: int
) -> tuple[
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]:
    """Each group's pairs, means of y and x, and sums of products of distances from these: yy, xx, xy."""

def sum_limbs(
    codes: NDArray[Any] | None,
    values: NDArray[Any],
    validity: Buffer | None,
    first_bit: int,
    groups: int,
    limbs: int = 0,
) -> tuple[NDArray[np.int64], ...]:
    """Exact sums of integers as limbs of 32 bits, the lowest first, the highest with the sign.

    Values of up to 32 bits have two, of 64 three, of 128 five of them; or as many as are asked for.
    """

def merge_limbs(
    codes: NDArray[Any] | None, limbs: Sequence[NDArray[np.int64]], groups: int
) -> tuple[NDArray[np.int64], ...]:
    """The sums of numbers in limbs, in as many."""

def join_limbs(limbs: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], bool]:
    """Numbers in limbs, of any sign, as two words each; False: one of them has more than 38 digits."""

def hash_rows(keys: Sequence[KeyColumn]) -> NDArray[np.uint64]:
    """A hash of each row's keys: equal ones have equal hashes in every frame and state of a query."""

def hash_strings(offsets: NDArray[np.int64], data: Buffer) -> NDArray[np.uint64]:
    """A hash of each string, which are from one offset to the next: of all of it up to 64 bytes."""

def partition_rows(
    hashes: NDArray[np.uint64], shift: int, partitions: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows by the bits of their hashes from `shift` on (& partitions - 1), and where those of each end."""

def order_of_places(places: NDArray[np.int64]) -> int:
    """2 where each place is the next one of that before (or there is none), 1 where it is greater; else 0."""

def set_flags(places: NDArray[np.int64], flags: NDArray[np.bool_]) -> None:
    """Set the flags at places, which other threads may do to the same array at once.

    Raises:
        ValueError: a place is outside.
    """

def gather_values(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    """Values of up to 64 bits at places. ValueError: there is no such place."""

def simd_levels() -> list[str]:
    """Instructions that packed columns may be read and written with here, least first; the last is used."""

def use_simd_level(name: str) -> None:
    """For tests and benchmarks: use one of `simd_levels`. Results do not depend on it."""

def string_ends(
    offsets: Buffer,
    first_row: int,
    rows: int,
    data_size: int,
    validity: Buffer | None,
    validity_bit: int,
    start: int,
) -> NDArray[np.int64]:
    """Where each string ends when they are laid end to end from `start`, nulls empty.

    ValueError: `offsets` (int64) are not ascending within `data_size`.
    """

def copy_strings(
    offsets: Buffer,
    first_row: int,
    rows: int,
    data: Buffer,
    validity: Buffer | None,
    validity_bit: int,
    target: Buffer,
) -> None:
    """Copy the bytes of the strings that are not null, end to end."""

def string_statistics(
    offsets: Buffer, rows: int, data: Buffer, data_start: int, validity: Buffer | None, utf8: bool
) -> tuple[
    NDArray[np.uint8],
    NDArray[np.uint8],
    NDArray[np.uint8],
    NDArray[np.uint8],
    NDArray[np.uint16],
    NDArray[np.uint32],
    NDArray[np.uint32],
    int,
]:
    """Of every vector: lower bounds, their lengths, upper bounds, their lengths, nulls, two CRCs.

    The checksums are those of the strings' bytes and of the offsets. Bounds are in cells of 16 bytes; a
    length of 255 means that there is none. Last comes the first row that is not UTF-8, where that is asked,
    or -1.
    """

def count_hit_pyramid(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each k below 64, how many distinct groups of 2^k rows hold one of the ascending `rows`.

    And how many runs of such groups side by side they make.
    """

def rows_by_vector(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The vectors that hold ascending rows, and how many of these each has."""

def join_offsets(
    stored: Buffer, counts: NDArray[np.int64], data_size: int, joined: Buffer
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Make one row of offsets, from zero, of those of several vectors (`counts[v] + 1` each).

    Returns the first vector whose offsets are not ascending within `data_size` (or -1), and where each
    vector's bytes start and how many they are.
    """

class HeldBlocks:
    """Blocks that gathers of one caller from one file have read; for one thread.

    Gathers raise ValueError where those of another file are held.
    """

class BlockFile:
    """An open file as an array of blocks, for many threads at once.

    Items ascend and lie within the file (ValueError); what cannot be read is a StorageError. Methods fill
    `target` densely, and return commands and blocks.
    """

    @property
    def block_size(self) -> int:
        """Bytes of a block."""
    @property
    def io_path(self) -> str:
        """How the kernel is asked."""
    @property
    def controller(self) -> SoftwareController | None:
        """Who carries out the reads of this file and of all others that are opened so."""

    def close(self) -> None:
        """Later reads raise StorageError; those under way finish."""

    def read_ranges(
        self,
        offsets: NDArray[np.int64],
        lengths: NDArray[np.int64],
        target: Buffer,
        checksums: NDArray[np.uint32] | None = None,
    ) -> tuple[int, int, int]:
        """Read ranges; third is the first whose CRC-32C is not that in `checksums`, or -1."""

    def gather(
        self,
        base: int,
        stride: int,
        width: int,
        rows: NDArray[np.int64],
        target: Buffer,
        held: HeldBlocks | None = None,
    ) -> tuple[int, int]:
        """`width` bytes at `base + row * stride` for each row.

        Blocks that are `held` are neither read nor counted; those that are read are held from then on.
        """

    def gather_bits(self, base: int, rows: NDArray[np.int64], target: Buffer) -> tuple[int, int]:
        """Each row's bit of the bitmap at byte `base`, packed."""

def open_mapped(path: str | Path, expected_size: int, block_size: int) -> BlockFile:
    """Read through a memory map; truncation while in use is a StorageError."""

LARGEST_READ: int
"""Most bytes of a command of files that `open_queue` opens."""

def open_queue(
    path: str | Path, expected_size: int, block_size: int, depth: int, io: str, patience: float
) -> BlockFile:
    """Read past the page cache by NVMe commands, `depth` at once; block size 0 is the device's.

    `io` is `auto`, `io_uring` or `preadv`; a command that takes more than `patience` seconds is an NvmeError.
    """

def count_row_blocks(
    base: int, stride: int, width: int, rows: NDArray[np.int64], block_size: int
) -> tuple[int, int]:
    """Runs of consecutive blocks, and distinct blocks, that `BlockFile.gather` would read."""

def count_bit_blocks(base: int, rows: NDArray[np.int64], block_size: int) -> tuple[int, int]:
    """The same for `BlockFile.gather_bits`."""

def count_range_blocks(
    offsets: NDArray[np.int64], lengths: NDArray[np.int64], block_size: int
) -> tuple[int, int]:
    """The same for `BlockFile.read_ranges`."""

def fill_content(target: Buffer, seed: int, first_sector: int = 0) -> None:
    """Write what benchmarks expect at sector (512 bytes) `first_sector` and those after it."""

def find_wrong(data: Buffer, seed: int, first_sector: int = 0) -> int:
    """Offset of the first 8 bytes that are not what `fill_content` writes there, or -1."""

def draw_blocks(
    pattern: str, blocks: int, clients: int, seed: int, theta: float, client: int, count: int
) -> NDArray[np.uint64]:
    """The first `count` blocks that a benchmark's client asks for: `sequential`, `random` or `zipf`."""

def access_pattern(pattern: str, *, blocks: int, clients: int, seed: int, theta: float) -> bytes:
    """An AccessPattern (driver/core/bench/access_pattern.hpp), for kernels: which blocks clients ask for."""

class BenchBacking:
    """What a benchmark reads and writes; the buffer protocol shows its bytes.

    A path: a shared map of the first `size` bytes of the file. An empty one: memory. StorageError.
    """

    def __init__(self, path: str, size: int, writable: bool) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def fill(self, seed: int) -> None:
        """Write the content of `seed` all over it, on all cores; a file's is on disk after that."""

class BlockJob:
    """What every client of a benchmark of blocks does; ValueError where it makes no sense."""

    def __init__(
        self,
        *,
        block_bytes: int,
        blocks: int,
        clients: int,
        depth: int,
        pattern: str,
        theta: float,
        write_share: float,
        seed: int,
        verify: bool,
    ) -> None: ...

class RingOptions:
    """Queue pairs, a controller with one namespace, and the drives that it imitates (empty: none)."""

    def __init__(
        self,
        *,
        pairs: int,
        depth: int,
        transfer_bytes: int,
        block_bytes: int,
        threads: int,
        direct: bool,
        writable: bool,
        profile: str,
        drives: int,
        deadline_seconds: float,
    ) -> None: ...

class BenchRun:
    """Clients at work. Dropping it stops them."""

    @property
    def operations(self) -> int:
        """So far."""
    @property
    def bytes(self) -> int:
        """So far."""
    @property
    def seconds(self) -> float:
        """Since they began."""
    @property
    def finished(self) -> bool:
        """Whether all of them gave up by themselves."""
    def stop(self) -> dict[str, Any]:
        """End them, compare what was written, and add up; once. StorageError."""

class BlockRun(BenchRun):
    """Of blocks."""

class RingsRun(BenchRun):
    """Of blocks of any controller's namespace."""

class CacheRun(BenchRun):
    """Of pages, or of an array's elements, through a page cache."""

def start_mapped_bench(backing: BenchBacking, job: BlockJob) -> BlockRun:
    """Copy from and to the backing by memcpy."""

def start_uring_bench(backing: BenchBacking, job: BlockJob, direct: bool) -> BlockRun:
    """Read and write the backing's file by io_uring; `direct`: past the page cache."""

def start_rings_bench(backing: BenchBacking, job: BlockJob, options: RingOptions) -> BlockRun:
    """By NVMe commands, a queue pair for each client."""

def start_controller_bench(
    memory: QueueMemory,
    controller: Controller,
    job: BlockJob,
    *,
    nsid: int,
    known_content: bool,
    deadline_seconds: float,
) -> RingsRun:
    """By NVMe commands to a namespace's first blocks, a queue pair for each client; the rings are fresh.

    What is read is compared with the content of the job's seed if that is `known_content`, else with what the
    same block's first read brought. ValueError: the namespace or the queues have no such blocks.
    """

def start_cache_bench(
    sources: Sequence[tuple[QueueMemory, Controller, int]],
    *,
    clients: int,
    deadline_seconds: float,
    cache_bytes: int,
    page_bytes: int,
    extent_bytes: int,
    stripe_bytes: int,
    warm: bool,
    pattern: str,
    theta: float,
    seed: int,
    verify: bool,
) -> CacheRun:
    """Pages of namespaces, striped where there are several: queue pairs with who serves them, and an nsid.

    Each client leases a pair of each; the rings are fresh. Number i holds the content of `seed` + 2 i.
    """

def start_array_bench(
    sources: Sequence[tuple[QueueMemory, Controller, int]],
    *,
    clients: int,
    deadline_seconds: float,
    cache_bytes: int,
    page_bytes: int,
    extent_bytes: int,
    stripe_bytes: int,
    element: str,
    element_bytes: int,
    pattern: str,
    theta: float,
    seed: int,
    verify: bool,
) -> CacheRun:
    """Elements of an array over the whole extent, gathered through a cache; as `start_cache_bench`."""

class QueueMemory:
    """Doorbells, rings, PRP lists and landing buffers of queue pairs, in page-aligned memory of this process.

    ValueError: a shape or a place that cannot be. Pairs to lease come first; `slots` 0 are as many as the
    depth allows. It lies in `memory`, zeros from a page's start on, where that is given, and keeps it: a map
    of a file, say, that a controller in another process serves. `doorbells` are a drive's, laid out like its
    registers from 1000h on, which they are where `registers` says so; without them these are in the memory.
    `bus` is what the controller calls the memory's address, 0 for the same; `first_queue` the number of its
    first pair. Pairs that are `read_only` refuse writes.
    """

    def __init__(
        self,
        *,
        leased_pairs: int = 1,
        shared_pairs: int = 1,
        depth: int = 256,
        slots: int = 0,
        slot_bytes: int = 4096,
        block_bytes: int = 512,
        doorbell_stride: int = 4,
        memory: Buffer | None = None,
        doorbells: Buffer | None = None,
        registers: bool = False,
        bus: int = 0,
        first_queue: int = 1,
        read_only: bool = False,
    ) -> None: ...
    @property
    def leased_pairs(self) -> int: ...
    @property
    def shared_pairs(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def slot_bytes(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def doorbell_stride(self) -> int:
        """CAP.DSTRD of the drive that serves it: `NvmeDrive.limits()` has it."""

    @property
    def flags_bytes(self) -> int:
        """Shared memory that a thread block needs for a lease."""

    @property
    def address(self) -> int:
        """Where the memory is in this process."""

    @property
    def size(self) -> int:
        """Bytes at `address`."""

    @property
    def pool_bytes(self) -> int:
        """Bytes of memory that a pool's users share: views and flags."""

    @property
    def drive_doorbells(self) -> tuple[int, int, bool] | None:
        """Of doorbells that are a drive's: address, bytes, and whether they are registers."""

    def make_pool(self, rings: int, pool: int, doorbells: int | None = None) -> tuple[bytes, bytes]:
        """A QueuePoolView, and what must lie at address `pool` (a multiple of 128), of `pool_bytes`.

        Addresses are the running side's: `rings` is where it sees this memory, `doorbells` those of a drive,
        where they are not in it. Rings must be fresh. ValueError: doorbells are missing, or in the memory.
        """

    def pool_statistics(self, view: bytes, contents: bytes) -> list[tuple[int, int, int, int, int, bool]]:
        """Doorbells, errors, missed, late, quarantined, broken of each pair, from a copy of a pool."""

    def reset_rings(self) -> None:
        """Make all rings and doorbells zeros again; nobody may be using them."""

class FaultRule:
    """One of a controller's faults: see bamquery.driver.faults.Fault."""

    def __init__(
        self,
        kind: str,
        *,
        nsid: int,
        opcode: int | None,
        first_lba: int,
        blocks: int | None,
        probability: float,
        most: int | None,
        status: int,
        delay: float,
        window: int,
        torn_at: int,
    ) -> None:
        """ValueError: no such kind, a delay or status that cannot be."""

class ControllerActivity:
    """Keeps a controller's threads awake until end() or its own end."""

    def end(self) -> None: ...

class Controller:
    """See bamquery.driver.controller.Controller, which says what the members do."""

    def shape_of(self, nsid: int) -> tuple[int, int, int, int, bool, bool, str] | None:
        """Nsid, bytes of a block, blocks, bytes, writable, volatile cache, name; None: there is none."""

    def stop(self, deadline: float) -> bool: ...
    def recreate_queues(self) -> None: ...
    def wake(self) -> None: ...
    def activity(self) -> ControllerActivity: ...

class ElsewhereController(Controller):
    """Stands for one that another process has, which serves the rings; it has one namespace.

    It cannot be stopped from here: stop() is False, recreate_queues() raises RuntimeError.
    """

    def __init__(self, *, nsid: int, block_bytes: int, blocks: int, writable: bool = False) -> None: ...

class SoftwareController(Controller):
    """See bamquery.driver.software_controller.SoftwareController, which says what the members do."""

    def __init__(
        self,
        memory: QueueMemory,
        *,
        threads: int = -1,
        streaming_stores: bool = False,
        executor_depth: int = 256,
    ) -> None: ...
    def add_memory(self, size: int, block_bytes: int) -> int: ...
    def add_file(self, path: str | Path, block_bytes: int, direct: bool, writable: bool) -> int: ...
    def memory(self, nsid: int) -> memoryview: ...
    def remove_namespace(self, nsid: int, deadline: float) -> bool: ...
    def set_faults(self, rules: list[FaultRule], seed: int) -> None: ...
    def set_profile(
        self,
        name: str,
        read_latency: float,
        write_latency: float,
        read_commands: float,
        write_commands: float,
        read_bytes: float,
        write_bytes: float,
        drives: int,
    ) -> None: ...
    def clear_profile(self) -> None: ...
    def start(self) -> None: ...
    @property
    def running(self) -> bool: ...
    @property
    def threads(self) -> int: ...
    def service(self) -> bool: ...
    def statistics(self) -> dict[str, Any]: ...

class NvmeDrive:
    """An NVMe drive that this process drives through VFIO; opening it makes it ready and asks what it has.

    StorageError says what is in the way and which commands would help; NvmeError what the drive did not do.
    ValueError: no such interface ("auto", "group", "iommufd"). `timeout`: seconds of commands for the
    controller itself.
    """

    def __init__(
        self, address: str, *, writable: bool = False, interface: str = "auto", timeout: float = 10.0
    ) -> None: ...
    @property
    def address(self) -> str:
        """With its domain, as "0000:5e:00.0"."""

    @property
    def interface(self) -> str:
        """How it is reached, in words: "VFIO group 7", "iommufd"."""

    @property
    def writable(self) -> bool: ...
    def identity(self) -> dict[str, Any]:
        """serial, model, firmware, version: str; vendor, controller_id: int."""

    def limits(self) -> dict[str, Any]:
        """queue_pairs, queue_depth, transfer_bytes, doorbell_stride: int; ready_timeout: seconds.

        contiguous_queues, shadow_doorbells, memory_buffer: bool.
        """

    def namespaces(self) -> list[dict[str, Any]]:
        """All that are active.

        nsid, block_bytes, blocks, metadata_bytes, protection: int; write_protected, volatile_cache: bool;
        refusal: why the driver does not take it, None if it does.
        """

    def statistics(self) -> dict[str, Any]:
        """admin_commands, admin_errors, admin_missed, aborts, strays, events, resets, register_writes: int.

        bring_up_seconds: float, the last time; last_event: (type, information, log page) or None.
        """

    def reset(self, deadline: float) -> bool:
        """Disable it, with the queue pairs of all its controllers; False: it was not at the deadline."""

    def close(self) -> None:
        """Shut it down: no controller of it works any more. Its end does so, too."""

class NvmeController(Controller):
    """The queue pairs of `memory`, served by the drive.

    ValueError says what of the memory's shape the drive cannot do, or: no such `doorbells` ("auto",
    "registers", "shadow", "forwarded"). StorageError: no queue pairs are left.
    """

    def __init__(self, drive: NvmeDrive, memory: QueueMemory, *, doorbells: str = "auto") -> None: ...
    @property
    def doorbell_kind(self) -> str:
        """What it came to: "registers", "shadow" or "forwarded"."""

    @property
    def doorbell_text(self) -> str:
        """The same, for people."""

    @property
    def doorbell_writes(self) -> int | None:
        """Writes of doorbell registers; None where who issues a command does it."""

    @property
    def first_queue(self) -> int:
        """Queue id of the memory's first pair."""

def drive_refusal(address: str) -> str | None:
    """Why the drive is not to be driven from user space now, and what would help; None: it may be.

    StorageError: there is no PCI device at this address.
    """

class CpuQueueClient:
    """See bamquery.driver.queue_client.QueueClient, which says what the members do."""

    def __init__(self, memory: QueueMemory, controller: Controller) -> None: ...
    def read(self, nsid: int, lba: int, target: Buffer, deadline: float) -> None: ...
    def read_places(self, nsid: int, lbas: NDArray[np.uint64], target: Buffer, deadline: float) -> None: ...
    def write(self, nsid: int, lba: int, source: Buffer, deadline: float) -> None: ...
    def flush(self, nsid: int, deadline: float) -> None: ...
    def settle(self) -> tuple[int, int, int, int, int]: ...

def drive_profiles() -> list[tuple[str, float, float, float, float, float, float]]:
    """Name, latencies in seconds, commands a second, bytes a second; reads before writes."""

def status_text(code: int) -> str:
    """What a status (SCT << 8 | SC) means, in words."""

def gpu_block_job(
    *,
    pattern: str,
    theta: float,
    blocks: int,
    clients: int,
    seed: int,
    first_count: int,
    run_seconds: float,
    deadline_seconds: float,
    write_share: float,
    block_bytes: int,
    lba_bytes: int,
    nsid: int,
    sweep_nap_ns: int,
    verify: bool,
    lanes: int,
    batch: int,
) -> bytes:
    """A GpuBlockJob (driver/core/bench/gpu_job.hpp), for the kernels of driver/kernels/bench_block.cu."""

class CpuPageCache:
    """See bamquery.driver.array.PageCache, which says what the members do."""

    def __init__(
        self, sources: tuple[tuple[QueueMemory, Controller], ...], *, page_count: int, page_bytes: int
    ) -> None: ...
    def flush(self, timeout: float) -> None: ...
    def statistics(self) -> dict[str, int]: ...

class CpuArray:
    """Elements as bytes; see bamquery.driver.array.Array, which says what they are.

    IndexError: no such element. NvmeError: what the controller answered.
    """

    def __init__(
        self,
        cache: CpuPageCache,
        *,
        members: list[tuple[int, int]],
        stripe_bytes: int,
        offset: int,
        count: int,
        element_bytes: int,
        writable: bool,
        timeout: float,
    ) -> None: ...
    @property
    def address(self) -> int:
        """For array_functions()."""

    def gather(self, indices: NDArray[np.int64], out: Buffer) -> None: ...
    def scatter(self, indices: NDArray[np.int64], values: Buffer) -> None: ...
    def read(self, first: int, out: Buffer) -> None: ...
    def write(self, first: int, values: Buffer) -> None: ...
    def flush(self, timeout: float) -> None: ...

def array_functions(element_bytes: int) -> tuple[int, int, int, int, int, int]:
    """Addresses of C functions: read (array, index), write (array, index, bits), and how it went.

    The last four take nothing: this thread's last status (SCT << 8 | SC), and where it failed (nsid, LBA,
    which of several drives).
    """

def page_cache_bytes(*, page_count: int, page_bytes: int, block_bytes: int) -> int:
    """Size of the memory that holds a page cache; zeros are an empty one. ValueError: no such sizes."""

def page_cache_view(
    address: int, *, page_count: int, page_bytes: int, block_bytes: int
) -> tuple[bytes, int, int]:
    """A PageCacheView of a cache at an address (a multiple of 4096); offset and size of its counters."""

def page_cache_counters(stripes: bytes) -> dict[str, int]:
    """The sums of a cache's counters."""

def stripe_members(members: Sequence[tuple[int, int]]) -> bytes:
    """Drives and nsids, as a table for a GPU's memory."""

def shared_array_view(
    *,
    cache: bytes,
    pools: int,
    drives: int,
    errors: int,
    members: Sequence[tuple[int, int]],
    stripes: int,
    stripe_bytes: int,
    offset: int,
    space_bytes: int,
    namespace_blocks: int,
    count: int,
    element_bytes: int,
    writable: bool,
    timeout: float,
) -> bytes:
    """A SharedArrayView of a PageCacheView and addresses of tables: pools of drives, stripes' members."""

def striped_bytes(least: int, *, members: int, stripe_bytes: int, page_bytes: int) -> int:
    """Of the address space of namespaces, the smallest of `least` bytes. ValueError: no such stripes."""

class Program:
    """Expressions and aggregates over columns, a vector at a time; see engine/native/pipeline."""

    def __init__(
        self,
        steps: NDArray[np.int64],
        inputs: Sequence[str],
        aggregates: NDArray[np.int64],
        outputs: Sequence[int],
    ) -> None: ...
    def aggregate(
        self,
        columns: Sequence[tuple[Any, ...]],
        rows: int,
        codes: NDArray[np.int32] | None,
        groups: int,
        batches: tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]] | None = None,
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]] | None: ...
    def group(
        self,
        columns: Sequence[tuple[Any, ...]],
        rows: int,
        codes: NDArray[np.int32] | None,
        batches: tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]] | None = None,
    ) -> (
        tuple[
            int,
            list[tuple[NDArray[np.int64], NDArray[np.uint8]]],
            list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]],
        ]
        | bool
        | None
    ): ...
    def evaluate(
        self,
        columns: Sequence[tuple[Any, ...]],
        rows: int,
        kinds: Sequence[str],
        values: Sequence[Any],
        bitmaps: Sequence[Any],
        batches: tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]] | None = None,
    ) -> list[int] | None: ...
    def select(
        self,
        columns: Sequence[tuple[Any, ...]],
        rows: int,
        batches: tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]] | None = None,
    ) -> NDArray[np.int64] | None: ...

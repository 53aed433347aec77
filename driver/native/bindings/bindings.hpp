// What each room adds to bamquery._native.
#pragma once

#include <pybind11/pybind11.h>

namespace bamquery {

/// Translates the typed C++ exceptions of errors.hpp into bamquery.errors, once for all bindings.
void bind_errors(pybind11::module_& module);

/// Files as arrays of blocks: mapped and direct readers, aligned writes.
void bind_driver(pybind11::module_& module);

/// How many threads a query may use.
void bind_threads(pybind11::module_& module);

/// Memory of large arrays, numpy's among them.
void bind_memory(pybind11::module_& module);

/// Memory of queue pairs, and pools of them for a GPU.
void bind_queues(pybind11::module_& module);

/// The software controller, its faults and profiles, and a client on the CPU.
void bind_controller(pybind11::module_& module);

/// NVMe drives of this process, and their controllers.
void bind_nvme(pybind11::module_& module);

/// The page cache and arrays on the CPU, and their layout for a GPU.
void bind_array(pybind11::module_& module);

/// Benchmarks of the I/O core: content, clients, paths.
void bind_bench(pybind11::module_& module);

/// What the host hands to the benchmark kernels of a GPU.
void bind_gpu_bench(pybind11::module_& module);

/// Columns: CRC-32C and statistics per vector, gathers.
void bind_storage(pybind11::module_& module);

/// Packed columns: packing, decoding, single rows, comparisons.
void bind_packed(pybind11::module_& module);

/// Packed columns of files: several read at once.
void bind_packed_columns(pybind11::module_& module);

/// Strings as codes of symbols: symbols found, packing, decoding, single rows.
void bind_fsst(pybind11::module_& module);

/// Keys of rows: tables of keys, sets of numbers, hashes.
void bind_keys(pybind11::module_& module);

/// Rows by their keys: groups and their sums.
void bind_groups(pybind11::module_& module);

/// Programs over columns: expressions and aggregates, a vector at a time.
void bind_pipeline(pybind11::module_& module);

/// Rows of packed columns that pass several conditions.
void bind_selection(pybind11::module_& module);

/// Rows of columns at places, and columns one after the other.
void bind_columns(pybind11::module_& module);

/// Strings that match a pattern.
void bind_strings(pybind11::module_& module);

}  // namespace bamquery

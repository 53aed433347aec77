// The one extension module: each room binds its own part.
#include <pybind11/pybind11.h>

#include "driver/native/bindings/bindings.hpp"

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native parts of storage and engine: block reads, checksums, statistics, gathers, keys.";
  bamquery::bind_errors(module);
  bamquery::bind_driver(module);
  bamquery::bind_threads(module);
  bamquery::bind_memory(module);
  bamquery::bind_queues(module);
  bamquery::bind_controller(module);
  bamquery::bind_nvme(module);
  bamquery::bind_array(module);
  bamquery::bind_bench(module);
  bamquery::bind_gpu_bench(module);
  bamquery::bind_storage(module);
  bamquery::bind_packed(module);
  bamquery::bind_packed_columns(module);
  bamquery::bind_fsst(module);
  bamquery::bind_keys(module);
  bamquery::bind_groups(module);
  bamquery::bind_pipeline(module);
  bamquery::bind_selection(module);
  bamquery::bind_columns(module);
  bamquery::bind_strings(module);
}

#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "driver/core/bench/gpu_job.hpp"
#include "driver/native/bench/order.hpp"
#include "driver/native/bindings/bindings.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

py::bytes gpu_block_job(const std::string& pattern, double theta, std::uint64_t blocks, std::uint64_t clients,
                        std::uint64_t seed, std::uint64_t first_count, double run_seconds,
                        double deadline_seconds, double write_share, std::uint32_t block_bytes,
                        std::uint32_t lba_bytes, std::uint32_t nsid, std::uint32_t sweep_nap_ns, bool verify,
                        std::uint32_t lanes, std::uint32_t batch) {
  GpuBlockJob job{};
  job.pattern = AccessPattern::of(order_of(pattern), blocks, clients, seed, theta);
  job.seed = seed;
  job.first_count = first_count;
  job.run_ns = static_cast<std::uint64_t>(run_seconds * 1e9);
  job.deadline_ns = static_cast<std::uint64_t>(deadline_seconds * 1e9);
  job.write_share = write_share;
  job.block_bytes = block_bytes;
  job.lba_bytes = lba_bytes;
  job.nsid = nsid;
  job.sweep_nap_ns = sweep_nap_ns;
  job.verify = verify ? 1 : 0;
  job.lanes = lanes;
  job.batch = batch;
  return {reinterpret_cast<const char*>(&job), sizeof job};
}

}  // namespace

void bind_gpu_bench(py::module_& module) {
  module.def("gpu_block_job", &gpu_block_job, py::kw_only(), py::arg("pattern"), py::arg("theta"),
             py::arg("blocks"), py::arg("clients"), py::arg("seed"), py::arg("first_count"),
             py::arg("run_seconds"), py::arg("deadline_seconds"), py::arg("write_share"),
             py::arg("block_bytes"), py::arg("lba_bytes"), py::arg("nsid"), py::arg("sweep_nap_ns"),
             py::arg("verify"), py::arg("lanes"), py::arg("batch"));
}

}  // namespace bamquery

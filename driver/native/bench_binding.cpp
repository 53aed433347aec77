#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench_block.hpp"
#include "bindings.hpp"
#include "buffers.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

AccessOrder order_of(const std::string& name) {
  if (name == "sequential") return AccessOrder::kSequential;
  if (name == "random") return AccessOrder::kRandom;
  if (name == "zipf") return AccessOrder::kZipf;
  throw py::value_error("no such pattern: " + name);
}

// A running benchmark with all that it refers to.
class BlockRun {
 public:
  BlockRun(std::shared_ptr<BenchBacking> backing, const BlockJob& job)
      : backing_(std::move(backing)), job_(job), written_(backing_->bytes().size() / job.block_bytes) {}

  const BlockJob& job() const { return job_; }
  const BenchBacking& backing() const { return *backing_; }
  WrittenBlocks& written() { return written_; }
  void start(BenchClients::Work work) {
    clients_ = std::make_unique<BenchClients>(job_.clients, std::move(work));
  }

  std::uint64_t operations() const { return clients_->operations(); }
  std::uint64_t bytes() const { return clients_->bytes(); }
  double seconds() const { return clients_->seconds(); }
  bool finished() const { return clients_->finished(); }

  py::dict stop() {
    ClientsResult result;
    std::int64_t wrong = -1;
    {
      const py::gil_scoped_release unlocked;
      result = clients_->stop();
      if (job_.verify && job_.write_share > 0) {
        wrong = backing_->check(job_.seed, job_.written_seed(), job_.block_bytes, written_);
      }
    }
    py::dict latency;
    latency["mean"] = result.latency.mean();
    latency["p50"] = result.latency.percentile(0.5);
    latency["p90"] = result.latency.percentile(0.9);
    latency["p99"] = result.latency.percentile(0.99);
    latency["p999"] = result.latency.percentile(0.999);
    latency["max"] = result.latency.max();
    py::dict found;
    found["operations"] = result.operations;
    found["bytes"] = result.bytes;
    found["seconds"] = result.seconds;
    found["cpu_seconds"] = result.cpu_seconds;
    found["latency"] = latency;
    found["errors"] = result.errors;
    found["first_error"] = result.first_error;
    found["mismatches"] = result.mismatches;
    found["first_mismatch"] = result.first_mismatch;
    found["wrong_after_writing"] = wrong;
    return found;
  }

 private:
  std::shared_ptr<BenchBacking> backing_;
  BlockJob job_;
  WrittenBlocks written_;
  std::unique_ptr<BenchClients> clients_;  // last: its threads use all of the above
};

std::unique_ptr<BlockRun> start_mapped(std::shared_ptr<BenchBacking> backing, const BlockJob& job) {
  auto run = std::make_unique<BlockRun>(std::move(backing), job);
  run->start(mapped_work(run->job(), run->backing(), run->written()));
  return run;
}

std::unique_ptr<BlockRun> start_uring(std::shared_ptr<BenchBacking> backing, const BlockJob& job,
                                      bool direct) {
  auto run = std::make_unique<BlockRun>(std::move(backing), job);
  if (run->backing().path().empty()) throw py::value_error("io_uring reads files, not memory");
  run->start(uring_work(run->job(), run->backing().path(), direct, run->written()));
  return run;
}

BlockJob make_job(std::uint32_t block_bytes, std::uint64_t blocks, std::uint32_t clients, std::uint32_t depth,
                  const std::string& pattern, double theta, double write_share, std::uint64_t seed,
                  bool verify) {
  if (block_bytes < kContentSectorBytes || (block_bytes & (block_bytes - 1)) != 0) {
    throw py::value_error("a block is a power of two of at least 512 bytes");
  }
  if (blocks == 0 || clients == 0 || depth == 0) throw py::value_error("no blocks, clients or depth");
  if (!(theta > 0)) throw py::value_error("theta is more than 0");
  const AccessPattern order = AccessPattern::of(order_of(pattern), blocks, clients, seed, theta);
  return {block_bytes, clients, depth, order, write_share, seed, verify};
}

void py_fill_content(const py::object& target, std::uint64_t seed, std::uint64_t first_sector) {
  const ByteView view(target, true);
  const py::gil_scoped_release unlocked;
  fill_content(view.writable(), seed, first_sector);
}

std::int64_t py_find_wrong(const py::object& data, std::uint64_t seed, std::uint64_t first_sector) {
  const ByteView view(data, false);
  const py::gil_scoped_release unlocked;
  return find_wrong(view.bytes(), seed, first_sector);
}

py::array_t<std::uint64_t> draw_blocks(const std::string& pattern, std::uint64_t blocks,
                                       std::uint64_t clients, std::uint64_t seed, double theta,
                                       std::uint64_t client, std::uint64_t count) {
  if (blocks == 0 || clients == 0 || !(theta > 0)) throw py::value_error("no blocks or clients, or theta");
  const AccessPattern order = AccessPattern::of(order_of(pattern), blocks, clients, seed, theta);
  py::array_t<std::uint64_t> drawn(static_cast<py::ssize_t>(count));
  std::uint64_t* const out = drawn.mutable_data();
  const py::gil_scoped_release unlocked;
  for (std::uint64_t i = 0; i < count; ++i) out[i] = order.block(client, i);
  return drawn;
}

}  // namespace

void bind_bench(py::module_& module) {
  using py::arg;
  module.def("fill_content", &py_fill_content, arg("target"), arg("seed"), arg("first_sector") = 0);
  module.def("find_wrong", &py_find_wrong, arg("data"), arg("seed"), arg("first_sector") = 0);
  module.def("draw_blocks", &draw_blocks, arg("pattern"), arg("blocks"), arg("clients"), arg("seed"),
             arg("theta"), arg("client"), arg("count"));
  py::class_<BenchBacking, std::shared_ptr<BenchBacking>>(module, "BenchBacking", py::buffer_protocol())
      .def(py::init<const std::string&, std::uint64_t, bool>(), arg("path"), arg("size"), arg("writable"),
           py::call_guard<py::gil_scoped_release>())
      .def("fill", &BenchBacking::fill, arg("seed"), py::call_guard<py::gil_scoped_release>())
      .def_buffer([](const BenchBacking& backing) {
        const auto bytes = backing.bytes();
        return py::buffer_info(reinterpret_cast<std::uint8_t*>(bytes.data()),
                               static_cast<py::ssize_t>(bytes.size()));
      });
  py::class_<BlockJob>(module, "BlockJob")
      .def(py::init(&make_job), py::kw_only(), arg("block_bytes"), arg("blocks"), arg("clients"),
           arg("depth"), arg("pattern"), arg("theta"), arg("write_share"), arg("seed"), arg("verify"));
  py::class_<BlockRun>(module, "BlockRun")
      .def_property_readonly("operations", &BlockRun::operations)
      .def_property_readonly("bytes", &BlockRun::bytes)
      .def_property_readonly("seconds", &BlockRun::seconds)
      .def_property_readonly("finished", &BlockRun::finished)
      .def("stop", &BlockRun::stop);
  module.def("start_mapped_bench", &start_mapped, arg("backing"), arg("job"));
  module.def("start_uring_bench", &start_uring, arg("backing"), arg("job"), arg("direct"));
}

}  // namespace bamquery

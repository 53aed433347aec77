#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "driver/native/bench/bench_rings.hpp"
#include "driver/native/bench/block.hpp"
#include "driver/native/bench/cache.hpp"
#include "driver/native/bench/controller.hpp"
#include "driver/native/bench/first_reads.hpp"
#include "driver/native/bench/order.hpp"
#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

py::dict as_dict(const ClientsResult& result) {
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
  found["latency"] = result.latency.total() == 0 ? py::object(py::none()) : py::object(latency);
  found["errors"] = result.errors;
  found["first_error"] = result.first_error;
  found["mismatches"] = result.mismatches;
  found["first_mismatch"] = result.first_mismatch;
  return found;
}

py::dict as_dict(const ControllerCounts& counts) {
  py::dict found;
  found["controller_reads"] = counts.reads;
  found["controller_writes"] = counts.writes;
  found["controller_read_bytes"] = counts.read_bytes;
  found["controller_write_bytes"] = counts.write_bytes;
  found["controller_errors"] = counts.errors;
  return found;
}

py::dict as_dict(const RingCounts& counts) {
  py::dict found;
  found["commands"] = counts.commands;
  found["doorbells"] = counts.doorbells;
  found["errors"] = counts.errors;
  found["missed"] = counts.missed;
  found["broken"] = counts.broken;
  return found;
}

// A queue memory, who serves it, and a namespace.
using DriveSource = std::tuple<QueueMemory*, Controller*, std::uint32_t>;

// A running benchmark with all that it refers to.
class BenchRun {
 public:
  BenchRun() = default;
  BenchRun(const BenchRun&) = delete;
  BenchRun& operator=(const BenchRun&) = delete;
  virtual ~BenchRun() = default;

  std::uint64_t operations() const { return clients_->operations(); }
  std::uint64_t bytes() const { return clients_->bytes(); }
  double seconds() const { return clients_->seconds(); }
  bool finished() const { return clients_->finished(); }

  virtual py::dict stop() {
    ClientsResult result;
    {
      const py::gil_scoped_release unlocked;
      result = clients_->stop();
    }
    return as_dict(result);
  }

 protected:
  void start(std::uint32_t clients, BenchClients::Work work) {
    clients_ = std::make_unique<BenchClients>(clients, std::move(work));
  }
  // Before what clients use goes: the destructors of derived classes call it.
  void end() { clients_.reset(); }

 private:
  std::unique_ptr<BenchClients> clients_;
};

void stop_controller(BenchController& controller) {
  const py::gil_scoped_release unlocked;
  controller.stop();
}

class BlockRun : public BenchRun {
 public:
  BlockRun(std::shared_ptr<BenchBacking> backing, const BlockJob& job)
      : backing_(std::move(backing)), job_(job), written_(backing_->bytes().size() / job.block_bytes) {
    if (job.pattern.blocks * job.block_bytes > backing_->bytes().size()) {
      throw py::value_error("the backing has fewer blocks");
    }
  }
  ~BlockRun() override { end(); }

  void start_mapped() { start(job_.clients, mapped_work(job_, *backing_, written_)); }
  void start_uring(bool direct) {
    if (backing_->path().empty()) throw py::value_error("io_uring reads files, not memory");
    start(job_.clients, uring_work(job_, backing_->path(), direct, written_));
  }
  void start_rings(const RingOptions& options) {
    controller_ = std::make_unique<BenchController>(*backing_, options);
    start(job_.clients, rings_work(job_, controller_->rings(), written_));
  }

  py::dict stop() override {
    py::dict found = BenchRun::stop();
    if (controller_) {
      stop_controller(*controller_);
      py::dict counters = as_dict(controller_->counts());
      counters["doorbells"] = controller_->rings().counts().doorbells;
      found["counters"] = counters;
      found["direct_path"] = controller_->direct_path();
    }
    std::int64_t wrong = -1;
    if (job_.verify && job_.write_share > 0) {
      const py::gil_scoped_release unlocked;
      wrong = backing_->check(job_.seed, job_.written_seed(), job_.block_bytes, written_);
    }
    found["wrong_after_writing"] = wrong;
    return found;
  }

 private:
  std::shared_ptr<BenchBacking> backing_;
  BlockJob job_;
  WrittenBlocks written_;
  std::unique_ptr<BenchController> controller_;
};

// Blocks of a namespace, from its beginning on, through the rings of any controller.
class RingsRun : public BenchRun {
 public:
  // Who calls keeps memory and controller alive.
  RingsRun(QueueMemory& memory, Controller& controller, const BlockJob& job, std::uint32_t nsid,
           bool known_content, double deadline_seconds)
      : job_(job),
        rings_(memory, controller, nsid, static_cast<std::uint64_t>(deadline_seconds * 1e9), true),
        written_(job.pattern.blocks) {
    const std::optional<NamespaceShape> shape = controller.shape_of(nsid);
    if (!shape) throw py::value_error("there is no namespace " + std::to_string(nsid));
    const std::uint32_t lba = memory.shape().block_bytes;
    if (shape->block_bytes != lba) throw py::value_error("the queues' blocks are not the namespace's");
    if (job.pattern.blocks > shape->bytes / job.block_bytes) {
      throw py::value_error("the namespace has fewer blocks");
    }
    if (job.block_bytes % lba != 0 || job.block_bytes > memory.shape().slot_bytes) {
      throw py::value_error("the queues do not take such blocks");
    }
    if (job.clients > memory.shape().leased_pairs) throw py::value_error("there are fewer queue pairs");
    if (job.verify && !known_content) first_.emplace(job.pattern.blocks);
    BenchRun::start(job.clients, rings_work(job_, rings_, written_, first_ ? &*first_ : nullptr));
  }
  ~RingsRun() override { end(); }

  py::dict stop() override {
    py::dict found = BenchRun::stop();
    found["counters"] = as_dict(rings_.counts());
    return found;
  }

 private:
  BlockJob job_;
  BenchRings rings_;
  WrittenBlocks written_;
  std::optional<FirstReads> first_;
};

// Pages, or elements of an array, through a page cache over namespaces of any controllers.
class CacheRun : public BenchRun {
 public:
  struct Shape {
    std::uint64_t cache_bytes;
    std::uint32_t page_bytes;
    std::uint64_t extent_bytes;
    std::uint64_t stripe_bytes;
    bool warm;
  };

  // The tuples of `sources` are a QueueMemory, its Controller, an nsid; who calls keeps them alive.
  CacheRun(const std::vector<DriveSource>& sources, double deadline_seconds, const Shape& shape)
      : drives_(rings_of(sources, deadline_seconds, shape), shape.stripe_bytes, shape.page_bytes),
        cache_(shape.cache_bytes, shape.page_bytes, drives_.block_bytes(), shape.extent_bytes) {
    if (shape.warm) warm_cache(cache_, drives_);
    before_ = cache_.counters();
  }
  ~CacheRun() override { end(); }

  void start_pages(const CacheJob& job, std::uint32_t clients) {
    start(clients, cache_work(job, cache_, drives_));
  }
  void start_elements(const ArrayJob& job, std::uint32_t clients) {
    start(clients, array_work(job, cache_, drives_));
  }
  std::uint64_t pages() const { return cache_.pages(); }

  py::dict stop() override {
    py::dict found = BenchRun::stop();
    const CacheCounters after = cache_.counters();
    py::dict counters;
    counters["hits"] = after.hits - before_.hits;
    counters["misses"] = after.misses - before_.misses;
    counters["coalesced"] = after.coalesced - before_.coalesced;
    counters["evictions"] = after.evictions - before_.evictions;
    found["counters"] = counters;
    py::list drives;
    for (std::uint32_t drive = 0; drive < drives_.count(); ++drive) {
      drives.append(as_dict(drives_.rings(drive).counts()));
    }
    found["drives"] = drives;
    return found;
  }

 private:
  static std::vector<std::unique_ptr<BenchRings>> rings_of(const std::vector<DriveSource>& sources,
                                                           double deadline_seconds, const Shape& shape) {
    std::vector<std::unique_ptr<BenchRings>> rings;
    for (const auto& [memory, controller, nsid] : sources) {
      const std::optional<NamespaceShape> space = controller->shape_of(nsid);
      if (!space) throw py::value_error("there is no namespace " + std::to_string(nsid));
      if (space->block_bytes != memory->shape().block_bytes) {
        throw py::value_error("the queues' blocks are not the namespace's");
      }
      if (space->bytes < shape.extent_bytes / sources.size()) {
        throw py::value_error("a namespace is smaller than its share of the extent");
      }
      if (shape.page_bytes > memory->shape().slot_bytes || shape.page_bytes < memory->shape().block_bytes) {
        throw py::value_error("the queues do not take such pages");
      }
      rings.push_back(std::make_unique<BenchRings>(*memory, *controller, nsid,
                                                   static_cast<std::uint64_t>(deadline_seconds * 1e9), true));
    }
    return rings;
  }

  BenchDrives drives_;
  BenchCache cache_;
  CacheCounters before_{};
};

std::unique_ptr<BlockRun> start_mapped(std::shared_ptr<BenchBacking> backing, const BlockJob& job) {
  auto run = std::make_unique<BlockRun>(std::move(backing), job);
  run->start_mapped();
  return run;
}

std::unique_ptr<BlockRun> start_uring(std::shared_ptr<BenchBacking> backing, const BlockJob& job,
                                      bool direct) {
  auto run = std::make_unique<BlockRun>(std::move(backing), job);
  run->start_uring(direct);
  return run;
}

std::unique_ptr<BlockRun> start_rings(std::shared_ptr<BenchBacking> backing, const BlockJob& job,
                                      const RingOptions& options) {
  auto run = std::make_unique<BlockRun>(std::move(backing), job);
  run->start_rings(options);
  return run;
}

std::unique_ptr<RingsRun> start_controller(QueueMemory& memory, Controller& controller, const BlockJob& job,
                                           std::uint32_t nsid, bool known_content, double deadline_seconds) {
  return std::make_unique<RingsRun>(memory, controller, job, nsid, known_content, deadline_seconds);
}

std::unique_ptr<CacheRun> start_cache(const std::vector<DriveSource>& sources, std::uint32_t clients,
                                      double deadline_seconds, std::uint64_t cache_bytes,
                                      std::uint32_t page_bytes, std::uint64_t extent_bytes,
                                      std::uint64_t stripe_bytes, bool warm, const std::string& pattern,
                                      double theta, std::uint64_t seed, bool verify) {
  if (clients == 0) throw py::value_error("no clients");
  const CacheRun::Shape shape{cache_bytes, page_bytes, extent_bytes, stripe_bytes, warm};
  const py::gil_scoped_release unlocked;
  auto run = std::make_unique<CacheRun>(sources, deadline_seconds, shape);
  const AccessPattern order = AccessPattern::of(order_of(pattern), run->pages(), clients, seed, theta);
  run->start_pages({order, seed, verify}, clients);
  return run;
}

std::unique_ptr<CacheRun> start_array(const std::vector<DriveSource>& sources, std::uint32_t clients,
                                      double deadline_seconds, std::uint64_t cache_bytes,
                                      std::uint32_t page_bytes, std::uint64_t extent_bytes,
                                      std::uint64_t stripe_bytes, const std::string& element,
                                      std::uint32_t element_bytes, const std::string& pattern, double theta,
                                      std::uint64_t seed, bool verify) {
  if (clients == 0 || element_bytes == 0) throw py::value_error("no clients, or elements of no bytes");
  const CacheRun::Shape shape{cache_bytes, page_bytes, extent_bytes, stripe_bytes, false};
  const py::gil_scoped_release unlocked;
  auto run = std::make_unique<CacheRun>(sources, deadline_seconds, shape);
  const AccessPattern order =
      AccessPattern::of(order_of(pattern), extent_bytes / element_bytes, clients, seed, theta);
  run->start_elements({order, element, seed, verify}, clients);
  return run;
}

RingOptions make_options(std::uint32_t pairs, std::uint32_t depth, std::uint32_t transfer_bytes,
                         std::uint32_t block_bytes, std::uint32_t threads, bool direct, bool writable,
                         std::string profile, std::uint32_t drives, double deadline_seconds) {
  RingOptions options;
  options.pairs = pairs;
  options.depth = depth;
  options.transfer_bytes = transfer_bytes;
  options.block_bytes = block_bytes;
  options.threads = threads;
  options.direct = direct;
  options.writable = writable;
  options.profile = std::move(profile);
  options.drives = drives;
  options.deadline_ns = static_cast<std::uint64_t>(deadline_seconds * 1e9);
  return options;
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

py::bytes access_pattern(const std::string& pattern, std::uint64_t blocks, std::uint64_t clients,
                         std::uint64_t seed, double theta) {
  if (blocks == 0 || clients == 0 || !(theta > 0)) throw py::value_error("no blocks or clients, or theta");
  const AccessPattern order = AccessPattern::of(order_of(pattern), blocks, clients, seed, theta);
  return {reinterpret_cast<const char*>(&order), sizeof order};
}

}  // namespace

void bind_bench(py::module_& module) {
  using py::arg;
  module.def("fill_content", &py_fill_content, arg("target"), arg("seed"), arg("first_sector") = 0);
  module.def("find_wrong", &py_find_wrong, arg("data"), arg("seed"), arg("first_sector") = 0);
  module.def("draw_blocks", &draw_blocks, arg("pattern"), arg("blocks"), arg("clients"), arg("seed"),
             arg("theta"), arg("client"), arg("count"));
  module.def("access_pattern", &access_pattern, arg("pattern"), py::kw_only(), arg("blocks"), arg("clients"),
             arg("seed"), arg("theta"));
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
  py::class_<RingOptions>(module, "RingOptions")
      .def(py::init(&make_options), py::kw_only(), arg("pairs"), arg("depth"), arg("transfer_bytes"),
           arg("block_bytes"), arg("threads"), arg("direct"), arg("writable"), arg("profile"), arg("drives"),
           arg("deadline_seconds"));
  py::class_<BenchRun>(module, "BenchRun")
      .def_property_readonly("operations", &BenchRun::operations)
      .def_property_readonly("bytes", &BenchRun::bytes)
      .def_property_readonly("seconds", &BenchRun::seconds)
      .def_property_readonly("finished", &BenchRun::finished)
      .def("stop", &BenchRun::stop);
  py::class_<BlockRun, BenchRun>(module, "BlockRun");
  py::class_<RingsRun, BenchRun>(module, "RingsRun");
  py::class_<CacheRun, BenchRun>(module, "CacheRun");
  module.def("start_mapped_bench", &start_mapped, arg("backing"), arg("job"),
             py::call_guard<py::gil_scoped_release>());
  module.def("start_uring_bench", &start_uring, arg("backing"), arg("job"), arg("direct"),
             py::call_guard<py::gil_scoped_release>());
  module.def("start_rings_bench", &start_rings, arg("backing"), arg("job"), arg("options"),
             py::call_guard<py::gil_scoped_release>());
  module.def("start_controller_bench", &start_controller, arg("memory"), arg("controller"), arg("job"),
             py::kw_only(), arg("nsid"), arg("known_content"), arg("deadline_seconds"),
             py::keep_alive<0, 1>(), py::keep_alive<0, 2>(), py::call_guard<py::gil_scoped_release>());
  module.def("start_cache_bench", &start_cache, arg("sources"), py::kw_only(), arg("clients"),
             arg("deadline_seconds"), arg("cache_bytes"), arg("page_bytes"), arg("extent_bytes"),
             arg("stripe_bytes"), arg("warm"), arg("pattern"), arg("theta"), arg("seed"), arg("verify"),
             py::keep_alive<0, 1>());
  module.def("start_array_bench", &start_array, arg("sources"), py::kw_only(), arg("clients"),
             arg("deadline_seconds"), arg("cache_bytes"), arg("page_bytes"), arg("extent_bytes"),
             arg("stripe_bytes"), arg("element"), arg("element_bytes"), arg("pattern"), arg("theta"),
             arg("seed"), arg("verify"), py::keep_alive<0, 1>());
}

}  // namespace bamquery

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "driver/native/controller/drive_profile.hpp"
#include "driver/native/controller/elsewhere_controller.hpp"
#include "driver/native/controller/faults.hpp"
#include "driver/native/controller/software_controller.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "driver/native/status_text.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

Deadline after(double seconds) {
  if (std::isnan(seconds) || seconds < 0) throw py::value_error("a deadline is 0 seconds or more away");
  return Deadline::in(static_cast<std::uint64_t>(std::min(seconds, 1e9) * 1e9));
}

std::shared_ptr<SoftwareController> make_controller(QueueMemory& memory, int threads, bool streaming_stores,
                                                    std::uint32_t executor_depth) {
  ControllerOptions options;
  options.threads = threads;
  options.stores = streaming_stores ? CopyStores::kStreaming : CopyStores::kCached;
  options.executor_depth = executor_depth;
  return std::make_shared<SoftwareController>(memory, std::move(options));
}

std::uint32_t add_memory(SoftwareController& controller, std::uint64_t bytes, std::uint32_t block_bytes) {
  return controller.add_namespace(Namespace::memory(bytes, block_bytes));
}

std::uint32_t add_file(SoftwareController& controller, const std::filesystem::path& path,
                       std::uint32_t block_bytes, bool direct, bool writable) {
  const py::gil_scoped_release unlocked;
  return controller.add_namespace(direct ? Namespace::direct_file(path.string(), block_bytes, writable)
                                         : Namespace::mapped_file(path.string(), block_bytes, writable));
}

// Keeps the namespace, not the controller, alive.
py::memoryview memory_of(const SoftwareController& controller, std::uint32_t nsid) {
  const std::shared_ptr<Namespace> found = controller.find_namespace(nsid);
  if (found == nullptr || found->view().backing != Backing::kMemory) {
    throw py::value_error("there is no namespace of memory " + std::to_string(nsid));
  }
  auto* const kept = new std::shared_ptr<Namespace>(found);
  const py::capsule owner(kept, [](void* held) { delete static_cast<std::shared_ptr<Namespace>*>(held); });
  const std::span<std::byte> bytes = found->bytes();
  const py::array_t<std::uint8_t> array(static_cast<py::ssize_t>(bytes.size()),
                                        reinterpret_cast<std::uint8_t*>(bytes.data()), owner);
  return py::memoryview(array);
}

FaultRule make_rule(const std::string& kind, std::uint32_t nsid, std::optional<std::uint8_t> opcode,
                    std::uint64_t first_lba, std::optional<std::uint64_t> blocks, double probability,
                    std::optional<std::uint64_t> most, std::uint16_t status, double delay,
                    std::uint32_t window, std::uint32_t bytes) {
  static constexpr std::pair<const char*, FaultKind> kKinds[] = {
      {"error", FaultKind::kError}, {"delay", FaultKind::kDelay},          {"reorder", FaultKind::kReorder},
      {"lose", FaultKind::kLose},   {"wrong_head", FaultKind::kWrongHead}, {"tear", FaultKind::kTear},
  };
  FaultRule rule;
  rule.kind = FaultKind::kNone;
  for (const auto& [name, value] : kKinds) {
    if (kind == name) rule.kind = value;
  }
  if (rule.kind == FaultKind::kNone) throw py::value_error("no such fault: " + kind);
  if (!(delay >= 0 && delay <= 1e6)) throw py::value_error("a delay is 0 to 1,000,000 seconds");
  if (status > 0x7ff) throw py::value_error("a status is SCT << 8 | SC: 11 bits");
  rule.nsid = nsid;
  if (opcode) rule.opcode = static_cast<Opcode>(*opcode);
  rule.first_lba = first_lba;
  rule.blocks = blocks.value_or(~0ull);
  rule.probability = probability;
  rule.most = most.value_or(~0ull);
  rule.status = Status{status};
  rule.delay_ns = static_cast<std::uint64_t>(delay * 1e9);
  rule.window = window;
  rule.bytes = bytes;
  return rule;
}

py::dict statistics_of(const SoftwareController& controller) {
  const ControllerStatistics found = controller.statistics();
  py::dict named;
  named["reads"] = found.counts.reads;
  named["writes"] = found.counts.writes;
  named["flushes"] = found.counts.flushes;
  named["refused"] = found.counts.refused;
  named["read_bytes"] = found.counts.read_bytes;
  named["write_bytes"] = found.counts.write_bytes;
  named["errors"] = found.counts.errors;
  named["held"] = found.counts.held;
  named["lost"] = found.counts.lost;
  named["looks"] = found.counts.looks;
  named["failed_queues"] = found.failed_queues;
  named["thread_seconds"] = found.thread_seconds;
  named["fired"] = found.fired;
  named["direct_paths"] = found.direct_paths;
  return named;
}

// Ctrl-C ends a call; its exception is raised once the call has put its things in order.
class Interruption {
 public:
  CpuQueueClient::Interrupt ask() {
    return [this] {
      const py::gil_scoped_acquire locked;
      interrupted_ = interrupted_ || PyErr_CheckSignals() != 0;
      return interrupted_;
    };
  }

  /// Runs a call without the GIL.
  template <typename Call>
  void run(Call call) {
    try {
      const py::gil_scoped_release unlocked;
      call(ask());
    } catch (...) {
      if (!interrupted_) throw;
    }
    if (interrupted_) throw py::error_already_set();
  }

 private:
  bool interrupted_ = false;
};

void client_read(CpuQueueClient& client, std::uint32_t nsid, std::uint64_t lba, const py::object& target,
                 double deadline) {
  const ByteView to(target, true);
  const Deadline until = after(deadline);
  Interruption().run([&](const auto& ask) { client.read(nsid, lba, to.writable(), until, ask); });
}

void client_read_places(CpuQueueClient& client, std::uint32_t nsid,
                        const py::array_t<std::uint64_t, py::array::c_style>& lbas, const py::object& target,
                        double deadline) {
  const ByteView to(target, true);
  const Deadline until = after(deadline);
  const std::span<const std::uint64_t> places{lbas.data(), static_cast<std::size_t>(lbas.size())};
  Interruption().run([&](const auto& ask) { client.read_places(nsid, places, to.writable(), until, ask); });
}

void client_write(CpuQueueClient& client, std::uint32_t nsid, std::uint64_t lba, const py::object& source,
                  double deadline) {
  const ByteView from(source, false);
  const Deadline until = after(deadline);
  Interruption().run([&](const auto& ask) { client.write(nsid, lba, from.bytes(), until, ask); });
}

void client_flush(CpuQueueClient& client, std::uint32_t nsid, double deadline) {
  const Deadline until = after(deadline);
  Interruption().run([&](const auto& ask) { client.flush(nsid, until, ask); });
}

std::vector<py::tuple> profiles() {
  std::vector<py::tuple> found;
  for (const DriveProfile& profile : drive_profiles()) {
    found.push_back(py::make_tuple(profile.name, static_cast<double>(profile.read_latency_ns) * 1e-9,
                                   static_cast<double>(profile.write_latency_ns) * 1e-9,
                                   profile.read_commands, profile.write_commands, profile.read_bytes,
                                   profile.write_bytes));
  }
  return found;
}

void set_profile(SoftwareController& controller, const std::string& name, double read_latency,
                 double write_latency, double read_commands, double write_commands, double read_bytes,
                 double write_bytes, std::uint32_t drives) {
  const auto ns = [](double seconds) {
    return static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e3) * 1e9);
  };
  controller.set_profile(DriveProfile{name, ns(read_latency), ns(write_latency), read_commands,
                                      write_commands, read_bytes, write_bytes},
                         drives);
}

py::object shape_of(const Controller& controller, std::uint32_t nsid) {
  const std::optional<NamespaceShape> found = controller.shape_of(nsid);
  if (!found) return py::none();
  return py::make_tuple(found->nsid, found->block_bytes, found->blocks, found->bytes, found->writable,
                        found->volatile_cache, found->name);
}

std::shared_ptr<ElsewhereController> make_elsewhere(std::uint32_t nsid, std::uint32_t block_bytes,
                                                    std::uint64_t blocks, bool writable) {
  NamespaceShape shape;
  shape.nsid = nsid;
  shape.block_bytes = block_bytes;
  shape.blocks = blocks;
  shape.bytes = blocks * block_bytes;
  shape.writable = writable;
  return std::make_shared<ElsewhereController>(std::move(shape));
}

void bind_any_controller(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Controller, std::shared_ptr<Controller>>(module, "Controller")
      .def("shape_of", &shape_of, py::arg("nsid"))
      .def("wake", &Controller::wake, Unlocked())
      .def("activity", &Controller::activity, py::keep_alive<0, 1>())
      .def(
          "stop", [](Controller& controller, double deadline) { return controller.stop(after(deadline)); },
          py::arg("deadline"), Unlocked())
      .def("recreate_queues", &Controller::recreate_queues, Unlocked());

  py::class_<ElsewhereController, Controller, std::shared_ptr<ElsewhereController>>(module,
                                                                                    "ElsewhereController")
      .def(py::init(&make_elsewhere), py::kw_only(), py::arg("nsid"), py::arg("block_bytes"),
           py::arg("blocks"), py::arg("writable") = false);

  py::class_<Controller::Activity>(module, "ControllerActivity").def("end", &Controller::Activity::end);
}

void bind_software_controller(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<SoftwareController, Controller, std::shared_ptr<SoftwareController>>(module,
                                                                                  "SoftwareController")
      .def(py::init(&make_controller), py::arg("memory"), py::kw_only(), py::arg("threads") = -1,
           py::arg("streaming_stores") = false, py::arg("executor_depth") = 256, py::keep_alive<1, 2>())
      .def("add_memory", &add_memory, py::arg("size"), py::arg("block_bytes"), Unlocked())
      .def("add_file", &add_file, py::arg("path"), py::arg("block_bytes"), py::arg("direct"),
           py::arg("writable"))
      .def("memory", &memory_of, py::arg("nsid"))
      .def(
          "remove_namespace",
          [](SoftwareController& controller, std::uint32_t nsid, double deadline) {
            return controller.remove_namespace(nsid, after(deadline));
          },
          py::arg("nsid"), py::arg("deadline"), Unlocked())
      .def("set_faults", &SoftwareController::set_faults, py::arg("rules"), py::arg("seed"), Unlocked())
      .def("set_profile", &set_profile, py::arg("name"), py::arg("read_latency"), py::arg("write_latency"),
           py::arg("read_commands"), py::arg("write_commands"), py::arg("read_bytes"), py::arg("write_bytes"),
           py::arg("drives"), Unlocked())
      .def(
          "clear_profile", [](SoftwareController& controller) { controller.set_profile(std::nullopt); },
          Unlocked())
      .def("start", &SoftwareController::start, Unlocked())
      .def_property_readonly("running", &SoftwareController::running)
      .def_property_readonly("threads", &SoftwareController::threads)
      .def("service", py::overload_cast<>(&SoftwareController::service), Unlocked())
      .def("statistics", &statistics_of);
}

void bind_client(py::module_& module) {
  py::class_<CpuQueueClient>(module, "CpuQueueClient")
      .def(py::init<QueueMemory&, Controller&>(), py::arg("memory"), py::arg("controller"),
           py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def("read", &client_read, py::arg("nsid"), py::arg("lba"), py::arg("target"), py::arg("deadline"))
      .def("read_places", &client_read_places, py::arg("nsid"), py::arg("lbas").noconvert(),
           py::arg("target"), py::arg("deadline"))
      .def("write", &client_write, py::arg("nsid"), py::arg("lba"), py::arg("source"), py::arg("deadline"))
      .def("flush", &client_flush, py::arg("nsid"), py::arg("deadline"))
      .def("settle", [](CpuQueueClient& client) {
        const CpuQueueClient::Counts counts = client.settle();
        return py::make_tuple(counts.errors, counts.missed, counts.late, counts.quarantined, counts.broken);
      });
}

}  // namespace

void bind_controller(py::module_& module) {
  py::class_<FaultRule>(module, "FaultRule")
      .def(py::init(&make_rule), py::arg("kind"), py::kw_only(), py::arg("nsid"), py::arg("opcode"),
           py::arg("first_lba"), py::arg("blocks"), py::arg("probability"), py::arg("most"),
           py::arg("status"), py::arg("delay"), py::arg("window"), py::arg("torn_at"));
  bind_any_controller(module);
  bind_software_controller(module);
  bind_client(module);
  module.def("drive_profiles", &profiles);
  module.def("status_text", [](std::uint16_t code) { return status_text(Status{code}); }, py::arg("code"));
}

}  // namespace bamquery

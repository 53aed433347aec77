#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/nvme/nvme_drive.hpp"
#include "driver/native/nvme/vfio/open_device.hpp"
#include "driver/native/nvme/vfio/sysfs.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

template <typename Value>
Value named(const std::string& name, const char* what,
            std::initializer_list<std::pair<const char*, Value>> choices) {
  std::string all;
  for (const auto& [text, value] : choices) {
    if (name == text) return value;
    if (!all.empty()) all.append(", ");
    all.append(text);
  }
  throw py::value_error("no such " + std::string(what) + ": " + name + "; there are " + all);
}

std::shared_ptr<NvmeDrive> open_drive(const std::string& address, bool writable, const std::string& interface,
                                      double timeout) {
  if (!(timeout > 0)) throw py::value_error("a timeout is more than 0 seconds");
  const auto way = named<vfio::Interface>(interface, "interface",
                                          {{"auto", vfio::Interface::kAutomatic},
                                           {"group", vfio::Interface::kGroup},
                                           {"iommufd", vfio::Interface::kIommufd}});
  DriveOptions options;
  options.writable = writable;
  options.command_timeout_ns = static_cast<std::uint64_t>(std::min(timeout, 1e6) * 1e9);
  const py::gil_scoped_release unlocked;
  return NvmeDrive::open(vfio::open_device(address, way), options);
}

std::string version_text(std::uint32_t version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff) + "." +
         std::to_string(version & 0xff);
}

py::dict identity_of(const NvmeDrive& drive) {
  py::dict named;
  named["serial"] = drive.identity().serial;
  named["model"] = drive.identity().model;
  named["firmware"] = drive.identity().firmware;
  named["vendor"] = drive.identity().vendor;
  named["controller_id"] = drive.identity().controller_id;
  named["version"] = version_text(drive.version());
  return named;
}

py::dict limits_of(const NvmeDrive& drive) {
  const DriveLimits& limits = drive.limits();
  py::dict named;
  named["queue_pairs"] = limits.queue_pairs;
  named["queue_depth"] = limits.queue_depth;
  named["transfer_bytes"] = limits.transfer_bytes;
  named["doorbell_stride"] = limits.doorbell_stride;
  named["contiguous_queues"] = limits.needs_contiguous_queues;
  named["shadow_doorbells"] = limits.has_shadow_doorbells;
  named["memory_buffer"] = limits.has_memory_buffer;
  named["ready_timeout"] = static_cast<double>(limits.ready_timeout_ns) * 1e-9;
  return named;
}

std::vector<py::dict> namespaces_of(const NvmeDrive& drive) {
  std::vector<py::dict> all;
  for (const NamespaceData& each : drive.namespaces()) {
    py::dict named;
    named["nsid"] = each.nsid;
    named["block_bytes"] = each.block_bytes;
    named["blocks"] = each.blocks;
    named["metadata_bytes"] = each.metadata_bytes;
    named["protection"] = each.protection;
    named["write_protected"] = each.write_protected;
    named["volatile_cache"] = drive.volatile_cache();
    named["refusal"] = each.refusal.empty() ? py::object(py::none()) : py::object(py::str(each.refusal));
    all.push_back(std::move(named));
  }
  return all;
}

py::dict statistics_of(NvmeDrive& drive) {
  DriveStatistics found;
  {
    const py::gil_scoped_release unlocked;
    found = drive.statistics();
  }
  py::dict named;
  named["admin_commands"] = found.admin.commands;
  named["admin_errors"] = found.admin.errors;
  named["admin_missed"] = found.admin.missed;
  named["aborts"] = found.admin.aborts;
  named["strays"] = found.admin.strays;
  named["events"] = found.admin.events;
  named["resets"] = found.resets;
  named["register_writes"] = found.register_writes;
  named["bring_up_seconds"] = found.bring_up_seconds;
  named["last_event"] = py::none();
  if (found.last_event) {
    named["last_event"] =
        py::make_tuple(found.last_event->type, found.last_event->information, found.last_event->log_page);
  }
  return named;
}

std::shared_ptr<NvmeController> make_controller(std::shared_ptr<NvmeDrive> drive, QueueMemory& memory,
                                                const std::string& doorbells) {
  const auto kind = named<DoorbellKind>(doorbells, "kind of doorbells",
                                        {{"auto", DoorbellKind::kAutomatic},
                                         {"registers", DoorbellKind::kRegisters},
                                         {"shadow", DoorbellKind::kShadow},
                                         {"forwarded", DoorbellKind::kForwarded}});
  const py::gil_scoped_release unlocked;
  return std::make_shared<NvmeController>(std::move(drive), memory, kind);
}

std::string kind_of(const NvmeController& controller) {
  switch (controller.doorbell_kind()) {
    case DoorbellKind::kShadow:
      return "shadow";
    case DoorbellKind::kForwarded:
      return "forwarded";
    default:
      return "registers";
  }
}

std::optional<std::string> drive_refusal(const std::string& address) {
  const std::string why = vfio::refusal(vfio::PciFunction(address));
  if (why.empty()) return std::nullopt;
  return why;
}

}  // namespace

void bind_nvme(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<NvmeDrive, std::shared_ptr<NvmeDrive>>(module, "NvmeDrive")
      .def(py::init(&open_drive), py::arg("address"), py::kw_only(), py::arg("writable") = false,
           py::arg("interface") = "auto", py::arg("timeout") = 10.0)
      .def_property_readonly("address", &NvmeDrive::name)
      .def_property_readonly("interface", &NvmeDrive::interface)
      .def_property_readonly("writable", &NvmeDrive::writable)
      .def("identity", &identity_of)
      .def("limits", &limits_of)
      .def("namespaces", &namespaces_of)
      .def("statistics", &statistics_of)
      .def(
          "reset",
          [](NvmeDrive& drive, double deadline) {
            const auto ns = static_cast<std::uint64_t>(std::clamp(deadline, 0.0, 1e6) * 1e9);
            return drive.reset(Deadline::in(ns));
          },
          py::arg("deadline"), Unlocked())
      .def("close", [](NvmeDrive& drive) { drive.shut_down(Deadline::in(5'000'000'000)); }, Unlocked());
  py::class_<NvmeController, Controller, std::shared_ptr<NvmeController>>(module, "NvmeController")
      .def(py::init(&make_controller), py::arg("drive"), py::arg("memory"), py::kw_only(),
           py::arg("doorbells") = "auto", py::keep_alive<1, 3>())
      .def_property_readonly("doorbell_kind", &kind_of)
      .def_property_readonly("doorbell_text", &NvmeController::doorbell_text)
      .def_property_readonly("doorbell_writes", &NvmeController::doorbell_writes)
      .def_property_readonly("first_queue", &NvmeController::first_queue);
  module.def("drive_refusal", &drive_refusal, py::arg("address"));
}

}  // namespace bamquery

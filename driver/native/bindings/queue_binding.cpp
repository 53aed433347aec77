#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "driver/native/queues/queue_memory.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

std::byte* at_address(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

py::bytes as_bytes(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

py::tuple make_pool(const QueueMemory& memory, std::uint64_t rings, std::uint64_t pool,
                    std::optional<std::uint64_t> doorbells) {
  if (doorbells.has_value() == memory.drive_doorbells().empty()) {
    throw py::value_error(doorbells
                              ? "queue memory: its doorbells lie in it, not elsewhere"
                              : "queue memory: the doorbells are a drive's; say where the GPU has them");
  }
  std::vector<std::byte> contents(memory.pool_bytes());
  const QueuePoolView view =
      memory.make_pool(contents, at_address(rings), at_address(pool), at_address(doorbells.value_or(0)));
  return py::make_tuple(as_bytes(&view, sizeof view), as_bytes(contents.data(), contents.size()));
}

// Address, bytes, and whether they are registers: of doorbells that are a drive's.
std::optional<std::tuple<std::uint64_t, std::size_t, bool>> drive_doorbells(const QueueMemory& memory) {
  const std::span<std::byte> found = memory.drive_doorbells();
  if (found.empty()) return std::nullopt;
  return std::tuple(reinterpret_cast<std::uint64_t>(found.data()), found.size(), memory.has_registers());
}

// Doorbells, errors, missed, late, quarantined, broken.
using PairCounts =
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool>;

// What a pool's flags say, from a copy of its memory.
std::vector<PairCounts> pool_statistics(const QueueMemory& memory, std::string_view view_bytes,
                                        std::string_view contents) {
  QueuePoolView view;
  if (view_bytes.size() != sizeof view || contents.size() != memory.pool_bytes()) {
    throw std::invalid_argument("queue memory: these are not the bytes of a pool of this shape");
  }
  std::memcpy(&view, view_bytes.data(), sizeof view);
  std::vector<std::byte> copy(contents.size());  // Aligned, and not const.
  std::memcpy(copy.data(), contents.data(), contents.size());
  const auto there = reinterpret_cast<std::uint64_t>(view.pairs);  // The pairs come first in a pool.
  std::vector<PairCounts> found;
  for (std::uint32_t number = 0; number < memory.shape().pairs(); ++number) {
    QueuePairView pair;
    std::memcpy(&pair, copy.data() + number * sizeof pair, sizeof pair);
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pair.flags) - there;
    if (offset > copy.size() - QueueFlags::bytes(memory.shape().depth, memory.shape().slots)) {
      throw std::invalid_argument("queue memory: a queue pair's flags lie outside their pool");
    }
    const QueueFlags flags(copy.data() + offset, memory.shape().depth, memory.shape().slots);
    std::uint32_t quarantined = 0;
    for (std::uint32_t slot = 0; slot < memory.shape().slots; ++slot) {
      quarantined += CommandWord{flags.command(slot)}.state() == CommandState::kQuarantined ? 1 : 0;
    }
    const QueueHeader& header = flags.header();
    found.emplace_back(header.doorbells, header.errors, header.missed, header.late, quarantined,
                       header.broken != 0);
  }
  return found;
}

// Memory that Python's objects have, which stay as long as this.
struct LentMemory {
  std::optional<ByteView> memory;
  std::optional<ByteView> doorbells;
  std::optional<QueueMemory> queues;
};

// Doorbells of all pairs, from those of the admin queue on.
std::size_t doorbell_bytes(const QueueShape& shape, std::uint32_t first_queue) {
  return (std::size_t{first_queue} + shape.pairs()) * 2 * (std::size_t{4} << shape.doorbell_stride);
}

std::shared_ptr<QueueMemory> make_memory(const QueueShape& shape, const py::object& memory,
                                         const py::object& doorbells, QueuePlace place) {
  const auto lent = std::make_shared<LentMemory>();
  const std::size_t needed = QueueMemory::bytes(shape);  // Throws for a shape that cannot be.
  if (!doorbells.is_none()) {
    const std::span<std::byte> found = lent->doorbells.emplace(doorbells, true).writable();
    if (found.size() < doorbell_bytes(shape, place.first_queue) ||
        reinterpret_cast<std::uintptr_t>(found.data()) % sizeof(std::uint32_t) != 0) {
      throw py::value_error("queue memory: doorbells are " +
                            std::to_string(doorbell_bytes(shape, place.first_queue)) +
                            " bytes, on a multiple of 4, and there are " + std::to_string(found.size()));
    }
    place.doorbells = found.data();
  }
  if (memory.is_none()) {
    lent->queues.emplace(shape);
    lent->queues->place(place);
  } else {
    const std::span<std::byte> found = lent->memory.emplace(memory, true).writable();
    if (found.size() < needed) {
      throw py::value_error("queue memory: a memory of this shape is " + std::to_string(needed) +
                            " bytes, and there are " + std::to_string(found.size()));
    }
    if (reinterpret_cast<std::uintptr_t>(found.data()) % kPrpPageBytes != 0) {
      throw py::value_error("queue memory: the memory must begin on a multiple of 4,096");
    }
    lent->queues.emplace(shape, found, place);
  }
  return {lent, &*lent->queues};
}

}  // namespace

void bind_queues(py::module_& module) {
  py::class_<QueueMemory, std::shared_ptr<QueueMemory>>(module, "QueueMemory")
      .def(py::init([](std::uint32_t leased_pairs, std::uint32_t shared_pairs, std::uint32_t depth,
                       std::uint32_t slots, std::uint32_t slot_bytes, std::uint32_t block_bytes,
                       std::uint32_t doorbell_stride, const py::object& memory, const py::object& doorbells,
                       bool registers, std::uint64_t bus, std::uint32_t first_queue, bool read_only) {
             QueueShape shape;
             shape.leased_pairs = leased_pairs;
             shape.shared_pairs = shared_pairs;
             shape.depth = depth;
             shape.slots = slots == 0 ? depth - 1 : slots;
             shape.slot_bytes = slot_bytes;
             shape.block_bytes = block_bytes;
             shape.doorbell_stride = doorbell_stride;
             return make_memory(
                 shape, memory, doorbells,
                 {.bus = bus, .registers = registers, .first_queue = first_queue, .read_only = read_only});
           }),
           py::kw_only(), py::arg("leased_pairs") = 1, py::arg("shared_pairs") = 1, py::arg("depth") = 256,
           py::arg("slots") = 0, py::arg("slot_bytes") = 4096, py::arg("block_bytes") = 512,
           py::arg("doorbell_stride") = 4, py::arg("memory") = py::none(), py::arg("doorbells") = py::none(),
           py::arg("registers") = false, py::arg("bus") = 0, py::arg("first_queue") = 1,
           py::arg("read_only") = false)
      .def_property_readonly("leased_pairs", [](const QueueMemory& m) { return m.shape().leased_pairs; })
      .def_property_readonly("shared_pairs", [](const QueueMemory& m) { return m.shape().shared_pairs; })
      .def_property_readonly("depth", [](const QueueMemory& m) { return m.shape().depth; })
      .def_property_readonly("slots", [](const QueueMemory& m) { return m.shape().slots; })
      .def_property_readonly("slot_bytes", [](const QueueMemory& m) { return m.shape().slot_bytes; })
      .def_property_readonly("block_bytes", [](const QueueMemory& m) { return m.shape().block_bytes; })
      .def_property_readonly("doorbell_stride",
                             [](const QueueMemory& m) { return m.shape().doorbell_stride; })
      .def_property_readonly(
          "flags_bytes",
          [](const QueueMemory& m) { return QueueFlags::bytes(m.shape().depth, m.shape().slots); })
      .def_property_readonly(
          "address", [](const QueueMemory& m) { return reinterpret_cast<std::uint64_t>(m.address()); })
      .def_property_readonly("size", &QueueMemory::size)
      .def_property_readonly("pool_bytes", &QueueMemory::pool_bytes)
      .def_property_readonly("drive_doorbells", &drive_doorbells)
      .def("make_pool", &make_pool, py::arg("rings"), py::arg("pool"), py::arg("doorbells") = py::none())
      .def("pool_statistics", &pool_statistics, py::arg("view"), py::arg("contents"))
      .def("reset_rings", &QueueMemory::reset_rings);
}

}  // namespace bamquery

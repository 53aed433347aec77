#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/core/array/shared_array.hpp"
#include "driver/native/bindings/bindings.hpp"
#include "driver/native/bindings/buffers.hpp"
#include "driver/native/page_cache/cpu_array.hpp"
#include "driver/native/page_cache/cpu_page_cache.hpp"

namespace py = pybind11;

namespace bamquery {
namespace {

std::uint64_t nanoseconds(double seconds) {
  if (std::isnan(seconds) || seconds < 0) throw py::value_error("a timeout is 0 seconds or more");
  return static_cast<std::uint64_t>(std::min(seconds, 1e9) * 1e9);
}

py::dict named(const CacheCounters& counters) {
  py::dict names;
  names["hits"] = counters.hits;
  names["misses"] = counters.misses;
  names["coalesced"] = counters.coalesced;
  names["evictions"] = counters.evictions;
  names["write_backs"] = counters.write_backs;
  names["failures"] = counters.failures;
  return names;
}

void cache_flush(const CpuPageCache& cache, double timeout) {
  const Deadline deadline = Deadline::in(nanoseconds(timeout));
  const py::gil_scoped_release unlocked;
  ErrorRecord errors{};
  const Status status = cache.flush({}, deadline, errors);
  if (!status.ok()) cache.throw_failure(errors, status);
}

// The tuple is kept alive, and with it the memories and controllers in it.
std::shared_ptr<CpuPageCache> make_cache(const py::tuple& sources, std::uint32_t page_count,
                                         std::uint32_t page_bytes) {
  std::vector<CpuPageCache::Source> found;
  for (const py::handle source : sources) {
    const auto pair = py::cast<py::tuple>(source);
    if (pair.size() != 2) throw py::value_error("a source is a QueueMemory and its Controller");
    found.push_back({py::cast<QueueMemory*>(pair[0]), py::cast<Controller*>(pair[1])});
  }
  return std::make_shared<CpuPageCache>(found, page_count, page_bytes);
}

std::unique_ptr<CpuArray> make_array(std::shared_ptr<CpuPageCache> cache,
                                     const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members,
                                     std::uint64_t stripe_bytes, std::uint64_t offset, std::uint64_t count,
                                     std::uint32_t element_bytes, bool writable, double timeout) {
  ArrayPlace place{{}, stripe_bytes, offset};
  for (const auto& [drive, nsid] : members) place.members.push_back({drive, nsid});
  return std::make_unique<CpuArray>(std::move(cache), std::move(place), count, element_bytes, writable,
                                    nanoseconds(timeout));
}

void array_gather(const CpuArray& array, const RowArray& indices, const py::object& out) {
  const ByteView to(out, true);
  const py::gil_scoped_release unlocked;
  array.gather(as_span(indices), to.writable());
}

void array_scatter(const CpuArray& array, const RowArray& indices, const py::object& values) {
  const ByteView from(values, false);
  const py::gil_scoped_release unlocked;
  array.scatter(as_span(indices), from.bytes());
}

void array_read(const CpuArray& array, std::uint64_t first, const py::object& out) {
  const ByteView to(out, true);
  const py::gil_scoped_release unlocked;
  array.read(first, to.writable());
}

void array_write(const CpuArray& array, std::uint64_t first, const py::object& values) {
  const ByteView from(values, false);
  const py::gil_scoped_release unlocked;
  array.write(first, from.bytes());
}

PageCacheConfig checked(std::uint32_t page_count, std::uint32_t page_bytes, std::uint32_t block_bytes) {
  const PageCacheConfig config{page_count, page_bytes, block_bytes};
  if (!valid(config)) throw py::value_error("page cache: no such sizes");
  return config;
}

PageCacheView cache_at(std::uint64_t address, std::uint32_t page_count, std::uint32_t page_bytes,
                       std::uint32_t block_bytes) {
  return make_page_cache(reinterpret_cast<std::byte*>(address), checked(page_count, page_bytes, block_bytes));
}

template <typename View>
py::bytes as_bytes(const View& view) {
  return {reinterpret_cast<const char*>(&view), sizeof view};
}

// Stripe members, of each the drive and the nsid, as the bytes to put into a GPU's memory.
py::bytes stripe_members(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members) {
  std::string bytes;
  for (const auto& [drive, nsid] : members) {
    const StripeMember member{drive, nsid};
    bytes.append(reinterpret_cast<const char*>(&member), sizeof member);
  }
  return bytes;
}

// For a GPU's memory, as the bytes to put there. `stripes` is where stripe_members() lie, 0 where there is
// one.
py::bytes shared_array_view(const py::bytes& cache, std::uint64_t pools, std::uint32_t drives,
                            std::uint64_t errors,
                            const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members,
                            std::uint64_t stripes, std::uint64_t stripe_bytes, std::uint64_t offset,
                            std::uint64_t space_bytes, std::uint64_t namespace_blocks, std::uint64_t count,
                            std::uint32_t element_bytes, bool writable, double timeout) {
  const std::string_view cache_bytes(cache);
  SharedArrayView view{};
  if (cache_bytes.size() != sizeof view.array.cache) {
    throw py::value_error("these are not the bytes of a PageCacheView");
  }
  std::memcpy(&view.array.cache, cache_bytes.data(), cache_bytes.size());
  if (element_bytes == 0 || offset % element_bytes != 0 || offset > space_bytes ||
      count > (space_bytes - offset) / element_bytes) {
    throw py::value_error("array: the elements do not lie within the " +
                          std::string(members.size() > 1 ? "namespaces" : "namespace") +
                          ", on multiples of their size");
  }
  for (const auto& [drive, nsid] : members) {
    if (drive >= drives) throw py::value_error("array: there is no drive " + std::to_string(drive));
    if (nsid == 0 || nsid > PageId::kMaxNsid) throw py::value_error("array: no such namespace");
  }
  const std::uint32_t block_bytes = view.array.cache.block_bytes;
  view.array.extent = {offset / block_bytes, offset % block_bytes, count * element_bytes,
                       namespace_blocks,     members.at(0).second, members.at(0).first};
  if (members.size() > 1) {
    view.array.extent.stripes = reinterpret_cast<const StripeMember*>(stripes);
    view.array.extent.members = static_cast<std::uint32_t>(members.size());
    view.array.extent.stripe_shift = stripe_shift(stripe_bytes, view.array.cache.page_bytes);
  }
  view.array.errors = reinterpret_cast<ErrorRecord*>(errors);
  view.array.count = count;
  view.array.timeout_ns = nanoseconds(timeout);
  view.array.writable = writable ? 1 : 0;
  view.pools = reinterpret_cast<const QueuePoolView*>(pools);
  view.drives = drives;
  return as_bytes(view);
}

py::dict counters_of(const py::bytes& stripes) {
  const std::string_view bytes(stripes);
  if (bytes.size() != PageCacheView::kStripes * sizeof(CacheCounters)) {
    throw py::value_error("these are not a cache's counters");
  }
  CacheCounters sum{};
  for (std::uint32_t stripe = 0; stripe < PageCacheView::kStripes; ++stripe) {
    CacheCounters one;
    std::memcpy(&one, bytes.data() + stripe * sizeof one, sizeof one);
    for (const auto counter :
         {&CacheCounters::hits, &CacheCounters::misses, &CacheCounters::coalesced, &CacheCounters::evictions,
          &CacheCounters::write_backs, &CacheCounters::failures}) {
      sum.*counter += one.*counter;
    }
  }
  return named(sum);
}

}  // namespace

void bind_array(py::module_& module) {
  py::class_<CpuPageCache, std::shared_ptr<CpuPageCache>>(module, "CpuPageCache")
      .def(py::init(&make_cache), py::arg("sources"), py::kw_only(), py::arg("page_count"),
           py::arg("page_bytes"), py::keep_alive<1, 2>())
      .def("flush", &cache_flush, py::arg("timeout"))
      .def("statistics", [](const CpuPageCache& cache) { return named(cache.statistics()); });

  py::class_<CpuArray>(module, "CpuArray")
      .def(py::init(&make_array), py::arg("cache"), py::kw_only(), py::arg("members"),
           py::arg("stripe_bytes"), py::arg("offset"), py::arg("count"), py::arg("element_bytes"),
           py::arg("writable"), py::arg("timeout"), py::keep_alive<1, 2>())
      .def_property_readonly("address",
                             [](const CpuArray& array) { return reinterpret_cast<std::uint64_t>(&array); })
      .def("gather", &array_gather, py::arg("indices"), py::arg("out"))
      .def("scatter", &array_scatter, py::arg("indices"), py::arg("values"))
      .def("read", &array_read, py::arg("first"), py::arg("out"))
      .def("write", &array_write, py::arg("first"), py::arg("values"))
      .def(
          "flush",
          [](const CpuArray& array, double timeout) {
            const Deadline deadline = Deadline::in(nanoseconds(timeout));
            const py::gil_scoped_release unlocked;
            array.flush(deadline);
          },
          py::arg("timeout"));

  module.def(
      "array_functions",
      [](std::uint32_t element_bytes) {
        const ArrayFunctions functions = array_functions(element_bytes);
        return py::make_tuple(functions.read, functions.write, functions.failed, functions.nsid,
                              functions.lba, functions.drive);
      },
      py::arg("element_bytes"));

  module.def(
      "page_cache_bytes",
      [](std::uint32_t page_count, std::uint32_t page_bytes, std::uint32_t block_bytes) {
        return page_cache_bytes(checked(page_count, page_bytes, block_bytes));
      },
      py::kw_only(), py::arg("page_count"), py::arg("page_bytes"), py::arg("block_bytes"));
  module.def(
      "page_cache_view",
      [](std::uint64_t address, std::uint32_t page_count, std::uint32_t page_bytes,
         std::uint32_t block_bytes) {
        const PageCacheView view = cache_at(address, page_count, page_bytes, block_bytes);
        const auto counters = reinterpret_cast<std::uint64_t>(view.counters) - address;
        return py::make_tuple(as_bytes(view), counters, PageCacheView::kStripes * sizeof(CacheCounters));
      },
      py::arg("address"), py::kw_only(), py::arg("page_count"), py::arg("page_bytes"),
      py::arg("block_bytes"));
  module.def("page_cache_counters", &counters_of, py::arg("stripes"));
  module.def("stripe_members", &stripe_members, py::arg("members"));
  module.def("shared_array_view", &shared_array_view, py::kw_only(), py::arg("cache"), py::arg("pools"),
             py::arg("drives"), py::arg("errors"), py::arg("members"), py::arg("stripes"),
             py::arg("stripe_bytes"), py::arg("offset"), py::arg("space_bytes"), py::arg("namespace_blocks"),
             py::arg("count"), py::arg("element_bytes"), py::arg("writable"), py::arg("timeout"));
  module.def("striped_bytes", &striped_bytes, py::arg("least"), py::kw_only(), py::arg("members"),
             py::arg("stripe_bytes"), py::arg("page_bytes"));
}

}  // namespace bamquery

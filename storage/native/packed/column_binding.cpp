#include "storage/native/packed/column_binding.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <vector>

#include "driver/native/bindings/bindings.hpp"
#include "driver/native/threads/shared_work.hpp"
#include "storage/native/kinds.hpp"
#include "storage/native/packed/decode.hpp"
#include "storage/native/packed/selecting/column_vectors.hpp"

namespace py = pybind11;

namespace bamquery {

HeldPackedColumn::HeldPackedColumn(const std::string& kind, const py::object& parameters, std::int64_t rows,
                                   std::int64_t bytes, std::uint64_t divisor, std::uint64_t origin,
                                   std::int64_t base, const ChecksumArray& checksums)
    : parameters_(parameters, false), checksums_(checksums) {
  require(rows >= 0 && bytes >= 0 && base >= 0, "no such column");
  require(divisor != 0, "the divisor is 0");
  column_ = {find_kind(kind).kind,
             {divisor, origin},
             span_of<PackedVector>(parameters_, "parameters have 16 bytes a vector"),
             rows,
             base,
             bytes,
             as_span(checksums_)};
  require((rows + kVectorRows - 1) / kVectorRows == static_cast<std::int64_t>(column_.vectors.size()),
          "parameters are not those of so many rows");
  require(column_.checksums.size() == column_.vectors.size(), "as many checksums as vectors");
}

StoredPackedColumn HeldPackedColumn::column(bool verified) const {
  StoredPackedColumn found = column_;
  if (!verified) found.checksums = {};
  return found;
}

std::vector<KeyTerm> key_terms(ValueKind kind, std::span<const std::int64_t> terms,
                               std::span<const std::uint64_t> bounds) {
  const std::size_t words = kind == ValueKind::kInt128 ? 2 : 1;
  const auto key = [&](std::size_t at) {
    return words == 1 ? WideOrderKey{bounds[at]} : WideOrderKey{bounds[at + 1]} << 64 | bounds[at];
  };
  require(terms.size() % 2 == 0, "terms have two numbers each");
  std::vector<KeyTerm> found;
  std::size_t next = 0;
  for (std::size_t term = 0; term < terms.size(); term += 2) {
    KeyTerm made{{}, terms[term + 1] != 0};
    for (std::int64_t i = 0; i < terms[term]; ++i, next += 2 * words) {
      require(next + 2 * words <= bounds.size(), "bounds are too few");
      made.intervals.push_back({key(next), key(next + words)});
    }
    found.push_back(std::move(made));
  }
  return found;
}

namespace {

constexpr std::size_t kTurn = 32;
// Vectors that are worth another thread.
constexpr std::int64_t kLeastVectors = 64;

// What becomes of a column's rows.
enum class Wanted : std::uint8_t {
  kPayload = 0,  // all of some vectors as they are stored
  kVectors = 1,  // the values of all rows of vectors
  kRows = 2      // the values of some rows
};

struct Request {
  StoredPackedColumn column;
  Wanted wanted;
  std::span<const std::int64_t> places;  // vectors, or rows
  std::span<std::byte> values;
  std::uint8_t* bitmap;                   // null of payloads
  std::span<const std::int64_t> lengths;  // of what codes stand for; empty where they are no codes
  bool coded = false;
  bool are_alike = false;  // whether all lengths are the same, as those of flags are
  ReadCounts counts;
  std::int64_t mismatch = -1;
  std::int64_t nulls = 0;
  std::int64_t string_bytes = 0;  // of all rows, or kBeyond
};

// Some code stands for nothing.
constexpr std::int64_t kBeyond = -1;

template <typename Code>
Code greatest(const Code* codes, std::int64_t rows) {
  Code most = 0;
  for (std::int64_t row = 0; row < rows; ++row) most = std::max(most, codes[row]);
  return most;
}

template <typename Code>
std::int64_t sum_lengths(const Request& request, std::int64_t rows) {
  const auto* const codes = reinterpret_cast<const Code*>(request.values.data());
  const std::size_t count = request.lengths.size();
  std::int64_t sum = 0;
  if (request.nulls == 0) {
    if (rows == 0) return 0;
    if (greatest(codes, rows) >= count) return kBeyond;
    if (request.are_alike) return rows * request.lengths[0];
    for (std::int64_t row = 0; row < rows; ++row) sum += request.lengths[codes[row]];
    return sum;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    if (((request.bitmap[row / 8] >> (row % 8)) & 1) == 0) continue;
    if (codes[row] >= count) return kBeyond;
    sum += request.lengths[codes[row]];
  }
  return sum;
}

// Looks at all codes, once they are decoded.
void check_codes(Request& request, std::int64_t rows) {
  switch (request.column.kind) {
    case ValueKind::kInt8:
    case ValueKind::kUInt8:
      request.string_bytes = sum_lengths<std::uint8_t>(request, rows);
      break;
    case ValueKind::kInt16:
    case ValueKind::kUInt16:
      request.string_bytes = sum_lengths<std::uint16_t>(request, rows);
      break;
    default:
      request.string_bytes = sum_lengths<std::uint32_t>(request, rows);
  }
}

std::size_t value_bytes(ValueKind kind, std::int64_t rows) {
  if (kind == ValueKind::kBool) return (static_cast<std::size_t>(rows) + 7) / 8;
  const std::size_t width = kind == ValueKind::kInt128 ? 16 : packed_kind(kind).width;
  return static_cast<std::size_t>(rows) * width;
}

// What was read of a run of a request's vectors.
struct DecodedRun {
  std::unique_ptr<ColumnVectors> vectors;
  std::int64_t nulls = 0;
};

// Decodes vectors from `begin` on, all before which are full.
DecodedRun decode_run(const BlockFile& file, const Request& request, std::size_t begin, std::size_t size) {
  const auto places = request.places.subspan(begin, size);
  DecodedRun run{std::make_unique<ColumnVectors>(file, request.column, places, kTurn, false)};
  ColumnVectors& vectors = *run.vectors;
  vectors.expect_all();
  LoadedVectors loaded;
  std::vector<std::uint32_t> turn(kTurn);
  std::iota(turn.begin(), turn.end(), 0u);
  auto row = static_cast<std::int64_t>(begin) * kVectorRows;
  for (std::size_t first = 0; first < size; first += kTurn) {
    const std::size_t count = std::min(kTurn, size - first);
    vectors.begin_turn(first);
    if (!vectors.load(std::span(turn).first(count), loaded)) break;
    // Vectors before the last one are full, so that turns begin with a byte.
    const std::size_t at = value_bytes(request.column.kind, row);
    run.nulls +=
        unpack_vectors(request.column.kind, loaded.payload, loaded.starts, loaded.vectors, loaded.rows,
                       request.column.scale, request.values.data() + at, request.bitmap + row / 8);
    row += std::accumulate(loaded.rows.begin(), loaded.rows.end(), std::int64_t{0});
  }
  return run;
}

void decode_vectors(const BlockFile& file, Request& request) {
  const auto vectors = static_cast<std::int64_t>(request.places.size());
  std::vector<DecodedRun> runs(static_cast<std::size_t>(worth_parts(vectors, kLeastVectors)));
  share_items(vectors, static_cast<std::int64_t>(runs.size()), static_cast<std::int64_t>(kTurn),
              [&](std::int64_t part, std::int64_t first, std::int64_t count) {
                runs[static_cast<std::size_t>(part)] = decode_run(
                    file, request, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
              });
  std::vector<const ColumnVectors*> parts;
  for (const DecodedRun& run : runs) {
    parts.push_back(run.vectors.get());
    request.nulls += run.nulls;
    if (request.mismatch < 0) request.mismatch = run.vectors->mismatch();
  }
  request.counts = ColumnVectors::count(parts);
}

void carry_out(const BlockFile& file, Request& request) {
  if (request.wanted == Wanted::kRows) {
    const FetchedRows found =
        fetch_packed_rows(file, request.column, request.places, request.values.data(), request.bitmap);
    request.counts = found.counts;
    request.mismatch = found.mismatch;
    request.nulls = found.nulls;
  } else if (request.wanted == Wanted::kVectors) {
    decode_vectors(file, request);
  } else {
    ColumnVectors vectors(file, request.column, request.places, 0, true);
    require(vectors.size() <= static_cast<std::int64_t>(request.values.size()), "payloads do not fit");
    vectors.read_all(request.values.data(), request.counts);
    request.mismatch = vectors.mismatch();
  }
}

// Rows of ascending vectors, of which only the column's last one may have fewer than 1,024.
std::int64_t rows_of(const StoredPackedColumn& column, std::span<const std::int64_t> vectors) {
  if (vectors.empty()) return 0;
  const auto full = static_cast<std::int64_t>(vectors.size() - 1) * kVectorRows;
  return full + std::clamp<std::int64_t>(column.rows - vectors.back() * kVectorRows, 0, kVectorRows);
}

std::int64_t rows_of(const Request& request) {
  if (request.wanted == Wanted::kRows) return static_cast<std::int64_t>(request.places.size());
  return rows_of(request.column, request.places);
}

py::list py_read_columns(const SharedFile& file, const py::sequence& asked, bool verify) {
  std::vector<ByteView> views;
  std::list<RowArray> arrays;
  std::vector<Request> requests;
  views.reserve(2 * asked.size());
  for (const py::handle one : asked) {
    const auto [held, wanted, places, values, bitmap, lengths] = py::cast<
        std::tuple<const HeldPackedColumn*, int, RowArray, py::object, py::object, std::optional<RowArray>>>(
        one);
    require(wanted >= 0 && wanted <= 2, "columns are wanted in three ways");
    Request request{held->column(verify),
                    static_cast<Wanted>(wanted),
                    as_span(arrays.emplace_back(places)),
                    views.emplace_back(values, true).writable(),
                    nullptr,
                    {},
                    false,
                    false,
                    {}};
    const std::int64_t rows = rows_of(request);
    if (request.wanted != Wanted::kPayload) {
      const auto bits = views.emplace_back(bitmap, true).writable();
      require(value_bytes(request.column.kind, rows) <= request.values.size(), "values do not fit");
      require((static_cast<std::size_t>(rows) + 7) / 8 <= bits.size(), "the bitmap is too small");
      const auto alignment = std::max<std::uintptr_t>(value_bytes(request.column.kind, 1), 1);
      require(reinterpret_cast<std::uintptr_t>(request.values.data()) % alignment == 0,
              "values are not aligned");
      request.bitmap = reinterpret_cast<std::uint8_t*>(bits.data());
      if (lengths) {
        require(value_bytes(request.column.kind, 1) <= 4 && request.column.kind != ValueKind::kBool,
                "codes have 32 bits at most");
        request.lengths = as_span(arrays.emplace_back(*lengths));
        request.coded = true;
        request.are_alike =
            std::ranges::adjacent_find(request.lengths, std::not_equal_to{}) == request.lengths.end();
      }
    }
    requests.push_back(request);
  }
  {
    const py::gil_scoped_release unlocked;
    const auto opened = file.acquire();
    for (Request& request : requests) {
      carry_out(*opened, request);
      if (request.mismatch >= 0) break;
      if (request.coded) check_codes(request, rows_of(request));
    }
  }
  py::list found;
  for (const Request& request : requests) {
    found.append(py::make_tuple(request.counts.commands, request.counts.blocks, request.mismatch,
                                request.nulls, request.string_bytes));
  }
  return found;
}

}  // namespace

void bind_packed_columns(py::module_& module) {
  using py::arg;
  py::class_<HeldPackedColumn>(module, "PackedColumn")
      .def(py::init<const std::string&, const py::object&, std::int64_t, std::int64_t, std::uint64_t,
                    std::uint64_t, std::int64_t, const ChecksumArray&>(),
           arg("kind"), arg("parameters"), arg("column_rows"), arg("data_bytes"), arg("divisor"),
           arg("origin"), arg("base"), arg("checksums"));
  module.def("read_packed_columns", &py_read_columns, arg("file"), arg("requests"), arg("verify"));
}

}  // namespace bamquery

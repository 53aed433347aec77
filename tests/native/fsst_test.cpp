// Strings as codes of symbols, for sanitizers: buffers end where their bytes do.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "storage/native/packed/fsst/pack_strings.hpp"
#include "storage/native/packed/fsst/train.hpp"
#include "storage/native/packed/fsst/unpack_strings.hpp"
#include "tests/native/check.hpp"

namespace {

using namespace bamquery;

std::mt19937_64 random_bits(11);

std::size_t below(std::size_t limit) { return random_bits() % limit; }

// A copy on the heap that ends with the last byte, so that a sanitizer sees the next one read.
template <typename T>
std::unique_ptr<T[]> exact(const T* from, std::size_t count) {
  auto copy = std::make_unique<T[]>(count);
  std::copy(from, from + count, copy.get());
  return copy;
}

struct Column {
  std::vector<std::int64_t> offsets{0};
  std::string data;
  std::vector<std::uint8_t> valid;  // a byte a row
  bool has_nulls = false;

  void add(const std::string& text, bool is_null = false) {
    if (!is_null) data += text;
    offsets.push_back(static_cast<std::int64_t>(data.size()));
    valid.push_back(is_null ? 0 : 1);
    has_nulls |= is_null;
  }
  std::size_t rows() const { return valid.size(); }
  std::string row(std::size_t row) const {
    return data.substr(static_cast<std::size_t>(offsets[row]),
                       static_cast<std::size_t>(offsets[row + 1] - offsets[row]));
  }
  std::vector<std::uint8_t> bitmap() const {
    std::vector<std::uint8_t> bits((rows() + 7) / 8);
    for (std::size_t r = 0; r < rows(); ++r) bits[r / 8] |= static_cast<std::uint8_t>(valid[r] << r % 8);
    return bits;
  }
};

const char* const kWords[] = {"carefully ", "final ",  "deposits", " sleep",
                              "quickly",    "ironic ", "\xff\xff", "e"};

std::string make_string(int kind) {
  std::string text;
  switch (kind) {
    case 0:
      for (std::size_t i = below(6); i > 0; --i) text += kWords[below(std::size(kWords))];
      break;
    case 1:
      for (std::size_t i = below(40); i > 0; --i) text += static_cast<char>(random_bits());
      break;
    case 2:
      text.assign(below(30), '\xff');
      break;
    case 3:
      text.assign(below(20), '\0');
      break;
    default:
      for (std::size_t i = below(5000); i > 0; --i) text += kWords[below(std::size(kWords))];
  }
  return text;
}

Column make_column(std::size_t rows, int kind, bool with_nulls) {
  Column column;
  for (std::size_t row = 0; row < rows; ++row) {
    const int own = kind == 4 && below(200) != 0 ? 0 : kind;
    column.add(make_string(kind == 5 ? static_cast<int>(below(4)) : own), with_nulls && below(3) == 0);
  }
  return column;
}

std::vector<std::int64_t> vector_rows(std::size_t rows) {
  std::vector<std::int64_t> counts;
  for (std::size_t first = 0; first < rows; first += 1024) {
    counts.push_back(static_cast<std::int64_t>(std::min<std::size_t>(1024, rows - first)));
  }
  return counts;
}

struct Packed {
  SymbolTable table;
  PackedStrings strings;
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> rows;
};

Packed pack(const Column& column) {
  Packed packed;
  const auto data = exact(column.data.data(), column.data.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(data.get());
  packed.table = load_symbols(store_symbols(train_symbols(column.offsets, bytes, 0)));
  const auto bitmap = column.bitmap();
  packed.strings =
      pack_strings(packed.table, column.offsets, bytes, 0, column.has_nulls ? bitmap.data() : nullptr);
  for (const StringVector& vector : packed.strings.vectors) {
    packed.starts.push_back(static_cast<std::int64_t>(vector.offset));
  }
  packed.rows = vector_rows(column.rows());
  return packed;
}

void check_row(const Column& column, std::size_t row, const Strings& found, std::size_t place) {
  const std::string expected = column.row(row);
  const auto begin = static_cast<std::size_t>(found.offsets[place]);
  const auto length = static_cast<std::size_t>(found.offsets[place + 1]) - begin;
  CHECK(length == expected.size());
  CHECK(std::memcmp(found.data.data() + begin, expected.data(), length) == 0);
}

std::vector<std::int64_t> some_rows(std::size_t rows) {
  std::vector<std::int64_t> found;
  const std::size_t step = 1 + below(7);
  for (std::size_t row = below(step); row < rows; row += step)
    found.push_back(static_cast<std::int64_t>(row));
  return found;
}

StringColumn column_of(const Packed& packed, std::size_t rows) {
  return {packed.strings.vectors, static_cast<std::int64_t>(rows),
          static_cast<std::int64_t>(packed.strings.payload.size())};
}

// What a reader does for single rows, of any bytes.
Strings read_rows(const Packed& packed, const StringColumn& column, std::span<const std::byte> payload,
                  std::span<const std::int64_t> rows, StringRanges& ranges) {
  std::vector<std::byte> loaded;
  for (const std::int64_t place : string_places(column, rows)) {
    std::byte bytes[kEndBytes] = {};
    const auto at = static_cast<std::size_t>(place);
    if (at < payload.size()) {
      std::memcpy(bytes, payload.data() + at, std::min<std::size_t>(kEndBytes, payload.size() - at));
    }
    loaded.insert(loaded.end(), bytes, bytes + kEndBytes);
  }
  ranges = string_ranges(column, rows, loaded);
  std::vector<std::byte> stored;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(ranges.starts[i] >= 0 && ranges.lengths[i] >= 0);
    CHECK(ranges.starts[i] + ranges.lengths[i] <= column.data_bytes);
    const auto* from = payload.data() + ranges.starts[i];
    stored.insert(stored.end(), from, from + ranges.lengths[i]);
  }
  const auto copy = exact(stored.data(), stored.size());
  return decode_strings(packed.table, column, rows, ranges.lengths, {copy.get(), stored.size()});
}

void check_column(const Column& column) {
  const Packed packed = pack(column);
  const auto payload = exact(packed.strings.payload.data(), packed.strings.payload.size());
  const std::span<const std::byte> bytes(payload.get(), packed.strings.payload.size());
  const StringVectors vectors{bytes, packed.starts, packed.strings.vectors, packed.rows};
  const Strings all = unpack_strings(packed.table, vectors);
  CHECK(all.offsets.size() == column.rows() + 1);
  CHECK(all.bitmap == column.bitmap());
  for (std::size_t row = 0; row < column.rows(); ++row) check_row(column, row, all, row);
  const auto rows = some_rows(column.rows());
  const Strings picked = pick_strings(packed.table, vectors, rows);
  StringRanges ranges;
  const Strings single = read_rows(packed, column_of(packed, column.rows()), bytes, rows, ranges);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    check_row(column, row, picked, i);
    check_row(column, row, single, i);
    CHECK((picked.bitmap[i / 8] >> i % 8 & 1) == column.valid[row]);
    CHECK((ranges.bitmap[i / 8] >> i % 8 & 1) == column.valid[row]);
  }
}

template <typename Work>
bool attempt(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// Any bytes for parameters, payloads and tables: an error, or strings within memory.
void check_hostile(const Column& column) {
  Packed packed = pack(column);
  auto payload = packed.strings.payload;
  auto stored = store_symbols(packed.table);
  for (int i = 0; i < 3; ++i) {
    switch (below(4)) {
      case 0: {
        auto* bytes = reinterpret_cast<std::uint8_t*>(packed.strings.vectors.data());
        bytes[below(packed.strings.vectors.size() * sizeof(StringVector))] ^=
            static_cast<std::uint8_t>(1u << below(8));
        break;
      }
      case 1:
        if (!payload.empty()) payload[below(payload.size())] = static_cast<std::byte>(random_bits());
        break;
      case 2:
        if (!payload.empty()) payload[below(payload.size())] = std::byte{0xff};
        break;
      default:
        stored[below(stored.size())] ^= static_cast<std::byte>(1u << below(8));
    }
  }
  if (!attempt([&] { packed.table = load_symbols(stored); })) return;
  const auto copy = exact(payload.data(), payload.size());
  const std::span<const std::byte> bytes(copy.get(), payload.size());
  const StringVectors vectors{bytes, packed.starts, packed.strings.vectors, packed.rows};
  const auto total = [](const Strings& found) {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < found.offsets.back(); ++i) sum += found.data[static_cast<std::size_t>(i)];
    return sum;
  };
  const auto rows = some_rows(column.rows());
  attempt([&] { total(unpack_strings(packed.table, vectors)); });
  attempt([&] { total(pick_strings(packed.table, vectors, rows)); });
  attempt([&] {
    StringRanges ranges;
    total(read_rows(packed, column_of(packed, column.rows()), bytes, rows, ranges));
  });
}

void check_training() {
  const Column column = make_column(3000, 0, false);
  const auto* bytes = reinterpret_cast<const std::byte*>(column.data.data());
  const auto table = store_symbols(train_symbols(column.offsets, bytes, 0));
  CHECK(table == store_symbols(train_symbols(column.offsets, bytes, 0)));
  const Packed packed = pack(column);
  std::size_t stored = 0;
  for (const StringVector& vector : packed.strings.vectors) stored += vector.stored_bytes();
  CHECK(4 * stored < column.data.size());  // of words of seven bytes
}

void check_escape_at_the_end() {
  Column column;
  column.add("abc");
  Packed packed = pack(column);
  StringVector& vector = packed.strings.vectors[0];
  vector.form = static_cast<std::uint8_t>(StringForm::kSymbols);
  const std::size_t strings = packed_code_bytes(vector.bits, 1);
  packed.strings.payload[strings + 2] = std::byte{kSymbolEscape};
  const StringVectors vectors{packed.strings.payload, packed.starts, packed.strings.vectors, packed.rows};
  CHECK(!attempt([&] { unpack_strings(packed.table, vectors); }));
}

}  // namespace

int main() {
  for (const bool nulls : {false, true}) {
    for (int kind = 0; kind < 6; ++kind) {
      for (const std::size_t rows : {1, 127, 128, 129, 1023, 1024, 1025, 2600}) {
        check_column(make_column(rows, kind, nulls));
      }
    }
  }
  check_column(make_column(0, 0, false));
  for (int turn = 0; turn < 600; ++turn) {
    check_hostile(make_column(1 + below(1300), turn % 6 == 4 ? 0 : turn % 6, turn % 2 == 0));
  }
  check_training();
  check_escape_at_the_end();
  std::puts("all tests of strings passed");
  return 0;
}

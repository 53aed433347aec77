#include "storage/native/packed/fsst/unpack_strings.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "driver/native/threads/shared_work.hpp"
#include "storage/native/packed/fsst/symbol_decoder.hpp"

namespace bamquery {
namespace {

constexpr const char* kBadCodes = "its codes are no strings of the length that it says";

// Behind what strings need, so that all but the longest are decoded without a look at where memory ends.
constexpr std::size_t kSlack = kMostSymbolBytes * kMarkedCodes;

// A string in a payload.
struct Stored {
  const std::uint8_t* begin;
  std::size_t bytes;
  bool is_compressed;

  std::span<const std::uint8_t> codes() const { return {begin, bytes}; }
};

void clear_bit(std::vector<std::uint8_t>& bitmap, std::size_t row) {
  bitmap[row / 8] = static_cast<std::uint8_t>(bitmap[row / 8] & ~(1u << row % 8));
}

std::vector<std::uint8_t> all_valid(std::size_t rows) {
  std::vector<std::uint8_t> bitmap((rows + 7) / 8, 0xff);
  if (rows % 8 != 0) bitmap.back() = static_cast<std::uint8_t>((1u << rows % 8) - 1);
  return bitmap;
}

// One string behind `out`; null where its codes cannot be.
std::uint8_t* write(const SymbolDecoder& decoder, const Stored& one, std::uint8_t* out, std::uint8_t* limit) {
  if (one.is_compressed) return decoder.decode(one.codes(), out, limit);
  if (one.bytes > static_cast<std::size_t>(limit - out)) return nullptr;
  if (one.bytes > 0) std::memcpy(out, one.begin, one.bytes);
  return out + one.bytes;
}

// Strings of which it is not known before how long they are that are worth another thread.
constexpr std::int64_t kLeastStrings = 2048;

// Such strings; `vector_of(i)` names a vector in errors.
template <typename VectorOf>
void decode_each(const SymbolTable& table, std::span<const Stored> rows, const VectorOf& vector_of,
                 Strings& out) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t parts = worth_parts(count, kLeastStrings);
  out.offsets.resize(rows.size() + 1);
  out.offsets[0] = 0;
  std::vector<std::uint64_t> begins(static_cast<std::size_t>(parts) + 1);  // of each part's strings
  share_items(count, parts, 1, [&](std::int64_t part, std::int64_t first, std::int64_t own) {
    const SymbolDecoder decoder(table);
    std::uint64_t total = 0;
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(first + own); ++row) {
      const auto size = rows[row].is_compressed ? decoder.size(rows[row].codes())
                                                : std::optional<std::uint64_t>(rows[row].bytes);
      if (!size) throw_string_fault(vector_of(row), kBadCodes);
      total += *size;
      out.offsets[row + 1] = static_cast<std::int64_t>(total);
    }
    begins[static_cast<std::size_t>(part) + 1] = total;
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  out.data.resize(begins.back() + kSlack);
  share_items(count, parts, 1, [&](std::int64_t part, std::int64_t first, std::int64_t own) {
    const SymbolDecoder decoder(table);
    const auto number = static_cast<std::size_t>(part);
    std::uint8_t* at = out.data.data() + begins[number];
    // What is behind a part's strings are those of another thread.
    std::uint8_t* const limit = out.data.data() + begins[number + 1] + (part + 1 == parts ? kSlack : 0);
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(first + own); ++row) {
      at = write(decoder, rows[row], at, limit);
      if (at == nullptr) throw_string_fault(vector_of(row), kBadCodes);
      if (part > 0) out.offsets[row + 1] += static_cast<std::int64_t>(begins[number]);
    }
  });
}

// Writes the strings of a part, and where each ends, counted from `begin`; null where its codes cannot be.
class PartDecoder {
 public:
  PartDecoder(const SymbolTable& table, std::uint8_t* begin, std::uint8_t* limit)
      : decoder_(table), begin_(begin), limit_(limit) {}

  std::uint8_t* decode(const StringPayload& payload, std::span<const StringPayload::Row> rows,
                       std::uint8_t* out, std::int64_t* ends) {
    const std::uint32_t first = rows.front().begin;
    const std::size_t stored = rows.back().end - first;
    const bool is_compressed = payload.vector().is_compressed();
    const std::uint8_t* codes = payload.strings() + first;
    if (is_compressed && stored <= kMarkedCodes &&
        static_cast<std::size_t>(limit_ - out) >= kMostSymbolBytes * stored) {
      return decode_together({codes, stored}, rows, out, ends);
    }
    for (const StringPayload::Row& row : rows) {
      out = write(decoder_, {payload.strings() + row.begin, row.end - row.begin, is_compressed}, out, limit_);
      if (out == nullptr) return nullptr;
      *ends++ = out - begin_;
    }
    return out;
  }

 private:
  std::uint8_t* decode_together(std::span<const std::uint8_t> codes, std::span<const StringPayload::Row> rows,
                                std::uint8_t* out, std::int64_t* ends) {
    const std::int64_t before = out - begin_;
    const std::uint32_t first = rows.front().begin;
    marks_[0] = 0;
    out = decoder_.decode_marking(codes, out, marks_.data() + 1);
    if (out == nullptr) return nullptr;
    bool right = true;
    for (const StringPayload::Row& row : rows) {
      const std::uint32_t mark = marks_[row.end - first];
      right &= mark != kInside;
      *ends++ = before + mark;
    }
    return right ? out : nullptr;
  }

  SymbolDecoder decoder_;
  std::uint8_t* begin_;
  std::uint8_t* limit_;
  std::array<std::uint32_t, kMarkedCodes + 1> marks_;
};

// Vectors of strings that are worth another thread.
constexpr std::int64_t kLeastVectors = 16;

// Strings of vectors [begin, end) to where their own begin; how many are null. All vectors before are full.
std::int64_t unpack_run(const SymbolTable& table, const StringVectors& vectors, std::size_t begin,
                        std::size_t end, std::uint8_t* at, std::uint8_t* limit, Strings& out) {
  PartDecoder decoder(table, out.data.data(), limit);
  std::array<StringPayload::Row, kPackedVectorRows> found;
  std::size_t row = begin * kPackedVectorRows;
  std::int64_t nulls = 0;
  for (std::size_t v = begin; v < end; ++v) {
    const auto number = static_cast<std::int64_t>(v);
    const StringPayload payload(vectors.payload, vectors.starts[v], vectors.vectors[v], vectors.rows[v],
                                number);
    payload.read_rows(found);
    const std::uint8_t* const vector_begin = at;
    for (std::uint32_t first = 0; first < payload.rows(); first += kPackedPartRows) {
      const std::span part(found.data() + first, std::min(kPackedPartRows, payload.rows() - first));
      at = decoder.decode(payload, part, at, out.offsets.data() + row + first + 1);
      if (at == nullptr) throw_string_fault(number, kBadCodes);
    }
    if (payload.vector().has_nulls) {
      for (std::uint32_t i = 0; i < payload.rows(); ++i) {
        if (!found[i].is_null) continue;
        clear_bit(out.bitmap, row + i);
        ++nulls;
      }
    }
    row += payload.rows();
    if (at - vector_begin != static_cast<std::ptrdiff_t>(payload.vector().plain_bytes)) {
      throw_string_fault(number, kBadCodes);
    }
  }
  return nulls;
}

}  // namespace

Strings unpack_strings(const SymbolTable& table, const StringVectors& vectors) {
  std::vector<std::uint64_t> begins;
  std::uint64_t total = 0;
  std::size_t rows = 0;
  bool are_full = true;  // but for the last one
  for (std::size_t v = 0; v < vectors.vectors.size(); ++v) {
    const StringPayload payload(vectors.payload, vectors.starts[v], vectors.vectors[v], vectors.rows[v],
                                static_cast<std::int64_t>(v));
    begins.push_back(total);
    total += payload.vector().plain_bytes;
    are_full = are_full && rows == v * kPackedVectorRows;
    rows += payload.rows();
  }
  if (total > kMostPlainOfStored * vectors.payload.size()) {
    throw std::invalid_argument("vectors of strings overlap");
  }
  Strings out;
  out.offsets.resize(rows + 1);
  out.offsets[0] = 0;
  out.bitmap = all_valid(rows);
  out.data.resize(total + kSlack);
  const auto count = static_cast<std::int64_t>(vectors.vectors.size());
  std::atomic<std::int64_t> nulls = 0;
  share_items(count, are_full ? worth_parts(count, kLeastVectors) : 1, 1,
              [&](std::int64_t, std::int64_t first, std::int64_t own) {
                if (own == 0) return;
                const auto begin = static_cast<std::size_t>(first),
                           end = static_cast<std::size_t>(first + own);
                // What is behind a run's strings are those of another thread.
                const std::uint64_t limit = end < begins.size() ? begins[end] : total + kSlack;
                nulls += unpack_run(table, vectors, begin, end, out.data.data() + begins[begin],
                                    out.data.data() + limit, out);
              });
  out.nulls = nulls;
  return out;
}

namespace {

// Strings at positions, as they are stored, and what vectors they are of.
struct PickedStrings {
  explicit PickedStrings(std::size_t count) : rows(count), of_vector(count) {}

  UnsetVector<Stored> rows;
  UnsetVector<std::int64_t> of_vector;
};

// Finds the strings at positions `done` to `end` - 1, none of which is before vector `v` and its first row;
// returns how many are null.
std::int64_t find_strings(const StringVectors& vectors, std::span<const std::int64_t> positions,
                          std::size_t done, std::size_t end, std::size_t v, std::int64_t first,
                          PickedStrings& picked, std::vector<std::uint8_t>& bitmap) {
  std::array<StringPayload::Row, kPackedVectorRows> found;
  std::int64_t nulls = 0;
  for (; v < vectors.vectors.size() && done < end; ++v) {
    const auto number = static_cast<std::int64_t>(v);
    const StringPayload payload(vectors.payload, vectors.starts[v], vectors.vectors[v], vectors.rows[v],
                                number);
    const std::int64_t behind = first + payload.rows();
    if (positions[done] < behind) payload.read_rows(found);
    for (; done < end && positions[done] < behind; ++done) {
      if (positions[done] < first) throw std::invalid_argument("positions do not ascend");
      const StringPayload::Row& one = found[static_cast<std::size_t>(positions[done] - first)];
      picked.rows[done] = {payload.strings() + one.begin, one.end - one.begin,
                           payload.vector().is_compressed()};
      picked.of_vector[done] = number;
      if (one.is_null) {
        clear_bit(bitmap, done);
        ++nulls;
      }
    }
    first = behind;
  }
  if (done < end) throw std::invalid_argument("there is no row at a position");
  return nulls;
}

}  // namespace

Strings pick_strings(const SymbolTable& table, const StringVectors& vectors,
                     std::span<const std::int64_t> positions) {
  Strings out;
  out.bitmap = all_valid(positions.size());
  PickedStrings picked(positions.size());
  std::vector<std::int64_t> begins(vectors.rows.size());
  std::exclusive_scan(vectors.rows.begin(), vectors.rows.end(), begins.begin(), std::int64_t{0});
  const auto count = static_cast<std::int64_t>(positions.size());
  std::atomic<std::int64_t> nulls = 0;
  // Whole bytes of the bitmap. All vectors are looked at up to the last that is asked for, and the positions
  // found not to ascend, as by one thread: each begins with the vector of the position before its own.
  share_items(count, worth_parts(count, kLeastStrings), 8,
              [&](std::int64_t, std::int64_t begin, std::int64_t own) {
                const auto first = static_cast<std::size_t>(begin);
                std::size_t v = 0;
                if (first > 0) {
                  const auto behind = std::ranges::upper_bound(begins, positions[first - 1]);
                  v = static_cast<std::size_t>(std::max<std::ptrdiff_t>(behind - begins.begin() - 1, 0));
                }
                const std::int64_t begin_of_vector = begins.empty() ? 0 : begins[v];
                nulls += find_strings(vectors, positions, first, first + static_cast<std::size_t>(own), v,
                                      begin_of_vector, picked, out.bitmap);
              });
  out.nulls = nulls;
  decode_each(table, picked.rows, [&](std::size_t row) { return picked.of_vector[row]; }, out);
  return out;
}

namespace {

struct Place {
  std::int64_t number;
  const StringVector& vector;
  std::uint32_t row;

  bool begins_part() const { return row % kPackedPartRows == 0; }
  std::uint64_t first_bit() const { return std::uint64_t{row - (begins_part() ? 0u : 1u)} * vector.bits; }
};

Place place_of(const StringColumn& column, std::int64_t row) {
  const std::int64_t number = row / kVectorRows;
  if (row < 0 || row >= column.rows || number >= static_cast<std::int64_t>(column.vectors.size())) {
    throw std::invalid_argument("there is no such row");
  }
  return {number, column.vectors[static_cast<std::size_t>(number)],
          static_cast<std::uint32_t>(row % kVectorRows)};
}

std::uint32_t rows_of(const StringColumn& column, std::int64_t vector) {
  return static_cast<std::uint32_t>(std::min(kVectorRows, column.rows - vector * kVectorRows));
}

// Code number `index` of those that begin at bit `shift` of two words.
std::uint64_t code_at(const std::uint64_t (&words)[2], std::uint32_t shift, std::uint32_t bits) {
  if (bits == 0) return 0;
  std::uint64_t found = words[shift / 64] >> (shift % 64);
  if (shift < 64 && shift + bits > 64) found |= words[1] << (64 - shift);
  return found & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

std::vector<std::int64_t> string_places(const StringColumn& column, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> places;
  places.reserve(rows.size());
  for (const std::int64_t row : rows) {
    const Place place = place_of(column, row);
    places.push_back(static_cast<std::int64_t>(place.vector.offset + place.first_bit() / 8));
  }
  return places;
}

StringRanges string_ranges(const StringColumn& column, std::span<const std::int64_t> rows,
                           std::span<const std::byte> ends) {
  if (ends.size() < rows.size() * kEndBytes) throw std::invalid_argument("ends are too few");
  StringRanges found;
  found.bitmap = all_valid(rows.size());
  found.starts.reserve(rows.size());
  found.lengths.reserve(rows.size());
  std::int64_t checked = -1;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Place place = place_of(column, rows[i]);
    const StringVector& vector = place.vector;
    const std::uint32_t of_vector = rows_of(column, place.number);
    if (place.number != checked) {
      const char* fault = string_fault(vector, of_vector);
      if (fault != nullptr) throw_string_fault(place.number, fault);
      if (vector.offset > static_cast<std::uint64_t>(column.data_bytes) ||
          string_payload_bytes(vector, of_vector) >
              static_cast<std::uint64_t>(column.data_bytes) - vector.offset) {
        throw_string_fault(place.number, "it lies outside of the column's data");
      }
      checked = place.number;
    }
    std::uint64_t words[2];
    std::memcpy(words, ends.data() + i * kEndBytes, sizeof words);
    const auto shift = static_cast<std::uint32_t>(place.first_bit() % 8);
    std::uint64_t code_before = 0;
    std::uint64_t code = code_at(words, shift, vector.bits);
    if (!place.begins_part()) {
      code_before = code;
      code = code_at(words, shift + vector.bits, vector.bits);
    }
    const StringRow string = string_row(vector, of_vector, place.row, code_before, code);
    const std::uint64_t strings = vector.offset + packed_code_bytes(vector.bits, of_vector);
    if (!string.is_possible || strings + string.begin < before) {
      throw_string_fault(place.number, "its strings' ends do not ascend within their parts");
    }
    before = strings + string.end;
    found.starts.push_back(static_cast<std::int64_t>(strings + string.begin));
    found.lengths.push_back(static_cast<std::int64_t>(string.end - string.begin));
    if (string.is_null) {
      clear_bit(found.bitmap, i);
      ++found.nulls;
    }
  }
  return found;
}

Strings decode_strings(const SymbolTable& table, const StringColumn& column,
                       std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                       std::span<const std::byte> stored) {
  if (lengths.size() != rows.size()) throw std::invalid_argument("there are not as many lengths as rows");
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(stored.data());
  std::vector<Stored> each;
  each.reserve(rows.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto length = static_cast<std::size_t>(lengths[i]);
    if (lengths[i] < 0 || length > stored.size() - at) throw std::invalid_argument("bytes are too few");
    each.push_back({bytes + at, length, place_of(column, rows[i]).vector.is_compressed()});
    at += length;
  }
  Strings out;
  decode_each(table, each, [&](std::size_t row) { return rows[row] / kVectorRows; }, out);
  return out;
}

}  // namespace bamquery

#include "storage/native/packed/fsst/pack_strings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "driver/native/crc32c.hpp"
#include "driver/native/threads/shared_work.hpp"
#include "storage/native/packed/fsst/matcher.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kLeastRows = 4 * kPackedVectorRows;  // of a thread's part: a few hundred microseconds

// Writes the codes of one string behind `out`, at most two bytes for each; `readable` bytes may be loaded.
std::uint8_t* compress(const Matcher& matcher, const std::uint8_t* from, std::size_t length,
                       std::size_t readable, std::uint8_t* out) {
  const std::uint8_t* const end = from + length;
  const std::uint8_t* const loadable = from + readable;
  const auto take = [&](std::uint64_t word, Matcher::Match match) {
    out[0] = match.code;
    out[1] = static_cast<std::uint8_t>(word);  // overwritten, unless that was the escape
    out += match.code == kSymbolEscape ? 2 : 1;
    from += match.length;
  };
  while (end - from >= 8) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    take(word, matcher.find(word));
  }
  while (from < end) {
    const auto left = static_cast<std::size_t>(end - from);
    const std::uint64_t word = load_bytes(from, left, static_cast<std::size_t>(loadable - from));
    take(word, matcher.find(word, left));
  }
  return out;
}

class StringPacker {
 public:
  StringPacker(const Matcher& matcher, std::span<const std::int64_t> offsets, const std::byte* data,
               std::int64_t data_start, Bits validity)
      : matcher_(matcher), offsets_(offsets), data_(data), data_start_(data_start), validity_(validity) {}

  // The vector of `rows` rows from `first` on; its payload goes behind `payload`.
  StringVector pack(std::size_t first, std::uint32_t rows, std::vector<std::byte>& payload) {
    const auto plain = static_cast<std::uint64_t>(offsets_[first + rows] - offsets_[first]);
    if (plain > std::numeric_limits<std::uint32_t>::max()) {
      throw std::invalid_argument("1,024 rows of strings come to 4 GiB: store them in a plain table");
    }
    StringVector vector{};
    vector.offset = payload.size();
    vector.plain_bytes = static_cast<std::uint32_t>(plain);
    const std::byte* strings = compress_all(first, rows, plain);
    vector.form = static_cast<std::uint8_t>(ends_[rows] < plain ? StringForm::kSymbols : StringForm::kBytes);
    if (!vector.is_compressed()) {
      strings = data_ + (offsets_[first] - data_start_);
      for (std::uint32_t row = 0; row <= rows; ++row) {
        ends_[row] = static_cast<std::uint64_t>(offsets_[first + row] - offsets_[first]);
      }
    }
    const std::uint64_t stored = ends_[rows];
    set_ends(vector, first, rows);
    const std::size_t code_bytes = packed_code_bytes(vector.bits, rows);
    const std::size_t start = payload.size();
    payload.resize(start + string_payload_bytes(vector, rows) + 8);  // so many behind codes are overwritten
    if (vector.bits > 0) {
      pack_codes(simd_level(), codes_.data(), vector.bits, rows, payload.data() + start);
    }
    if (stored > 0) std::memcpy(payload.data() + start + code_bytes, strings, stored);
    std::memset(payload.data() + start + code_bytes + stored, 0,
                payload.size() - start - code_bytes - stored);
    payload.resize(payload.size() - 8);
    return vector;
  }

 private:
  const std::byte* compress_all(std::size_t first, std::uint32_t rows, std::uint64_t plain) {
    if (room_ < 2 * plain + 1) {
      room_ = 2 * plain + plain / 4 + 1;
      compressed_ = std::make_unique_for_overwrite<std::uint8_t[]>(room_);
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data_) - data_start_;
    const std::int64_t end = offsets_.back();
    std::uint8_t* out = compressed_.get();
    ends_[0] = 0;
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::int64_t from = offsets_[first + row];
      out = compress(matcher_, bytes + from, static_cast<std::size_t>(offsets_[first + row + 1] - from),
                     static_cast<std::size_t>(end - from), out);
      ends_[row + 1] = static_cast<std::uint64_t>(out - compressed_.get());
    }
    return reinterpret_cast<const std::byte*>(compressed_.get());
  }

  // Turns `ends_` of all rows into codes.
  void set_ends(StringVector& vector, std::size_t first, std::uint32_t rows) {
    std::uint64_t longest = 0;
    bool has_nulls = false;
    for (std::uint32_t row = 0; row < rows; ++row) {
      has_nulls |= !validity_[static_cast<std::int64_t>(first + row)];
    }
    for (std::uint32_t part = 0; part < kStringParts; ++part) {
      const std::uint32_t begin = std::min(part * kPackedPartRows, rows);
      const std::uint32_t end = std::min(begin + kPackedPartRows, rows);
      for (std::uint32_t row = begin; row < end; ++row) {
        const std::uint64_t code = ends_[row + 1] - ends_[begin];
        codes_[row] =
            has_nulls ? code << 1 | (validity_[static_cast<std::int64_t>(first + row)] ? 0u : 1u) : code;
      }
      longest = std::max(longest, ends_[end] - ends_[begin]);
      vector.part_ends[part] = static_cast<std::uint32_t>(ends_[end]);
    }
    vector.has_nulls = has_nulls ? 1 : 0;
    vector.bits = static_cast<std::uint8_t>(std::bit_width(longest) + vector.has_nulls);
  }

  const Matcher& matcher_;
  std::span<const std::int64_t> offsets_;
  const std::byte* data_;
  std::int64_t data_start_;
  Bits validity_;
  std::unique_ptr<std::uint8_t[]> compressed_;
  std::size_t room_ = 0;
  std::array<std::uint64_t, kPackedVectorRows + 1> ends_;
  std::array<std::uint64_t, kPackedVectorRows> codes_;
};

// All parts end to end.
PackedStrings joined(std::vector<PackedStrings> parts) {
  PackedStrings whole = std::move(parts.front());
  std::size_t size = 0;
  for (const PackedStrings& part : parts) size += part.payload.size();
  whole.payload.reserve(whole.payload.size() + size);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    PackedStrings& part = parts[i];
    for (StringVector& vector : part.vectors) vector.offset += whole.payload.size();
    whole.payload.insert(whole.payload.end(), part.payload.begin(), part.payload.end());
    whole.vectors.insert(whole.vectors.end(), part.vectors.begin(), part.vectors.end());
    whole.crcs.insert(whole.crcs.end(), part.crcs.begin(), part.crcs.end());
  }
  return whole;
}

}  // namespace

PackedStrings pack_strings(const SymbolTable& table, std::span<const std::int64_t> offsets,
                           const std::byte* data, std::int64_t data_start, const std::uint8_t* validity) {
  const auto matcher = std::make_unique<Matcher>();
  for (std::uint32_t code = 0; code < table.count; ++code) {
    if (!matcher->insert(table.symbol(code), static_cast<std::uint8_t>(code))) {
      throw std::invalid_argument("two symbols of the table cannot be told apart");
    }
  }
  const std::size_t rows = offsets.size() - 1;
  const auto pack_rows = [&](std::size_t begin, std::size_t count, PackedStrings& packed) {
    packed.payload.reserve(static_cast<std::size_t>(offsets[begin + count] - offsets[begin]) / 2 + 2 * count);
    const auto packer =
        std::make_unique<StringPacker>(*matcher, offsets, data, data_start, Bits{validity, 0});
    for (std::size_t first = begin; first < begin + count; first += kPackedVectorRows) {
      const auto of_vector =
          static_cast<std::uint32_t>(std::min<std::size_t>(kPackedVectorRows, begin + count - first));
      const std::size_t start = packed.payload.size();
      packed.vectors.push_back(packer->pack(first, of_vector, packed.payload));
      packed.crcs.push_back(crc32c({packed.payload.data() + start, packed.payload.size() - start}));
    }
  };
  const std::int64_t parts = worth_parts(static_cast<std::int64_t>(rows), kLeastRows);
  std::vector<PackedStrings> packed(static_cast<std::size_t>(parts));
  share_items(static_cast<std::int64_t>(rows), parts, kPackedVectorRows,
              [&](std::int64_t part, std::int64_t first, std::int64_t count) {
                pack_rows(static_cast<std::size_t>(first), static_cast<std::size_t>(count),
                          packed[static_cast<std::size_t>(part)]);
              });
  return joined(std::move(packed));
}

}  // namespace bamquery

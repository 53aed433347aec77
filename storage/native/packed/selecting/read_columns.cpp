#include "storage/native/packed/selecting/read_columns.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "driver/native/threads/shared_work.hpp"
#include "storage/native/packed/decode.hpp"
#include "storage/native/packed/selecting/column_vectors.hpp"

namespace bamquery {

std::size_t value_bytes(ValueKind kind, std::int64_t rows) {
  if (kind == ValueKind::kBool) return (static_cast<std::size_t>(rows) + 7) / 8;
  const std::size_t width = kind == ValueKind::kInt128 ? 16 : packed_kind(kind).width;
  return static_cast<std::size_t>(rows) * width;
}

std::int64_t rows_of(const ColumnRequest& request) {
  if (request.wanted == Wanted::kRows) return static_cast<std::int64_t>(request.places.size());
  if (request.places.empty()) return 0;
  // Only the column's last vector may have fewer rows than others.
  const auto full = static_cast<std::int64_t>(request.places.size() - 1) * kVectorRows;
  return full +
         std::clamp<std::int64_t>(request.column.rows - request.places.back() * kVectorRows, 0, kVectorRows);
}

namespace {

constexpr std::size_t kTurn = 32;
// Vectors that are worth another thread.
constexpr std::int64_t kLeastVectors = 64;

// A run of a request's vectors, and what was read of it.
struct Piece {
  std::size_t request;
  std::size_t begin;
  std::size_t end;
  std::byte* target = nullptr;                       // of payloads
  std::unique_ptr<ColumnVectors> vectors = nullptr;  // unless rows are wanted
  ReadColumn found = {};
  std::exception_ptr failure = nullptr;
};

// Rows of values from `first` on.
struct Rows {
  std::int64_t first;
  std::int64_t count;
};

class ColumnReads {
 public:
  ColumnReads(const BlockFile& file, std::span<const ColumnRequest> requests)
      : file_(file), requests_(requests), fetches_(requests.size()) {
    std::int64_t vectors = 0;
    const RowFetch* before = nullptr;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const ColumnRequest& request = requests[i];
      if (request.wanted == Wanted::kRows) {
        before = &fetches_[i].emplace(file, request.column, request.places, request.values.data(),
                                      request.bitmap, before);
      }
      vectors += static_cast<std::int64_t>(vectors_of(i));
    }
    cut(vectors, worth_parts(vectors, kLeastVectors));
    place_payloads();
  }

  std::vector<ReadColumn> read() {
    share_parts(static_cast<std::int64_t>(ends_.size()), [&](std::int64_t part) {
      const auto at = static_cast<std::size_t>(part);
      for (std::size_t i = at == 0 ? 0 : ends_[at - 1]; i < ends_[at]; ++i) {
        try {
          read(pieces_[i]);
        } catch (...) {
          pieces_[i].failure = std::current_exception();
        }
        if (pieces_[i].failure || pieces_[i].found.mismatch >= 0) return;
      }
    });
    return join();
  }

 private:
  std::size_t vectors_of(std::size_t request) const {
    return fetches_[request] ? fetches_[request]->vectors() : requests_[request].places.size();
  }

  // Parts of about as many vectors, of whatever columns: pieces up to `ends_` are one each.
  void cut(std::int64_t vectors, std::int64_t parts) {
    const auto end_part = [&] {
      if (!pieces_.empty() && (ends_.empty() || pieces_.size() > ends_.back()))
        ends_.push_back(pieces_.size());
    };
    std::int64_t before = 0;
    std::int64_t part = 1;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const auto own = static_cast<std::int64_t>(vectors_of(i));
      std::size_t begin = 0;
      for (; part < parts && vectors * part / parts < before + own; ++part) {
        const std::size_t end = run_end(i, static_cast<std::size_t>(vectors * part / parts - before));
        if (end > begin) pieces_.push_back({i, begin, end});
        begin = std::max(begin, end);
        end_part();
      }
      const auto end = static_cast<std::size_t>(own);
      if (begin < end) pieces_.push_back({i, begin, end});
      before += own;
    }
    end_part();
  }

  // Where a run near vector `end` of a request ends. Vectors before are full, so that turns begin with a
  // byte.
  std::size_t run_end(std::size_t request, std::size_t end) {
    if (fetches_[request]) return fetches_[request]->run_end(end);
    return requests_[request].wanted == Wanted::kVectors ? end / kTurn * kTurn : end;
  }

  void place_payloads() {
    std::vector<std::int64_t> used(requests_.size());
    for (Piece& piece : pieces_) {
      const ColumnRequest& request = requests_[piece.request];
      if (request.wanted != Wanted::kPayload) continue;
      piece.vectors = std::make_unique<ColumnVectors>(
          file_, request.column, request.places.subspan(piece.begin, piece.end - piece.begin), 0, true);
      std::int64_t& at = used[piece.request];
      piece.target = request.values.data() + at;
      at += piece.vectors->size();
      if (at > static_cast<std::int64_t>(request.values.size())) {
        throw std::invalid_argument("payloads do not fit");
      }
    }
  }

  void read(Piece& piece) const {
    const ColumnRequest& request = requests_[piece.request];
    if (request.wanted == Wanted::kPayload) {
      piece.vectors->read_all(piece.target, piece.found.counts);
      piece.found.mismatch = piece.vectors->mismatch();
      return;
    }
    Rows rows{};
    if (request.wanted == Wanted::kRows) {
      const RowFetch& fetch = *fetches_[piece.request];
      const FetchedRows fetched = fetch.read(piece.begin, piece.end);
      piece.found.counts = fetched.counts;
      piece.found.mismatch = fetched.mismatch;
      piece.found.nulls = fetched.nulls;
      rows.first = fetch.rows_before(piece.begin);
      rows.count = fetch.rows_before(piece.end) - rows.first;
    } else {
      rows = decode(piece);
    }
    if (request.coded && piece.found.mismatch < 0) check_codes(request, rows, piece.found);
  }

  // The rows of the vectors that were read.
  Rows decode(Piece& piece) const {
    const ColumnRequest& request = requests_[piece.request];
    const auto places = request.places.subspan(piece.begin, piece.end - piece.begin);
    piece.vectors = std::make_unique<ColumnVectors>(file_, request.column, places, kTurn, false);
    ColumnVectors& vectors = *piece.vectors;
    vectors.expect_all();
    LoadedVectors loaded;
    std::vector<std::uint32_t> turn(kTurn);
    std::iota(turn.begin(), turn.end(), 0u);
    const auto begin = static_cast<std::int64_t>(piece.begin) * kVectorRows;
    std::int64_t row = begin;
    for (std::size_t first = 0; first < places.size(); first += kTurn) {
      const std::size_t count = std::min(kTurn, places.size() - first);
      vectors.begin_turn(first);
      if (!vectors.load(std::span(turn).first(count), loaded)) break;
      const std::size_t at = value_bytes(request.column.kind, row);
      piece.found.nulls +=
          unpack_vectors(request.column.kind, loaded.payload, loaded.starts, loaded.vectors, loaded.rows,
                         request.column.scale, request.values.data() + at, request.bitmap + row / 8);
      row += std::accumulate(loaded.rows.begin(), loaded.rows.end(), std::int64_t{0});
    }
    piece.found.mismatch = vectors.mismatch();
    return {begin, row - begin};
  }

  template <typename Code>
  static std::int64_t sum_lengths(const ColumnRequest& request, const Rows& rows, std::int64_t nulls) {
    const auto* const codes = reinterpret_cast<const Code*>(request.values.data()) + rows.first;
    const std::size_t known = request.lengths.size();
    std::int64_t sum = 0;
    if (nulls == 0) {
      Code most = 0;
      for (std::int64_t row = 0; row < rows.count; ++row) most = std::max(most, codes[row]);
      if (rows.count == 0) return 0;
      if (most >= known) return kBeyond;
      if (request.are_alike) return rows.count * request.lengths[0];
      for (std::int64_t row = 0; row < rows.count; ++row) sum += request.lengths[codes[row]];
      return sum;
    }
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const std::int64_t bit = rows.first + row;
      if (((request.bitmap[bit / 8] >> (bit % 8)) & 1) == 0) continue;
      if (codes[row] >= known) return kBeyond;
      sum += request.lengths[codes[row]];
    }
    return sum;
  }

  // Looks at codes, once they are decoded.
  static void check_codes(const ColumnRequest& request, const Rows& rows, ReadColumn& found) {
    switch (request.column.kind) {
      case ValueKind::kInt8:
      case ValueKind::kUInt8:
        found.string_bytes = sum_lengths<std::uint8_t>(request, rows, found.nulls);
        break;
      case ValueKind::kInt16:
      case ValueKind::kUInt16:
        found.string_bytes = sum_lengths<std::uint16_t>(request, rows, found.nulls);
        break;
      default:
        found.string_bytes = sum_lengths<std::uint32_t>(request, rows, found.nulls);
    }
  }

  // What one thread would say that reads piece by piece.
  std::vector<ReadColumn> join() const {
    std::vector<ReadColumn> found(requests_.size());
    for (std::size_t i = 0; i < pieces_.size();) {
      const std::size_t request = pieces_[i].request;
      ReadColumn& column = found[request];
      const std::size_t first = i;
      for (; i < pieces_.size() && pieces_[i].request == request; ++i) {
        const Piece& piece = pieces_[i];
        if (piece.failure) std::rethrow_exception(piece.failure);
        column.mismatch = piece.found.mismatch;
        if (column.mismatch >= 0) return found;
        column.nulls += piece.found.nulls;
        if (piece.found.string_bytes == kBeyond) column.string_bytes = kBeyond;
        if (column.string_bytes != kBeyond) column.string_bytes += piece.found.string_bytes;
      }
      column.counts = count(std::span(pieces_).subspan(first, i - first));
    }
    return found;
  }

  // Of pieces of one column, of which two may have read the same block.
  ReadCounts count(std::span<const Piece> pieces) const {
    const Piece& first = pieces.front();
    if (fetches_[first.request]) {
      return pieces.size() == 1 ? first.found.counts : fetches_[first.request]->count();
    }
    std::vector<const ColumnVectors*> parts;
    for (const Piece& piece : pieces) parts.push_back(piece.vectors.get());
    return ColumnVectors::count(parts);
  }

  const BlockFile& file_;
  std::span<const ColumnRequest> requests_;
  std::vector<std::optional<RowFetch>> fetches_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> ends_;
};

}  // namespace

std::vector<ReadColumn> read_columns(const BlockFile& file, std::span<const ColumnRequest> requests) {
  return ColumnReads(file, requests).read();
}

}  // namespace bamquery

// Copies of column chunks in their one canonical form: zero under nulls, so that equal columns make equal
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/bitmap.hpp"

namespace bamquery {

/// Copies `rows` values of `width` bytes; values where `validity` is clear become zero.
void copy_values(const std::byte* source, std::int64_t rows, std::int64_t width, Bits validity,
                 std::byte* target);

/// Writes where each string ends when strings are laid end to end from `start` and nulls are empty.
/// `offsets` has rows + 1 entries into `data_size` bytes; false where they are not ascending within it.
bool string_ends(std::span<const std::int64_t> offsets, std::int64_t data_size, Bits validity,
                 std::int64_t start, std::int64_t* ends);

/// Copies the strings themselves, those of null rows left out.
void copy_strings(std::span<const std::int64_t> offsets, const std::byte* data, Bits validity,
                  std::byte* target);

/// Puts together the offsets of several vectors. `stored` holds counts[v] + 1 offsets for each; `joined` gets
/// sum(counts) + 1, from zero; `starts` and `lengths` get where each vector's bytes are. Returns the first
/// vector whose offsets are not ascending within `data_size` bytes, or -1.
std::int64_t join_offsets(std::span<const std::int64_t> stored, std::span<const std::int64_t> counts,
                          std::int64_t data_size, std::int64_t* joined, std::int64_t* starts,
                          std::int64_t* lengths);

}  // namespace bamquery

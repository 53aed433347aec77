// CRC-32C (Castagnoli), by the processor's instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bamquery {

/// CRC-32C of `data`; crc32c(b, crc32c(a)) is that of a followed by b.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

/// The same by tables, for processors without the instruction.
std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t seed = 0);

/// CRC-32C of each of four runs of equal length. The instruction takes one cycle but its result three, so
/// independent runs go faster together than one after the other.
void crc32c_four(const std::byte* const runs[4], std::size_t length, std::uint32_t crcs[4]);

}  // namespace bamquery

// Memory of large arrays, which is kept for a while once they are gone: the next ones are about as large, and
// to touch memory that is fresh from the system takes several times as long as to compute what is put there.
#pragma once

#include <cstddef>

namespace bamquery {

/// Smaller arrays are malloc's, which keeps their memory itself.
inline constexpr std::size_t kLeastLarge = std::size_t{1} << 20;

/// Bytes of blocks.
struct LargeMemory {
  std::size_t in_use;
  std::size_t kept;
};

/// A block of at least so many bytes, which begins with a page; any thread may give it back.
///
/// `is_zero`, where given, is set to whether all bytes are 0, as they are fresh from the system.
/// Raises std::bad_alloc.
std::byte* take_large(std::size_t bytes, bool* is_zero = nullptr);

/// Gives a block back; false where none begins there.
bool give_large(void* memory) noexcept;

/// Bytes of the block that begins there; 0 where none does.
std::size_t large_size(const void* memory) noexcept;

/// Of blocks that are given back so many bytes are kept, from now on: at first none.
void keep_large(std::size_t most) noexcept;

/// Gives the system what is kept, but for so many bytes: of those that were in use last.
void release_large(std::size_t but) noexcept;

LargeMemory large_memory() noexcept;

}  // namespace bamquery

// What devices and file systems ask of reads and writes past the page cache (O_DIRECT).
#pragma once

#include <cstdint>
#include <string>

namespace bamquery {

/// The smallest block, of at least 512 bytes, that an open file's device reads directly. StorageError where
/// the file system has no direct reads.
std::int64_t direct_block_size(int descriptor, const std::string& path);

}  // namespace bamquery

// Writes that either happen in full or say why not.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bamquery {

/// Writes all buffers, one behind the other, at `offset`. Short writes are continued and interrupted ones
/// repeated; any other failure is a StorageError that names `path`.
void write_buffers(int descriptor, std::int64_t offset, std::vector<iovec> buffers, const std::string& path);

}  // namespace bamquery

#include "driver/native/files/direct_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "driver/native/aligned_buffer.hpp"
#include "driver/native/errors.hpp"

namespace bamquery {

std::int64_t direct_block_size(int descriptor, const std::string& path) {
#ifdef STATX_DIOALIGN
  struct statx status;
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) {
      throw StorageError(path, "its file system has no direct reads: use reader=\"mapped\"");
    }
    return std::max<std::int64_t>(status.stx_dio_offset_align, 512);
  }
#endif
  // Older kernels do not say: the smallest block that can be read.
  const AlignedBuffer buffer = allocate_aligned(kBufferAlignment);
  for (const std::int64_t size : {512, 4096}) {
    // A read behind the first block, so that one of a smaller size is seen to be refused.
    if (pread(descriptor, buffer.get(), static_cast<std::size_t>(size), size) >= 0) return size;
  }
  throw system_error(path, "its file system refuses direct reads: use reader=\"mapped\"");
}

}  // namespace bamquery

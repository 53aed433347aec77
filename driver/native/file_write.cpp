#include "file_write.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "errors.hpp"

namespace bamquery {
namespace {

// Drops what was written from the front of `buffers`.
std::span<iovec> without_written(std::span<iovec> buffers, std::size_t written) {
  while (!buffers.empty() && written >= buffers.front().iov_len) {
    written -= buffers.front().iov_len;
    buffers = buffers.subspan(1);
  }
  if (written > 0) {
    iovec& first = buffers.front();
    first.iov_base = static_cast<char*>(first.iov_base) + written;
    first.iov_len -= written;
  }
  return buffers;
}

}  // namespace

void write_buffers(int descriptor, std::int64_t offset, std::vector<iovec> buffers, const std::string& path) {
  std::span<iovec> left = without_written(buffers, 0);
  while (!left.empty()) {
    const auto count = static_cast<int>(std::min<std::size_t>(left.size(), IOV_MAX));
    const ssize_t written = pwritev(descriptor, left.data(), count, offset);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw system_error(path, "cannot write at byte " + std::to_string(offset));
    }
    // POSIX lets a full device write nothing without an error; trying for ever would hang.
    if (written == 0) throw system_error(path, "cannot write at byte " + std::to_string(offset), ENOSPC);
    offset += written;
    left = without_written(left, static_cast<std::size_t>(written));
  }
}

}  // namespace bamquery

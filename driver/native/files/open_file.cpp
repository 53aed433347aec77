#include "driver/native/files/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <stdexcept>

#include "driver/native/errors.hpp"

namespace bamquery {
namespace {

std::string size_message(std::int64_t found, std::int64_t expected) {
  return std::to_string(found) + " bytes instead of " + std::to_string(expected);
}

}  // namespace

OpenFile::OpenFile(std::string path, std::int64_t expected_size, int flags)
    : path_(std::move(path)),
      size_(expected_size),
      descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | flags)) {
  if (descriptor_ < 0) {
    if (errno == ENOENT) throw CorruptionError(path_, "the file is missing");
    if (errno == EINVAL && (flags & O_DIRECT) != 0) {
      throw StorageError(path_, "its file system has no direct reads: use reader=\"mapped\"");
    }
    throw system_error(path_, "cannot be opened");
  }
  struct stat status;
  if (fstat(descriptor_, &status) != 0) {
    const int number = errno;
    close(descriptor_);
    throw system_error(path_, "cannot be examined", number);
  }
  if (status.st_size != expected_size) {
    close(descriptor_);
    throw CorruptionError(path_, size_message(status.st_size, expected_size));
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

OpenFile::~OpenFile() { close_descriptor(); }

void OpenFile::close_descriptor() noexcept {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

void OpenFile::throw_if_truncated() const {
  struct stat status;
  const int failed = descriptor_ < 0 ? stat(path_.c_str(), &status) : fstat(descriptor_, &status);
  if (failed != 0 || status.st_dev != device_ || status.st_ino != inode_) return;
  if (status.st_size < size_) {
    throw StorageError(path_, "truncated while in use: " + size_message(status.st_size, size_));
  }
}

void OpenFile::throw_read_error(std::int64_t offset, int number) const {
  throw_if_truncated();
  throw system_error(path_, "cannot be read at byte " + std::to_string(offset), number);
}

void check_block_size(std::int64_t block_size) {
  if (block_size < 512 || !std::has_single_bit(static_cast<std::uint64_t>(block_size))) {
    throw std::invalid_argument("a block is a power of two of at least 512 bytes");
  }
}

}  // namespace bamquery

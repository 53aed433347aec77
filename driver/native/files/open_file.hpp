// A file that is open for reading and has the size it should have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bamquery {

class OpenFile {
 public:
  /// Opens with O_RDONLY and `flags`. StorageError if it cannot be opened, CorruptionError if it is missing
  /// or does not have `expected_size` bytes.
  OpenFile(std::string path, std::int64_t expected_size, int flags);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  /// -1 once it was closed.
  int descriptor() const noexcept { return descriptor_; }
  std::int64_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

  /// Gives the descriptor back; the file stays known. Not thread-safe.
  void close_descriptor() noexcept;

  /// Throws the StorageError for a file that has lost bytes since, as far as that can be seen: a file without
  /// a descriptor is looked up by its path, and may have been replaced.
  void throw_if_truncated() const;

  /// Throws the StorageError for a read that did not get the bytes: the file was truncated, or `number`.
  [[noreturn]] void throw_read_error(std::int64_t offset, int number) const;

 private:
  std::string path_;
  std::int64_t size_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int descriptor_;
};

/// Throws std::invalid_argument unless `block_size` is a power of two of at least 512.
void check_block_size(std::int64_t block_size);

}  // namespace bamquery

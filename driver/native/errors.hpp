// Typed exceptions of the native code; bindings translate them into bamquery.errors once.
#pragma once

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "driver/core/status.hpp"

namespace bamquery {

/// The operating system refused or failed an operation on a file (bamquery.errors.StorageError).
class StorageError : public std::runtime_error {
 public:
  StorageError(std::string path, const std::string& message)
      : std::runtime_error(message), path_(std::move(path)) {}
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// Bytes are not the bytes that were written (bamquery.errors.CorruptionError).
class CorruptionError : public StorageError {
 public:
  using StorageError::StorageError;
};

/// A controller answered a command with an error, or not in time (bamquery.errors.NvmeError, which adds
/// namespace, LBA and status to the message). `path` may be empty.
class NvmeError : public StorageError {
 public:
  NvmeError(std::string path, const std::string& message, std::uint32_t nsid, std::uint64_t lba,
            Status status, int drive = -1)
      : StorageError(std::move(path), message), nsid_(nsid), lba_(lba), status_(status), drive_(drive) {}
  std::uint32_t nsid() const noexcept { return nsid_; }
  std::uint64_t lba() const noexcept { return lba_; }
  Status status() const noexcept { return status_; }
  /// Which of several drives it was; -1 where there is one.
  int drive() const noexcept { return drive_; }

 private:
  std::uint32_t nsid_;
  std::uint64_t lba_;
  Status status_;
  int drive_;
};

/// The StorageError for a failed system call: `action` and what the error number means.
inline StorageError system_error(const std::string& path, const std::string& action, int number = errno) {
  return {path, action + ": " + std::generic_category().message(number)};
}

}  // namespace bamquery

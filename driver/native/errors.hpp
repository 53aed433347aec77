// Typed exceptions of the native code; bindings translate them into bamquery.errors once.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

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

/// The StorageError for a failed system call: `action` and what the error number means.
inline StorageError system_error(const std::string& path, const std::string& action, int number = errno) {
  return {path, action + ": " + std::generic_category().message(number)};
}

}  // namespace bamquery

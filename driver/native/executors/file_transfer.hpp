// One operation's way through as many system calls as it takes, whoever makes them.
#pragma once

#include <cstdint>
#include <optional>

#include "driver/native/executors/async_executor.hpp"

namespace bamquery {

/// What is left of an operation, and how it ends.
class FileTransfer {
 public:
  FileTransfer() = default;
  explicit FileTransfer(const AsyncOperation& operation) : operation_(operation) {}

  const AsyncOperation& operation() const { return operation_; }
  std::byte* memory() const { return operation_.memory + done_; }
  std::int64_t offset() const { return operation_.offset + done_; }
  std::uint32_t bytes() const { return operation_.bytes - done_; }

  /// A status if the operation cannot be carried out whatever the file says.
  std::optional<Status> refused() const;

  /// Takes the outcome of one system call, bytes or a negative error number. Returns the command's status
  /// once it has ended; none: what is left is to be asked for again.
  std::optional<Status> advance(std::int64_t result);

 private:
  Status finish_read();

  AsyncOperation operation_{};
  std::uint32_t done_ = 0;
  std::uint32_t interrupted_ = 0;
};

}  // namespace bamquery

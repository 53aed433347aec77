// Memory of this process that a device reaches, for as long as somebody holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "driver/native/nvme/iova_allocator.hpp"
#include "driver/native/nvme/nvme_device.hpp"
#include "driver/native/own_process.hpp"

namespace bamquery {

class DmaSpace;

/// One mapping; its end is the end of the device's access.
class DmaMapping {
 public:
  DmaMapping() = default;
  DmaMapping(DmaMapping&& other) noexcept { *this = std::move(other); }
  DmaMapping& operator=(DmaMapping&& other) noexcept;
  ~DmaMapping() { end(); }

  /// Where the device sees the first byte.
  std::uint64_t iova() const { return iova_; }
  void end() noexcept;

 private:
  friend class DmaSpace;

  DmaSpace* space_ = nullptr;
  std::uint64_t iova_ = 0;
  std::span<std::byte> bytes_;
};

/// The addresses of one device. It outlives its mappings. Any thread may call.
class DmaSpace {
 public:
  explicit DmaSpace(NvmeDevice& device);

  /// Regions that follow one another in memory follow one another for the device. StorageError.
  ///
  /// They are no part of children that fork: pages that a device reaches would be copied when the parent
  /// writes next, and the device would go on with the old ones.
  DmaMapping map(std::span<const QueueRegion> regions);

 private:
  friend class DmaMapping;

  void unmap(std::uint64_t iova, std::span<std::byte> bytes) noexcept;

  NvmeDevice& device_;
  OwnProcess process_;  ///< A child has the parent's files: what it unmapped would be gone there, too.
  std::mutex mutex_;
  IovaAllocator addresses_;
};

/// Pages of zeros that a device reaches.
class DmaPages {
 public:
  /// `bytes` is rounded up to pages. StorageError, std::bad_alloc.
  DmaPages(DmaSpace& space, std::size_t bytes, QueueAccess access);
  ~DmaPages();
  DmaPages(const DmaPages&) = delete;
  DmaPages& operator=(const DmaPages&) = delete;

  std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  std::uint64_t iova() const { return mapping_.iova(); }
  void clear();

 private:
  OwnProcess process_;  ///< Children have something else there, or nothing.
  std::span<std::byte> bytes_;
  DmaMapping mapping_;
};

}  // namespace bamquery

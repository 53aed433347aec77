// Addresses for a device, from the ranges that the kernel allows.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "driver/native/nvme/nvme_device.hpp"

namespace bamquery {

/// Pages, with a page between any two allocations that nothing is mapped at: a device that goes beyond the
/// end of one is stopped. Not for several threads at once.
class IovaAllocator {
 public:
  /// `ranges` in order, without overlaps. Neither the first page, as 0 means no address, nor the window of
  /// x86's message-signalled interrupts (FEE00000h to FEEFFFFFh) is given out, whatever they say.
  explicit IovaAllocator(const std::vector<IovaRange>& ranges);

  /// The lowest run of free pages for so many bytes. From 2 MiB on it lies in its large pages as `like` does,
  /// so that the IOMMU can use large pages, too. 0: there is none.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t like);

  /// `bytes` as they were asked for.
  void release(std::uint64_t iova, std::uint64_t bytes);

  std::uint64_t free_bytes() const;

 private:
  void add(std::uint64_t first, std::uint64_t end);

  std::map<std::uint64_t, std::uint64_t> free_;  ///< First to end of each run of free pages.
};

}  // namespace bamquery

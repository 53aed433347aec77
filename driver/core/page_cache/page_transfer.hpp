// Pages on their way between the cache and the landing buffers of a queue pair.
#pragma once

#include "driver/core/nvme.hpp"
#include "driver/core/page_cache/page_cache_view.hpp"
#include "driver/core/platform.hpp"
#include "driver/core/queues/drive_queues.hpp"
#include "driver/core/queues/queue_pair.hpp"

namespace bamquery {

/// One lane's page to read or write.
struct PageTransfer {
  bool wanted;  ///< Lanes that have none take part in the others' copies.
  Request request;
  byte* page;
  uint32_t bytes;  ///< A multiple of 512.
};

/// What to ask for to move a page, in the LBAs of its drive.
template <typename Queue>
BAMQUERY_CORE Request page_request(Opcode opcode, const PageId& page, const PageCacheView& view,
                                   const Queue& queue) {
  uint32_t lba_bytes = view.block_bytes;
  if constexpr (kOfDrives<Queue>) lba_bytes = queue.lba_bytes(page.drive);
  return {opcode, page.nsid, page.number * (view.page_bytes / lba_bytes),
          page.blocks / (lba_bytes / view.block_bytes), page.drive};
}

/// Copies with all lanes of the group, 16 bytes each.
template <typename Group>
BAMQUERY_CORE void copy_page(Group group, byte* to, const byte* from, uint32_t bytes) {
  constexpr uint32_t kAtOnce = 8;  // Loads in flight for each lane: they may have to cross PCIe.
  const uint32_t stride = 16 * group.count();
  for (uint32_t at = 16 * group.rank(); at < bytes; at += kAtOnce * stride) {
    Vector vectors[kAtOnce];
    BAMQUERY_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (at + i * stride < bytes) vectors[i] = load_vector(from + at + i * stride);
    }
    BAMQUERY_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (at + i * stride < bytes) store_vector(to + at + i * stride, vectors[i]);
    }
  }
}

/// Copies the page of each lane that says so, one after another, with all lanes of the group.
template <typename Group>
BAMQUERY_CORE void copy_pages(Group group, bool copies, byte* to, const byte* from, uint32_t bytes) {
  for (uint32_t left = group.ballot(copies); left != 0; left &= left - 1) {
    const uint32_t lane = lowest_bit(left);
    const auto target = group.broadcast(reinterpret_cast<uint64_t>(to), lane);
    const auto source = group.broadcast(reinterpret_cast<uint64_t>(from), lane);
    copy_page(group, reinterpret_cast<byte*>(target), reinterpret_cast<const byte*>(source),
              group.broadcast(bytes, lane));
  }
  group.sync();  // The bytes are to be seen by the lane that says they are there.
}

/// A wait's share of the work. Apart, since the code of a sweep is long.
template <typename Group, typename Queue>
BAMQUERY_CORE_SLOW void sweep(Group group, Queue& queue) {
  queue.sweep(group);
}

// What all lanes do at a drive, those with `mine` for themselves. (No lambdas: NVRTC before CUDA 13.1 takes
// generic ones for functions of the host.)
template <typename Group>
struct IssueOfLanes {
  Group group;
  uint32_t slot;
  const Request& request;
  Status& moved;

  template <typename Queue>
  BAMQUERY_CORE void operator()(Queue& queue, bool mine) const {
    const Status issued = queue.issue(group, mine, slot, request);
    if (mine) moved = issued;
  }
};

template <typename Group>
struct WaitOfLanes {
  Group group;
  uint32_t slot;
  Deadline deadline;
  Status& moved;

  template <typename Queue>
  BAMQUERY_CORE void operator()(Queue& queue, bool mine) const {
    const Status ended = queue.wait(group, mine, slot, deadline);
    if (mine) moved = ended;
  }
};

/// Reads or writes each lane's page; returns how the lane's own went. All lanes of the group call.
///
/// `Queue` is a QueuePair, or has its acquire_slot, landing, issue, wait, release_slot and sweep, or such
/// ones of several drives. Lanes take the command slots that are free and do as many transfers at once, of
/// all drives: none waits for a slot while another of the group holds one, so any number of slots will do for
/// any number of lanes.
template <typename Group, typename Queue>
BAMQUERY_CORE Status transfer_pages(Group group, const PageTransfer& transfer, Queue& queue,
                                    Deadline deadline) {
  Status status = status::kSuccess;
  bool pending = transfer.wanted;
  const bool writes = transfer.request.opcode == Opcode::kWrite;
  for (Backoff wait; group.any(pending);) {
    uint32_t slot = 0;
    bool holds = false;
    if (pending) {
      status = queue_of(queue, transfer.request.drive).acquire_slot(Deadline{0}, slot);  // One look.
      holds = status.ok();
      if (!holds && (!(status == status::kNoSlot) || deadline.passed())) pending = false;
    }
    if (!group.any(holds)) {
      if (group.any(pending)) sweep(group, queue);
      wait.pause();
      continue;
    }
    byte* const landing = holds ? queue_of(queue, transfer.request.drive).landing(slot) : nullptr;
    copy_pages(group, holds && writes, landing, transfer.page, transfer.bytes);
    Status moved = status::kSuccess;
    for_each_drive(group, queue, holds, transfer.request.drive,
                   IssueOfLanes<Group>{group, slot, transfer.request, moved});
    for_each_drive(group, queue, holds && moved.ok(), transfer.request.drive,
                   WaitOfLanes<Group>{group, slot, deadline, moved});
    const bool lost = holds && loses_slot(moved);
    if (holds) {
      pending = false;
      status = moved;
    }
    group.sync();  // What each lane acquired with its command is to be seen by all.
    copy_pages(group, holds && status.ok() && !writes, transfer.page, landing, transfer.bytes);
    if (holds && !lost) queue_of(queue, transfer.request.drive).release_slot(slot);
  }
  return status;
}

}  // namespace bamquery

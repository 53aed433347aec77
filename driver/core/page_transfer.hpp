// Pages on their way between the cache and the landing buffers of a queue pair.
#pragma once

#include "nvme.hpp"
#include "platform.hpp"
#include "queue_pair.hpp"

namespace bamquery {

/// One lane's page to read or write.
struct PageTransfer {
  bool wanted;  ///< Lanes that have none take part in the others' copies.
  Request request;
  byte* page;
  uint32_t bytes;  ///< A multiple of 512.
};

/// Copies with all lanes of the group, 16 bytes each.
BAMQUERY_CORE void copy_page(Lanes group, byte* to, const byte* from, uint32_t bytes) {
  const uint32_t stride = 16 * group.count();
  for (uint32_t at = 16 * group.rank(); at < bytes; at += stride) copy_vector(to + at, from + at);
}

/// Copies the page of each lane that says so, one after another, with all lanes of the group.
BAMQUERY_CORE void copy_pages(Lanes group, bool copies, byte* to, const byte* from, uint32_t bytes) {
  for (uint32_t left = group.ballot(copies); left != 0; left &= left - 1) {
    const uint32_t lane = Lanes{left}.leader();
    const auto target = group.broadcast(reinterpret_cast<uint64_t>(to), lane);
    const auto source = group.broadcast(reinterpret_cast<uint64_t>(from), lane);
    copy_page(group, reinterpret_cast<byte*>(target), reinterpret_cast<const byte*>(source),
              group.broadcast(bytes, lane));
  }
  group.sync();  // The bytes are to be seen by the lane that says they are there.
}

/// A wait's share of the work. Apart, since the code of a sweep is long.
template <typename Queue>
BAMQUERY_CORE_SLOW void sweep(Queue& queue) {
  queue.sweep();
}

/// Reads or writes each lane's page; returns how the lane's own went. All lanes of the group call.
///
/// `Queue` is a QueuePair, or has its acquire_slot, landing, issue, wait, release_slot and sweep. Lanes take
/// the command slots that are free and do as many transfers at once: none waits for a slot while another of
/// the group holds one, so any number of slots will do for any number of lanes.
template <typename Queue>
BAMQUERY_CORE Status transfer_pages(Lanes group, const PageTransfer& transfer, Queue& queue,
                                    Deadline deadline) {
  Status status = status::kSuccess;
  bool pending = transfer.wanted;
  const bool writes = transfer.request.opcode == Opcode::kWrite;
  for (Backoff wait; group.any(pending);) {
    uint32_t slot = 0;
    bool holds = false;
    if (pending) {
      status = queue.acquire_slot(Deadline{0}, slot);  // One look.
      holds = status.ok();
      if (!holds && (!(status == status::kNoSlot) || deadline.passed())) pending = false;
    }
    if (!group.any(holds)) {
      if (pending) sweep(queue);
      wait.pause();
      continue;
    }
    byte* const landing = holds ? queue.landing(slot) : nullptr;
    copy_pages(group, holds && writes, landing, transfer.page, transfer.bytes);
    bool lost = false;
    if (holds) {
      pending = false;
      status = queue.issue(slot, transfer.request);
      if (status.ok()) {
        status = queue.wait(slot, deadline);
        lost = loses_slot(status);
      }
    }
    group.sync();
    copy_pages(group, holds && status.ok() && !writes, transfer.page, landing, transfer.bytes);
    if (holds && !lost) queue.release_slot(slot);
  }
  return status;
}

}  // namespace bamquery

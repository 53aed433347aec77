#include "tests/native/conformance/nvme_backend.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "driver/native/nvme/vfio/open_device.hpp"

namespace bamquery::conformance {
namespace {

class NvmeSession final : public Session {
 public:
  NvmeSession(const std::shared_ptr<NvmeDrive>& drive, const QueueShape& shape, DoorbellKind doorbells)
      : memory_(shape), controller_(drive, memory_, doorbells) {}

  QueueMemory& memory() override { return memory_; }
  Controller& controller() override { return controller_; }

 private:
  QueueMemory memory_;
  NvmeController controller_;
};

class NvmeBackend final : public Backend {
 public:
  explicit NvmeBackend(const NvmeOptions& options) : options_(options) {
    DriveOptions opening;
    opening.writable = options.writable;
    drive_ = NvmeDrive::open(vfio::open_device(options.address), opening);
    for (const NamespaceData& each : drive_->namespaces()) {
      if (!each.refusal.empty()) continue;
      if (options.block_bytes != 0 && each.block_bytes != options.block_bytes) continue;
      Space space;
      space.nsid = each.nsid;
      space.block_bytes = each.block_bytes;
      space.blocks = each.blocks;
      space.writable = options.writable && !each.write_protected;
      space.contents = options.contents;
      space.patterned = std::min(options.patterned_bytes / each.block_bytes, each.blocks);
      spaces_.push_back(space);
    }
    if (spaces_.empty()) throw std::invalid_argument(drive_->name() + " has no namespace to be checked");
  }

  Limits limits() const override {
    const DriveLimits& drive = drive_->limits();
    Limits limits;
    limits.depth = std::min(limits.depth, drive.queue_depth);
    limits.pairs = std::min(limits.pairs, drive.queue_pairs);
    limits.transfer_bytes = std::min(limits.transfer_bytes, drive.transfer_bytes);
    return limits;
  }

  std::vector<Space> spaces() const override { return spaces_; }

  std::unique_ptr<Session> open(const QueueShape& shape) override {
    QueueShape wanted = shape;
    wanted.doorbell_stride = drive_->limits().doorbell_stride;
    return std::make_unique<NvmeSession>(drive_, wanted, options_.doorbells);
  }

 private:
  NvmeOptions options_;
  std::shared_ptr<NvmeDrive> drive_;
  std::vector<Space> spaces_;
};

}  // namespace

std::unique_ptr<Backend> make_nvme_backend(const NvmeOptions& options) {
  return std::make_unique<NvmeBackend>(options);
}

}  // namespace bamquery::conformance

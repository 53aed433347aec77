// A drive serves rings that lie in memory of another device, whose other end is the host's: nothing in the
// guest issues a command, it passes doorbells on. Arguments: addresses of the drive and of the memory's
// device; leased pairs, shared pairs, their depth, bytes of a slot; seconds that the host may take.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "check.hpp"
#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/nvme/vfio/open_device.hpp"
#include "shared_rings.hpp"

namespace {

using namespace bamquery;
using guests::check;
using guests::SharedRings;
using guests::Stage;

// The device's memory as this process sees it.
std::span<std::byte> device_memory(const std::string& address) {
  const std::string folder = "/sys/bus/pci/devices/" + address;
  const int enable = open((folder + "/enable").c_str(), O_WRONLY);
  if (enable < 0 || write(enable, "1", 1) != 1) return {};
  close(enable);
  const int file = open((folder + "/resource2").c_str(), O_RDWR);
  struct stat about{};
  if (file < 0 || fstat(file, &about) != 0) return {};
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return {};
  return {static_cast<std::byte*>(mapped), size};
}

int serve(const char* drive_address, const char* memory_address, const QueueShape& shape, int patience) {
  const std::span<std::byte> memory = device_memory(memory_address);
  if (!check(memory.size() >= SharedRings::kPage + QueueMemory::bytes(shape), "memory",
             "%zu bytes that the host sees", memory.size())) {
    return 1;
  }
  const std::shared_ptr<NvmeDrive> drive = NvmeDrive::open(vfio::open_device(drive_address));
  QueueMemory queues(shape, memory.subspan(SharedRings::kPage));
  NvmeController controller(drive, queues, DoorbellKind::kForwarded);
  const Controller::Activity activity = controller.activity();
  const auto space = controller.shape_of(1);
  if (!check(space.has_value(), "served", "%s", controller.doorbell_text().c_str())) return 1;

  SharedRings& rings = guests::shared_rings(memory.data());
  rings.nsid = space->nsid;
  rings.shape = shape;
  rings.bus = queues.bus(queues.address());
  rings.queue = controller.first_queue();
  rings.blocks = space->blocks;
  Stage before = Stage::kNothing;  // The host may have given up already: then it is done.
  rings.stage.compare_exchange_strong(before, Stage::kServed, std::memory_order_acq_rel);
  const bool done = guests::await(rings, Stage::kDone, patience);
  check(done, "done", "the host said so, after %llu doorbells",
        static_cast<unsigned long long>(controller.doorbell_writes().value_or(0)));
  check(controller.stop(Deadline::in(5'000'000'000)), "stopped", "queue pairs are deleted");
  return done ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 8) return 2;
  const auto number = [&](int place) {
    return static_cast<std::uint32_t>(std::strtoul(arguments[place], nullptr, 10));
  };
  QueueShape shape;
  shape.leased_pairs = number(3);
  shape.shared_pairs = number(4);
  shape.depth = number(5);
  shape.slots = shape.depth - 1;
  shape.slot_bytes = number(6);
  try {
    return serve(arguments[1], arguments[2], shape, static_cast<int>(number(7)));
  } catch (const std::exception& error) {
    check(false, "served", "%s", error.what());
    return 1;
  }
}

// Arrays over 1, 2 and 4 drives as one address space. Arguments: what to do, then the drives' addresses.
//   checks   gathers, and scatters with write-back under eviction, as in plain memory; the drives are written
//   faults   a drive that fails in the middle of a gather is named, the others go on; so is one that fails in
//            the middle of a scatter, whose other pages are written
//   rates    4 KiB reads in a second, by number of drives

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "check.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/nvme/nvme_controller.hpp"
#include "driver/native/nvme/vfio/open_device.hpp"
#include "driver/native/page_cache/cpu_array.hpp"
#include "pattern.hpp"

namespace {

using namespace bamquery;
using guests::check;

constexpr std::uint32_t kPageBytes = 4096;
constexpr std::uint64_t kTimeoutNs = 20'000'000'000;

// A drive and its queue pairs.
class Served {
 public:
  Served(const std::string& address, bool writable)
      : drive_(NvmeDrive::open(vfio::open_device(address), {.writable = writable})),
        memory_(shape_of(*drive_)),
        controller_(drive_, memory_) {}

  CpuPageCache::Source source() { return {&memory_, &controller_}; }
  std::uint32_t lba_bytes() const { return memory_.shape().block_bytes; }

 private:
  static QueueShape shape_of(const NvmeDrive& drive) {
    QueueShape shape{
        .leased_pairs = 0, .shared_pairs = 2, .depth = 64, .slots = 63, .slot_bytes = kPageBytes};
    shape.block_bytes = drive.namespaces().at(0).block_bytes;
    shape.doorbell_stride = drive.limits().doorbell_stride;
    return shape;
  }

  std::shared_ptr<NvmeDrive> drive_;
  QueueMemory memory_;
  NvmeController controller_;
};

// An address space of the first `count` drives.
class Space {
 public:
  Space(const std::vector<std::string>& addresses, std::uint32_t count, std::uint32_t pages, bool writable) {
    for (std::uint32_t i = 0; i < count; ++i) {
      drives_.push_back(std::make_unique<Served>(addresses[i], writable));
      sources_.push_back(drives_.back()->source());
      members_.push_back({i, 1});
    }
    cache_ = std::make_shared<CpuPageCache>(sources_, pages, kPageBytes);
  }

  CpuArray array(std::uint64_t count, bool writable) const {
    return {cache_, {members_, kStripeBytes, 0}, count, sizeof(std::uint64_t), writable, kTimeoutNs};
  }
  std::uint32_t drives() const { return static_cast<std::uint32_t>(drives_.size()); }

  // What word `index` of the address space is, as the images have it.
  std::uint64_t word(std::uint64_t index) const {
    const std::uint64_t at = index * sizeof(std::uint64_t);
    const std::uint64_t stripe = at / kStripeBytes;
    const std::uint64_t drive = stripe % drives();
    const std::uint64_t within = stripe / drives() * kStripeBytes + at % kStripeBytes;
    const std::uint32_t lba_bytes = drives_[drive]->lba_bytes();
    return guests::pattern(drive, within / lba_bytes, within % lba_bytes / sizeof(std::uint64_t));
  }
  std::shared_ptr<CpuPageCache> cache() const { return cache_; }

  static constexpr std::uint64_t kStripeBytes = 4 * kPageBytes;

 private:
  std::vector<std::unique_ptr<Served>> drives_;
  std::vector<CpuPageCache::Source> sources_;
  std::vector<StripeMember> members_;
  std::shared_ptr<CpuPageCache> cache_;
};

std::vector<std::int64_t> places(std::uint64_t count, std::size_t wanted, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> found(wanted);
  for (std::int64_t& place : found) place = static_cast<std::int64_t>(random() % count);
  return found;
}

std::span<std::byte> bytes_of(std::vector<std::uint64_t>& words) {
  return std::as_writable_bytes(std::span(words));
}

constexpr std::uint64_t kWords = 512 * 1024;  // 4 MiB, of which the cache has a sixteenth.

void check_gathers(const std::vector<std::string>& addresses, std::uint32_t count) {
  const Space space(addresses, count, 64, false);
  const CpuArray array = space.array(kWords, false);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto wanted = places(kWords, 2000, thread);
      std::vector<std::uint64_t> found(wanted.size());
      try {
        array.gather(wanted, bytes_of(found));
      } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        ++wrong;
      }
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i] != space.word(static_cast<std::uint64_t>(wanted[i]))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string name = "gathers-" + std::to_string(count);
  check(wrong == 0, name.c_str(), "8,000 words by 4 threads, %llu wrong, %llu pages read",
        static_cast<unsigned long long>(wrong),
        static_cast<unsigned long long>(space.cache()->statistics().misses));
}

void check_scatters(const std::vector<std::string>& addresses, std::uint32_t count) {
  std::vector<std::uint64_t> model(kWords / 4);
  {
    const Space space(addresses, count, 64, true);
    const CpuArray array = space.array(model.size(), true);
    array.read(0, bytes_of(model));
    for (std::uint32_t turn = 0; turn < 4; ++turn) {
      const auto wanted = places(model.size(), 2000, 100 * count + turn);
      std::vector<std::uint64_t> values(wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        values[i] = wanted[i] * 1000 + turn;
        model[static_cast<std::size_t>(wanted[i])] = values[i];
      }
      array.scatter(wanted, bytes_of(values));
    }
    array.flush(Deadline::in(kTimeoutNs));
  }
  // By other queue pairs, of drives that were opened anew.
  const Space again(addresses, count, 64, false);
  std::vector<std::uint64_t> found(model.size());
  again.array(model.size(), false).read(0, bytes_of(found));
  const std::string name = "scatters-" + std::to_string(count);
  check(found == model, name.c_str(), "8,000 words, evicted and flushed, read back as in memory");
}

void check_faults(const std::vector<std::string>& addresses) {
  // Drive 1 reads no block of its second MiB.
  const Space space(addresses, 2, 64, false);
  const CpuArray array = space.array(kWords * 2, false);
  std::uint64_t named = 0, good = 0, wrong = 0;
  std::string text;
  for (const std::int64_t place : places(kWords * 2, 3000, 7)) {
    const std::uint64_t at = static_cast<std::uint64_t>(place) * sizeof(std::uint64_t);
    const std::uint64_t stripe = at / Space::kStripeBytes;
    const std::uint64_t within = stripe / space.drives() * Space::kStripeBytes + at % Space::kStripeBytes;
    const bool broken = stripe % space.drives() == 1 && within >> 20 == 1;
    std::vector<std::uint64_t> found(1);
    try {
      array.gather(std::span(&place, 1), bytes_of(found));
      ++good;
      if (broken || found[0] != space.word(static_cast<std::uint64_t>(place))) ++wrong;
    } catch (const NvmeError& error) {
      ++named;
      text = error.path() + ": " + error.what();
      if (!broken || error.drive() != 1 || error.status().code != 0x281) ++wrong;
    }
  }
  check(named > 0 && good > 0 && wrong == 0, "faults", "%llu reads failed, %llu went well, %llu wrong; %s",
        static_cast<unsigned long long>(named), static_cast<unsigned long long>(good),
        static_cast<unsigned long long>(wrong), text.c_str());
}

void check_write_faults(const std::vector<std::string>& addresses) {
  // Drive 1 writes no block of its second MiB; a page in eight lies there.
  const std::uint64_t count = 4 * kWords;
  std::vector<std::uint64_t> model(count);
  std::uint64_t failures = 0, wrong = 0;
  std::string text;
  {
    const Space space(addresses, 2, 1024, true);  // all that is written stays until it is flushed
    const CpuArray array = space.array(count, true);
    array.read(0, bytes_of(model));
    for (std::uint64_t page = 0; page < 400; ++page) {
      const auto place = static_cast<std::int64_t>(page * 9 * (kPageBytes / sizeof(std::uint64_t)) % count);
      const std::uint64_t at = static_cast<std::uint64_t>(place) * sizeof(std::uint64_t);
      const std::uint64_t stripe = at / Space::kStripeBytes;
      std::vector<std::uint64_t> value{page + 1};
      array.scatter(std::span(&place, 1), bytes_of(value));
      if (stripe % 2 == 0 || (stripe / 2 * Space::kStripeBytes) >> 20 != 1) {
        model[static_cast<std::size_t>(place)] = page + 1;
      }
    }
    for (std::uint32_t turn = 0; turn < 2; ++turn) {  // what was not written stays to be written
      try {
        array.flush(Deadline::in(kTimeoutNs));
      } catch (const NvmeError& error) {
        ++failures;
        text = error.path() + ": " + error.what();
        if (error.drive() != 1 || error.status().code != 0x280) ++wrong;
      }
    }
  }
  const Space again({addresses[0], addresses[1]}, 2, 64, false);
  std::vector<std::uint64_t> found(count);
  again.array(count, false).read(0, bytes_of(found));
  for (std::uint64_t i = 0; i < count; ++i) wrong += found[i] != model[i];
  check(failures == 2 && wrong == 0, "write-faults",
        "%llu of 2 flushes failed, %llu wrong, what can be written is there; %s",
        static_cast<unsigned long long>(failures), static_cast<unsigned long long>(wrong), text.c_str());
}

// Reads of pages that are not there, by as many threads as keep all drives at work.
double rate(const std::vector<std::string>& addresses, std::uint32_t count) {
  const Space space(addresses, count, 16, false);
  const CpuArray array = space.array(2 * 1024 * 1024, false);
  std::atomic<std::uint64_t> reads{0};
  const std::uint64_t end = now_ns() + 3'000'000'000;
  const std::uint64_t begin = now_ns();
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      std::vector<std::uint64_t> word(1);
      while (now_ns() < end) {
        const auto place = static_cast<std::int64_t>(random() % array.count());
        array.gather(std::span(&place, 1), bytes_of(word));
        ++reads;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t missed = space.cache()->statistics().misses;
  return static_cast<double>(missed) * 1e9 / static_cast<double>(now_ns() - begin);
}

void show_rates(const std::vector<std::string>& addresses) {
  const double one = rate(addresses, 1);
  for (const std::uint32_t count : {2u, 4u}) {
    const double many = rate(addresses, count);
    const std::string name = "rate-" + std::to_string(count);
    check(many > 0, name.c_str(), "%.0f reads a second of %u drives, %.0f of one: %.2f times as many", many,
          count, one, many / one);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::string_view what = arguments[1];
  const std::vector<std::string> addresses(arguments + 2, arguments + count);
  try {
    if (what == "checks") {
      // All of them before anything is written.
      for (const std::uint32_t drives : {1u, 2u, 4u}) check_gathers(addresses, drives);
      for (const std::uint32_t drives : {1u, 2u, 4u}) check_scatters(addresses, drives);
    } else if (what == "faults") {
      check_faults({addresses.at(0), addresses.at(1)});
      check_write_faults({addresses.at(0), addresses.at(2)});
    } else {
      show_rates(addresses);
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}

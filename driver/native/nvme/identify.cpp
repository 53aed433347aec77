#include "driver/native/nvme/identify.hpp"

#include <cstring>
#include <stdexcept>

namespace bamquery {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kDescriptorBytes = 4;      // Before what a descriptor says.
constexpr std::uint8_t kCommandSetDescriptor = 4;  // CSI

template <typename T>
T field(std::span<const std::byte> page, std::size_t at) {
  T value;
  std::memcpy(&value, page.subspan(at, sizeof value).data(), sizeof value);
  return value;
}

void require_page(std::span<const std::byte> page) {
  if (page.size() < kPage) throw std::invalid_argument("identify data are a page");
}

// ASCII, padded with spaces; what is neither is shown as '?', since it goes to terminals and JSON.
std::string text(std::span<const std::byte> page, std::size_t at, std::size_t size) {
  std::string found;
  for (const std::byte each : page.subspan(at, size)) {
    const auto character = static_cast<char>(each);
    if (character == 0) break;
    found += character >= ' ' && character <= '~' ? character : '?';
  }
  const std::size_t first = found.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return found.substr(first, found.find_last_not_of(' ') - first + 1);
}

}  // namespace

ControllerData ControllerData::parse(std::span<const std::byte> page) {
  require_page(page);
  ControllerData found;
  found.vendor = field<std::uint16_t>(page, 0);
  found.serial = text(page, 4, 20);
  found.model = text(page, 24, 40);
  found.firmware = text(page, 64, 8);
  found.transfer_shift = field<std::uint8_t>(page, 77);
  found.controller_id = field<std::uint16_t>(page, 78);
  found.version = field<std::uint32_t>(page, 80);
  found.has_doorbell_buffers = (field<std::uint16_t>(page, 256) >> 8 & 1) != 0;
  const auto submission_sizes = field<std::uint8_t>(page, 512),
             completion_sizes = field<std::uint8_t>(page, 513);
  found.namespace_count = field<std::uint32_t>(page, 516);
  found.has_volatile_cache = (field<std::uint8_t>(page, 525) & 1) != 0;
  // SQES and CQES: the least and the most that an entry's size may be, as powers of two.
  const auto allows = [](std::uint8_t sizes, std::uint8_t wanted) {
    return (sizes & 0xf) <= wanted && sizes >> 4 >= wanted;
  };
  if (!allows(submission_sizes, 6) || !allows(completion_sizes, 4)) {
    found.refusal = "it does not take entries of 64 and 16 bytes (SQES " + std::to_string(submission_sizes) +
                    ", CQES " + std::to_string(completion_sizes) + ")";
  } else if (const auto kind = field<std::uint8_t>(page, 111); kind > 1) {
    // CNTRLTYPE: 0 is not reported, 1 is an I/O controller.
    found.refusal = kind == 2 ? "it is a discovery controller" : "it is a controller for administration only";
  }
  return found;
}

NamespaceData NamespaceData::parse(std::uint32_t nsid, std::span<const std::byte> page) {
  require_page(page);
  NamespaceData found;
  found.nsid = nsid;
  found.blocks = field<std::uint64_t>(page, 0);
  found.capacity_blocks = field<std::uint64_t>(page, 8);
  const auto formats = field<std::uint8_t>(page, 25);    // NLBAF, less one
  const auto formatted = field<std::uint8_t>(page, 26);  // FLBAS
  const std::uint32_t format = (formatted & 0xfu) | (formatted >> 5 & 3u) << 4;
  found.protection = field<std::uint8_t>(page, 29) & 7;                         // DPS
  found.write_protected = (field<std::uint8_t>(page, 99) & 1) != 0;             // NSATTR
  const auto word = field<std::uint32_t>(page, 128 + 4 * std::size_t{format});  // LBAF: 64 of them at most
  found.metadata_bytes = word & 0xffff;
  const std::uint32_t shift = word >> 16 & 0xff;
  const bool sized = format <= formats && shift >= 9 && shift <= 31;
  found.block_bytes = sized ? 1u << shift : 0;

  if (found.blocks == 0) {
    found.refusal = "it has no blocks";
  } else if (!sized) {
    found.refusal = "it says that it has format " + std::to_string(format) + " of " +
                    std::to_string(formats + 1) + ", with blocks of 2^" + std::to_string(shift) + " bytes";
  } else if (found.block_bytes != 512 && found.block_bytes != 4096) {
    found.refusal = "its blocks have " + std::to_string(found.block_bytes) + " bytes, not 512 or 4096";
  } else if (found.protection != 0) {
    found.refusal = "it has protection information of type " + std::to_string(found.protection);
  } else if (found.metadata_bytes != 0) {
    found.refusal = "it has " + std::to_string(found.metadata_bytes) + " bytes of metadata beside each block";
  } else if (found.blocks > ~std::uint64_t{0} / found.block_bytes) {
    found.refusal = "it says that it has " + std::to_string(found.blocks) + " blocks, more than can be";
  }
  return found;
}

std::uint8_t command_set(std::span<const std::byte> descriptors) {
  require_page(descriptors);
  for (std::size_t at = 0; at + kDescriptorBytes < kPage;) {
    const auto kind = field<std::uint8_t>(descriptors, at);
    const std::size_t length = field<std::uint8_t>(descriptors, at + 1);
    if (kind == 0 || length == 0) break;
    if (kind == kCommandSetDescriptor) return field<std::uint8_t>(descriptors, at + kDescriptorBytes);
    at += kDescriptorBytes + length;
  }
  return 0;
}

std::vector<std::uint32_t> namespace_numbers(std::span<const std::byte> page, std::uint32_t after) {
  require_page(page);
  std::vector<std::uint32_t> found;
  for (std::size_t at = 0; at < kPage; at += sizeof(std::uint32_t)) {
    const auto number = field<std::uint32_t>(page, at);
    if (number <= after) break;  // 0 ends the list
    found.push_back(number);
    after = number;
  }
  return found;
}

}  // namespace bamquery

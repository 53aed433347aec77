#include "driver/native/nvme/identify.hpp"

#include <cstring>
#include <random>
#include <vector>

#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

using Page = std::vector<std::byte>;

template <typename T>
void put(Page& page, std::size_t at, T value) {
  std::memcpy(page.data() + at, &value, sizeof value);
}

Page good_namespace() {
  Page page(4096);
  put<std::uint64_t>(page, 0, 1000);
  put<std::uint8_t>(page, 130, 12);
  return page;
}

Page good_controller() {
  Page page(4096);
  put<std::uint8_t>(page, 512, 0x66);
  put<std::uint8_t>(page, 513, 0x44);
  return page;
}

std::string refused(const Page& page) { return NamespaceData::parse(1, page).refusal; }

void test_namespaces() {
  Page page = good_namespace();
  CHECK(refused(page).empty() && NamespaceData::parse(1, page).block_bytes == 4096);
  put<std::uint64_t>(page, 0, 0);
  CHECK(says(refused(page), "no blocks"));
  for (const int shift : {0, 8, 10, 13, 31, 40, 255}) {
    page = good_namespace();
    put(page, 130, static_cast<std::uint8_t>(shift));
    CHECK(!refused(page).empty());
  }
  page = good_namespace();
  put<std::uint16_t>(page, 128, 8);
  CHECK(says(refused(page), "8 bytes of metadata"));
  put<std::uint8_t>(page, 29, 1);
  CHECK(says(refused(page), "protection information of type 1"));
  page = good_namespace();
  put<std::uint64_t>(page, 0, ~0ull);
  CHECK(says(refused(page), "more than can be"));
  page = good_namespace();
  put<std::uint8_t>(page, 26, 3);  // a format that it does not have
  CHECK(!refused(page).empty());
  put<std::uint8_t>(page, 99, 1);
  CHECK(NamespaceData::parse(1, page).write_protected);
}

// Bits 6:5 of FLBAS are above bits 3:0; bit 4 says where metadata are.
void test_many_formats() {
  Page page = good_namespace();
  put<std::uint8_t>(page, 25, 63);
  put<std::uint8_t>(page, 26, 0x5 | 1 << 4 | 2 << 5);
  put<std::uint8_t>(page, 130, 9);
  put<std::uint8_t>(page, 128 + 4 * 37 + 2, 12);
  CHECK(refused(page).empty() && NamespaceData::parse(1, page).block_bytes == 4096);
}

void test_controllers() {
  Page page = good_controller();
  std::memcpy(page.data() + 4, "  A1\n\x80 Z            ", 20);
  CHECK(ControllerData::parse(page).serial == "A1?? Z");
  CHECK(ControllerData::parse(page).refusal.empty());
  put<std::uint8_t>(page, 512, 0x77);
  CHECK(says(ControllerData::parse(page).refusal, "entries of 64"));
  page = good_controller();
  put<std::uint8_t>(page, 111, 2);
  CHECK(says(ControllerData::parse(page).refusal, "discovery"));
}

void test_lists() {
  Page page(4096);
  put<std::uint32_t>(page, 0, 1);
  put<std::uint32_t>(page, 4, 7);
  put<std::uint32_t>(page, 8, 7);  // does not rise
  CHECK((namespace_numbers(page, 0) == std::vector<std::uint32_t>{1, 7}));
  CHECK(namespace_numbers(page, 1).empty());
  Page descriptors(4096);
  CHECK(command_set(descriptors) == 0);
  descriptors[0] = std::byte{1};  // EUI-64
  descriptors[1] = std::byte{8};
  descriptors[12] = std::byte{4};  // CSI
  descriptors[13] = std::byte{1};
  descriptors[16] = std::byte{2};
  CHECK(command_set(descriptors) == 2);
  for (std::byte& each : descriptors) each = std::byte{0xff};
  CHECK(command_set(descriptors) == 0);
}

void test_random_pages() {
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    Page page = i % 2 == 0 ? good_namespace() : Page(4096);
    const std::size_t changes = i % 3 == 0 ? 4096 : random() % 64;
    for (std::size_t change = 0; change < changes; ++change)
      page[random() % 4096] = static_cast<std::byte>(random());
    const NamespaceData found = NamespaceData::parse(1, page);
    if (found.refusal.empty()) {
      CHECK((found.block_bytes == 512 || found.block_bytes == 4096) && found.blocks != 0);
      CHECK(found.blocks * found.block_bytes / found.block_bytes == found.blocks &&
            found.metadata_bytes == 0);
    }
    const ControllerData controller = ControllerData::parse(page);
    for (const char each : controller.model) CHECK(each >= ' ' && each <= '~');
    command_set(page);
    const auto numbers = namespace_numbers(page, static_cast<std::uint32_t>(random()));
    for (std::size_t at = 1; at < numbers.size(); ++at) CHECK(numbers[at] > numbers[at - 1]);
  }
}

}  // namespace

void test_identify() {
  test_namespaces();
  test_many_formats();
  test_controllers();
  test_lists();
  test_random_pages();
}

}  // namespace bamquery::test

// Whether a block device holds a drive's pattern: `compare DEVICE DRIVE LBA_BYTES BLOCKS`, its first and last
// blocks of as many. Prints what differs; the exit status says whether anything does.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "pattern.hpp"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const uint64_t drive = std::strtoull(argv[2], nullptr, 0), lba_bytes = std::strtoull(argv[3], nullptr, 0),
                 blocks = std::strtoull(argv[4], nullptr, 0), some = blocks < 2048 ? blocks : 2048;
  const int device = open(argv[1], O_RDONLY | O_CLOEXEC);
  std::vector<uint64_t> words(some * lba_bytes / 8);
  for (const uint64_t first : {uint64_t{0}, blocks - some}) {
    const ssize_t bytes =
        pread(device, words.data(), words.size() * 8, static_cast<off_t>(first * lba_bytes));
    if (bytes != static_cast<ssize_t>(words.size() * 8)) {
      std::printf("%s: %zd bytes read at LBA %llu\n", argv[1], bytes, static_cast<unsigned long long>(first));
      return 1;
    }
    for (size_t i = 0; i < words.size(); i++) {
      const uint64_t lba = first + i / (lba_bytes / 8), word = i % (lba_bytes / 8);
      if (words[i] != guests::pattern(drive, lba, word)) {
        std::printf("%s: word %llu of LBA %llu is %llx\n", argv[1], static_cast<unsigned long long>(word),
                    static_cast<unsigned long long>(lba), static_cast<unsigned long long>(words[i]));
        return 1;
      }
    }
  }
  return 0;
}

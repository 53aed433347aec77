// Ends the guest with a result that its QEMU returns: VALUE given, (VALUE << 1) | 1 returned.
// The port is that of `-device isa-debug-exit`; guests have no /dev/port for a shell to write to.
#include <sys/io.h>

#include <cstdlib>

int main(int argc, char** argv) {
  constexpr unsigned short port = 0xf4;
  if (argc != 2 || ioperm(port, 1, 1) != 0) return 1;
  outb(static_cast<unsigned char>(std::atoi(argv[1])), port);
  return 1;  // the guest would be gone by now
}

// A worker that does as the request says: the other end of worker_process_test.cpp.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "backends/worker/frame.hpp"

namespace attest {
namespace {

void send_raw(int fd, const std::string& bytes) {
  if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) _exit(9);
}

[[noreturn]] void sleep_forever() {
  while (true) pause();
}

/// A header with its first byte, its version or its length replaced.
std::string broken_header(const std::string& what) {
  std::string header = frame_header(4);
  if (what == "magic") header[0] = 'X';
  if (what == "version") header[4] = 99;
  if (what == "huge") header[15] = 0x7f;
  return header + "junk";
}

void obey(int fd, const std::string& request) {
  if (request == "segfault") {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would turn it into an exit status
    std::cerr << "about to crash" << '\n' << std::flush;
    kill(getpid(), SIGSEGV);
    sleep_forever();
  }
  if (request == "exit") _exit(3);
  if (request == "hang") sleep_forever();
  if (request == "close") {
    close(fd);
    sleep_forever();
  }
  if (request == "partial") {
    send_raw(fd, frame_header(100) + "half");
    _exit(0);
  }
  if (request == "grandchild") {
    const pid_t child = fork();
    if (child == 0) sleep_forever();
    write_frame(fd, std::to_string(child));
    return;
  }
  if (request == "noise") {
    for (int i = 0; i < 20000; ++i) std::cerr << "line " << i << " of far too many\n";
    std::cout << "and this went to stdout\n" << std::flush;
  }
  if (request == "alive" || request == "alive, then hang") {
    write_frame(fd, "~thinking");
    write_frame(fd, "~thinking hard");
    if (request != "alive") sleep_forever();
  }
  if (request == "shared") {  // its number stands before the socket's
    char byte = 0;
    if (pread(fd == 3 ? 5 : -1, &byte, 1, 0) != 1) _exit(4);
    write_frame(fd, std::string(1, byte));
    return;
  }
  if (request == "twice") write_frame(fd, "one more than was asked for");
  if (request == "magic" || request == "version" || request == "huge") {
    send_raw(fd, broken_header(request));
    sleep_forever();
  }
  write_frame(fd, "echo " + request);
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const int fd = std::atoi(argv[argc - 1]);
  while (const auto request = attest::read_frame(fd)) attest::obey(fd, *request);
  return 0;
}

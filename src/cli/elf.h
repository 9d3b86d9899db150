#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace spillway::cli {

// What the launch has to know of an ELF file. Nothing in the file is trusted; nothing in it is run.
struct ElfFile {
  int bits = 64;
  std::uint16_t machine = 0;        // e_machine
  bool executable = false;          // an entry point: a program, not only a library
  std::string interpreter;          // PT_INTERP, the dynamic loader; empty: static (or a library)
  std::vector<std::string> needed;  // DT_NEEDED, in order
};

// Of a 32-bit file, or one of the other byte order, only bits and machine are read.
// Bounds: 256 segments, 4096 dynamic entries, names of 4096 characters.
// Fails: by errno; unsupported: not an ELF file; corrupt: it is one, but what it says lies outside it.
Result<ElfFile> read_elf(const std::string& path);

}  // namespace spillway::cli

#include "cli/elf.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace spillway::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kPrograms = CLI_FIXTURES "/bin/";

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Reads an image as a file.
Result<ElfFile> read_image(const std::string& image) {
  const std::string path = testing::TempDir() + "spillway_elf_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << image;
  Result<ElfFile> file = read_elf(path);
  ::unlink(path.c_str());
  return file;
}

TEST(ReadElf, ADynamicProgramNamesItsLoaderAndLibraries) {
  const Result<ElfFile> file = read_elf(kPrograms + "program_mpich");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file.value().bits, 64);
  EXPECT_TRUE(file.value().executable);
  EXPECT_THAT(file.value().interpreter, HasSubstr("/ld"));
  EXPECT_THAT(file.value().needed, Contains("libmpi.so.12"));
}

TEST(ReadElf, AStaticProgramHasNoLoader) {
  const Result<ElfFile> file = read_elf(kPrograms + "program_static");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_THAT(file.value().interpreter, IsEmpty());
  EXPECT_THAT(file.value().needed, IsEmpty());
  EXPECT_EQ(file.value().machine, read_elf("/proc/self/exe").value().machine);
}

TEST(ReadElf, OnlyClassAndMachineAreReadOfA32BitProgram) {
  Elf32_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = EM_386;
  const Result<ElfFile> file = read_image({reinterpret_cast<const char*>(&header), sizeof header});
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file.value().bits, 32);
  EXPECT_EQ(file.value().machine, EM_386);
}

TEST(ReadElf, RefusesWhatIsNoElfFile) {
  EXPECT_EQ(read_image("#!/bin/sh\n").status().code(), Code::unsupported);
  EXPECT_EQ(read_image("").status().code(), Code::unsupported);
  EXPECT_EQ(read_elf("/nowhere/at/all").status().code(), Code::no_such_file);
}

TEST(ReadElf, ATruncatedFileIsDamagedOrShortButNeverRead) {
  const std::string image = content_of(kPrograms + "program_mpich");
  for (std::size_t size = 0; size < 4096 && size < image.size(); size += 7) {
    const Result<ElfFile> file = read_image(image.substr(0, size));
    if (!file.ok()) {
      EXPECT_THAT(file.status().what(), HasSubstr("ELF file")) << size;
    }
  }
}

TEST(ReadElf, DamagedHeadersAreRefusedOrHarmless) {
  const std::string image = content_of(kPrograms + "program_mpich");
  for (std::size_t at = EI_NIDENT; at < 0x400 && at < image.size(); ++at) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(~damaged[at]);
    const Result<ElfFile> file = read_image(damaged);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), Code::corrupt) << at;
    }
  }
}

}  // namespace
}  // namespace spillway::cli

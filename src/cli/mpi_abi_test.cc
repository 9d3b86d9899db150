#include "cli/mpi_abi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "cli/elf.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

TEST(AbiOfLibrary, KnowsTheNamesOfEachFamily) {
  for (const char* name : {"libmpi.so.12", "libmpich.so.12", "libmpi.so.12.3.1", "libmpi_cray.so.12",
                           "libmpi_gnu_123.so.12", "libmpich_gnu.so.12"}) {
    EXPECT_EQ(abi_of_library(name), MpiAbi::mpich) << name;
  }
  EXPECT_EQ(abi_of_library("libmpi.so.40"), MpiAbi::openmpi);
  EXPECT_EQ(abi_of_library("libmpi_abi.so.1"), MpiAbi::standard);
  EXPECT_EQ(abi_of_library("libmpi_abi.so.0"), MpiAbi::standard);
}

TEST(AbiOfLibrary, IgnoresBindingsAndOthers) {
  for (const char* name : {"libmpifort.so.12", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpi_cxx.so.40",
                           "libmpichcxx.so.12", "libmpichfort.so.12", "libhdf5.so.12", "libc.so.6", "", "libmpi"}) {
    EXPECT_EQ(abi_of_library(name), std::nullopt) << name;
  }
  EXPECT_TRUE(is_foreign_libmpi("libmpi.so.20"));
  EXPECT_TRUE(is_foreign_libmpi("libmpi.so"));
  EXPECT_FALSE(is_foreign_libmpi("libmpi.so.40"));
  EXPECT_FALSE(is_foreign_libmpi("libmpifort.so.12"));
}

TEST(AbiNames, ComeBack) {
  for (const MpiAbi abi : {MpiAbi::mpich, MpiAbi::openmpi, MpiAbi::standard}) {
    EXPECT_EQ(abi_of_name(name_of(abi)), abi);
    EXPECT_FALSE(title_of(abi).empty());
  }
  EXPECT_EQ(abi_of_name("lam"), std::nullopt);
}

TEST(ParseLoaderList, ReadsPathsAndGaps) {
  const std::vector<LinkedLibrary> libraries = parse_loader_list(
      "\tlinux-vdso.so.1 (0x00007f)\n\tlibmpi.so.12 => /a b/libmpi.so.12 (0x00007f8a)\n"
      "\tlibgone.so.1 => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\t/x/liby.so => /x/liby.so "
      "(0x1)\n");
  ASSERT_EQ(libraries.size(), 3U);
  EXPECT_EQ(libraries[0].soname, "libmpi.so.12");
  EXPECT_EQ(libraries[0].path, "/a b/libmpi.so.12");
  EXPECT_EQ(libraries[1].soname, "libgone.so.1");
  EXPECT_EQ(libraries[1].path, "");
  EXPECT_EQ(libraries[2].soname, "liby.so");
}

TEST(LinkedLibraries, FollowsLibrariesOfLibraries) {
  const std::string program = CLI_FIXTURES "/bin/program_solver";
  const ElfFile elf = read_elf(program).value();
  bool found = false;
  for (const LinkedLibrary& library : linked_libraries(program, elf.interpreter, elf.needed)) {
    if (library.soname == "libmpi.so.12") found = library.path.ends_with("/mpich/libmpi.so.12");
  }
  EXPECT_TRUE(found);
}

TEST(LinkedLibraries, WithoutALoaderTheProgramsOwnWordsCount) {
  const std::vector<LinkedLibrary> libraries = linked_libraries("/bin/true", "/bin/false", {"libmpi.so.40"});
  ASSERT_EQ(libraries.size(), 1U);
  EXPECT_EQ(libraries[0].soname, "libmpi.so.40");
  EXPECT_EQ(libraries[0].path, "");
}

class PreloadLibrary : public testing::Test {
 protected:
  ~PreloadLibrary() override { ::unsetenv("SPILLWAY_LIBDIR"); }
};

TEST_F(PreloadLibrary, IsFoundInTheDirectoryOfTheVariable) {
  ::setenv("SPILLWAY_LIBDIR", CLI_FIXTURES "/lib", 1);
  EXPECT_EQ(preload_library(MpiAbi::mpich).value(), CLI_FIXTURES "/lib/libspillway-mpich.so");
  EXPECT_EQ(preload_library(MpiAbi::openmpi).value(), CLI_FIXTURES "/lib/libspillway-openmpi.so");
  EXPECT_THAT(
      preload_library(MpiAbi::standard).status().what(),
      testing::AllOf(HasSubstr("libspillway-abi.so"), HasSubstr(CLI_FIXTURES "/lib"), HasSubstr("SPILLWAY_LIBDIR")));
}

TEST_F(PreloadLibrary, IsOtherwiseLookedForBesideTheProgram) {
  const std::vector<std::string> directories = library_directories();
  ASSERT_FALSE(directories.empty());
  EXPECT_TRUE(directories.front().ends_with("/lib")) << directories.front();
}

}  // namespace
}  // namespace spillway::cli

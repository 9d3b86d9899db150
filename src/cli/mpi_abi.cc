#include "cli/mpi_abi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/subprocess.h"

namespace spillway::cli {
namespace {

constexpr int kLoaderTimeoutMs = 10000;

struct AbiName {
  MpiAbi abi;
  std::string_view name;
  std::string_view title;
};
constexpr AbiName kAbiNames[] = {
    {MpiAbi::mpich, "mpich", "MPICH"},
    {MpiAbi::openmpi, "openmpi", "Open MPI"},
    {MpiAbi::standard, "abi", "standard MPI ABI"},
};

// "libmpi_cray.so.12.0.1" -> "libmpi_cray", "12".
struct LibraryName {
  std::string_view stem;
  std::string_view major;
};

LibraryName split_soname(std::string_view soname) {
  const std::size_t so = soname.find(".so.");
  if (so == std::string_view::npos) return {soname.substr(0, soname.find(".so")), ""};
  const std::string_view version = soname.substr(so + 4);
  return {soname.substr(0, so), version.substr(0, version.find('.'))};
}

// Bindings for other languages are called like variants of the library, and always come with it.
bool is_binding(std::string_view stem) {
  for (const std::string_view part : {"fort", "f77", "f90", "mpifh", "usempi", "cxx", "java"}) {
    if (stem.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool is_loader(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const bool called_so = name.starts_with("ld-linux") || name.starts_with("ld-musl") || name.starts_with("ld64.so") ||
                         name.starts_with("ld.so");
  return called_so && path.starts_with('/') && ::access(path.c_str(), X_OK) == 0;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

std::string_view name_of(MpiAbi abi) { return kAbiNames[static_cast<std::size_t>(abi)].name; }
std::string_view title_of(MpiAbi abi) { return kAbiNames[static_cast<std::size_t>(abi)].title; }

std::optional<MpiAbi> abi_of_name(std::string_view name) {
  for (const AbiName& entry : kAbiNames) {
    if (entry.name == name) return entry.abi;
  }
  return std::nullopt;
}

std::optional<MpiAbi> abi_of_library(std::string_view soname) {
  const auto [stem, major] = split_soname(soname);
  if (stem == "libmpi_abi") return MpiAbi::standard;
  if (stem == "libmpi" && major == "40") return MpiAbi::openmpi;
  const bool variant =
      stem == "libmpi" || stem == "libmpich" || stem.starts_with("libmpi_") || stem.starts_with("libmpich_");
  if (variant && major == "12" && !is_binding(stem)) return MpiAbi::mpich;
  return std::nullopt;
}

bool is_foreign_libmpi(std::string_view soname) {
  const std::string_view stem = split_soname(soname).stem;
  return (stem == "libmpi" || stem == "libmpich") && !abi_of_library(soname);
}

std::vector<LinkedLibrary> parse_loader_list(std::string_view text) {
  std::vector<LinkedLibrary> libraries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t arrow = line.find(" => ");
    if (arrow == std::string_view::npos) continue;
    std::string_view path = line.substr(arrow + 4);
    path = path == "not found" ? "" : trimmed(path.substr(0, path.rfind(" (0x")));
    const std::string_view name = line.substr(0, arrow);
    libraries.push_back({std::string(name.substr(name.rfind('/') + 1)), std::string(path)});
  }
  return libraries;
}

std::vector<LinkedLibrary> linked_libraries(const std::string& program, const std::string& loader,
                                            const std::vector<std::string>& needed) {
  if (is_loader(loader)) {
    const Result<CapturedOutput> output = capture({loader, "--list", program}, kLoaderTimeoutMs, {"LD_PRELOAD"});
    if (output.ok()) {
      std::vector<LinkedLibrary> libraries = parse_loader_list(output.value().text);
      if (!libraries.empty()) return libraries;
    }
  }
  std::vector<LinkedLibrary> libraries;
  for (const std::string& name : needed) libraries.push_back({name.substr(name.rfind('/') + 1), ""});
  return libraries;
}

std::vector<std::string> library_directories() {
  if (const char* directory = std::getenv("SPILLWAY_LIBDIR"); directory != nullptr) return {directory};
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path prefix = self.parent_path().parent_path();
  std::vector<std::string> directories;
  for (const char* name : {"lib", "lib/spillway", "lib64", "lib64/spillway"}) directories.push_back(prefix / name);
  return directories;
}

Result<std::string> preload_library(MpiAbi abi) {
  const std::string name = fmt::format("libspillway-{}.so", name_of(abi));
  const std::vector<std::string> directories = library_directories();
  for (const std::string& directory : directories) {
    std::error_code error;
    const std::string path = std::filesystem::absolute(std::filesystem::path(directory) / name, error).string();
    if (error || ::access(path.c_str(), R_OK) != 0) continue;
    if (path.find_first_of(" :,") != std::string::npos) {
      return Status(Code::unsupported, fmt::format("{}: LD_PRELOAD cannot hold a path with a blank, colon or comma; "
                                                   "install Spillway elsewhere or set SPILLWAY_LIBDIR",
                                                   path));
    }
    return path;
  }
  return Status(Code::no_such_file,
                fmt::format("the preload library for {}, {}, is not in {}; SPILLWAY_LIBDIR may name "
                            "another directory",
                            title_of(abi), name, fmt::join(directories, ", ")));
}

}  // namespace spillway::cli

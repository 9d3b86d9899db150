#include "mpi/datatype.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mpi/api.h"

namespace spillway::mpi {
namespace {

using extent::Pattern;

// How a type was made (MPI-4.1 §5.1.13), with int and MPI_Count arguments in one list in the order of the constructor's text.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<std::int64_t> numbers;   // integers, or large counts
  std::vector<std::int64_t> integers;  // where a constructor has both: its integers
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
  bool large = false;

  // Byte displacements and the like: addresses, or large counts from `from` on.
  [[nodiscard]] std::int64_t address(std::size_t i, std::size_t from) const {
    return large ? numbers[from + i] : static_cast<std::int64_t>(addresses[i]);
  }
};

bool is_named(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

int combiner_of(MPI_Datatype datatype) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
  if (api().Type_get_envelope_c != nullptr) {
    MPI_Count many_integers = 0;
    MPI_Count many_addresses = 0;
    MPI_Count counts = 0;
    MPI_Count many_types = 0;
    api().Type_get_envelope_c(datatype, &many_integers, &many_addresses, &counts, &many_types, &combiner);
    return combiner;
  }
#endif
  api().Type_get_envelope(datatype, &integers, &addresses, &types, &combiner);
  return combiner;
}

bool get_contents(MPI_Datatype datatype, Contents& contents) {
#if MPI_VERSION >= 4
  if (api().Type_get_contents_c != nullptr) {
    MPI_Count integers = 0;
    MPI_Count addresses = 0;
    MPI_Count counts = 0;
    MPI_Count types = 0;
    if (api().Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &contents.combiner) != MPI_SUCCESS)
      return false;
    std::vector<int> raw(static_cast<std::size_t>(integers) + 1);
    std::vector<MPI_Count> large(static_cast<std::size_t>(counts) + 1);
    contents.addresses.resize(static_cast<std::size_t>(addresses) + 1);
    contents.types.resize(static_cast<std::size_t>(types) + 1);
    if (api().Type_get_contents_c(datatype, integers, addresses, counts, types, raw.data(), contents.addresses.data(),
                                  large.data(), contents.types.data()) != MPI_SUCCESS) {
      return false;
    }
    contents.types.resize(static_cast<std::size_t>(types));
    contents.integers.assign(raw.begin(), raw.end() - 1);
    contents.large = counts > 0;
    contents.numbers.assign(large.begin(), large.end() - 1);
    if (!contents.large) contents.numbers = contents.integers;
    return true;
  }
#endif
  int integers = 0;
  int addresses = 0;
  int types = 0;
  if (api().Type_get_envelope(datatype, &integers, &addresses, &types, &contents.combiner) != MPI_SUCCESS) return false;
  std::vector<int> raw(static_cast<std::size_t>(integers) + 1);
  contents.addresses.resize(static_cast<std::size_t>(addresses) + 1);
  contents.types.resize(static_cast<std::size_t>(types) + 1);
  if (api().Type_get_contents(datatype, integers, addresses, types, raw.data(), contents.addresses.data(),
                              contents.types.data()) != MPI_SUCCESS) {
    return false;
  }
  contents.types.resize(static_cast<std::size_t>(types));
  contents.integers.assign(raw.begin(), raw.end() - 1);
  contents.numbers = contents.integers;
  return true;
}

Pattern repeated(const Datatype& child, std::int64_t count) {
  return Pattern::strided(child.pattern, count, child.extent);
}

// Pieces of a child in blocks of given lengths (in children) at given displacements (in bytes).
Pattern blocks_of(const Datatype& child, const std::vector<std::int64_t>& displacements,
                  const std::vector<std::int64_t>& lengths) {
  const bool dense = child.pattern.contiguous() && child.bytes == child.extent && child.bytes > 0;
  if (dense) {
    const std::int64_t first = child.pattern.first_offset();
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> bytes;
    for (std::size_t i = 0; i < displacements.size(); ++i) {
      offsets.push_back(displacements[i] + first);
      bytes.push_back(lengths[i] * child.bytes);
    }
    return Pattern::blocks(offsets, bytes);
  }
  std::vector<Pattern> children;
  children.reserve(lengths.size());
  for (const std::int64_t length : lengths) children.push_back(repeated(child, length));
  return Pattern::list(displacements, children);
}

Pattern vector_of(const Datatype& child, std::int64_t count, std::int64_t length, std::int64_t stride_bytes) {
  return Pattern::strided(repeated(child, length), count, stride_bytes);
}

Pattern indexed(const Contents& contents, const Datatype& child, bool in_bytes) {
  const std::int64_t count = contents.numbers[0];
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> displacements;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    lengths.push_back(contents.numbers[1 + at]);
    displacements.push_back(in_bytes ? contents.address(at, static_cast<std::size_t>(1 + count))
                                     : contents.numbers[static_cast<std::size_t>(1 + count) + at] * child.extent);
  }
  return blocks_of(child, displacements, lengths);
}

Pattern indexed_block(const Contents& contents, const Datatype& child, bool in_bytes) {
  const std::int64_t count = contents.numbers[0];
  std::vector<std::int64_t> displacements;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    displacements.push_back(in_bytes ? contents.address(at, 2) : contents.numbers[2 + at] * child.extent);
  }
  return Pattern::list(displacements, repeated(child, contents.numbers[1]));
}

// One dimension after the other, the fastest first.
struct Dimensions {
  std::vector<std::size_t> order;  // of the dimensions, fastest first
  explicit Dimensions(std::size_t count, std::int64_t mpi_order) {
    for (std::size_t i = 0; i < count; ++i) order.push_back(mpi_order == MPI_ORDER_FORTRAN ? i : count - 1 - i);
  }
};

Pattern subarray(const Contents& contents, const Datatype& child) {
  // ndims, sizes, subsizes, starts, order; with large counts: sizes, subsizes, starts apart from ndims and order.
  const auto ndims = static_cast<std::size_t>(contents.integers[0]);
  const std::size_t from = contents.large ? 0 : 1;
  const std::int64_t order = contents.large ? contents.integers[1] : contents.integers[1 + 3 * ndims];
  const auto number = [&](std::size_t list, std::size_t i) { return contents.numbers[from + list * ndims + i]; };
  Pattern pattern = child.pattern;
  std::int64_t extent = child.extent;
  for (const std::size_t i : Dimensions(ndims, order).order) {
    pattern = Pattern::strided(pattern, number(1, i), extent).displaced(number(2, i) * extent);
    extent *= number(0, i);
  }
  return pattern;
}

// What process `coordinate` of `processes` owns of `size` elements, as a pattern over elements of `extent` bytes.
Pattern distributed(const Pattern& element, std::int64_t extent, std::int64_t size, std::int64_t distribution,
                    std::int64_t argument, std::int64_t processes, std::int64_t coordinate) {
  if (distribution == MPI_DISTRIBUTE_NONE) return Pattern::strided(element, size, extent);
  const bool is_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
  std::int64_t block = argument;
  if (is_default) block = distribution == MPI_DISTRIBUTE_BLOCK ? (size + processes - 1) / processes : 1;
  if (distribution == MPI_DISTRIBUTE_BLOCK) {
    const std::int64_t begin = std::min(size, coordinate * block);
    return Pattern::strided(element, std::min(block, size - begin), extent).displaced(begin * extent);
  }
  // Cyclic: whole blocks, then perhaps a part of one.
  const std::int64_t period = block * processes;
  const std::int64_t begin = coordinate * block;
  const std::int64_t rest = size % period;
  const std::int64_t whole = size / period + (rest >= begin + block ? 1 : 0);
  const std::int64_t partial = rest > begin && rest < begin + block ? rest - begin : 0;
  const Pattern blocks =
      Pattern::strided(Pattern::strided(element, block, extent), whole, period * extent).displaced(begin * extent);
  const Pattern tail = Pattern::strided(element, partial, extent);
  const std::int64_t displacements[] = {0, (whole * period + begin) * extent};
  const Pattern parts[] = {blocks, tail};
  return Pattern::list(displacements, parts);
}

Pattern darray(const Contents& contents, const Datatype& child) {
  // size, rank, ndims, gsizes, distribs, dargs, psizes, order; with large counts gsizes apart from the rest.
  const std::vector<std::int64_t>& integers = contents.integers;
  const auto ndims = static_cast<std::size_t>(integers[2]);
  std::size_t at = 3;
  const std::int64_t* sizes = contents.large ? contents.numbers.data() : &integers[at];
  if (!contents.large) at += ndims;
  const std::int64_t* distributions = &integers[at];
  const std::int64_t* arguments = &integers[at + ndims];
  const std::int64_t* processes = &integers[at + 2 * ndims];
  const std::int64_t order = integers[at + 3 * ndims];
  // The process grid is in row-major order whatever the order of the array.
  std::vector<std::int64_t> coordinates(ndims);
  std::int64_t rank = integers[1];
  for (std::size_t i = ndims; i-- > 0;) {
    coordinates[i] = rank % processes[i];
    rank /= processes[i];
  }
  Pattern pattern = child.pattern;
  std::int64_t extent = child.extent;
  for (const std::size_t i : Dimensions(ndims, order).order) {
    pattern = distributed(pattern, extent, sizes[i], distributions[i], arguments[i], processes[i], coordinates[i]);
    extent *= sizes[i];
  }
  return pattern;
}

Result<Pattern> structure(const Contents& contents) {
  const auto count = static_cast<std::size_t>(contents.numbers[0]);
  std::vector<std::int64_t> displacements;
  std::vector<Pattern> children;
  for (std::size_t i = 0; i < count; ++i) {
    Result<std::shared_ptr<const Datatype>> child = decode(contents.types[i]);
    if (!child) return child.status();
    displacements.push_back(contents.address(i, 1 + count));
    children.push_back(repeated(**child, contents.numbers[1 + i]));
  }
  return Pattern::list(displacements, children);
}

Result<Pattern> pattern_of(const Contents& contents) {
  if (contents.combiner == MPI_COMBINER_STRUCT) return structure(contents);
  Result<std::shared_ptr<const Datatype>> decoded = decode(contents.types[0]);
  if (!decoded) return decoded.status();
  const Datatype& child = **decoded;
  const std::vector<std::int64_t>& numbers = contents.numbers;
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return child.pattern;
    case MPI_COMBINER_CONTIGUOUS:
      return repeated(child, numbers[0]);
    case MPI_COMBINER_VECTOR:
      return vector_of(child, numbers[0], numbers[1], numbers[2] * child.extent);
    case MPI_COMBINER_HVECTOR:
      return vector_of(child, numbers[0], numbers[1], contents.address(0, 2));
    case MPI_COMBINER_INDEXED:
      return indexed(contents, child, false);
    case MPI_COMBINER_HINDEXED:
      return indexed(contents, child, true);
    case MPI_COMBINER_INDEXED_BLOCK:
      return indexed_block(contents, child, false);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return indexed_block(contents, child, true);
    case MPI_COMBINER_SUBARRAY:
      return subarray(contents, child);
    case MPI_COMBINER_DARRAY:
      return darray(contents, child);
    default:
      return Status(Code::bad_type,
                    fmt::format("a datatype made in a way that is not known (combiner {})", contents.combiner));
  }
}

// Contents hands out references to the types it was made of; predefined ones must not be given back.
void free_types(Contents& contents) {
  for (MPI_Datatype& type : contents.types) {
    if (!is_named(combiner_of(type))) api().Type_free(&type);
  }
}

int delete_decoded(MPI_Datatype, int, void* value, void*) {
  delete static_cast<std::shared_ptr<const Datatype>*>(value);
  return MPI_SUCCESS;
}
int decoded_stays(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int decoded_keyval() {
  static const int keyval = [] {
    int value = MPI_KEYVAL_INVALID;
    api().Type_create_keyval(&decoded_stays, &delete_decoded, &value, nullptr);
    return value;
  }();
  return keyval;
}

// Pairs such as MPI_DOUBLE_INT have a gap at their end, which is not data; MPI_SHORT_INT alone has one inside.
Pattern named_pattern(std::int64_t size, std::int64_t extent) {
  struct ShortInt {
    short value;
    int index;
  };
  if (size == sizeof(short) + sizeof(int) && extent == sizeof(ShortInt)) {
    const std::int64_t displacements[] = {0, offsetof(ShortInt, index)};
    const std::int64_t lengths[] = {sizeof(short), sizeof(int)};
    return Pattern::blocks(displacements, lengths);
  }
  return Pattern::block(0, size);
}

Result<std::shared_ptr<const Datatype>> decode_afresh(MPI_Datatype datatype) {
  auto decoded = std::make_shared<Datatype>();
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  api().Type_size_x(datatype, &size);
  api().Type_get_extent_x(datatype, &lower, &extent);
  decoded->bytes = size;
  decoded->extent = extent;
  decoded->predefined = is_named(combiner_of(datatype));
  if (decoded->predefined) {
    decoded->pattern = named_pattern(size, extent);
    return std::shared_ptr<const Datatype>(std::move(decoded));
  }
  Contents contents;
  if (!get_contents(datatype, contents)) return Status(Code::bad_type, "the datatype cannot be taken apart");
  Result<Pattern> pattern = pattern_of(contents);
  free_types(contents);
  if (!pattern) return pattern.status();
  decoded->pattern = std::move(pattern).value();
  if (!decoded->pattern.representable() || decoded->pattern.bytes() != size) {
    return Status(Code::bad_type, "the datatype's layout does not fit into 63 bits");
  }
  return std::shared_ptr<const Datatype>(std::move(decoded));
}

}  // namespace

Result<std::shared_ptr<const Datatype>> decode(MPI_Datatype datatype) {
  if (datatype == api().datatype_null) return Status(Code::bad_type, "the datatype is MPI_DATATYPE_NULL");
  void* value = nullptr;
  int found = 0;
  if (api().Type_get_attr(datatype, decoded_keyval(), static_cast<void*>(&value), &found) == MPI_SUCCESS &&
      found != 0) {
    return *static_cast<std::shared_ptr<const Datatype>*>(value);
  }
  Result<std::shared_ptr<const Datatype>> decoded = decode_afresh(datatype);
  if (decoded.ok()) {
    auto kept = std::make_unique<std::shared_ptr<const Datatype>>(*decoded);
    if (api().Type_set_attr(datatype, decoded_keyval(), kept.get()) == MPI_SUCCESS) (void)kept.release();
  }
  return decoded;
}

}  // namespace spillway::mpi

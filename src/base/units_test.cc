#include "base/units.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

std::int64_t parsed(std::string_view text) {
  const Result<std::int64_t> result = parse_bytes(text);
  return result.ok() ? result.value() : -1;
}

TEST(ParseBytes, AcceptsPlainNumbersAndBothKindsOfSuffix) {
  EXPECT_EQ(parsed("0"), 0);
  EXPECT_EQ(parsed("4096"), 4096);
  EXPECT_EQ(parsed("64K"), 65536);
  EXPECT_EQ(parsed("64 KiB"), 65536);
  EXPECT_EQ(parsed("1.5GiB"), 1610612736);
  EXPECT_EQ(parsed("2MB"), 2000000);
}

TEST(ParseBytes, RefusesEverythingElseAndNamesIt) {
  for (const char* text : {"", "MiB", "-1", "12 apples", "1e3", "nan", "inf", "99999999999TiB", "4 K i B", "0x10"}) {
    const Result<std::int64_t> result = parse_bytes(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), Code::bad_argument);
    EXPECT_NE(result.status().what().find("'" + std::string(text) + "'"), std::string::npos) << result.status().what();
  }
}

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(64 * kMiB), "64.0 MiB");
  EXPECT_EQ(format_bytes(200 * kGiB), "200 GiB");
}

TEST(Status, NamesErrnoOffsetAndPath) {
  Status status = Status::from_errno(28, "write of 42 bytes");
  status.at_offset(8192).on_path("/scratch/out");
  EXPECT_EQ(status.code(), Code::no_space);
  EXPECT_EQ(status.to_string(), "no_space: write of 42 bytes: No space left on device (/scratch/out) (offset 8192)");
  EXPECT_TRUE(Status().at_offset(3).ok());
}

}  // namespace
}  // namespace spillway::base

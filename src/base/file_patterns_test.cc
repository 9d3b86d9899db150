#include "base/file_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace spillway::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> split(std::string_view text) {
  Result<std::vector<std::string>> patterns = split_patterns(text);
  EXPECT_TRUE(patterns.ok()) << patterns.status().to_string();
  return patterns.ok() ? patterns.value() : std::vector<std::string>{};
}

TEST(SplitPatterns, SplitsAtCommasAndNewlines) {
  EXPECT_THAT(split("*.h5, *.nc\n/scratch/a b/*"), ElementsAre("*.h5", "*.nc", "/scratch/a b/*"));
  EXPECT_THAT(split(" , ,\n"), IsEmpty());
  EXPECT_THAT(split(""), IsEmpty());
}

TEST(SplitPatterns, KeepsCommasInBracesBracketsAndAfterABackslash) {
  EXPECT_THAT(split("{a,b{c,d}}*,x"), ElementsAre("{a,b{c,d}}*", "x"));
  EXPECT_THAT(split("a[,;]b,x"), ElementsAre("a[,;]b", "x"));
  EXPECT_THAT(split("a\\,b,x\\{y"), ElementsAre("a\\,b", "x\\{y"));
  EXPECT_THAT(split("a[{],[]}]"), ElementsAre("a[{]", "[]}]"));
  EXPECT_THAT(split("a[b,c"), ElementsAre("a[b", "c"));
}

TEST(SplitPatterns, RefusesUnbalancedBracesAndTooMuch) {
  for (const char* text : {"{a,b", "a}", "a,{b\nc}", "}{"}) {
    const Result<std::vector<std::string>> patterns = split_patterns(text);
    ASSERT_FALSE(patterns.ok()) << text;
    EXPECT_THAT(patterns.status().what(), HasSubstr("brace"));
  }
  std::string many;
  for (int i = 0; i < 9; ++i) many += "{a,b}";
  EXPECT_THAT(split_patterns(many).status().what(), HasSubstr("256 alternatives"));
  EXPECT_THAT(split_patterns(std::string(5000, '{')).status().what(), HasSubstr("4096"));
  std::string list;
  for (int i = 0; i < 257; ++i) list += "x,";
  EXPECT_THAT(split_patterns(list).status().what(), HasSubstr("256 patterns"));
}

TEST(ExpandBraces, GivesEveryAlternative) {
  EXPECT_THAT(expand_braces("plain"), ElementsAre("plain"));
  EXPECT_THAT(expand_braces("a{b,c{d,e}}f"), ElementsAre("abf", "acdf", "acef"));
  EXPECT_THAT(expand_braces("{a,}{b}"), ElementsAre("ab", "b"));
  EXPECT_THAT(expand_braces("\\{a,b\\}[{,}]"), ElementsAre("\\{a,b\\}[{,}]"));
}

bool managed_by(std::vector<std::string> patterns, std::string_view path) {
  Settings settings;
  settings.files = std::move(patterns);
  return managed(settings, path);
}

TEST(Managed, EverythingWithoutPatterns) { EXPECT_TRUE(managed_by({}, "/any/where")); }

TEST(Managed, MatchesThePathAsGivenTheAbsoluteOneOrTheBaseName) {
  EXPECT_TRUE(managed_by({"*.h5"}, "run/out.h5"));
  EXPECT_TRUE(managed_by({"run/*"}, "run/a/b.dat"));
  EXPECT_TRUE(managed_by({"out.h5"}, "run/out.h5"));
  EXPECT_FALSE(managed_by({"a/*"}, "run/a/b.dat"));
  EXPECT_FALSE(managed_by({"*.h5"}, "run/out.h5.tmp"));
  const std::string here = std::filesystem::current_path().string();
  EXPECT_TRUE(managed_by({here + "/out.h5"}, "out.h5"));
  EXPECT_TRUE(managed_by({here + "/out.h5"}, "./x/../out.h5"));
  EXPECT_TRUE(managed_by({"/scratch/*"}, "/scratch/./a/out.h5"));
}

TEST(Managed, KnowsAlternatives) {
  EXPECT_TRUE(managed_by({"*.{h5,nc}"}, "/a/b.nc"));
  EXPECT_FALSE(managed_by({"*.{h5,nc}"}, "/a/b.dat"));
  EXPECT_TRUE(managed_by({"[ab],c"}, "a,c"));
}

}  // namespace
}  // namespace spillway::base

#include "cli/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ListsWord, FindsWholeWordsOnly) {
  EXPECT_TRUE(lists_word("n np hosts", "np"));
  EXPECT_TRUE(lists_word("n np hosts", "hosts"));
  EXPECT_FALSE(lists_word("n np hosts", "host"));
  EXPECT_FALSE(lists_word("", "n"));
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a::b:", ':'), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("a", ':'), ElementsAre("a"));
  EXPECT_THAT(split("", ':'), IsEmpty());
}

TEST(ShellWord, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(shell_word("-x"), "-x");
  EXPECT_EQ(shell_word("A=*.{h5,nc}"), "'A=*.{h5,nc}'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace spillway::cli

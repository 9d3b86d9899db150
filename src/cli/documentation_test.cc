#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/config.h"

namespace spillway::cli {
namespace {

// docs/configuration.md is made from the table of settings and committed, so that it can be read without
// building.
TEST(Documentation, ConfigurationPageIsUpToDate) {
  std::ifstream file(SPILLWAY_SOURCE_DIR "/docs/configuration.md");
  ASSERT_TRUE(file) << "docs/configuration.md is missing";
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), base::configuration_markdown())
      << "run: build/bin/spillway configuration > docs/configuration.md";
}

}  // namespace
}  // namespace spillway::cli

#include "file/hints.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace spillway::file {
namespace {

std::map<std::string, std::string> shown(const Hints& hints) {
  const auto all = hints.in_force();
  return {all.begin(), all.end()};
}

TEST(Hints, WhatIsInForceIsShownAndUnderstoodAgain) {
  Hints hints({}, 8, false);
  for (const auto& [key, value] : std::map<std::string, std::string>{{"cb_nodes", " 3 "},
                                                                     {"cb_config_list", "*:2"},
                                                                     {"cb_buffer_size", "1048576"},
                                                                     {"romio_cb_write", "disable"},
                                                                     {"romio_cb_read", "enable"},
                                                                     {"striping_unit", "65536"},
                                                                     {"access_style", "write_once"},
                                                                     {"spillway_close", "drained"}}) {
    hints.set(key, value);
  }
  const auto seen = shown(hints);
  EXPECT_EQ(seen.at("cb_nodes"), "3");
  EXPECT_EQ(seen.at("cb_config_list"), "*:2");
  EXPECT_EQ(seen.at("romio_cb_write"), "disable");
  EXPECT_EQ(seen.at("collective_buffering"), "false");
  EXPECT_EQ(seen.at("access_style"), "write_once");
  EXPECT_EQ(seen.at("spillway_close"), "drained");
  EXPECT_EQ(hints.limit(5), 1048576);
  EXPECT_EQ(hints.write_policy().algorithm, collective::Algorithm::individual);
  EXPECT_EQ(hints.read_policy().algorithm, collective::Algorithm::two_phase);
  EXPECT_FALSE(hints.read_policy().choose);
  EXPECT_EQ(hints.write_policy().aggregators_max, 3);
  EXPECT_EQ(hints.write_policy().aggregators_per_node_max, 2);
  EXPECT_EQ(hints.write_policy().alignment, 65536);
}

TEST(Hints, WhatIsNotAcceptedChangesNothing) {
  Hints hints({}, 8, false);
  const auto before = shown(hints);
  for (const char* key : {"cb_nodes", "cb_config_list", "cb_buffer_size", "romio_cb_write", "collective_buffering",
                          "striping_unit", "spillway_close", "spillway_memory"}) {
    for (const char* value : {"", "-1", "1x", "9999999999999999999999", "*:", "*:0", "maybe", "0x10"})
      hints.set(key, value);
  }
  hints.set("spillway_no_such_thing", "1");
  EXPECT_EQ(shown(hints), before);
}

TEST(Hints, TheBufferLimitComesFromTheMostSpecificSetting) {
  base::Settings settings;
  EXPECT_EQ(Hints(settings, 1, false).limit(77), 77);
  Hints hints(settings, 1, false);
  hints.set("cb_buffer_size", "0");
  EXPECT_EQ(hints.limit(77), 0);
  hints.set("spillway_memory", "4096");
  EXPECT_EQ(hints.limit(77), 4096);
  hints.set("spillway_stage", "none");
  EXPECT_EQ(hints.limit(77), 0);
}

TEST(Hints, AnyTextIsTakenOrIgnored) {
  const char* const keys[] = {"cb_nodes",      "cb_config_list", "cb_buffer_size",  "romio_cb_write", "romio_cb_read",
                              "striping_unit", "spillway_close", "spillway_memory", "spillway_stage", "any"};
  const std::string alphabet("0123456789*:- \0kKMGiBenabledisautomc\xff,=\n", 41);
  std::mt19937_64 random(20261120);
  for (int round = 0; round < 2000; ++round) {
    Hints hints({}, 4, false);
    for (int i = 0; i < 5; ++i) {
      std::string value;
      for (std::size_t n = random() % 12; n > 0; --n) value += alphabet[random() % alphabet.size()];
      hints.set(keys[random() % std::size(keys)], value);
    }
    Hints again({}, 4, false);
    for (const auto& [key, value] : hints.in_force()) again.set(key, value);
    ASSERT_EQ(again.in_force(), hints.in_force()) << "round " << round;
    ASSERT_GE(hints.limit(0), 0);
  }
}

}  // namespace
}  // namespace spillway::file

#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "base/spelling.h"
#include "base/units.h"

namespace spillway::base {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file that is there for one test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) : path_(testing::TempDir() + "spillway_config_XXXXXX") {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string error_of(const EnvironmentList& environment, const std::string& file = "") {
  const Result<Settings> settings = load_settings(environment, file);
  EXPECT_FALSE(settings.ok());
  return settings.status().what();
}

TEST(OptionTable, DefaultsAreWhatTheTableSays) {
  for (const OptionSpec& option : option_table()) {
    EXPECT_EQ(option_value_text(Settings{}, option.name), option.default_text) << option.name;
    EXPECT_FALSE(option.help.empty());
    EXPECT_FALSE(accepted_text(option).empty());
  }
}

TEST(OptionTable, NamesOnTheCommandLineAndInTheEnvironment) {
  const OptionSpec* option = find_option("drain_bytes");
  ASSERT_NE(option, nullptr);
  EXPECT_EQ(command_line_name(*option), "--drain-bytes");
  EXPECT_EQ(environment_name(*option), "SPILLWAY_DRAIN_BYTES");
  EXPECT_EQ(find_option("drain-bytes"), nullptr);
}

TEST(SetOption, EveryChoiceParsesAndComesBack) {
  for (const OptionSpec& option : option_table()) {
    if (option.type != OptionType::choice) continue;
    std::string names(option.choices);
    for (std::size_t end = 0; !names.empty(); names.erase(0, std::min(end + 1, names.size()))) {
      end = std::min(names.find('|'), names.size());
      Settings settings;
      ASSERT_TRUE(set_option(settings, option.name, names.substr(0, end), "test").ok());
      EXPECT_EQ(option_value_text(settings, option.name), names.substr(0, end));
    }
  }
}

TEST(SetOption, SizesComeBackExactly) {
  Settings settings;
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},       {"1.5MiB", "1536KiB"}, {"512 MiB", "512MiB"}, {"1000001", "1000001"},
      {"1TiB", "1TiB"}, {"auto", "auto"}};
  for (const auto& [given, shown] : cases) {
    ASSERT_TRUE(set_option(settings, "memory", given, "test").ok()) << given;
    EXPECT_EQ(option_value_text(settings, "memory"), shown);
    const std::int64_t before = settings.memory_bytes;
    ASSERT_TRUE(set_option(settings, "memory", shown, "test").ok());
    EXPECT_EQ(settings.memory_bytes, before);
  }
}

TEST(SetOption, RefusalsNameOriginValueAndWhatIsAccepted) {
  struct Case {
    const char* name;
    const char* value;
    const char* accepted;
  };
  const Case cases[] = {
      {"stage", "disk", "accepted: none, memory"},
      {"stage", "", "accepted: none, memory"},
      {"stage", "Memory", "accepted: none, memory"},
      {"memory", "12 apples", "accepted: auto, or a size from 0 to 1TiB"},
      {"memory", "-1", "accepted: auto"},
      {"memory", "2TiB", "to 1TiB"},
      {"drain_bytes", "auto", "accepted: a size from 64KiB to 64MiB"},
      {"drain_bytes", "65535", "from 64KiB"},
      {"cycle_bytes", "1025MiB", "to 1GiB"},
      {"algorithm", "three_phase", "accepted: auto, two_phase, individual"},
      {"close", "late", "accepted: deferred, drained"},
      {"direct", "maybe", "accepted: auto, on, off"},
      {"files", "{a,b", "accepted: file name patterns"},
      {"shm_dir", "", "accepted: the path of a directory"},
      {"log_level", "loud", "accepted: error, warning, info, debug"},
      {"summary", "2", "accepted: on, off"},
  };
  for (const Case& bad : cases) {
    Settings settings;
    const Status status = set_option(settings, bad.name, bad.value, "SPILLWAY_X");
    EXPECT_EQ(status.code(), Code::bad_argument) << bad.name;
    EXPECT_THAT(status.what(),
                AllOf(HasSubstr("SPILLWAY_X: '" + std::string(bad.value) + "'"), HasSubstr(bad.accepted)));
    EXPECT_EQ(option_value_text(settings, bad.name), find_option(bad.name)->default_text);
  }
}

TEST(SetOption, TheReasonOfABadPatternIsGiven) {
  Settings settings;
  EXPECT_THAT(set_option(settings, "files", "x,a}", "--files").what(), HasSubstr("a brace without its partner"));
}

TEST(SetOption, PatternsReplaceEarlierOnesAndComeBack) {
  Settings settings;
  ASSERT_TRUE(set_option(settings, "files", "old", "test").ok());
  ASSERT_TRUE(set_option(settings, "files", "*.{h5,nc}\na\\,b", "test").ok());
  EXPECT_THAT(settings.files, ElementsAre("*.{h5,nc}", "a\\,b"));
  Settings again;
  ASSERT_TRUE(set_option(again, "files", option_value_text(settings, "files"), "test").ok());
  EXPECT_EQ(again.files, settings.files);
}

TEST(LoadSettings, TheEnvironmentWinsOverTheFile) {
  const TemporaryFile file("memory = \"1GiB\"\nclose = 'drained'\nsummary = false\ndrain_bytes = 1048576\n");
  Origins origins;
  const Result<Settings> settings = load_settings({{"SPILLWAY_MEMORY", "2GiB"}}, file.path(), &origins);
  ASSERT_TRUE(settings.ok()) << settings.status().to_string();
  EXPECT_EQ(settings.value().memory_bytes, 2 * kGiB);
  EXPECT_EQ(settings.value().close, ClosePolicy::drained);
  EXPECT_EQ(settings.value().drain_bytes, kMiB);
  EXPECT_FALSE(settings.value().summary);
  EXPECT_EQ(origins["memory"], "SPILLWAY_MEMORY");
  EXPECT_EQ(origins["close"], file.path() + ":2: close");
  EXPECT_EQ(origins.count("stage"), 0U);
}

TEST(LoadSettings, FilesMayBeATextOrAnArray) {
  const TemporaryFile array("files = ['*.{h5,nc}', \"b\"]\n");
  EXPECT_THAT(load_settings({}, array.path()).value().files, ElementsAre("*.{h5,nc}", "b"));
  const TemporaryFile text("files = 'a,b'\n");
  EXPECT_THAT(load_settings({}, text.path()).value().files, ElementsAre("a", "b"));
}

TEST(LoadSettings, UnknownNamesAreErrorsThatGuess) {
  EXPECT_THAT(error_of({{"SPILLWAY_MEMROY", "1GiB"}}),
              AllOf(HasSubstr("unknown variable SPILLWAY_MEMROY"), HasSubstr("did you mean 'SPILLWAY_MEMORY'?"),
                    HasSubstr("SPILLWAY_STAGE")));
  const TemporaryFile file("stage = 'none'\n\nalgoritm = 'auto'\n");
  EXPECT_THAT(error_of({}, file.path()), AllOf(HasSubstr(file.path() + ":3: unknown key 'algoritm'"),
                                               HasSubstr("did you mean 'algorithm'?"), HasSubstr("cycle_bytes")));
}

TEST(LoadSettings, KnowsTheVariablesThatSpillwaySetsItself) {
  EXPECT_TRUE(
      load_settings(
          {{"SPILLWAY_JOB", "j"}, {"SPILLWAY_SUMMARY_FILE", "/f"}, {"SPILLWAY_CONFIG", ""}, {"SPILLWAY_LIBDIR", "/l"}},
          "")
          .ok());
}

TEST(LoadSettings, BadFilesAreNamedWithTheLine) {
  EXPECT_EQ(load_settings({}, "/nowhere/spillway.toml").status().code(), Code::no_such_file);
  EXPECT_THAT(error_of({}, "/nowhere/spillway.toml"), HasSubstr("/nowhere/spillway.toml"));
  EXPECT_THAT(error_of({}, testing::TempDir()), HasSubstr("configuration file"));
  const TemporaryFile broken("stage = 'none'\nmemory = \n");
  EXPECT_THAT(error_of({}, broken.path()), HasSubstr(broken.path() + ":2: not TOML"));
  const TemporaryFile nameless("[=4");  // found by tests/fuzz/config_file_fuzz.cc: the parser asserted
  EXPECT_THAT(error_of({}, nameless.path()), HasSubstr(nameless.path() + ":1: not TOML"));
  const TemporaryFile value("memory = '12 apples'\n");
  EXPECT_THAT(error_of({}, value.path()), HasSubstr(value.path() + ":1: memory: '12 apples' is not accepted"));
  for (const char* text : {"[memory]\nlimit = 3\n", "memory = 1.5\n", "files = [1]\n", "memory = 2020-01-01\n"}) {
    const TemporaryFile kind(text);
    EXPECT_THAT(error_of({}, kind.path()), HasSubstr("this kind of value is not accepted")) << text;
  }
  const TemporaryFile large(std::string(3 << 20, '#'));
  EXPECT_THAT(error_of({}, large.path()), HasSubstr("at most 1.00 MiB"));
}

TEST(ConfigurationFile, IsTheOneNamedElseTheOneThatIsThere) {
  EXPECT_EQ(configuration_file({{"SPILLWAY_CONFIG", "/a/b.toml"}}), "/a/b.toml");
  EXPECT_EQ(configuration_file({{"SPILLWAY_CONFIG", ""}}), "");
  std::string directory = testing::TempDir() + "spillway_config_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  char before[4096];
  ASSERT_NE(::getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(::chdir(directory.c_str()), 0);
  EXPECT_EQ(configuration_file({}), "");
  std::ofstream("spillway.toml") << "stage = 'none'\n";
  EXPECT_EQ(configuration_file({}), "spillway.toml");
  ::unlink("spillway.toml");
  ASSERT_EQ(::chdir(before), 0);
  ::rmdir(directory.c_str());
}

TEST(SpillwayEnvironment, HoldsOurVariablesOnly) {
  ::setenv("SPILLWAY_STAGE", "none=x", 1);
  ::setenv("SPILLWAY", "no", 1);
  const EnvironmentList variables = spillway_environment();
  ::unsetenv("SPILLWAY_STAGE");
  ::unsetenv("SPILLWAY");
  EXPECT_THAT(variables, testing::Contains(testing::Pair("SPILLWAY_STAGE", "none=x")));
  for (const auto& [name, value] : variables) EXPECT_TRUE(name.starts_with("SPILLWAY_")) << name;
}

TEST(AutomaticMemory, IsAShareOfNodeAndSharedMemory) {
  EXPECT_EQ(automatic_memory_bytes(256 * kGiB, 128 * kGiB, 64), 512 * kMiB);
  EXPECT_EQ(automatic_memory_bytes(256 * kGiB, 64 * kMiB, 4), 8 * kMiB);
  EXPECT_EQ(automatic_memory_bytes(8 * kGiB, 4 * kGiB, 0), kGiB);
}

TEST(ConfigurationMarkdown, NamesEveryOptionInEveryPlace) {
  const std::string text = configuration_markdown();
  for (const OptionSpec& option : option_table()) {
    EXPECT_THAT(text, AllOf(HasSubstr(command_line_name(option)), HasSubstr(environment_name(option))));
  }
  EXPECT_THAT(text, AllOf(HasSubstr("hint `spillway_memory`"), HasSubstr("SPILLWAY_CONFIG")));
}

TEST(NearestWord, FindsSlipsAndNothingElse) {
  constexpr std::string_view kWords[] = {"stage", "memory", "--drain-bytes", "files"};
  EXPECT_EQ(nearest_word("memroy", kWords), "memory");
  EXPECT_EQ(nearest_word("STAGE", kWords), "stage");
  EXPECT_EQ(nearest_word("--drain_byte", kWords), "--drain-bytes");
  EXPECT_EQ(nearest_word("file", kWords), "files");
  EXPECT_EQ(nearest_word("output", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word(std::string(100000, 'x'), kWords), "");
  EXPECT_EQ(did_you_mean("stge", kWords), "; did you mean 'stage'?");
  EXPECT_EQ(did_you_mean("zzz", kWords), "");
}

}  // namespace
}  // namespace spillway::base

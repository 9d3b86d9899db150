#include "base/summary.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace spillway::base {
namespace {

constexpr std::int64_t kSecond = 1000000000;

RunSummary staged_run() {
  RunSummary run;
  run.node = "n1";
  run.processes = 4;
  run.bytes_written = kGiB;
  run.bytes_staged = kGiB;
  run.waited_ns = 4 * kSecond / 5;
  run.hidden_ns = 32 * kSecond;
  run.drain_ns = 33 * kSecond;
  return run;
}

TEST(SummaryText, SaysWhatWasWrittenWaitedAndHidden) {
  EXPECT_EQ(summary_text(staged_run()),
            "wrote 1.00 GiB; the program waited 0.20 s, 8.00 s of I/O were hidden (97 %); 0 errors");
}

TEST(SummaryText, SaysPlainlyWhenStagingDidNotHelp) {
  RunSummary run = staged_run();
  run.hidden_ns = 0;
  EXPECT_EQ(summary_text(run),
            "wrote 1.00 GiB; the program waited 0.20 s, no I/O was hidden: staging did not help; 0 errors");
  run.hidden_ns = kSecond / 25;
  EXPECT_EQ(summary_text(run),
            "wrote 1.00 GiB; the program waited 0.20 s, 0.01 s of I/O were hidden (4 %): staging did not "
            "help; 0 errors");
  run.bytes_staged = 0;
  EXPECT_EQ(summary_text(run), "wrote 1.00 GiB; the program waited 0.20 s, nothing was staged; 0 errors");
}

TEST(SummaryText, SaysPlainlyWhenNothingWasWritten) {
  EXPECT_EQ(summary_text(RunSummary{}), "nothing was written through MPI-IO");
  RunSummary run;
  run.processes = 2;
  run.bytes_read = kMiB;
  run.waited_ns = kSecond;
  EXPECT_EQ(summary_text(run), "nothing was written through MPI-IO, 1.00 MiB were read; the program waited 0.50 s");
}

TEST(SummaryText, ShowsErrorsTheFirstOneAndWhatIsPending) {
  RunSummary run = staged_run();
  run.errors = 1;
  run.first_error = "write of 4 bytes: No space left on device (/scratch/out)";
  run.pending_bytes = 3 * kMiB;
  EXPECT_EQ(summary_text(run),
            "wrote 1.00 GiB; the program waited 0.20 s, 8.00 s of I/O were hidden (97 %); 1 error, first: "
            "write of 4 "
            "bytes: No space left on device (/scratch/out); 3.00 MiB are not in the file system yet");
  RunSummary failed;
  failed.errors = 2;
  EXPECT_EQ(summary_text(failed), "nothing was written through MPI-IO; 2 errors");
}

TEST(SummaryLine, ComesBackAsItWas) {
  RunSummary run = staged_run();
  run.bytes_read = 7;
  run.errors = 2;
  run.pending_bytes = 12;
  run.first_error = "a \"quoted\" path\\with\ttab, caf\xc3\xa9";
  const std::string line = summary_line(run);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  Result<RunSummary> back = parse_summary_line(line);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(summary_line(*back), line);
  EXPECT_EQ(back->first_error, run.first_error);
  EXPECT_EQ(back->hidden_ns, run.hidden_ns);
}

TEST(SummaryLine, HasTheFormatOfTheProtocol) {
  RunSummary run;
  run.node = "n1";
  run.processes = 4;
  EXPECT_EQ(summary_line(run),
            R"({"node":"n1","processes":4,"bytes_written":0,"bytes_read":0,"bytes_staged":0,"waited_ns":0,)"
            R"("hidden_ns":0,"drain_ns":0,"errors":0,"pending_bytes":0,"first_error":""})");
}

TEST(SummaryLine, SkipsKeysItDoesNotKnow) {
  const Result<RunSummary> run = parse_summary_line(R"({ "later" : "x", "also":9 , "bytes_written": 5})");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run.value().bytes_written, 5);
}

TEST(SummaryLine, RefusesWhatIsNotOne) {
  for (const char* line :
       {"", "{", "{}x", "[1]", "{\"a\"}", "{\"a\":}", "{\"a\":-1}", "{\"a\":1.5}", "{\"a\":99999999999999999999}",
        "{\"a\":1 \"b\":2}", "{\"a\":\"x}", "{\"a\":\"\\u00\"}", "{\"a\":\"\\n\"}", "{\"a\":1,}"}) {
    EXPECT_EQ(parse_summary_line(line).status().code(), Code::corrupt) << line;
  }
}

TEST(AddSummary, AddsNumbersAndKeepsTheFirstError) {
  RunSummary total;
  RunSummary bad = staged_run();
  bad.errors = 1;
  bad.first_error = "first";
  add_summary(total, staged_run());
  add_summary(total, bad);
  bad.first_error = "second";
  bad.bytes_read = INT64_MAX;
  add_summary(total, bad);
  add_summary(total, bad);
  EXPECT_EQ(total.processes, 16);
  EXPECT_EQ(total.bytes_written, 4 * kGiB);
  EXPECT_EQ(total.bytes_read, INT64_MAX);
  EXPECT_EQ(total.errors, 3);
  EXPECT_EQ(total.first_error, "first");
}

}  // namespace
}  // namespace spillway::base

#include "base/activity.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

class HandClock final : public Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override { return now_ns_; }
  void pass(std::int64_t ns) { now_ns_ += ns; }

 private:
  std::int64_t now_ns_ = 1000;
};

TEST(Activity, HiddenIsDrainTimeOutsideOfCalls) {
  HandClock clock;
  Activity activity(clock);
  {
    const Activity::Call call(activity);
    clock.pass(10);
  }
  {
    const Activity::Drain drain(activity);
    clock.pass(70);  // while the program computes
    const Activity::Call call(activity);
    const Activity::Call nested(activity);
    clock.pass(5);  // while it waits
  }
  const RunSummary summary = activity.summary();
  EXPECT_EQ(summary.waited_ns, 15);
  EXPECT_EQ(summary.drain_ns, 75);
  EXPECT_EQ(summary.hidden_ns, 70);
}

TEST(Activity, KeepsTheFirstErrorAndCountsAll) {
  HandClock clock;
  Activity activity(clock);
  activity.failed(Status(Code::no_space, "first"));
  activity.failed(Status(Code::io, "second"));
  EXPECT_EQ(activity.summary().errors, 2);
  EXPECT_EQ(activity.summary().first_error, "no_space: first");
}

}  // namespace
}  // namespace spillway::base

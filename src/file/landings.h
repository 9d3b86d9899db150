#pragma once

#include <vector>

#include "collective/landing.h"
#include "file/io_context.h"

namespace spillway::file {

// A collective write lands in the journal: it is complete with the commit of the node's team, and drained afterwards.
class StagedLanding final : public collective::WriteLanding {
 public:
  explicit StagedLanding(IoContext& context) : context_(context) {}
  Status accept(extent::RunCursor& cursor, std::vector<collective::LandingRef>& refs) override;
  collective::LandingView resolve(const collective::LandingRef& ref, std::int64_t bytes) override;
  Status finish(bool keep) override;
  [[nodiscard]] bool finish_may_fail() const override { return false; }

 private:
  IoContext& context_;
  std::vector<journal::RecordId> round_;
};

// Nothing is staged: a collective write lands in scratch memory and is in the file before the call returns.
class DirectLanding final : public collective::WriteLanding {
 public:
  explicit DirectLanding(IoContext& context) : context_(context) {}
  Status accept(extent::RunCursor& cursor, std::vector<collective::LandingRef>& refs) override;
  collective::LandingView resolve(const collective::LandingRef& ref, std::int64_t bytes) override;
  Status finish(bool keep) override;
  [[nodiscard]] bool finish_may_fail() const override { return true; }

 private:
  IoContext& context_;
  std::vector<journal::RecordId> round_;
};

// A collective read comes from scratch memory that an aggregator fills.
class ScratchReadLanding final : public collective::ReadLanding {
 public:
  explicit ScratchReadLanding(IoContext& context) : context_(context) {}
  Status fetch(extent::RunCursor& cursor, std::vector<collective::LandingRef>& refs) override;
  collective::LandingView resolve(const collective::LandingRef& ref, std::int64_t bytes) override;
  void release() override;

 private:
  IoContext& context_;
  std::vector<journal::RecordId> round_;
};

}  // namespace spillway::file

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.h"
#include "collective/call.h"

namespace spillway::file {

// The settings of one open file: those of the process, changed by hints (MPI-4.1 §14.2.8). Understands spillway_* keys, the reserved
// keys and those of ROMIO that mean something here; others are kept to be shown again and otherwise ignored, as MPI demands.
class Hints {
 public:
  // `ranks` opened the file together. One of them warns about hints that cannot be applied.
  Hints(const base::Settings& settings, int ranks, bool warn) : settings_(settings), ranks_(ranks), warn_(warn) {}

  // Applies one hint. A value outside what is accepted is ignored, with one warning that names key, value and what is accepted.
  void set(std::string_view key, std::string_view value);
  // Every supported key with the value in force, then the foreign ones as given: what MPI_File_get_info shows.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> in_force() const;

  [[nodiscard]] const base::Settings& settings() const { return settings_; }
  // The buffer limit: spillway_memory, else the process's setting where it is explicit, else cb_buffer_size where it was given (ABT
  // §3.3), else `default_limit`. Zero when nothing is to be staged.
  [[nodiscard]] std::int64_t limit(std::int64_t default_limit) const;
  [[nodiscard]] collective::Policy write_policy() const { return policy(write_buffering_); }
  [[nodiscard]] collective::Policy read_policy() const { return policy(read_buffering_); }

 private:
  enum class Buffering { automatic, enable, disable };
  using Setter = bool (Hints::*)(std::string_view);
  struct Key {
    std::string_view name;
    std::string_view accepted;
    Setter set;
    std::string (Hints::*show)() const;
  };
  static const Key kKeys[];

  [[nodiscard]] collective::Policy policy(Buffering buffering) const;
  bool set_cb_buffer_size(std::string_view value);
  bool set_cb_nodes(std::string_view value);
  bool set_cb_config_list(std::string_view value);
  bool set_cb_write(std::string_view value);
  bool set_cb_read(std::string_view value);
  bool set_collective_buffering(std::string_view value);
  bool set_striping_unit(std::string_view value);
  bool ignore(std::string_view value);
  [[nodiscard]] std::string show_cb_buffer_size() const;
  [[nodiscard]] std::string show_cb_nodes() const;
  [[nodiscard]] std::string show_cb_config_list() const;
  [[nodiscard]] std::string show_cb_write() const;
  [[nodiscard]] std::string show_cb_read() const;
  [[nodiscard]] std::string show_collective_buffering() const;
  [[nodiscard]] std::string show_striping_unit() const;
  [[nodiscard]] std::string show_true() const { return "true"; }
  [[nodiscard]] std::string show_disable() const { return "disable"; }

  void warn(const std::string& text) const;

  base::Settings settings_;
  int ranks_;
  bool warn_;
  std::optional<std::int64_t> cb_buffer_bytes_;
  std::int64_t aggregators_max_ = 0;
  std::int64_t aggregators_per_node_max_ = 0;
  std::int64_t striping_bytes_ = 0;
  Buffering write_buffering_ = Buffering::automatic;
  Buffering read_buffering_ = Buffering::automatic;
  std::vector<std::pair<std::string, std::string>> foreign_;
};

}  // namespace spillway::file

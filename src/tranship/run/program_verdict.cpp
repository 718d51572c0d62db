#include "tranship/run/program_verdict.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/base/mutex.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/program/verify.hpp>

namespace tranship {
namespace {

using Numbers = std::vector<std::uint64_t>;

/// The programs that this process has found right. They are compared as a whole, because a hash could be forged.
class RightPrograms {
 public:
  std::optional<ProgramVerdict> find(const Numbers& numbers) {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (entry.numbers == numbers) return entry.verdict;
    return std::nullopt;
  }
  void add(const Numbers& numbers, ProgramVerdict verdict) {
    if (numbers.size() > numbers_max / 4) return;
    const std::lock_guard lock(mutex_);
    size_ += numbers.size();
    entries_.push_back({numbers, verdict});
    for (; size_ > numbers_max; entries_.pop_front()) size_ -= entries_.front().numbers.size();
  }

 private:
  static constexpr std::size_t numbers_max = 4 << 20;  ///< 8 bytes each
  struct Entry {
    Numbers numbers;
    ProgramVerdict verdict;
  };

  Mutex mutex_;
  std::deque<Entry> entries_;
  std::size_t size_ = 0;
};

RightPrograms& right_programs() {
  static auto& programs = *new RightPrograms;
  return programs;
}
std::atomic<Index> verified_count = 0;

struct Said {
  ProgramVerdict verdict;
  std::optional<Error> refusal;
};

Said verdict_of(const Program& program, const Numbers& numbers) {
  if (const auto known = right_programs().find(numbers)) return {*known, std::nullopt};
  ++verified_count;
  try {
    const Verification verified = verify(program);
    // One line, like all messages.
    std::string found = verified.text();
    while (found.ends_with('\n')) found.pop_back();
    for (std::size_t at = 0; (at = found.find('\n', at)) != std::string::npos;) found.replace(at, 1, "; ");
    if (!verified.is_right())
      return {{},
              make_error(ErrorCode::invalid_use, "the program \"{}\" is not right: {}",
                         printable(program.name, name_chars_max), found)};
    const ProgramVerdict verdict{.needs_meeting = verified.needs_meeting};
    right_programs().add(numbers, verdict);
    return {verdict, std::nullopt};
  } catch (const Error& error) {
    return {{}, error};
  }
}

/// Extends the timeout of waits, because a proof may take longer; VerifyOptions::work_max bounds it.
class PatientWaits {
 public:
  explicit PatientWaits(World& world) : world_(world), timeout_ns_(world.timeout_ns()) {
    constexpr std::int64_t proof_ns_max = 600'000'000'000;
    world.set_timeout_ns(std::max(timeout_ns_, proof_ns_max));
  }
  ~PatientWaits() { world_.set_timeout_ns(timeout_ns_); }
  PatientWaits(const PatientWaits&) = delete;
  PatientWaits& operator=(const PatientWaits&) = delete;

 private:
  World& world_;
  std::int64_t timeout_ns_;
};

}  // namespace

ProgramVerdict verdict_on(World& world, const Program& program, CallSite where) {
  constexpr Rank judge = 0;
  Said said;
  if (world.rank() == judge) said = verdict_of(program, numbers_of(program));
  const Result<void> mine = said.refusal ? Result<void>(*said.refusal) : Result<void>();
  const auto any = [](std::uint8_t a, std::uint8_t b) { return std::uint8_t(a | b); };
  const PatientWaits patient(world);
  const Call call{.kind = CallKind::agreement, .size_bytes = 1};
  return {.needs_meeting =
              agree(world.team(), call, mine, std::uint8_t(said.verdict.needs_meeting), any, "", where) != 0};
}

Index programs_verified() noexcept {
  return verified_count;
}

}  // namespace tranship

#include <algorithm>

#include <harness/contest.hpp>

#include <tranship/base/fail.hpp>

namespace tranship::bench {

Contest::Contest(std::vector<std::shared_ptr<Contender>>& contenders, const contest::Work& work, ContestOptions options)
    : contenders_(contenders), options_(options) {
  check_rounds(options_.rounds);
  for (auto& contender : contenders_) {
    if (!contender) continue;
    const std::string name = contender->name();
    try {
      const auto methods = contender->open(work);
      for (std::size_t m = 0; m < methods.size(); ++m) {
        if (methods[m].wrong_cells == 0)
          entries_.push_back({&contender, int(m), methods[m].name, methods[m].moved_bytes});
        else
          absences_.push_back({name, methods[m].name, fmt::format("wrong in {} cells", methods[m].wrong_cells)});
      }
    } catch (const Error& error) {
      absences_.push_back({name, "", error.what()});
      contender = nullptr;
    }
  }
}

Contest::~Contest() {
  for (auto& contender : contenders_) {
    if (!contender) continue;
    try {
      contender->close();
    } catch (const Error&) {
      contender = nullptr;  // it is started anew when it is needed again
    }
  }
}

void Contest::lose(const Entry& entry, const std::string& reason) {
  absences_.push_back({(*entry.contender)->name(), entry.method_name, reason});
  *entry.contender = nullptr;
}

std::vector<Score> Contest::scores(contest::Freshness freshness) {
  std::vector<std::vector<double>> samples_ns(entries_.size());
  std::vector<int> ops(entries_.size(), 1);
  const auto play = [&](std::size_t e, int count) {
    const Entry& entry = entries_[e];
    if (!*entry.contender) return std::vector<double>();
    try {
      return (*entry.contender)->run(entry.method, freshness, count);
    } catch (const Error& error) {
      lose(entry, error.what());
      return std::vector<double>();
    }
  };

  // One operation to see how many fill a turn; the check has been one to get going.
  for (std::size_t e = 0; e < entries_.size(); ++e) {
    const std::int64_t begin_ns = options_.clock_ns();
    play(e, 1);
    const std::int64_t each_ns = std::max<std::int64_t>(1, options_.clock_ns() - begin_ns);
    ops[e] = static_cast<int>(std::clamp<std::int64_t>(options_.turn_ns / each_ns, options_.ops_min, contest::ops_max));
  }
  take_turns(static_cast<int>(entries_.size()), options_.rounds, [&](int e) {
    auto times_ns = play(e, ops[e]);
    if (!times_ns.empty()) samples_ns[e].push_back(median(std::move(times_ns)));
  });

  std::vector<Score> scores;
  for (std::size_t e = 0; e < entries_.size(); ++e)
    if (*entries_[e].contender)
      scores.push_back({(*entries_[e].contender)->name(), entries_[e].method_name, median(std::move(samples_ns[e])),
                        entries_[e].moved_bytes});
  return scores;
}

}  // namespace tranship::bench

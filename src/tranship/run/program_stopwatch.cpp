#include "tranship/run/program_stopwatch.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include <tranship/program/collective.hpp>
#include <tranship/run/launch_timer.hpp>

namespace tranship {
namespace {

constexpr Index signals_bytes = 64;
constexpr ProgramOptions measured_options{.type = ElementType::f32};
constexpr Index element_bytes = 4;

}  // namespace

ProgramStopwatch::ProgramStopwatch(World& world, int launches, int passes, std::shared_ptr<const Program> signals)
    : world_(world),
      launches_(launches),
      passes_(passes),
      signals_(std::move(signals)),
      signals_executor_(world, *signals_, signals_bytes / element_bytes, measured_options) {}

bool ProgramStopwatch::is_usual(const Sample& sample) const noexcept {
  constexpr double factor = 1.3;
  const auto is_like_usual = [&](double ns) {
    return ns <= factor * usual_signals_ns_ && usual_signals_ns_ <= factor * ns;
  };
  return is_like_usual(sample.before_ns) && is_like_usual(sample.after_ns);
}

std::ptrdiff_t ProgramStopwatch::usual(const Samples& samples) const {
  return std::count_if(samples.all.begin(), samples.all.end(), [&](const Sample& one) { return is_usual(one); });
}

bool ProgramStopwatch::has_enough(const Samples& samples) const {
  return std::ssize(samples.all) >= 4 * std::ptrdiff_t(passes_) || usual(samples) >= passes_;
}

void ProgramStopwatch::take_passes(FunctionRef<void()> measure) {
  do {
    ++pass_;
    measure();
  } while (!std::all_of(samples_.begin(), samples_.end(), [&](const auto& one) { return has_enough(one.second); }));
}

double ProgramStopwatch::launch_ns(const Program& program, Index input_bytes) {
  Samples& samples = samples_[{program.name, input_bytes}];
  const bool is_new_pass = std::exchange(samples.pass, pass_) != pass_;
  if (is_new_pass && !has_enough(samples)) {
    Sample& sample = samples.all.emplace_back();
    sample.before_ns = time_signals_ns();
    sample.ns = measured_ns(program, input_bytes);
    sample.after_ns = time_signals_ns();
  }
  // Others count only when there is no usual one.
  const bool any_usual = usual(samples) > 0;
  double best_ns = std::numeric_limits<double>::infinity();
  for (const Sample& one : samples.all)
    if (!any_usual || is_usual(one)) best_ns = std::min(best_ns, one.ns);
  return best_ns;
}

bool ProgramStopwatch::is_usual(const Program& program, Index input_bytes) const {
  const auto found = samples_.find({program.name, input_bytes});
  return found != samples_.end() && usual(found->second) > 0;
}

Index ProgramStopwatch::unusual() const {
  return std::count_if(samples_.begin(), samples_.end(), [&](const auto& one) { return usual(one.second) == 0; });
}

double ProgramStopwatch::time_signals_ns() {
  constexpr int rounds = 16;
  LaunchTimer timer(world_);
  std::vector<std::int64_t> times;
  for (int i = 0; i < rounds; ++i) times.push_back(timer.time_ns([&] { signals_executor_.run(); }));
  const auto ns = static_cast<double>(median_of(std::move(times)));
  signals_ns_.insert(std::upper_bound(signals_ns_.begin(), signals_ns_.end(), ns), ns);
  usual_signals_ns_ = signals_ns_[signals_ns_.size() / 2];
  return ns;
}

// Launches on inputs that each rank has just written.
double ProgramStopwatch::measured_ns(const Program& program, Index input_bytes) {
  const Index more = (16 << 20) / std::max<Index>(input_bytes, 1);
  const int launches = launches_ * static_cast<int>(std::clamp<Index>(more, 1, 32));
  ProgramExecutor executor(world_, program, input_elements(program, input_bytes, element_bytes), measured_options);
  const std::span<std::byte> input = executor.input(), output = executor.output();
  LaunchTimer timer(world_);
  std::vector<std::int64_t> times;
  for (int launch = 0; launch < launches; ++launch) {
    std::fill(input.begin(), input.end(), static_cast<std::byte>(launch % 64));  // gives small numbers
    times.push_back(timer.time_ns([&] { executor.run(); }));
    // Users read the output, too: it then lies in the rank's caches when a peer writes there again.
    for (std::size_t i = 0; i < output.size(); i += 64) seen_ = static_cast<unsigned char>(output[i]);
  }
  return static_cast<double>(median_of(std::move(times)));
}

}  // namespace tranship

#include "tranship/run/program_trial.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <tranship/base/fail.hpp>
#include <tranship/base/random.hpp>
#include <tranship/kernels/half.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/run/launch_timer.hpp>

namespace tranship {
namespace {

constexpr Index period = 4093;  // a prime, so that chunks of equal sizes begin differently

/// Small numbers that every type holds exactly, together with their sums and other combinations over ranks.
int brought(Rank rank, Rank ranks, Index i, int launch, Reduction reduction) {
  const auto place = static_cast<std::uint64_t>((i + launch) % period);
  if (reduction == Reduction::product) return splitmix64(place) % std::uint64_t(ranks) == std::uint64_t(rank) ? 2 : 1;
  return static_cast<int>(splitmix64(place + static_cast<std::uint64_t>(rank) * period) % 4);
}

int combined(Reduction reduction, int a, int b) {
  switch (reduction) {
    case Reduction::product:
      return a * b;
    case Reduction::minimum:
      return std::min(a, b);
    case Reduction::maximum:
      return std::max(a, b);
    default:
      return a + b;
  }
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

void store_number(std::byte* to, ElementType type, int value) {
  switch (type) {
    case ElementType::i8:
      return store(to, static_cast<std::int8_t>(value));
    case ElementType::u8:
      return store(to, static_cast<std::uint8_t>(value));
    case ElementType::i16:
      return store(to, static_cast<std::int16_t>(value));
    case ElementType::u16:
      return store(to, static_cast<std::uint16_t>(value));
    case ElementType::i32:
    case ElementType::u32:
      return store(to, value);
    case ElementType::i64:
    case ElementType::u64:
      return store(to, std::int64_t(value));
    case ElementType::f16:
      return store(to, f16_of_float(static_cast<float>(value)));
    case ElementType::bf16:
      return store(to, bf16_of_float(static_cast<float>(value)));
    case ElementType::f32:
      return store(to, static_cast<float>(value));
    case ElementType::f64:
      return store(to, static_cast<double>(value));
    default:
      throw_error(ErrorCode::unsupported, "a program cannot be tried on elements of {}", name_of(type));
  }
}

/// A periodic sequence of elements. It is written to memory, and compared with it, in long stretches, so that this
/// takes no longer than the launches in between.
class Cycle {
 public:
  /// Calls value_at(i) for i = 0 .. period - 1.
  template <class F>
  Cycle(ElementType type, F&& value_at) : width_(static_cast<std::size_t>(size_bytes(type))) {
    bytes_.resize(static_cast<std::size_t>(period) * width_);
    for (Index i = 0; i < period; ++i) {
      values_.push_back(value_at(i));
      store_number(bytes_.data() + static_cast<std::size_t>(i) * width_, type, values_.back());
    }
  }
  int operator[](Index i) const { return values_[static_cast<std::size_t>(i % period)]; }

  /// Writes `count` elements of the sequence from element `first` on.
  void write(std::byte* to, Index first, Index count) const {
    for_each_stretch(first, count, [&](Index done, const std::byte* from, std::size_t bytes) {
      std::memcpy(to + static_cast<std::size_t>(done) * width_, from, bytes);
      return true;
    });
  }
  /// The index of the first of `count` elements that differs; `count` when none does.
  Index first_difference(const std::byte* from, Index first, Index count) const {
    Index found = count;
    for_each_stretch(first, count, [&](Index done, const std::byte* wanted, std::size_t bytes) {
      const std::byte* const seen = from + static_cast<std::size_t>(done) * width_;
      if (std::memcmp(seen, wanted, bytes) == 0) return true;
      found = done;
      for (std::size_t at = 0; std::memcmp(seen + at, wanted + at, width_) == 0; at += width_) ++found;
      return false;
    });
    return found;
  }

 private:
  template <class F>
  void for_each_stretch(Index first, Index count, F&& f) const {
    for (Index done = 0; done < count;) {
      const Index at = (first + done) % period, stretch = std::min(period - at, count - done);
      if (!f(done, bytes_.data() + static_cast<std::size_t>(at) * width_, static_cast<std::size_t>(stretch) * width_))
        return;
      done += stretch;
    }
  }

  std::size_t width_;
  std::vector<int> values_;
  std::vector<std::byte> bytes_;
};

/// The promise of a collective: each stretch of an output is the same stretch of all ranks' inputs combined, or a
/// stretch of one input.
class Promise {
 public:
  Promise(const Program& program, Rank rank, Index elements, ElementType type, Reduction reduction)
      : collective_(program.collective),
        ranks_(static_cast<Rank>(program.ranks.size())),
        rank_(rank),
        elements_(elements),
        type_(type),
        reduction_(reduction) {}

  bool is_known() const {
    return is_one_of({"allreduce", "reducescatter", "allgather", "alltoall", "sendrecv", "broadcast"});
  }
  /// Returns true when only one rank, any rank, must hold the result.
  bool is_of_one_rank() const { return is_one_of({"reduce"}); }
  bool has_sum(std::span<const std::byte> output, Index count, int launch) const {
    return sum_of_all(launch).first_difference(output.data(), 0, count) == count;
  }

  Cycle input_of(Rank rank, int launch) const {
    return {type_, [&](Index i) { return brought(rank, ranks_, i, launch, reduction_); }};
  }

  /// For a program that chooses its source: the rank whose input the output is; when it is no rank's, any possible one.
  Rank source_of(std::span<const std::byte> output, Index count, int launch) const {
    const bool may_be_own = is_one_of({"broadcast"}) || ranks_ == 1;
    for (Rank source = 0; source < ranks_; ++source)
      if ((may_be_own || source != rank_) &&
          input_of(source, launch).first_difference(output.data(), 0, count) == count)
        return source;
    return may_be_own || rank_ + 1 < ranks_ ? ranks_ - 1 : ranks_ - 2;
  }
  bool has_one_source() const { return is_one_of({"broadcast"}); }
  bool chooses_source() const { return is_one_of({"sendrecv", "broadcast"}); }

  /// Throws `internal` for the first element that is not as promised.
  void check(std::span<const std::byte> output, Index count, int launch, Rank source) const {
    if (is_one_of({"allreduce", "reducescatter"})) {
      const Index first = is_one_of({"reducescatter"}) ? rank_ * (elements_ / ranks_) : 0;
      return check(sum_of_all(launch), output, 0, first, count, launch);
    }
    if (chooses_source()) return check(input_of(source, launch), output, 0, 0, count, launch);
    const bool is_whole = is_one_of({"allgather"});
    const Index each = is_whole ? elements_ : elements_ / ranks_;
    for (Rank from = 0; from < ranks_; ++from) {
      const Index begin = std::min(from * each, count), end = std::min(begin + each, count);
      check(input_of(from, launch), output, begin, is_whole ? 0 : rank_ * each, end - begin, launch);
    }
  }

 private:
  bool is_one_of(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), collective_) != names.end();
  }
  Cycle sum_of_all(int launch) const {
    return {type_, [&](Index i) {
              int sum = brought(0, ranks_, i, launch, reduction_);
              for (Rank rank = 1; rank < ranks_; ++rank)
                sum = combined(reduction_, sum, brought(rank, ranks_, i, launch, reduction_));
              return sum;
            }};
  }
  void check(const Cycle& wanted, std::span<const std::byte> output, Index begin, Index first, Index count,
             int launch) const {
    const std::byte* const from = output.data() + static_cast<std::size_t>(begin * size_bytes(type_));
    const Index found = wanted.first_difference(from, first, count);
    if (found == count) return;
    std::string seen;
    for (Index i = 0; i < size_bytes(type_); ++i)
      seen += fmt::format(" {:02x}", std::to_integer<unsigned>(from[found * size_bytes(type_) + i]));
    throw_error(ErrorCode::internal,
                "element {} of the output of rank {} has the bytes{}, not {} as {} promises (launch {})", begin + found,
                rank_, seen, wanted[first + found], collective_, launch);
  }

  std::string_view collective_;
  Rank ranks_, rank_;
  Index elements_;
  ElementType type_;
  Reduction reduction_;
};

Reduction reduction_of(const Program& program) {
  std::optional<Reduction> found;
  for (const RankProgram& rank : program.ranks)
    for_each_step(rank, [&](const Step& step, const Pipeline*) {
      if (!found && step.names_reduction && combines(step)) found = step.reduction;
    });
  return found.value_or(Reduction::sum);
}

}  // namespace

ProgramTrialResult try_program(World& world, const Program& program, const ProgramTrial& trial) {
  ProgramExecutor executor(world, program, trial.elements, trial.program);
  const Reduction reduction = trial.program.reduction.value_or(reduction_of(program));
  const Promise promise(program, world.rank(), trial.elements, trial.program.type, reduction);
  LaunchTimer timer(world);

  ProgramTrialResult result;
  result.output_elements = executor.output_elements();
  for (int launch = 0; launch < trial.launches; ++launch) {
    promise.input_of(world.rank(), launch).write(executor.input().data(), 0, executor.input_elements());
    result.launches_ns.push_back(timer.time_ns([&] { executor.run(); }));
    if (promise.is_of_one_rank()) {
      const bool is_right = promise.has_sum(executor.output(), result.output_elements, launch);
      const auto any = [](std::uint8_t a, std::uint8_t b) { return std::uint8_t(a | b); };
      if (world.team().reduce(std::uint8_t{is_right}, any) == 0)
        throw_error(ErrorCode::internal, "no rank has the result that {} promises (launch {})", program.collective,
                    launch);
      result.compared += result.output_elements;
    }
    if (!promise.is_known()) continue;
    Rank source = 0;
    if (promise.chooses_source()) source = promise.source_of(executor.output(), result.output_elements, launch);
    // All ranks hold the input of one source, so the first rank's finding counts for all.
    if (promise.has_one_source()) world.broadcast(&source, sizeof source, 0);
    promise.check(executor.output(), result.output_elements, launch, source);
    result.compared += result.output_elements;
  }
  result.steps = executor.steps();
  return result;
}

}  // namespace tranship

#include <algorithm>
#include <cstring>
#include <span>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/kernels/half.hpp>
#include <tranship/run/program_trial.hpp>

namespace tranship {
namespace {

/// Small numbers, which every type holds exactly, as do their sums over ranks and their other combinations.
int brought(Rank rank, Rank ranks, Index i, int launch, Reduction reduction) {
  const Index mixed = Index(rank) * 7 + i * 3 + launch;
  if (reduction == Reduction::product) return (i + launch) % ranks == rank ? 2 : 1;
  return static_cast<int>(mixed % 4);
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
      throw_error(ErrorCode::unsupported, "a program is not tried on elements of {}", name_of(type));
  }
}

/// What a collective promises at one place of an output: the same place of all ranks' inputs combined, or one input.
class Promise {
 public:
  Promise(const Program& program, Rank rank, Index elements, Reduction reduction)
      : collective_(program.collective),
        ranks_(static_cast<Rank>(program.ranks.size())),
        rank_(rank),
        elements_(elements),
        reduction_(reduction) {}

  bool is_known() const {
    return is_one_of({"allreduce", "reduce", "reducescatter", "allgather", "alltoall", "sendrecv", "broadcast"});
  }
  /// Of a sendrecv or a broadcast: the output tells whose input it is.
  bool chooses_source() const { return is_one_of({"sendrecv", "broadcast"}); }

  int at(Index i, int launch, Rank source) const {
    if (is_one_of({"allreduce", "reduce"})) return of_all(i, launch);
    if (is_one_of({"reducescatter"})) return of_all(rank_ * (elements_ / ranks_) + i, launch);
    if (is_one_of({"allgather"}))
      return brought(static_cast<Rank>(i / elements_), ranks_, i % elements_, launch, reduction_);
    if (chooses_source()) return brought(source, ranks_, i, launch, reduction_);
    const Index block = elements_ / ranks_;
    return brought(static_cast<Rank>(i / block), ranks_, rank_ * block + i % block, launch, reduction_);
  }

 private:
  bool is_one_of(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), collective_) != names.end();
  }
  int of_all(Index i, int launch) const {
    int sum = brought(0, ranks_, i, launch, reduction_);
    for (Rank rank = 1; rank < ranks_; ++rank)
      sum = combined(reduction_, sum, brought(rank, ranks_, i, launch, reduction_));
    return sum;
  }

  std::string_view collective_;
  Rank ranks_, rank_;
  Index elements_;
  Reduction reduction_;
};

Reduction reduction_of(const Program& program) {
  for (const RankProgram& rank : program.ranks)
    for (const ThreadBlock& block : rank.blocks)
      for (const Step& step : block.steps)
        if (step.names_reduction && step.sources > 1) return step.reduction;
  return Reduction::sum;
}

}  // namespace

ProgramTrialResult try_program(World& world, const Program& program, const ProgramTrial& trial) {
  ProgramExecutor executor(world, program, trial.elements, trial.program);
  const Reduction reduction = trial.program.reduction.value_or(reduction_of(program));
  const ElementType type = trial.program.type;
  const auto width = static_cast<std::size_t>(size_bytes(type));
  const Promise promise(program, world.rank(), trial.elements, reduction);
  const std::span<std::byte> input = executor.input(), output = executor.output();
  std::byte wanted[16];

  ProgramTrialResult result;
  result.output_elements = executor.output_elements();
  const auto times = world.allocate<std::int64_t>(world.size());
  for (int launch = 0; launch < trial.launches; ++launch) {
    for (Index i = 0; i < executor.input_elements(); ++i)
      store_number(input.data() + std::size_t(i) * width, type,
                   brought(world.rank(), world.size(), i, launch, reduction));
    world.barrier();
    const std::int64_t begin_ns = now_ns();
    executor.run();
    const std::int64_t own_ns = now_ns() - begin_ns;
    for (Rank peer = 0; peer < world.size(); ++peer) world.context().set(times.slice(world.rank(), 1), own_ns, peer);
    world.context().quiet();
    world.barrier();
    result.launches_ns.push_back(*std::max_element(times.local(), times.local() + world.size()));
    world.barrier();
    if (!promise.is_known() || (program.collective == "reduce")) continue;
    Rank source = 0;
    if (promise.chooses_source()) {
      const auto matches = [&](Rank rank) {
        for (Index i = 0; i < std::min<Index>(16, result.output_elements); ++i) {
          store_number(wanted, type, promise.at(i, launch, rank));
          if (std::memcmp(wanted, output.data() + std::size_t(i) * width, width) != 0) return false;
        }
        return true;
      };
      while (source + 1 < world.size() && !matches(source)) ++source;
    }
    for (Index i = 0; i < result.output_elements; ++i, ++result.compared) {
      const int value = promise.at(i, launch, source);
      store_number(wanted, type, value);
      if (std::memcmp(wanted, output.data() + std::size_t(i) * width, width) != 0)
        throw_error(ErrorCode::internal, "element {} of the output of rank {} is not {}, as {} promises (launch {})", i,
                    world.rank(), value, program.collective, launch);
    }
  }
  result.steps = executor.steps();
  return result;
}

}  // namespace tranship

#include "tranship/face/mscclpp/executor.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/program/collective.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/run/program_executor.hpp>

namespace tranship {
namespace {

constexpr Index plan_bytes_max = Index(1) << 30;

}  // namespace

ExecutionPlan ExecutionPlan::read(const std::string& path) {
  return ExecutionPlan(read_program(posix::read_text(path, plan_bytes_max)));
}

class Executor::State {
 public:
  explicit State(World& world) : world_(world) {}

  void execute(const ExecutionPlan& plan, const void* input, Index input_bytes, void* output, Index output_bytes,
               ElementType type, std::optional<Reduction> reduction, CallSite where) {
    const Program& program = plan.program();
    if (world_.size() != static_cast<int>(program.ranks.size()))
      throw_error(ErrorCode::invalid_use, "the program is for {}, the world has {}",
                  amount(program.ranks.size(), "rank"), world_.size());
    const Index width = size_bytes(type);
    const std::pair<const void*, Index> memories[] = {{input, input_bytes}, {output, output_bytes}};
    for (const auto& [memory, bytes] : memories) {
      if (bytes < 0 || bytes % width != 0)
        throw_error(ErrorCode::invalid_use, "a size of {} is not a whole number of elements of {} ({} each)",
                    amount(bytes, "byte"), name_of(type), amount(width, "byte"));
      if (memory == nullptr && bytes > 0)
        throw_error(ErrorCode::invalid_use, "null memory is given for {} of {}", amount(bytes, "byte"), name_of(type));
    }
    const Index elements =
        elements_of(program, world_.rank(), {.input = input_bytes / width, .output = output_bytes / width});
    require_message(program, elements * width);
    const Key key{plan.program_.get(), elements, type, reduction};
    auto found = ready_.find(key);
    if (found == ready_.end())
      found = ready_
                  .emplace(key, Ready{plan, ProgramExecutor(world_, program, elements,
                                                            {.type = type, .reduction = reduction}, where)})
                  .first;
    ProgramExecutor& executor = found->second.executor;
    if (const Index taken = executor.input_elements() * width; taken != input_bytes)
      throw_error(ErrorCode::invalid_use, "the plan \"{}\" takes {}; the input has {}",
                  printable(program.name, name_chars_max), amount(taken, "byte"), input_bytes);
    if (const Index given = executor.output_elements() * width; given != output_bytes)
      throw_error(ErrorCode::invalid_use, "the plan \"{}\" gives {}; the output has {}",
                  printable(program.name, name_chars_max), amount(given, "byte"), output_bytes);
    executor.run(input, output, where);
  }

  void reset() { ready_.clear(); }

 private:
  using Key = std::tuple<const Program*, Index, ElementType, std::optional<Reduction>>;
  struct Ready {
    ExecutionPlan plan;  // keeps the program, whose address is part of the key
    ProgramExecutor executor;
  };

  World& world_;
  std::map<Key, Ready> ready_;
};

Executor::Executor(World& world) : state_(std::make_unique<State>(world)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

void Executor::execute(const ExecutionPlan& plan, const void* input, Index input_bytes, void* output,
                       Index output_bytes, ElementType type, std::optional<Reduction> reduction, CallSite where) {
  state_->execute(plan, input, input_bytes, output, output_bytes, type, reduction, where);
}

void Executor::reset() {
  state_->reset();
}

}  // namespace tranship

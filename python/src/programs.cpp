// Programs of channel operations: plan files, proofs, the writer behind tranship.mscclpp.language, and execution.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <tranship/base/fail.hpp>
#include <tranship/collectives/world_collectives.hpp>
#include <tranship/face/mscclpp/executor.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/language.hpp>
#include <tranship/program/mscclpp_limits.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/run/program_executor.hpp>

#include "argument.hpp"
#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "rank_handle.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;
namespace lang = tranship::language;

namespace {

/// Rank, letter of the buffer ("i", "o" or "s"), first chunk, number of chunks.
using ChunkTuple = std::tuple<Int, std::string, Whole, Whole>;
/// A thread block, a group, or one block of a group.
using BlocksTuple = std::pair<std::optional<Int>, std::optional<Ints>>;

BufferKind buffer_of(const std::string& letter) {
  if (letter == "i") return BufferKind::input;
  if (letter == "o") return BufferKind::output;
  if (letter == "s") return BufferKind::scratch;
  throw_error(ErrorCode::invalid_use, "there is no buffer \"{}\"; buffers are \"i\", \"o\" and \"s\"", letter);
}
lang::Chunk chunk_of(const ChunkTuple& chunk) {
  const auto& [rank, letter, first, count] = chunk;
  return {rank, buffer_of(letter), first, count};
}
std::vector<lang::Chunk> chunks_of(const std::vector<ChunkTuple>& chunks) {
  std::vector<lang::Chunk> out;
  for (const ChunkTuple& chunk : chunks) out.push_back(chunk_of(chunk));
  return out;
}
lang::ThreadBlocks blocks_of(const BlocksTuple& blocks) {
  const auto& [block, group] = blocks;
  if (!block) return lang::ThreadBlocks(group.value());
  return group ? lang::ThreadBlocks::one_of(*block, *group) : lang::ThreadBlocks(*block);
}
Reduction arithmetic_reduction(const std::string& name) {
  if (name == "sum") return Reduction::sum;
  if (name == "prod") return Reduction::product;
  if (name == "min") return Reduction::minimum;
  if (name == "max") return Reduction::maximum;
  throw_error(ErrorCode::invalid_use,
              "there is no reduction \"{}\"; reductions are \"sum\", \"prod\", \"min\" and \"max\"", name);
}
lang::DataSync sync_of(int sync) {
  return static_cast<lang::DataSync>(sync);
}

/// Calls `f(target, source, blocks, where)`.
template <class Self, class F>
auto transfer(F f) {
  return [f](Self& self, const ChunkTuple& target, const ChunkTuple& source, const BlocksTuple& blocks) {
    f(self, chunk_of(target), chunk_of(source), blocks_of(blocks), python_call_site());
  };
}
/// Calls `f(source, others, blocks, options, where)`.
template <class Self, class F>
auto reduction(F f) {
  return [f](Self& self, const ChunkTuple& source, const std::vector<ChunkTuple>& others, const BlocksTuple& blocks,
             const ChunkTuple& target, const Text& operation) {
    const lang::Chunk to = chunk_of(target);
    f(self, chunk_of(source), chunks_of(others), blocks_of(blocks),
      lang::ReduceOptions{.target = &to, .reduction = arithmetic_reduction(operation)}, python_call_site());
  };
}

void bind_writer(nb::module_& module) {
  using Writer = lang::CollectiveProgram;
  nb::class_<Writer>(module, "ProgramWriter", "A program of the channel language while it is written.")
      .def(
          "__init__",
          [](Writer* self, const Text& name, const Text& collective, const Wholes& input_chunks,
             const Wholes& output_chunks, const Flag& in_place, const Whole& instances, const Text& protocol,
             const Flag& interleaved, const Flag& reuse_resources, const Whole& threads_per_block,
             const Flag& double_scratch, const Whole& buffer_alignment,
             const Argument<std::uint64_t>& message_bytes_min, const Argument<std::uint64_t>& message_bytes_max) {
            lang::Collective what{collective, std::move(input_chunks), std::move(output_chunks), in_place};
            lang::Options options;
            options.instances = instances;
            options.protocol = protocol;
            options.replication = interleaved ? lang::ReplicationPolicy::interleaved : lang::ReplicationPolicy::none;
            options.reuse_resources = reuse_resources;
            options.threads_per_block = threads_per_block;
            options.double_scratch = double_scratch;
            options.buffer_alignment = buffer_alignment;
            options.message_bytes_min = message_bytes_min;
            options.message_bytes_max = message_bytes_max;
            new (self) Writer(name, std::move(what), std::move(options));
          },
          "name"_a, "collective"_a, "input_chunks"_a, "output_chunks"_a, "in_place"_a, "instances"_a, "protocol"_a,
          "interleaved"_a, "reuse_resources"_a, "threads_per_block"_a, "double_scratch"_a, "buffer_alignment"_a,
          "message_bytes_min"_a, "message_bytes_max"_a)
      .def("scratch",
           [](Writer& self, const Int& rank, const Whole& chunks) { return self.scratch(rank, chunks).all().first; })
      .def("chunks_of", [](const Writer& self, const Int& rank,
                           const std::string& buffer) { return self.chunks_of(rank, buffer_of(buffer)); })
      .def("copy", transfer<Writer>([](Writer& self, const auto&... all) { self.copy(all...); }))
      .def("copy_packets", transfer<Writer>([](Writer& self, const auto&... all) { self.copy_packets(all...); }))
      .def("unpack_packets", transfer<Writer>([](Writer& self, const auto&... all) { self.unpack_packets(all...); }))
      .def("reduce", reduction<Writer>([](Writer& self, const auto&... all) { self.reduce(all...); }))
      .def("reduce_packets", reduction<Writer>([](Writer& self, const auto&... all) { self.reduce_packets(all...); }))
      .def("barrier",
           [](Writer& self, const Int& rank, const Ints& blocks) { self.barrier(rank, blocks, python_call_site()); })
      .def(
          "lower",
          [](const Writer& self, const Flag& pairing, const Flag& group_barriers, const Flag& fusion,
             const Flag& data_sync, const Flag& dependencies, const Flag& replication) {
            return self.lower({pairing, group_barriers, fusion, data_sync, dependencies, replication});
          },
          "pairing"_a = true, "group_barriers"_a = true, "fusion"_a = true, "data_sync"_a = true,
          "dependencies"_a = true, "replication"_a = true);

  using Memory = lang::MemoryChannel;
  nb::class_<Memory>(module, "ProgramMemoryChannel")
      .def(
          "__init__",
          [](Memory* self, Writer& program, const Int& target, const Int& source) {
            new (self) Memory(program, {target, source});
          },
          nb::keep_alive<1, 2>())
      .def_prop_ro("id", &Memory::id)
      .def("signal",
           [](Memory& self, const Int& block, const Int& sync, const Flag& relaxed) {
             self.signal(block, {sync_of(sync), relaxed}, python_call_site());
           })
      .def("wait",
           [](Memory& self, const Int& block, const Int& sync, const Flag& relaxed) {
             self.wait(block, {sync_of(sync), relaxed}, python_call_site());
           })
      .def("put", transfer<Memory>([](Memory& self, const auto&... all) { self.put(all...); }))
      .def("get", transfer<Memory>([](Memory& self, const auto&... all) { self.get(all...); }))
      .def("put_packets", transfer<Memory>([](Memory& self, const auto&... all) { self.put_packets(all...); }))
      .def("read_put_packets",
           transfer<Memory>([](Memory& self, const auto&... all) { self.read_put_packets(all...); }))
      .def("reduce", reduction<Memory>([](Memory& self, const auto&... all) { self.reduce(all...); }));

  using Port = lang::PortChannel;
  const auto put = [](auto f) {
    return [f](Port& self, const ChunkTuple& target, const ChunkTuple& source, const Int& block) {
      f(self, chunk_of(target), chunk_of(source), block, python_call_site());
    };
  };
  nb::class_<Port>(module, "ProgramPortChannel")
      .def(
          "__init__",
          [](Port* self, Writer& program, const Int& target, const Int& source) {
            new (self) Port(program, {target, source});
          },
          nb::keep_alive<1, 2>())
      .def_prop_ro("id", &Port::id)
      .def("signal",
           [](Port& self, const Int& block, const Int& sync) { self.signal(block, sync_of(sync), python_call_site()); })
      .def("wait",
           [](Port& self, const Int& block, const Int& sync) { self.wait(block, sync_of(sync), python_call_site()); })
      .def("flush",
           [](Port& self, const Int& block, const Int& sync) { self.flush(block, sync_of(sync), python_call_site()); })
      .def("put", put([](Port& self, const auto&... all) { self.put(all...); }))
      .def("put_with_signal", put([](Port& self, const auto&... all) { self.put_with_signal(all...); }))
      .def("put_with_signal_and_flush",
           put([](Port& self, const auto&... all) { self.put_with_signal_and_flush(all...); }))
      .def("put_packets", put([](Port& self, const auto&... all) { self.put_packets(all...); }))
      .def("read_put_packets", transfer<Port>([](Port& self, const auto&... all) { self.read_put_packets(all...); }));

  using Switch = lang::SwitchChannel;
  nb::class_<Switch>(module, "ProgramSwitchChannel")
      .def(
          "__init__",
          [](Switch* self, Writer& program, const Ints& ranks, const std::string& buffer) {
            new (self) Switch(program, std::move(ranks), buffer_of(buffer));
          },
          nb::keep_alive<1, 2>())
      .def("id_at", &Switch::id_at)
      .def("reduce",
           [](Switch& self, const Int& rank, const Whole& first, const ChunkTuple& target, const Int& block,
              const Text& operation) {
             self.reduce(rank, first, chunk_of(target), block, arithmetic_reduction(operation), python_call_site());
           })
      .def("broadcast",
           [](Switch& self, const Int& rank, const ChunkTuple& source, const Whole& first, const Int& block) {
             self.broadcast(rank, chunk_of(source), first, block, python_call_site());
           })
      .def("broadcast_packets",
           [](Switch& self, const Int& rank, const ChunkTuple& source, const Whole& first, const Int& block) {
             self.broadcast_packets(rank, chunk_of(source), first, block, python_call_site());
           });

  using Counting = lang::Semaphore;
  nb::class_<Counting>(module, "ProgramSemaphore")
      .def(
          "__init__",
          [](Counting* self, Writer& program, const Int& rank, const Whole& initial_value) {
            new (self) Counting(program, rank, initial_value);
          },
          nb::keep_alive<1, 2>())
      .def_prop_ro("id", &Counting::id)
      .def("acquire", [](Counting& self, const Int& block,
                         const Int& sync) { self.acquire(block, sync_of(sync), python_call_site()); })
      .def("release", [](Counting& self, const Int& block, const Int& sync) {
        self.release(block, sync_of(sync), python_call_site());
      });

  using Loop = lang::LoopIterationContext;
  nb::class_<Loop>(module, "ProgramLoop")
      .def(
          "__init__",
          [](Loop* self, Writer& program, const Whole& unit_bytes, const Whole& chunks) {
            new (self) Loop(program, {unit_bytes, chunks});
          },
          nb::keep_alive<1, 2>())
      .def("close", &Loop::close);
}

/// An executor that ends with its rank.
class Executing final : public Resident {
 public:
  Executing(std::shared_ptr<RankHandle> rank, std::unique_ptr<ProgramExecutor> executor)
      : rank_(std::move(rank)), executor_(std::move(executor)) {}
  ~Executing() override { leave(); }
  void leave() noexcept override {
    without_gil([this] { executor_.reset(); });
  }
  ProgramExecutor& executor() const {
    if (!executor_) (void)rank_->world();
    return *executor_;
  }

 private:
  std::shared_ptr<RankHandle> rank_;
  std::unique_ptr<ProgramExecutor> executor_;
};

/// MSCCL++'s executor, which ends with its rank.
class PlanExecuting final : public Resident {
 public:
  explicit PlanExecuting(std::shared_ptr<RankHandle> rank)
      : rank_(std::move(rank)), executor_(std::make_unique<Executor>(rank_->world())) {}
  ~PlanExecuting() override { leave(); }
  void leave() noexcept override {
    without_gil([this] { executor_.reset(); });
  }
  Executor& executor() const {
    if (!executor_) (void)rank_->world();
    return *executor_;
  }

 private:
  std::shared_ptr<RankHandle> rank_;
  std::unique_ptr<Executor> executor_;
};

/// The collectives of a rank, which end with it.
class Collecting final : public Resident {
 public:
  explicit Collecting(std::shared_ptr<RankHandle> rank)
      : rank_(std::move(rank)), collectives_(std::make_unique<WorldCollectives>(rank_->world())) {}
  ~Collecting() override { leave(); }
  void leave() noexcept override {
    without_gil([this] { collectives_.reset(); });
  }
  WorldCollectives& collectives() const {
    if (!collectives_) (void)rank_->world();
    return *collectives_;
  }

 private:
  std::shared_ptr<RankHandle> rank_;
  std::unique_ptr<WorldCollectives> collectives_;
};

/// Address and bytes.
using MemoryTuple = std::pair<Argument<std::uintptr_t>, Whole>;

void bind_plans(nb::module_& module) {
  nb::class_<ExecutionPlan>(module, "ExecutionPlan").def(nb::init<Program>());
  nb::class_<PlanExecuting>(module, "PlanExecutor")
      .def("execute",
           [](const PlanExecuting& self, const ExecutionPlan& plan, const MemoryTuple& input, const MemoryTuple& output,
              const std::string& type, const std::optional<Text>& reduction) {
             const CallSite where = python_call_site();
             Executor& executor = self.executor();
             const ElementType element = element_type_named(type).value();
             std::optional<Reduction> instead;
             if (reduction) instead = arithmetic_reduction(*reduction);
             without_gil([&] {
               executor.execute(plan, reinterpret_cast<const void*>(input.first.value()), input.second,
                                reinterpret_cast<void*>(output.first.value()), output.second, element, instead, where);
             });
           })
      .def("reset", [](const PlanExecuting& self) {
        Executor& executor = self.executor();
        without_gil([&] { executor.reset(); });
      });
  module.def("make_plan_executor", [](const std::shared_ptr<RankHandle>& rank) {
    auto handle = std::make_shared<PlanExecuting>(rank);
    rank->add(handle);
    return handle;
  });
}

/// Address, type and number of elements.
using ElementsTuple = std::tuple<std::uintptr_t, std::string, Index>;
Elements elements_of(const ElementsTuple& elements) {
  const auto& [address, type, count] = elements;
  return {reinterpret_cast<const void*>(address), element_type_named(type).value(), count};
}
MutableElements mutable_elements_of(const ElementsTuple& elements) {
  const auto& [address, type, count] = elements;
  return {reinterpret_cast<void*>(address), element_type_named(type).value(), count};
}

void bind_collectives(nb::module_& module) {
  nb::class_<Collecting>(module, "Collectives")
      .def("use", [](Collecting& self, const Text& algorithm,
                     const Whole& bytes_max) { self.collectives().use(algorithm.value(), bytes_max); })
      .def("measure",
           [](Collecting& self) {
             const CallSite where = python_call_site();
             WorldCollectives& collectives = self.collectives();
             without_gil([&] { collectives.measure(where); });
           })
      .def("explain", [](Collecting& self) { return self.collectives().explain(); })
      .def("algorithm_for",
           [](Collecting& self, const Text& collective, const Whole& bytes) {
             return std::string(self.collectives().algorithm_for(collective.value(), bytes));
           })
      .def("run", [](Collecting& self, const std::string& collective, const ElementsTuple& target,
                     const ElementsTuple& source, const Text& operation, const Int& root) {
        const CallSite where = python_call_site();
        WorldCollectives& collectives = self.collectives();
        const MutableElements to = mutable_elements_of(target);
        const Elements from = elements_of(source);
        const Reduction reduction = arithmetic_reduction(operation);
        without_gil([&] {
          if (collective == "all_reduce") return collectives.all_reduce(to, from, reduction, where);
          if (collective == "reduce_scatter") return collectives.reduce_scatter(to, from, reduction, where);
          if (collective == "all_gather") return collectives.all_gather(to, from, where);
          if (collective == "all_to_all") return collectives.all_to_all(to, from, where);
          if (collective == "broadcast") return collectives.broadcast(to, from, root, where);
          collectives.reduce(to, from, root, reduction, where);
        });
      });
  module.def("make_collectives", [](const std::shared_ptr<RankHandle>& rank) {
    auto handle = std::make_shared<Collecting>(rank);
    rank->add(handle);
    return handle;
  });
}

nb::dict as_dict(const Finding& finding) {
  nb::dict out;
  out["kind"] = name_of(finding.kind);
  out["rank"] = finding.rank;
  out["block"] = finding.block;
  out["step"] = finding.step;
  out["text"] = finding.text;
  return out;
}

}  // namespace

void bind_programs(nb::module_& module) {
  nb::class_<Program>(module, "ChannelProgram", "A program of channel operations.")
      .def_ro("name", &Program::name)
      .def_ro("collective", &Program::collective)
      .def_ro("protocol", &Program::protocol)
      .def_ro("in_place", &Program::in_place)
      .def_ro("message_bytes_min", &Program::message_bytes_min)
      .def_ro("message_bytes_max", &Program::message_bytes_max)
      .def_prop_ro("ranks", [](const Program& self) { return self.ranks.size(); })
      .def_prop_ro("steps", [](const Program& self) { return count_steps(self); })
      .def_prop_ro("unknown_keys",
                   [](const Program& self) {
                     std::vector<std::string> out;
                     for (const UnknownKey& one : self.unknown_keys) out.push_back(path_of(one));
                     return out;
                   })
      .def("to_json", [](const Program& self) { return without_gil([&] { return write_program(self); }); })
      .def("mscclpp_objections",
           [](const Program& self) { return without_gil([&] { return mscclpp_objections(self); }); })
      .def("elements_of",
           [](const Program& self, const Int& rank, const Whole& input, const Whole& output) {
             return elements_of(self, rank, {input, output});
           })
      .def("verify", [](const Program& self, const Int& launches) {
        const Verification found = without_gil([&] { return verify(self, {.launches = launches}); });
        nb::dict out;
        nb::list findings, meeting;
        for (const Finding& finding : found.findings) findings.append(as_dict(finding));
        for (const Finding& finding : found.why_meeting) meeting.append(as_dict(finding));
        out["findings"] = findings;
        out["why_meeting"] = meeting;
        out["found"] = found.found;
        out["steps"] = found.steps;
        out["knows_result"] = found.knows_result;
        out["needs_meeting"] = found.needs_meeting;
        out["text"] = found.text();
        return out;
      });
  module.def("read_program", [](const Text& text) { return without_gil([&] { return read_program(text.value()); }); });
  module.def("step_words", [] {
    nb::dict out;
#define TRANSHIP_STEP(name, word, channel, sources, targets, pairing) out[#name] = word;
#include <tranship/program/steps.def>
#undef TRANSHIP_STEP
    return out;
  });
  module.def("algorithms", [] {
    nb::list out;
    for (const Algorithm& one : algorithms()) {
      nb::dict entry;
      entry["name"] = nb::str(one.name.data(), one.name.size());
      entry["collective"] = nb::str(one.collective.data(), one.collective.size());
      entry["summary"] = nb::str(one.summary.data(), one.summary.size());
      entry["has_packets"] = one.has_packets;
      entry["has_nodes"] = one.has_nodes;
      entry["can_be_in_place"] = one.can_be_in_place;
      out.append(entry);
    }
    return out;
  });
  module.def("make_program", [](const Text& name, const Int& ranks, const Int& ranks_per_node, const Int& root,
                                const Flag& in_place, const Whole& instances) {
    return without_gil([&] { return make_program(name.value(), {ranks, ranks_per_node, root, in_place, instances}); });
  });
  bind_writer(module);
  bind_collectives(module);
  bind_plans(module);

  nb::class_<Executing>(module, "ProgramExecutor", "A program on the ranks of a world.")
      .def_prop_ro("input_elements", [](const Executing& self) { return self.executor().input_elements(); })
      .def_prop_ro("output_elements", [](const Executing& self) { return self.executor().output_elements(); })
      .def("run", [](const Executing& self, std::uintptr_t input, std::uintptr_t output) {
        const CallSite where = python_call_site();
        ProgramExecutor& executor = self.executor();
        without_gil(
            [&] { executor.run(reinterpret_cast<const void*>(input), reinterpret_cast<void*>(output), where); });
      });
  module.def(
      "execute_program", [](const std::shared_ptr<RankHandle>& rank, const Program& program, const Whole& elements,
                            const std::string& type, const std::optional<Text>& reduction) {
        const CallSite where = python_call_site();
        ProgramOptions options{.type = element_type_named(type).value(), .reduction = {}};
        if (reduction) options.reduction = arithmetic_reduction(*reduction);
        World& world = rank->world();
        auto executor =
            without_gil([&] { return std::make_unique<ProgramExecutor>(world, program, elements, options, where); });
        auto handle = std::make_shared<Executing>(rank, std::move(executor));
        rank->add(handle);
        return handle;
      });
}

}  // namespace tranship::python

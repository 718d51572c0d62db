#include "tranship/collectives/world_collectives.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/library_calls.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/run/program_executor.hpp>
#include <tranship/run/shared_program.hpp>

namespace tranship {
namespace {

enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce };
constexpr int kinds = 6;
constexpr std::string_view kind_names[kinds] = {"allreduce", "reducescatter", "allgather",
                                                "alltoall",  "broadcast",     "reduce"};
constexpr std::string_view name_of(Kind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}
constexpr std::string_view direct = "direct";

/// Chooses the algorithm for messages of up to `bytes_max`; the rule before it ends where this one begins.
struct Rule {
  Index bytes_max;
  std::string algorithm;
  std::string reason;
};
constexpr Index any_size = std::numeric_limits<Index>::max();

std::string_view collective_of(std::string_view algorithm) {
  return algorithm.substr(0, algorithm.find('/'));
}
bool is_direct(std::string_view algorithm) {
  return algorithm.ends_with(direct);
}

struct Task {
  Kind kind;
  Index elements;  ///< of the source, also for an allgather
  ElementType type;
  Reduction reduction = Reduction::sum;
  Rank root = 0;

  auto key() const { return std::tuple(kind, elements, type, reduction, root); }
  friend bool operator==(const Task& a, const Task& b) { return a.key() == b.key(); }
  friend bool operator<(const Task& a, const Task& b) { return a.key() < b.key(); }
};

}  // namespace

class WorldCollectives::State {
 public:
  explicit State(World& world) : world_(world) {
    for (int kind = 0; kind < kinds; ++kind) rules_[kind] = default_rules(static_cast<Kind>(kind));
    if (const char* text = std::getenv("TRANSHIP_COLLECTIVES")) use_all(text);
  }

  Index parts() const { return world_.size(); }
  bool is_rank(Rank rank) const { return world_.rank() == rank; }

  void run(const Task& task, const MutableElements& target, const Elements& source, CallSite where) {
    if (!can_reduce_or_moves(task))
      throw_error(ErrorCode::invalid_use, "{} has no {}", tranship::name_of(task.type),
                  tranship::name_of(task.reduction));
    if (task.elements == 0) return world_.sync(where);
    // The program's memory is in use from the first to the second announcement.
    announce(task, target, source, where);
    run_announced(task, target, source, where);
    announce(task, target, source, where);
  }

  void use(std::string_view algorithm, Index bytes_max, const std::string& reason) {
    const Kind kind = kind_of(algorithm);
    last_.ready = nullptr;
    auto& rules = rules_[static_cast<std::size_t>(kind)];
    std::erase_if(rules, [&](const Rule& rule) { return rule.bytes_max <= bytes_max; });
    rules.insert(rules.begin(), {bytes_max, std::string(algorithm), reason});
    is_said_[static_cast<std::size_t>(kind)] = true;
  }

  void measure(CallSite where) {
    const detail::LibraryCalls in_library(world_.context());
    for (int kind = 0; kind < kinds; ++kind) measure(static_cast<Kind>(kind), where);
  }

  const Rule& rule_for(Kind kind, Index bytes) const {
    const auto& rules = rules_[static_cast<std::size_t>(kind)];
    return *std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return bytes <= rule.bytes_max; });
  }

  std::string_view algorithm_for(std::string_view collective, Index bytes) const {
    for (int kind = 0; kind < kinds; ++kind)
      if (collective == kind_names[kind]) return rule_for(static_cast<Kind>(kind), bytes).algorithm;
    throw_error(ErrorCode::invalid_use, "there is no collective \"{}\"; there are {}", collective,
                "allreduce, reducescatter, allgather, alltoall, broadcast and reduce");
  }

  std::string explain() const {
    std::string out;
    for (int kind = 0; kind < kinds; ++kind) {
      Index from = 0;
      for (const Rule& rule : rules_[kind]) {
        out += fmt::format("{} from {} on: {} ({})\n", kind_names[kind], amount(from, "byte"), rule.algorithm,
                           rule.reason);
        from = rule.bytes_max == any_size ? any_size : rule.bytes_max + 1;
      }
    }
    out += "A call that is made for the first time goes directly, unless an algorithm was named for it.\n";
    return out;
  }

 private:
  struct Ready {
    std::unique_ptr<ProgramExecutor> executor;
    Index calls = 0;
    std::uint64_t used = 0;
  };
  using Key = std::pair<Task, std::string>;

  /// A program in which each rank talks to all others has one channel per pair of ranks. With more ranks than this that
  /// share memory, a program does not repay the time to prove and build it: 20 ms for 32 ranks on two cores, and four
  /// times as long for twice as many ranks.
  static constexpr Index program_ranks_max = 32;

  bool reaches_all() const { return world_.context().completes_at_once(); }

  /// The sizes come from measurements with two and eight ranks on one machine of two cores (`./do bench programs`). The
  /// order of the algorithms holds elsewhere, too; measure() finds the sizes between them.
  std::vector<Rule> default_rules(Kind kind) const {
    const std::string all = std::string(name_of(kind)) + "/";
    const bool is_rooted = kind == Kind::broadcast || kind == Kind::reduce;
    std::vector<Rule> out;
    if (reaches_all() && parts() > program_ranks_max) {
      out.push_back({any_size, all + std::string(direct), "many ranks: a program would have a channel for each pair"});
      return out;
    }
    // Limits are for a part, which is what one rank has for another.
    const Index parts_of_message = kind == Kind::all_reduce || is_rooted ? 1 : parts();
    const Index packets_bytes = 512 * parts_of_message, copies_bytes = Index(16384) * parts_of_message;
    if (kind != Kind::reduce) out.push_back({packets_bytes, all + "packets", "short: data that carries its own flags"});
    if (is_rooted) {
      if (parts() > 8 || !reaches_all())
        out.push_back({any_size, all + "tree", "no rank talks to many others"});
      else
        out.push_back({any_size, all + "all_pairs", "few ranks, which reach each other's memory"});
      return out;
    }
    if (reaches_all()) {
      out.push_back({copies_bytes, all + "copies", "ranks meet once, and read copies"});
      if (kind == Kind::all_reduce && parts() == 2)
        out.push_back({1 << 20, all + "reading", "two ranks: each combines all of it"});
      if (kind == Kind::all_gather || kind == Kind::all_to_all)
        out.push_back({any_size, all + "reading", "each byte is read once, where it lies"});
      else
        out.push_back({any_size, all + "all_pairs", "each byte is combined once"});
      return out;
    }
    if (kind == Kind::all_to_all || parts() <= 4)
      out.push_back({any_size, all + "all_pairs", "each byte goes over the wire once"});
    else
      out.push_back({any_size, all + "ring", "no rank talks to many others"});
    return out;
  }

  void use_all(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (word.empty()) continue;
      Index bytes_max = any_size;
      if (const std::size_t limit = word.find("<="); limit != std::string_view::npos) {
        const std::string_view number = word.substr(limit + 2);
        const auto [last, error] = std::from_chars(number.data(), number.data() + number.size(), bytes_max);
        if (error != std::errc() || last != number.data() + number.size() || bytes_max < 0)
          throw_error(ErrorCode::invalid_use, "TRANSHIP_COLLECTIVES: \"{}\" is no number of bytes", number);
        word = word.substr(0, limit);
      }
      use(word, bytes_max, "TRANSHIP_COLLECTIVES says so");
    }
  }

  Kind kind_of(std::string_view algorithm) const {
    const std::string_view collective = collective_of(algorithm);
    for (int kind = 0; kind < kinds; ++kind) {
      if (collective != kind_names[kind]) continue;
      if (algorithm.substr(collective.size()) == "/direct" ||
          std::any_of(algorithms().begin(), algorithms().end(),
                      [&](const Algorithm& one) { return one.name == algorithm; }))
        return static_cast<Kind>(kind);
    }
    std::string names;
    for (const Algorithm& one : algorithms()) names.append(names.empty() ? "" : ", ").append(one.name);
    throw_error(ErrorCode::invalid_use,
                "there is no algorithm \"{}\"; there are {}, and \"direct\" for each collective", algorithm, names);
  }

  // --- Measurements ---

  void measure(Kind kind, CallSite where) {
    constexpr Index sizes_bytes[] = {64, 1024, 8192, 65536, 1048576};
    std::vector<Rule> rules;
    Index before = 0;
    for (const Index bytes : sizes_bytes) {
      const Index per_rank = std::max<Index>(1, bytes / Index(sizeof(float)) / parts());
      const Index all = per_rank * parts();
      const Task task{.kind = kind, .elements = kind == Kind::all_gather ? per_rank : all, .type = ElementType::f32};
      std::string best;
      std::int64_t best_ns = 0;
      for (const std::string& algorithm : candidates(kind, bytes)) {
        const std::int64_t ns = duration_ns(task, algorithm, where);
        if (best.empty() || ns < best_ns) best = algorithm, best_ns = ns;
      }
      // The boundary between two sizes is their geometric mean.
      if (!rules.empty() && rules.back().algorithm == best) rules.pop_back();
      if (!rules.empty()) rules.back().bytes_max = static_cast<Index>(std::sqrt(double(before) * double(bytes)));
      rules.push_back({any_size, best, fmt::format("measured: {} ns for {}", best_ns, amount(bytes, "byte"))});
      before = bytes;
    }
    rules_[static_cast<std::size_t>(kind)] = std::move(rules);
    last_.ready = nullptr;
    is_said_[static_cast<std::size_t>(kind)] = false;
  }

  std::vector<std::string> candidates(Kind kind, Index bytes) const {
    constexpr Index packets_bytes_max = 262144;  // beyond, the doubled bytes never pay
    std::vector<std::string> out;
    out.push_back(std::string(name_of(kind)) + "/direct");
    for (const Algorithm& one : algorithms())
      if (one.collective == name_of(kind) && !one.has_nodes && (!one.has_packets || bytes <= packets_bytes_max))
        out.emplace_back(one.name);
    return out;
  }

  /// Returns the shortest time of several launches, taken on the slowest rank: the same number on all ranks.
  std::int64_t duration_ns(const Task& task, const std::string& algorithm, CallSite where) {
    constexpr int launches = 9;
    const std::vector<std::byte> source(static_cast<std::size_t>(task.elements * size_bytes(task.type)));
    std::vector<std::byte> target(static_cast<std::size_t>(target_elements(task) * size_bytes(task.type)));
    const Elements from(source.data(), task.type, task.elements);
    const MutableElements to(target.data(), task.type, target_elements(task));
    const std::unique_ptr<ProgramExecutor> executor = is_direct(algorithm) ? nullptr : make(task, algorithm, where);
    std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < launches; ++i) {
      world_.sync(where);
      const std::int64_t begin_ns = now_ns();
      if (executor)
        launch(*executor, task, to, from, where);
      else
        run_directly(task, to, from, where);
      const std::vector<std::int64_t> all = world_.all_gather<std::int64_t>(now_ns() - begin_ns, where);
      least_ns = std::min(least_ns, *std::max_element(all.begin(), all.end()));
    }
    return least_ns;
  }

  static bool can_reduce_or_moves(const Task& task) {
    const bool reduces =
        task.kind == Kind::all_reduce || task.kind == Kind::reduce_scatter || task.kind == Kind::reduce;
    return !reduces || can_reduce(task.reduction, task.type);
  }
  Index message_bytes(const Task& task) const {
    const Index bytes = task.elements * size_bytes(task.type);
    return task.kind == Kind::all_gather ? bytes * parts() : bytes;
  }

  Ready& ready_for(const Task& task, const std::string& algorithm) {
    constexpr std::size_t ready_max = 64;  // programs that are kept; the least recently used one is dropped
    auto at = ready_.find({task, algorithm});
    if (at == ready_.end()) {
      if (ready_.size() >= ready_max)
        ready_.erase(std::min_element(ready_.begin(), ready_.end(),
                                      [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
      at = ready_.try_emplace({task, algorithm}).first;
    }
    at->second.used = ++time_;
    return at->second;
  }

  /// One program serves all sizes and types.
  const Program& program_of(const std::string& algorithm, Rank root) {
    constexpr std::size_t programs_max = 16;
    const std::pair key(algorithm, root);
    const auto at = programs_.find(key);
    if (at != programs_.end()) return *at->second;
    if (programs_.size() >= programs_max) programs_.clear();
    const std::string name = fmt::format("{} of {}, root {}", algorithm, amount(world_.size(), "rank"), root);
    const auto make = [&] { return make_program(algorithm, {.ranks = world_.size(), .root = root}); };
    return *programs_.emplace(key, shared_program(name, make)).first->second;
  }

  std::unique_ptr<ProgramExecutor> make(const Task& task, const std::string& algorithm, CallSite where) {
    const bool combines = can_reduce(task.reduction, task.type);
    ProgramOptions options{.type = task.type, .reduction = {}};
    if (combines) options.reduction = task.reduction;
    return std::make_unique<ProgramExecutor>(world_, program_of(algorithm, task.root), task.elements, options, where);
  }

  void launch(ProgramExecutor& executor, const Task& task, const MutableElements& target, const Elements& source,
              CallSite where) {
    const bool is_rooted = task.kind == Kind::broadcast || task.kind == Kind::reduce;
    const bool is_root = world_.rank() == task.root;
    const bool reads = !is_rooted || task.kind == Kind::reduce || is_root;
    const bool writes = !is_rooted || task.kind == Kind::broadcast || is_root;
    if (reads && writes) return executor.run(source.data, target.data, where);
    if (reads) std::memcpy(executor.input().data(), source.data, executor.input().size());
    executor.run(where);
    if (writes) std::memcpy(target.data, executor.output().data(), executor.output().size());
  }

  void run_announced(const Task& task, const MutableElements& target, const Elements& source, CallSite where) {
    const detail::LibraryCalls in_library(world_.context());  // set-ups complete no transfer of the program's
    // A call that repeats the previous one needs no look-up.
    if (last_.ready && last_.task == task) {
      last_.ready->used = ++time_;
      return launch(*last_.ready->executor, task, target, source, where);
    }
    last_.ready = nullptr;
    const std::string& algorithm = rule_for(task.kind, message_bytes(task)).algorithm;
    Ready& ready = ready_for(task, algorithm);
    // A task that runs once is not worth a program of its own.
    const bool is_first = ready.calls++ == 0 && !is_said_[static_cast<std::size_t>(task.kind)];
    if (is_direct(algorithm) || is_first) return run_directly(task, target, source, where);
    if (!ready.executor) ready.executor = make(task, algorithm, where);
    last_ = {.task = task, .ready = &ready};
    launch(*ready.executor, task, target, source, where);
  }

  void run_directly(const Task& task, const MutableElements& target, const Elements& source, CallSite where) {
    const Index width = size_bytes(task.type);
    const Index source_bytes = task.elements * width;
    const Index target_bytes = target_elements(task) * width;
    const Index place = (source_bytes + 63) / 64 * 64;  // offset of the target, behind the source
    if (staging_.size() < place + target_bytes) {
      staging_ = {};
      staging_ = world_.allocate<std::byte>(std::max(place + target_bytes, 2 * staging_.size()), where);
    }
    const Symmetric<std::byte> from = staging_.slice(0, source_bytes), to = staging_.slice(place, target_bytes);
    const SymmetricSpan in(from.local(), task.type, task.elements), out(to.local(), task.type, target_elements(task));
    const bool reads = task.kind != Kind::broadcast || world_.rank() == task.root;
    if (reads) {
      std::memcpy(from.local(), source.data, static_cast<std::size_t>(source_bytes));
      world_.context().writes(from, where);
    }
    switch (task.kind) {
      case Kind::all_reduce:
        tranship::all_reduce(world_.team(), out, in, task.reduction, where);
        break;
      case Kind::reduce_scatter:
        tranship::reduce_scatter(world_.team(), out, in, task.reduction, where);
        break;
      case Kind::all_gather:
        tranship::all_gather(world_.team(), out, in, where);
        break;
      case Kind::all_to_all:
        tranship::all_to_all(world_.team(), out, in, where);
        break;
      case Kind::broadcast:
        tranship::broadcast(world_.team(), out, in, task.root, where);
        break;
      case Kind::reduce:
        tranship::reduce(world_.team(), out, in, task.reduction, task.root, where);
        break;
    }
    if (task.kind == Kind::reduce && world_.rank() != task.root) return;
    world_.context().reads(to, where);
    std::memcpy(target.data, to.local(), static_cast<std::size_t>(target_bytes));
  }

  /// Tells a simulation what the call reads and writes on this rank, whichever algorithm runs it.
  void announce(const Task& task, const MutableElements& target, const Elements& source, CallSite where) const {
    const Context& rma = world_.context();
    const auto bytes_of = [&](Index elements) { return static_cast<std::size_t>(elements * size_bytes(task.type)); };
    if (task.kind != Kind::broadcast || world_.rank() == task.root)
      rma.reads(std::span(static_cast<const std::byte*>(source.data), bytes_of(task.elements)), where);
    if (task.kind != Kind::reduce || world_.rank() == task.root)
      rma.writes(std::span(static_cast<std::byte*>(target.data), bytes_of(target_elements(task))), where);
  }

  Index target_elements(const Task& task) const {
    if (task.kind == Kind::all_gather) return task.elements * parts();
    if (task.kind == Kind::reduce_scatter) return task.elements / parts();
    return task.elements;
  }

  World& world_;
  std::vector<Rule> rules_[kinds];
  bool is_said_[kinds] = {};  ///< use() or the environment has named an algorithm
  std::map<Key, Ready> ready_;
  std::map<std::pair<std::string, Rank>, std::shared_ptr<const Program>> programs_;
  struct Last {
    Task task{};
    Ready* ready = nullptr;
  };
  Last last_;
  std::uint64_t time_ = 0;
  SymmetricArray<std::byte> staging_;
};

WorldCollectives::WorldCollectives(World& world) : state_(std::make_unique<State>(world)) {}
WorldCollectives::~WorldCollectives() = default;
WorldCollectives::WorldCollectives(WorldCollectives&&) noexcept = default;
WorldCollectives& WorldCollectives::operator=(WorldCollectives&&) noexcept = default;

namespace {

void require(const MutableElements& target, const Elements& source, Index source_parts, Index target_parts) {
  if (target.type != source.type)
    throw_error(ErrorCode::invalid_use, "the source has elements {}, the target {}", name_of(source.type),
                name_of(target.type));
  if (source.count * target_parts != target.count * source_parts)
    throw_error(ErrorCode::invalid_use, "the source has {}, the target {}: they must be as {} to {}",
                amount(source.count, "element"), target.count, source_parts, target_parts);
  if (source.count % source_parts != 0 || target.count % target_parts != 0)
    throw_error(ErrorCode::invalid_use, "a source of {} cannot be cut into {}", amount(source.count, "element"),
                amount(source_parts, "equal part"));
}
void require_root(Rank root, Index ranks) {
  if (root < 0 || root >= ranks)
    throw_error(ErrorCode::invalid_use, "root {} does not exist: there {} {}", root, plural(ranks, "is", "are"),
                amount(ranks, "rank"));
}

}  // namespace

void WorldCollectives::all_reduce(const MutableElements& target, const Elements& source, Reduction reduction,
                                  CallSite where) {
  require(target, source, 1, 1);
  state_->run({.kind = Kind::all_reduce, .elements = source.count, .type = source.type, .reduction = reduction}, target,
              source, where);
}
void WorldCollectives::reduce_scatter(const MutableElements& target, const Elements& source, Reduction reduction,
                                      CallSite where) {
  require(target, source, state_->parts(), 1);
  state_->run({.kind = Kind::reduce_scatter, .elements = source.count, .type = source.type, .reduction = reduction},
              target, source, where);
}
void WorldCollectives::all_gather(const MutableElements& target, const Elements& source, CallSite where) {
  require(target, source, 1, state_->parts());
  state_->run({.kind = Kind::all_gather, .elements = source.count, .type = source.type}, target, source, where);
}
void WorldCollectives::all_to_all(const MutableElements& target, const Elements& source, CallSite where) {
  require(target, source, state_->parts(), state_->parts());
  state_->run({.kind = Kind::all_to_all, .elements = source.count, .type = source.type}, target, source, where);
}
void WorldCollectives::broadcast(const MutableElements& target, const Elements& source, Rank root, CallSite where) {
  require_root(root, state_->parts());
  if (state_->is_rank(root)) require(target, source, 1, 1);
  state_->run({.kind = Kind::broadcast, .elements = target.count, .type = target.type, .root = root}, target, source,
              where);
}
void WorldCollectives::reduce(const MutableElements& target, const Elements& source, Rank root, Reduction reduction,
                              CallSite where) {
  require_root(root, state_->parts());
  if (state_->is_rank(root)) require(target, source, 1, 1);
  state_->run(
      {.kind = Kind::reduce, .elements = source.count, .type = source.type, .reduction = reduction, .root = root},
      target, source, where);
}

void WorldCollectives::use(std::string_view algorithm, Index bytes_max) {
  if (bytes_max < 0)
    throw_error(ErrorCode::invalid_use, "{}: a limit of {} is negative", algorithm, amount(bytes_max, "byte"));
  state_->use(algorithm, bytes_max, "it was asked for");
}
void WorldCollectives::measure(CallSite where) {
  state_->measure(where);
}
std::string_view WorldCollectives::algorithm_for(std::string_view collective, Index bytes) const {
  if (bytes < 0)
    throw_error(ErrorCode::invalid_use, "{}: a message of {} is not possible", collective, amount(bytes, "byte"));
  return state_->algorithm_for(collective, bytes);
}
std::string WorldCollectives::explain() const {
  return state_->explain();
}

}  // namespace tranship

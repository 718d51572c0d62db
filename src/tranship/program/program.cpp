#include "tranship/program/program.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship {
namespace {

constexpr std::array<StepShape, 32> shapes = {{
#define TRANSHIP_STEP(name, word, channel, sources, targets, pairing) \
  {#name, word, StepChannel::channel, sources, targets, Pairing::pairing},
#include <tranship/program/steps.def>
#undef TRANSHIP_STEP
}};

std::string counted_or_no(std::size_t count, std::string_view what) {
  return count == 0 ? "no " + plural(0, what) : counted(static_cast<Index>(count), what);
}
/// Singular for one letter.
std::string plural_of(std::string_view what, std::string_view letters) {
  return plural(Index(letters.size()), what);
}

/// Throws for the first fault, with its place.
class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  void check() {
    constexpr std::size_t ranks_max = 1 << 20;
    if (program_.ranks.empty() || program_.ranks.size() > ranks_max)
      throw_error(ErrorCode::bad_file, "a program is for 1 to {} ranks, not for {}", ranks_max, program_.ranks.size());
    if (program_.buffer_alignment < 1)
      throw_error(ErrorCode::bad_file, "buffers are aligned to at least 1 byte, not to {}", program_.buffer_alignment);
    if (program_.threads_per_block < 1)
      throw_error(ErrorCode::bad_file, "a block has at least 1 thread, not {}", program_.threads_per_block);
    if (program_.message_bytes_min > program_.message_bytes_max)
      throw_error(ErrorCode::bad_file, "the smallest message, {}, is larger than the largest, {}",
                  program_.message_bytes_min, amount(program_.message_bytes_max, "byte"));
    for (rank_ = 0; rank_ < size(); ++rank_) check_rank(own());
  }

 private:
  Rank size() const { return static_cast<Rank>(program_.ranks.size()); }
  const RankProgram& of(Rank rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }
  const RankProgram& own() const { return of(rank_); }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    std::string where = fmt::format("rank {}", rank_);
    if (block_ >= 0) where += fmt::format(", block {}", block_);
    if (step_ >= 0) where += fmt::format(", step {} ({})", step_, name_of(kind_));
    throw_error(ErrorCode::bad_file, "{}: {}", where, fmt::format(format, std::forward<Args>(args)...));
  }

  void check_peer(Rank peer, const char* what) const {
    if (peer < 0 || peer >= size()) fail("{} leads to rank {}, the program has {}", what, peer, amount(size(), "rank"));
  }

  void check_rank(const RankProgram& rank) {
    block_ = step_ = -1;
    for (int kind = 0; kind < buffer_kinds; ++kind) {
      constexpr Index chunks_max = Index(1) << 22;
      if (rank.chunks[kind] < 0 || rank.chunks[kind] > chunks_max)
        fail("the {} has {}; it may have 0 to {}", name_of(static_cast<BufferKind>(kind)),
             amount(rank.chunks[kind], "chunk"), chunks_max);
    }
    for (const auto& peers : rank.peers)
      for (const Rank peer : peers) check_peer(peer, "a channel");
    for (const SwitchGroup& group : rank.switches) check_group(group);
    for (const RemoteBuffer& remote : rank.remote_buffers) {
      check_peer(remote.rank, "a remote buffer");
      if (remote.access.size() > channel_kinds)
        fail("a remote buffer is reached by {} of channels; there are {}", amount(remote.access.size(), "kind"),
             channel_kinds);
    }
    for (const Index value : rank.semaphores)
      if (value < 0 || value > std::numeric_limits<std::int32_t>::max())
        fail("a semaphore begins at {}; it must begin at 0 to {}", value, std::numeric_limits<std::int32_t>::max());
    for (block_ = 0; block_ < static_cast<int>(rank.blocks.size()); ++block_)
      check_block(rank.blocks[std::size_t(block_)]);
  }

  void check_group(const SwitchGroup& group) const {
    if (group.ranks.empty()) fail("a switch channel has no ranks");
    std::vector<Rank> sorted = group.ranks;
    std::sort(sorted.begin(), sorted.end());
    for (const Rank peer : {sorted.front(), sorted.back()}) check_peer(peer, "a switch channel");
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      fail("a switch channel has rank {} twice", *twice);
  }

  std::size_t count_of(ChannelKind kind) const {
    return kind == ChannelKind::switched ? own().switches.size() : own().peers[static_cast<std::size_t>(kind)].size();
  }

  void check_block(const ThreadBlock& block) {
    step_ = -1;
    for (int kind = 0; kind < channel_kinds; ++kind) {
      channels_[kind] = checked_list(block.channels[kind], count_of(static_cast<ChannelKind>(kind)), "channel");
      remote_buffers_[kind] = checked_list(block.remote_buffers[kind], own().remote_buffers.size(), "remote buffer");
    }
    step_ = 0;
    for (const Step& step : block.steps) {
      check_step(step, false);
      ++step_;
    }
  }

  static bool is_listed(const std::vector<std::int32_t>& sorted, std::int32_t id) {
    return std::binary_search(sorted.begin(), sorted.end(), id);
  }

  /// Returns the list, sorted.
  std::vector<std::int32_t> checked_list(const std::vector<std::int32_t>& list, std::size_t count,
                                         const char* what) const {
    std::vector<std::int32_t> sorted = list;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      fail("the block lists {} {} twice", what, *twice);
    for (const std::int32_t id : list)
      if (id < 0 || static_cast<std::size_t>(id) >= count)
        fail("{} {} does not exist: the rank has {}", what, id, count);
    return sorted;
  }

  void check_step(const Step& step, bool in_pipeline) {
    kind_ = step.kind;
    const StepShape& shape = shape_of(step.kind);
    if (shape.channel != StepChannel::none && !shape.takes(step.channel))
      fail("this step takes no {} channel", name_of(step.channel));
    check_share(step);
    check_ids(step);
    check_operands(step, shape);
    if ((step.kind == StepKind::pipeline) != (step.pipeline != nullptr))
      fail("a pipeline has steps, other steps have none");
    if (!step.pipeline) return;
    if (in_pipeline) fail("pipelines do not nest");
    if (step.pipeline->unit_bytes < 1 || step.pipeline->chunks < 1)
      fail("a loop takes units of at least 1 byte of at least 1 chunk, not of {} of {}",
           amount(step.pipeline->unit_bytes, "byte"), step.pipeline->chunks);
    for (const Step& inner : step.pipeline->steps) check_step(inner, true);
    kind_ = step.kind;
  }

  void check_share(const Step& step) const {
    if (step.shares == 0 && step.share == 0) return;
    if (step.shares < 1 || step.share < 0 || step.share >= step.shares)
      fail("a group of {} has no block {}", amount(step.shares, "block"), step.share);
  }

  void check_ids(const Step& step) const {
    switch (step.kind) {
      case StepKind::barrier:
        if (step.ids.size() != 1 || step.ids[0] < 0 || step.participants < 1)
          fail("a barrier has one id of at least 0 and at least 1 block, not {} and {}", amount(step.ids.size(), "id"),
               amount(step.participants, "block"));
        return;
      case StepKind::acquire:
      case StepKind::release:
        for (const std::int32_t id : step.ids)
          if (id < 0 || static_cast<std::size_t>(id) >= own().semaphores.size())
            fail("semaphore {} does not exist: the rank has {}", id, own().semaphores.size());
        return;
      default:
        break;
    }
    const StepShape& shape = shape_of(step.kind);
    if (shape.channel == StepChannel::none || shape.channel == StepChannel::switched) {
      if (!step.ids.empty()) fail("the step names {} and takes none", amount(step.ids.size(), "channel"));
      return;
    }
    for (const std::int32_t id : step.ids)
      if (!is_listed(channels_[static_cast<std::size_t>(step.channel)], id))
        fail("{} channel {} is not in the list of the block", name_of(step.channel), id);
    const bool names_each = step.kind == StepKind::put_signal || step.kind == StepKind::put_signal_flush;
    if (names_each && step.ids.size() != step.operands.size() - static_cast<std::size_t>(step.sources))
      fail("the step names {} for {}: it needs one for each target", amount(step.ids.size(), "channel"),
           amount(step.operands.size() - static_cast<std::size_t>(step.sources), "target"));
  }

  void check_operands(const Step& step, const StepShape& shape) const {
    const auto count = static_cast<std::int32_t>(step.operands.size());
    if (step.sources < 0 || step.sources > count)
      fail("sources is {}, but the step has {}", step.sources, amount(count, "operand"));
    const auto sources = static_cast<std::size_t>(step.sources), targets = static_cast<std::size_t>(count) - sources;
    if (!allows(shape.sources, sources) || !allows(shape.targets, targets))
      fail("the step has {} and {}; it takes {} as {}, and {} as {}", counted_or_no(sources, "source"),
           counted_or_no(targets, "target"), operands_text(shape.sources), plural_of("source", shape.sources),
           operands_text(shape.targets), plural_of("target", shape.targets));
    if (shape.pairing == Pairing::pairs && sources != targets)
      fail("{} for {}: each source goes to the target of its place", amount(sources, "source"),
           amount(targets, "target"));
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const bool is_source = i < sources;
      const OperandShape what = is_source ? shape_of_source(shape, i) : shape_of_target(shape, i - sources);
      check_operand(step.operands[i], what, step.channel);
      if (step.operands[i].count != step.operands[shape.pairing == Pairing::pairs ? i % sources : 0].count)
        fail("operands differ in size: {} and {}", step.operands[0].count, amount(step.operands[i].count, "chunk"));
    }
  }

  void check_operand(const Operand& operand, OperandShape what, ChannelKind channel) const {
    switch (what.where) {
      case Where::here:
        return check_range(operand, rank_, what);
      case Where::peer: {
        if (!is_listed(remote_buffers_[static_cast<std::size_t>(channel)], operand.via))
          fail("remote buffer {} is not in the list of the block for {} channels", operand.via, name_of(channel));
        const RemoteBuffer& remote = own().remote_buffers[static_cast<std::size_t>(operand.via)];
        if (remote.buffer != operand.buffer)
          fail("the operand is in {}, but its remote buffer is {}", name_of(operand.buffer), name_of(remote.buffer));
        if (std::find(remote.access.begin(), remote.access.end(), channel) == remote.access.end())
          fail("remote buffer {} is not reached by {} channels", operand.via, name_of(channel));
        return check_range(operand, remote.rank, what);
      }
      case Where::group: {
        if (!is_listed(channels_[static_cast<std::size_t>(ChannelKind::switched)], operand.via))
          fail("switch channel {} is not in the list of the block", operand.via);
        const SwitchGroup& group = own().switches[static_cast<std::size_t>(operand.via)];
        if (group.buffer != operand.buffer)
          fail("the operand is in {}, but its switch channel is over {}", name_of(operand.buffer),
               name_of(group.buffer));
        for (const Rank rank : group.ranks) check_range(operand, rank, what);
      }
    }
  }

  void check_range(const Operand& operand, Rank rank, OperandShape what) const {
    if (what.format != OperandFormat::plain && operand.buffer != BufferKind::scratch)
      fail("packets must lie in scratch, not in {}", name_of(operand.buffer));
    const Index chunks = of(rank).chunks[static_cast<std::size_t>(operand.buffer)];
    if (operand.first < 0 || operand.count < 0 || operand.first > chunks || operand.count > chunks - operand.first)
      fail("the operand is {} of rank {}, which has {}",
           chunks_text(name_of(operand.buffer), operand.first, operand.count), rank, counted(chunks, "chunk"));
  }

  const Program& program_;
  std::vector<std::int32_t> channels_[channel_kinds], remote_buffers_[channel_kinds];  ///< of the block, sorted
  Rank rank_ = 0;
  int block_ = -1;
  Index step_ = -1;
  StepKind kind_ = StepKind::nop;
};

Index count_steps(const std::vector<Step>& steps) {
  Index count = 0;
  for (const Step& step : steps) count += step.pipeline ? count_steps(step.pipeline->steps) : 1;
  return count;
}

/// Each list begins with its length, so different programs have different numbers.
class Enumeration {
 public:
  explicit Enumeration(FunctionRef<void(std::uint64_t)> out) : out_(out) {}

  void add(const Program& program) {
    for (const std::string* const text : {&program.name, &program.collective, &program.protocol}) add_text(*text);
    for (const bool flag : {program.in_place, program.reuse_resources, program.double_scratch}) add_number(flag);
    for (const Index number : {program.threads_per_block, program.buffer_alignment}) add_number(number);
    out_(program.message_bytes_min);
    out_(program.message_bytes_max);
    add_list(program.ranks, [&](const RankProgram& rank) { add(rank); });
    add_list(program.unknown_keys, [&](const UnknownKey& one) {
      for (const std::string* const text : {&one.where, &one.key, &one.value}) add_text(*text);
    });
  }

 private:
  template <class T>
  void add_number(T number) {
    out_(static_cast<std::uint64_t>(number));
  }
  template <class T, class F>
  void add_list(const std::vector<T>& list, F&& add_one) {
    add_number(list.size());
    for (const T& one : list) add_one(one);
  }
  template <class T>
  void add_numbers(const std::vector<T>& list) {
    add_list(list, [&](T number) { add_number(number); });
  }
  void add_text(const std::string& text) {
    add_number(text.size());
    for (const char letter : text) add_number(static_cast<unsigned char>(letter));
  }

  void add(const RankProgram& rank) {
    for (const Index count : rank.chunks) add_number(count);
    for (const auto& peers : rank.peers) add_numbers(peers);
    add_list(rank.switches, [&](const SwitchGroup& group) {
      add_number(group.buffer);
      add_numbers(group.ranks);
    });
    add_list(rank.remote_buffers, [&](const RemoteBuffer& remote) {
      add_number(remote.rank);
      add_number(remote.buffer);
      add_numbers(remote.access);
    });
    add_numbers(rank.semaphores);
    add_list(rank.blocks, [&](const ThreadBlock& block) {
      for (const auto& list : block.channels) add_numbers(list);
      for (const auto& list : block.remote_buffers) add_numbers(list);
      add_list(block.steps, [&](const Step& step) { add(step); });
    });
  }

  void add(const Step& step) {
    add_number(step.kind);
    add_number(step.channel);
    add_number(step.reduction);
    add_number(step.names_reduction);
    for (const std::int32_t number : {step.share, step.shares, step.sources, step.participants}) add_number(number);
    add_numbers(step.ids);
    add_list(step.operands, [&](const Operand& operand) {
      add_number(operand.buffer);
      add_number(operand.via);
      add_number(operand.first);
      add_number(operand.count);
    });
    add_number(step.pipeline != nullptr);
    if (!step.pipeline) return;
    add_number(step.pipeline->unit_bytes);
    add_number(step.pipeline->chunks);
    add_list(step.pipeline->steps, [&](const Step& inner) { add(inner); });
  }

  FunctionRef<void(std::uint64_t)> out_;
};

}  // namespace

std::string operands_text(std::string_view letters) {
  const auto text_of = [](char letter) {
    switch (letter) {
      case 'P':
      case 'p':
        return "in packets of this rank";
      case 'R':
        return "of a peer";
      case 'Q':
        return "in packets of a peer";
      case 'S':
        return "of the ranks of a switch channel";
      case 'T':
        return "in packets of the ranks of a switch channel";
      default:
        return "of this rank";
    }
  };
  if (letters.empty()) return "none";
  const bool has_more = letters.ends_with('*');
  if (has_more) letters.remove_suffix(1);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const bool is_any = has_more && i + 1 == letters.size();
    if (is_any && i > 0 && letters[i - 1] == letters[i])
      parts.back() = fmt::format("1 or more {}", text_of(letters[i]));
    else
      parts.push_back(fmt::format("{} {}", is_any ? "any number" : "1", text_of(letters[i])));
  }
  return join_text(parts, " and ");
}

const StepShape& shape_of(StepKind kind) noexcept {
  return shapes[static_cast<std::size_t>(kind)];
}

const char* name_of(StepKind kind) noexcept {
  return shape_of(kind).name.data();
}

const char* name_of(ChannelKind kind) noexcept {
  switch (kind) {
    case ChannelKind::memory:
      return "memory";
    case ChannelKind::port:
      return "port";
    case ChannelKind::switched:
      return "switch";
  }
  return "?";
}

const char* name_of(BufferKind kind) noexcept {
  switch (kind) {
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::scratch:
      return "scratch";
  }
  return "?";
}

std::string chunks_text(std::string_view buffer, Index first, Index count) {
  if (count == 1) return fmt::format("{}[{}]", buffer, first);
  const auto end = static_cast<__int128>(first) + count;
  const bool fits = end <= std::numeric_limits<Index>::max() && count >= 0;
  return fits ? fmt::format("{}[{}..{})", buffer, first, first + count)
              : fmt::format("{} from {}[{}] on", amount(count, "chunk"), buffer, first);
}

std::string path_of(const UnknownKey& key) {
  const std::string name = printable(key.key, 64);
  return key.where.empty() ? name : fmt::format("{}.{}", key.where, name);
}

bool combines_by(const Program& program, Reduction reduction) {
  bool all = true;
  for (const RankProgram& rank : program.ranks)
    for_each_step(rank, [&](const Step& step, const Pipeline*) {
      all = all && (!combines(step) || step.reduction == reduction);
    });
  return all;
}

Program with_reduction(Program program, Reduction reduction) {
  const auto change = [&](Step& step) {
    step.reduction = reduction;
    step.names_reduction = true;
  };
  for (RankProgram& rank : program.ranks)
    for (ThreadBlock& block : rank.blocks)
      for (Step& step : block.steps) {
        change(step);
        if (!step.pipeline) continue;
        Pipeline loop = *step.pipeline;
        for (Step& inner : loop.steps) change(inner);
        step.pipeline = std::make_shared<const Pipeline>(std::move(loop));
      }
  return program;
}

Index count_steps(const Program& program) {
  Index count = 0;
  for (const RankProgram& rank : program.ranks)
    for (const ThreadBlock& block : rank.blocks) count += count_steps(block.steps);
  return count;
}

std::vector<std::uint64_t> numbers_of(const Program& program) {
  std::vector<std::uint64_t> out;
  for_each_number(program, [&](std::uint64_t number) { out.push_back(number); });
  return out;
}

void for_each_number(const Program& program, FunctionRef<void(std::uint64_t)> f) {
  Enumeration(f).add(program);
}

void check_structure(const Program& program) {
  Checker(program).check();
}

}  // namespace tranship

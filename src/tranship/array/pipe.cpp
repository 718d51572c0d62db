#include "tranship/array/pipe.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <numeric>
#include <string_view>
#include <utility>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/fabric/polls.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/lower/view_overlap.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/run/located.hpp>

namespace tranship {
namespace {

constexpr Index buffers_max = 256;
constexpr Index exchanges_max = 256;
constexpr std::string_view target_side = "target";

/// A rank's claim about one side, if it gives that side: the fingerprint of the distribution, and the bytes of its
/// JSON.
struct SideText {
  std::uint64_t fingerprint = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SideText&, const SideText&) = default;
};
struct SideTerms {
  Alike<SideText> text;
  Alike<Index> buffers;  ///< from the ranks of the side
  Index givers = 0;      ///< number of ranks that give the side

  friend SideTerms joined(const SideTerms& a, const SideTerms& b) {
    return {joined(a.text, b.text), joined(a.buffers, b.buffers), a.givers + b.givers};
  }
};
struct Terms {
  SideTerms source, target;
};

/// Facts that a rank knows once it has its plan.
struct Findings {
  /// Position, among the ranks of the source, of the first one that has cells.
  std::uint64_t sender_with_cells = UINT64_MAX;
  std::uint64_t gets_nothing = 0;  ///< 1 if a receiver exists to which no rank sends anything
};

/// Collective: combines the terms of all ranks. An error of `f` on one rank is thrown on all ranks.
template <class T, class Combine, class F>
T agreed(World& world, CallSite where, Combine&& combine, F&& f) {
  T mine;
  const Result<void> made = tried("set up a pipe", [&] { f(mine); });
  const Call call{.kind = CallKind::agreement, .size_bytes = sizeof(T)};
  return agree(world.team(), call, made, mine, combine, "cannot take part in the pipe", where);
}

void check_side(const char* side, const World& world, const ArraySpec& spec, const PipeBuffers& buffers) {
  if (spec.distribution.grid().world_size_min() > world.size())
    throw_error(ErrorCode::invalid_use, "the grid of the {} needs {}, the world has {}", side,
                amount(spec.distribution.grid().world_size_min(), "rank"), world.size());
  if (!spec.distribution.grid().place_of(world.rank())) return;
  if (buffers.count < 1 || buffers.count > buffers_max)
    throw_error(ErrorCode::invalid_use, "the {} has {}; 1 to {} are allowed", side, amount(buffers.count, "buffer"),
                buffers_max);
  if (!buffers.memory.empty() && !buffers.arrays.empty())
    throw_error(ErrorCode::invalid_use, "the {} gives both memory and arrays for its buffers: give one of them", side);
  for (const std::size_t given : {buffers.memory.size(), buffers.arrays.size()})
    if (given != 0 && Index(given) != buffers.count)
      throw_error(ErrorCode::invalid_use, "the {} gives memory for {}, but has {}", side, amount(given, "buffer"),
                  buffers.count);
  for (const ArrayRef& array : buffers.arrays) {
    if (array.world != &world)
      throw_error(ErrorCode::invalid_use, "an array of the {} belongs to another world (rank {})", side, world.rank());
    if (!(*array.spec == spec))
      throw_error(ErrorCode::mismatch, "{} is a buffer of the {}, whose layout is {} (rank {})", describe(array), side,
                  to_text(spec), world.rank());
    if (array.is_const && side == target_side)
      throw_error(ErrorCode::invalid_use, "{} is read-only: it cannot be a buffer of the target", describe(array));
  }
}

/// Collective: returns the distribution that all ranks agree on; a rank that has it broadcasts it.
ArraySpec common_spec(World& world, const char* side, const std::optional<ArraySpec>& mine, const SideTerms& terms,
                      CallSite where) {
  const Alike<SideText>& said = terms.text;
  if (said.first_member < 0) throw_error(ErrorCode::mismatch, "no rank gives the distribution of the {}", side);
  if (!said.differ() && terms.givers == world.size()) return *mine;
  std::string text(said.first.bytes, ' ');
  if (world.rank() == said.first_member) text = to_json(*mine);
  world.broadcast(text.data(), text.size(), said.first_member, where);
  if (said.differ())
    throw_error(ErrorCode::mismatch, "the {} is {} on rank {}, and another one on rank {} (this is rank {})", side,
                to_text(array_spec_from_json(text)), said.first_member, said.other_member, world.rank());
  return mine ? *mine : array_spec_from_json(text);
}

/// Returns the number of buffers that all ranks of a side have; throws `mismatch` if they differ.
Index common_count(const char* side, const Alike<Index>& buffers) {
  if (buffers.differ())
    throw_error(ErrorCode::mismatch, "rank {} has {} of the {}, rank {} has {}", buffers.first_member,
                amount(buffers.first, "buffer"), side, buffers.other_member, buffers.other);
  return buffers.first_member < 0 ? 1 : buffers.first;
}

std::vector<ArrayRef> buffers_of(World& world, const ArraySpec& spec, const PipeBuffers& buffers, Index count,
                                 const std::string& name) {
  std::vector<ArrayRef> out;
  const bool is_member = spec.distribution.grid().place_of(world.rank()).has_value();
  for (Index i = 0; i < count; ++i) {
    const BufferOptions options{.name = name};
    if (is_member && !buffers.arrays.empty()) {
      out.push_back(buffers.arrays[std::size_t(i)]);
    } else if (is_member && !buffers.memory.empty()) {
      const PipeMemory& memory = buffers.memory[std::size_t(i)];
      out.push_back(wrap_array(world, spec, memory.data, memory.imaginary, options));
    } else {
      out.push_back(allocate_array(world, spec, options));
    }
  }
  return out;
}

void check_apart(const std::vector<ArrayRef>& from, const std::vector<ArrayRef>& to) {
  std::vector<std::pair<std::string, const StridedView*>> all;
  for (std::size_t i = 0; i < from.size(); ++i) all.emplace_back(fmt::format("source {}", i), &from[i].view);
  for (std::size_t i = 0; i < to.size(); ++i) all.emplace_back(fmt::format("target {}", i), &to[i].view);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j)
      if (all[i].second->data && all[j].second->data && share_bytes(*all[i].second, *all[j].second))
        throw_error(ErrorCode::invalid_use, "buffer {} at {} and buffer {} at {} share memory", all[i].first,
                    to_string(range_of(*all[i].second)), all[j].first, to_string(range_of(*all[j].second)));
}

bool any_receive(const TransferPlan& plan) {
  bool any = !plan.indexed_receives.empty();
  plan.for_each_receive([&](const Transfer&) { any = true; });
  return any;
}

}  // namespace

/// A sender's word with the number of frames that it has put. Receivers to which nothing is sent learn from one
/// sender's word when a frame is there and when the stream has ended.
struct FramesPut {
  static constexpr std::uint64_t ended_bit = std::uint64_t(1) << 63, failed_bit = std::uint64_t(1) << 62;

  explicit FramesPut(std::uint64_t word) : word_(word) {}
  Index count() const { return Index(word_ & (failed_bit - 1)); }
  bool has_ended() const { return (word_ & ended_bit) != 0; }
  bool has_failed() const { return (word_ & failed_bit) != 0; }

 private:
  std::uint64_t word_;
};

/// Frame k travels in exchange k modulo lcm(from, to), and so do buffers k modulo `from` and k modulo `to`.
struct Pipe::State {
  World& world;
  std::string name;
  std::optional<ArraySpec> source, target;
  std::vector<ArrayRef> from, to;
  std::vector<Exchange> exchanges;
  std::optional<SharedFlags> frames_put = {};  // made if a receiver exists to which nothing is sent
  Rank counted_sender = -1;                    // such receivers count its frames
  bool gets_nothing = false;                   // this rank is such a receiver
  std::unique_ptr<PipeEnd> sender, receiver;
};

struct PipeEnd::State {
  Pipe::State& pipe;
  Exchange::Side side;
  std::vector<ArrayRef>& buffers;
  std::vector<Lease> leases;  // on the buffers that the pipe holds and whose arrays have had a lease
  Index got = 0;              // frames
  Index given_back = 0;
  bool has_ended = false;
  bool counted_has_ended = false;  // a call has thrown because the counted sender has ended
  int polls_left = 0;              // of the counted word, until the next look at the world
  detail::ProcessOfRank process = {};
  int exceptions_before = std::uncaught_exceptions();

  State(Pipe::State& of, Exchange::Side on, std::vector<ArrayRef>& arrays)
      : pipe(of), side(on), buffers(arrays), leases(arrays.size()) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const bool fails = pipe.world.is_failing_since(exceptions_before);
    if (process.is_here()) tell_frames(FramesPut::ended_bit | (fails ? FramesPut::failed_bit : 0));
    abandon_leases();
  }

  /// The frames in flight have not arrived, so their buffers have no value.
  void abandon_leases() {
    for (Lease& lease : leases) lease.abandon();
  }

  bool sends() const { return side == Exchange::Side::sends; }
  Index count() const { return Index(buffers.size()); }
  Exchange& exchange(Index frame) { return pipe.exchanges[std::size_t(frame % Index(pipe.exchanges.size()))]; }

  const char* name() const { return sends() ? "sender" : "receiver"; }
  void check_has_not_ended(CallSite where) const {
    if (has_ended)
      throw_error(ErrorCode::invalid_use, "the {} of '{}' has ended on this rank (rank {}, {})", name(), pipe.name,
                  pipe.world.rank(), short_name(where));
  }
  void check_can_get(CallSite where) const {
    check_has_not_ended(where);
    if (got - given_back == count())
      throw_error(ErrorCode::invalid_use,
                  "no buffer of the {} of '{}' is free ({} held of {}): put one first (rank {}, {})", name(), pipe.name,
                  got - given_back, count(), pipe.world.rank(), short_name(where));
  }
  /// Returns the frame whose exchange must finish before the next buffer can be given; negative if there is none yet.
  Index awaited() const { return sends() ? got - count() : got; }
  PipeBuffer give() {
    PipeBuffer out{.number = got % count(), .frame = got, .view = buffers[std::size_t(got % count())].view};
    if (Lease& lease = leases[std::size_t(out.number)]) {
      lease.close();
      if (!sends()) buffers[std::size_t(out.number)].coherence->note_exchange({ChangeKind::filled});
    }
    ++got;
    return out;
  }
  /// Opens a lease with which the pipe reads or fills the buffer on the host.
  void take(Index number, CallSite where) {
    Coherence& array = *buffers[std::size_t(number)].coherence;
    if (array.has_buffer())
      leases[std::size_t(number)] = sends() ? array.read_on_host(where).lease : array.fill_on_host(where);
  }

  /// Publishes this sender's number of frames, for receivers to which nothing is sent.
  void tell_frames(std::uint64_t bits) noexcept {
    if (!sends() || !pipe.frames_put || has_ended) return;
    has_ended = bits != 0;
    pipe.frames_put->store(pipe.world.rank(), 0, std::uint64_t(given_back) | bits);
  }
  bool is_counted() const { return !sends() && pipe.gets_nothing; }
  /// Returns true when the counted sender has put the next frame. Throws `peer_lost` when it never will.
  bool is_put(WaitNote& note) {
    const FramesPut put(pipe.frames_put->load(pipe.counted_sender, 0));
    note.raised_by = note.flag_rank = pipe.counted_sender;
    note.flag_index = 0;
    note.wanted = std::uint64_t(got) + 1;
    note.seen = std::uint64_t(put.count());
    if (put.count() > got) return true;
    if (!put.has_ended()) return false;
    if (put.has_failed()) pipe.world.check_failed();
    Error error = make_error(ErrorCode::peer_lost, "rank {} has left '{}' after {} (rank {})", pipe.counted_sender,
                             pipe.name, amount(put.count(), "frame"), pipe.world.rank());
    error.rank = pipe.world.rank();
    error.peer = pipe.counted_sender;
    counted_has_ended = !put.has_failed();
    throw error;
  }
  void await_frame(CallSite where) {
    WaitNote note("a frame of the pipe", pipe.counted_sender, where);
    pipe.world.wait_until([&] { return is_put(note); }, note);
  }
  bool test_frame(CallSite where) {
    WaitNote note("a frame of the pipe", pipe.counted_sender, where);
    if (is_put(note)) return true;
    if (--polls_left <= 0) polls_left = detail::Polls(pipe.world).look_at_flags(note);
    return false;
  }
};

PipeEnd::PipeEnd(std::unique_ptr<State> state) : state_(std::move(state)) {}
PipeEnd::~PipeEnd() = default;

PipeBuffer PipeEnd::get(CallSite where) {
  State& s = *state_;
  s.check_can_get(where);
  if (s.is_counted()) s.await_frame(where);
  if (const Index frame = s.awaited(); frame >= 0) s.exchange(frame).finish(s.side, where);
  return s.give();
}

std::optional<PipeBuffer> PipeEnd::test_get(CallSite where) {
  State& s = *state_;
  s.check_can_get(where);
  if (s.is_counted() && !s.test_frame(where)) return std::nullopt;
  if (const Index frame = s.awaited(); frame >= 0 && !s.exchange(frame).test(s.side, where)) return std::nullopt;
  return s.give();
}

void PipeEnd::put(CallSite where) {
  State& s = *state_;
  s.check_has_not_ended(where);
  if (s.got == s.given_back)
    throw_error(ErrorCode::invalid_use, "no buffer of the {} of '{}' is held: get one first (rank {}, {})", s.name(),
                s.pipe.name, s.pipe.world.rank(), short_name(where));
  s.take(s.given_back % s.count(), where);
  // A receiver's buffer waits for the next frame that goes into it, `count` frames later.
  const Index frame = s.given_back++ + (s.sends() ? 0 : s.count());
  s.exchange(frame).start(s.side, where);
  s.tell_frames(0);
  for (Exchange& exchange : s.pipe.exchanges) exchange.advance();
}

void PipeEnd::drain(CallSite where) {
  State& s = *state_;
  s.check_has_not_ended(where);
  if (!s.sends()) return;
  for (Index frame = std::max(Index(0), s.given_back - s.count()); frame < s.given_back; ++frame)
    s.exchange(frame).finish(s.side, where);
}

bool PipeEnd::test_drained(CallSite where) {
  State& s = *state_;
  s.check_has_not_ended(where);
  bool all = true;
  if (s.sends())
    for (Index frame = std::max(Index(0), s.given_back - s.count()); frame < s.given_back; ++frame)
      all &= s.exchange(frame).test(s.side, where);
  return all;
}

void PipeEnd::end() {
  State& s = *state_;
  for (Exchange& exchange : s.pipe.exchanges) exchange.leave(s.side);
  s.tell_frames(FramesPut::ended_bit);
  s.abandon_leases();
  s.has_ended = true;
}

bool PipeEnd::peer_has_ended() const noexcept {
  return state_->counted_has_ended ||
         std::any_of(state_->pipe.exchanges.begin(), state_->pipe.exchanges.end(),
                     [&](const Exchange& exchange) { return exchange.peer_has_ended(state_->side); });
}

Index PipeEnd::count() const noexcept {
  return state_->count();
}
Index PipeEnd::held() const noexcept {
  return state_->got - state_->given_back;
}

Pipe::Pipe(World& world, const std::optional<ArraySpec>& source, const std::optional<ArraySpec>& target,
           const PipeOptions& options, CallSite where)
    : state_(new State{.world = world, .name = options.name, .source = source, .target = target}) {
  located(where, [&] {
    State& s = *state_;
    const auto is_in = [&](const std::optional<ArraySpec>& spec) {
      return spec && spec->distribution.grid().place_of(world.rank()).has_value();
    };
    const auto say = [&](SideTerms& mine, const ArraySpec& spec) {
      const SideText text{.fingerprint = fingerprint_of(spec), .bytes = to_json(spec).size()};
      mine.text = Alike<SideText>::of(world.rank(), text);
      mine.givers = 1;
    };
    const auto together = [](const Terms& a, const Terms& b) {
      return Terms{joined(a.source, b.source), joined(a.target, b.target)};
    };
    const auto terms = agreed<Terms>(world, where, together, [&](Terms& mine) {
      if (s.source) {
        check_side("source", world, *s.source, options.from);
        say(mine.source, *s.source);
      }
      if (s.target) {
        check_side("target", world, *s.target, options.to);
        say(mine.target, *s.target);
      }
      if (is_in(source)) mine.source.buffers = Alike<Index>::of(world.rank(), options.from.count);
      if (is_in(target)) mine.target.buffers = Alike<Index>::of(world.rank(), options.to.count);
    });
    s.source = common_spec(world, "source", s.source, terms.source, where);
    s.target = common_spec(world, "target", s.target, terms.target, where);
    const Index from = common_count("source", terms.source.buffers), to = common_count("target", terms.target.buffers);
    const Index count = std::lcm(from, to);
    TransferPlan plan;
    const std::vector<Rank> senders = s.source->distribution.grid().ranks();
    const auto first_of = [](const Findings& a, const Findings& b) {
      return Findings{std::min(a.sender_with_cells, b.sender_with_cells), a.gets_nothing | b.gets_nothing};
    };
    const auto all = agreed<Findings>(world, where, first_of, [&](Findings& mine) {
      // A member that did not give its own side has not stated its number of buffers.
      for (const auto& [given, known, side] :
           {std::tuple(&source, &s.source, "source"), std::tuple(&target, &s.target, "target")})
        if (!*given && is_in(*known))
          throw_error(ErrorCode::invalid_use, "rank {} is one of the {} and must give its distribution", world.rank(),
                      side);
      if (count > exchanges_max)
        throw_error(ErrorCode::invalid_use, "{} of the source and {} of the target need {}; at most {} are allowed",
                    amount(from, "buffer"), to, amount(count, "exchange"), exchanges_max);
      plan = plan_redistribution(*s.source, *s.target, world.rank());
      s.from = buffers_of(world, *s.source, options.from, from, options.name + " source");
      s.to = buffers_of(world, *s.target, options.to, to, options.name + " target");
      check_apart(s.from, s.to);
      if (is_in(s.source) && s.source->distribution.storage(world.rank()).elements > 0)
        mine.sender_with_cells =
            std::uint64_t(std::find(senders.begin(), senders.end(), world.rank()) - senders.begin());
      s.gets_nothing = is_in(s.target) && !any_receive(plan);
      mine.gets_nothing = s.gets_nothing ? 1 : 0;
    });
    if (all.gets_nothing != 0) {
      s.frames_put.emplace(world.shared_flags(1, "pipe", where));
      s.counted_sender = senders[all.sender_with_cells < senders.size() ? all.sender_with_cells : 0];
    }
    s.exchanges.reserve(std::size_t(count));
    for (Index i = 0; i < count; ++i) {
      const ArrayRef& a = s.from[std::size_t(i % from)];
      const ArrayRef& b = s.to[std::size_t(i % to)];
      // If the rank is not in a side, the pipe has allocated that side's buffers itself, and they have no record.
      const std::string& record = a.coherence->record().empty() ? b.coherence->record() : a.coherence->record();
      std::vector<std::vector<ExchangeArray>> slots{
          {{.view = a.view, .name = "source", .spec = a.spec, .label = options.name, .record = record}},
          {{.view = b.view, .name = "target", .spec = b.spec, .label = options.name, .record = record}}};
      s.exchanges.emplace_back(world, plan, std::move(slots),
                               ExchangeOptions{.schedule = options.schedule, .halves = Halves::apart}, where);
      s.exchanges.back().set_words({.name = "a pipe", .ends_sends = "get() or drain()", .ends_receives = "get()"});
    }
    if (is_in(s.source))
      s.sender.reset(new PipeEnd(std::make_unique<PipeEnd::State>(s, Exchange::Side::sends, s.from)));
    if (is_in(s.target)) {
      s.receiver.reset(new PipeEnd(std::make_unique<PipeEnd::State>(s, Exchange::Side::receives, s.to)));
      for (Index i = 0; i < to; ++i) {
        s.receiver->state_->take(i, where);
        s.exchanges[std::size_t(i)].start(Exchange::Side::receives, where);
      }
    }
  });
}

Pipe::~Pipe() = default;
Pipe::Pipe(Pipe&&) noexcept = default;

bool Pipe::sends() const noexcept {
  return state_->sender != nullptr;
}
bool Pipe::receives() const noexcept {
  return state_->receiver != nullptr;
}

PipeEnd& Pipe::sender(CallSite where) {
  if (!sends())
    throw_error(ErrorCode::invalid_use, "rank {} does not send in '{}': it is not in the source, which has {} ({})",
                state_->world.rank(), state_->name, amount(source().distribution.grid().size(), "rank"),
                short_name(where));
  return *state_->sender;
}
PipeEnd& Pipe::receiver(CallSite where) {
  if (!receives())
    throw_error(ErrorCode::invalid_use, "rank {} does not receive in '{}': it is not in the target, which has {} ({})",
                state_->world.rank(), state_->name, amount(target().distribution.grid().size(), "rank"),
                short_name(where));
  return *state_->receiver;
}

const ArraySpec& Pipe::source() const noexcept {
  return *state_->source;
}
const ArraySpec& Pipe::target() const noexcept {
  return *state_->target;
}
std::string Pipe::explain() const {
  return state_->exchanges[0].explain();
}

}  // namespace tranship

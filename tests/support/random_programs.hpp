// Random programs of one-sided transfers that are right by construction, and what each leaves in every byte.
//
// A program is a list of steps in one global order; each rank makes its own of them in that order. Steps come in
// scripts: a script moves some bytes and has the synchronisation that they need, and no two scripts between two
// barriers touch the same bytes. So every order that the library may choose gives what the global order gives, which
// plain arrays say, and a rank that waits waits for an earlier step. Steps marked `needed` are those without which the
// program is wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/sim/simulate.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test {

struct Triple {
  std::uint32_t parts[3];
};
struct Pair {
  std::uint64_t parts[2];
};
enum class WordType : std::uint8_t { u8, u16, u32, i32, u64, i64 };

/// `f` of a zero of the type.
template <class F>
decltype(auto) with_word(WordType type, F&& f) {
  switch (type) {
    case WordType::u8:
      return f(std::uint8_t{});
    case WordType::u16:
      return f(std::uint16_t{});
    case WordType::u32:
      return f(std::uint32_t{});
    case WordType::i32:
      return f(std::int32_t{});
    case WordType::u64:
      return f(std::uint64_t{});
    case WordType::i64:
      break;
  }
  return f(std::int64_t{});
}
template <class F>
decltype(auto) with_element(int width, F&& f) {
  switch (width) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(float{});
    case 8:
      return f(std::int64_t{});
    case 12:
      return f(Triple{});
  }
  return f(Pair{});
}
inline ElementType view_type_of(int width) {
  return width == 1    ? ElementType::u8
         : width == 2  ? ElementType::bf16
         : width == 4  ? ElementType::f32
         : width == 8  ? ElementType::i64
         : width == 16 ? ElementType::c128
                       : ElementType::c256;
}
inline int size_bytes_of(WordType type) {
  return with_word(type, [](auto zero) { return int(sizeof zero); });
}

/// Arrays of a rank: symmetric ones, and one that is its own.
inline constexpr int symmetric_arrays = 3, own_array = symmetric_arrays, arrays = symmetric_arrays + 1;
inline constexpr Index own_bytes = 4096;
inline constexpr int ranks_max = 8;

/// A byte of an array.
struct Place {
  int array = own_array;
  Index offset = 0;

  Place operator+(Index bytes) const { return {array, offset + bytes}; }
};
/// Elements of a box, wherever they lie in an array.
struct Side {
  Place first;
  Indices strides;  ///< in elements
};

struct Step {
  enum class Kind : std::uint8_t {
    store,     ///< random bytes to a place of one's own
    check,     ///< that bytes of one's own are as expected
    put,       ///< from `source` here to `target` at `peer`, with a signal where `signals`
    get,       ///< from `source` at `peer` to `target` here
    signal,    ///< `word` at `peer`
    wait,      ///< for `word` here
    collect,   ///< waits for `count` words from `word` on; behind each are `bytes` from `target` on
    atomic,    ///< on `word` at `peer`
    critical,  ///< adds to `target` at `peer` while it holds the lock `word` there
    fence,
    quiet,
    barrier,
    sync,
    broadcast,   ///< `bytes` of `source` at member `root` to `source` of all
    all_gather,  ///< `bytes` of `source` of each member to `target` of all
    split_strided,
    split_2d,
    allocate,    ///< array `word.array` anew
    raise_word,  ///< this rank's own of the world's SharedFlags at `peer`
    wait_word,   ///< the one of `peer` here
  };
  enum class Form : std::uint8_t { element, span, view };
  enum class Collect : std::uint8_t { all, any, some, test_all, test_any, test_some };
  enum class Fetch : std::uint8_t { none, blocking, nonblocking };

  Kind kind{};
  Form form = Form::span;
  Completion completion = Completion::blocking;
  Fetch fetch = Fetch::none;
  Collect collect = Collect::all;
  bool signals = false;
  bool polls = false;  ///< waits by looking again and again
  bool needed = false;
  std::uint32_t ranks = 0;  ///< who makes it, bit by bit
  Rank peer = 0;
  int context = 0;
  int team = 0;
  int root = 0;

  int width = 1;
  Indices extents;
  Side target, source;
  Index slack = 0;  ///< elements by which one span is longer than what is moved

  Place word;
  WordType type = WordType::u64;
  std::uint64_t value = 0, compare = 0;
  SignalOp signal_op = SignalOp::set;
  AtomicOp atomic_op = AtomicOp::add;
  Comparison comparison = Comparison::equal;
  Index count = 0;
  std::uint32_t skips = 0;  ///< of the words of a collect, bit by bit

  Index bytes = 0;
  std::uint64_t seed = 0;
  std::size_t expected = 0;  ///< where in Program::expected
  int observed = -1;         ///< where a fetched value goes that no order says: Program::contests
};

/// A word that ranks update as they like. What each saw before obeys a law all the same.
struct Contest {
  enum class Law : std::uint8_t {
    sums,    ///< all of them fetch: what they saw is a chain
    bounds,  ///< some do not
    swaps,   ///< each value is seen once, but for the last
    claims,  ///< one compare_swap wins
    bits,    ///< each rank has its own bits
  } law{};
  WordType type = WordType::u64;
  std::uint64_t before = 0;
  struct Try {
    std::uint64_t operand = 0;
    int observed = -1;
  };
  std::vector<Try> tries;
  int after = -1;  ///< observed
};

struct Program {
  int ranks = 1;
  int contexts = 1;
  PeerKind peers = PeerKind::reachable;
  std::vector<Step> steps;
  std::vector<std::byte> expected;
  std::vector<Contest> contests;
  int observations = 0;
  std::array<Index, symmetric_arrays> first_bytes{};
};

/// The bytes that a store writes.
inline void fill_bytes(std::uint64_t seed, std::byte* to, Index bytes) {
  SplitMix64 numbers(seed);
  for (Index i = 0; i < bytes; i += 8) {
    const std::uint64_t number = numbers.next();
    std::memcpy(to + i, &number, std::size_t(std::min<Index>(8, bytes - i)));
  }
}
inline std::uint64_t updated(AtomicOp op, WordType type, std::uint64_t now, std::uint64_t operand,
                             std::uint64_t compare) {
  const int bits = 8 * size_bytes_of(type);
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1;
  switch (op) {
    case AtomicOp::fetch:
      return now;
    case AtomicOp::set:
    case AtomicOp::swap:
      return operand & mask;
    case AtomicOp::compare_swap:
      return now == (compare & mask) ? operand & mask : now;
    case AtomicOp::add:
      return (now + operand) & mask;
    case AtomicOp::bit_and:
      return now & operand;
    case AtomicOp::bit_or:
      return now | (operand & mask);
    case AtomicOp::bit_xor:
      break;
  }
  return now ^ (operand & mask);
}
/// Returns true when the comparison holds for words of this type.
inline bool compares(WordType type, std::uint64_t seen, Comparison comparison, std::uint64_t wanted) {
  return with_word(type, [&](auto zero) {
    using T = decltype(zero);
    return holds(T(seen), comparison, T(wanted));
  });
}

/// The value that every byte of every rank must have: makes steps one after the other on plain arrays.
class PlainMemory {
 public:
  PlainMemory(int ranks, const std::array<Index, symmetric_arrays>& bytes) : ranks_(std::size_t(ranks)) {
    for (auto& rank : ranks_) {
      for (int a = 0; a < symmetric_arrays; ++a) rank[std::size_t(a)].resize(std::size_t(bytes[std::size_t(a)]));
      rank[own_array].resize(own_bytes);
    }
  }

  std::byte* at(Rank rank, Place place) {
    return ranks_[std::size_t(rank)][std::size_t(place.array)].data() + place.offset;
  }
  Index size_bytes(int array) const { return Index(ranks_[0][std::size_t(array)].size()); }
  std::uint64_t word(Rank rank, Place place, WordType type) {
    std::uint64_t out = 0;
    std::memcpy(&out, at(rank, place), std::size_t(size_bytes_of(type)));
    return out;
  }

  /// Members in the order of their team.
  void apply(const Step& step, const std::vector<Rank>& members) {
    for (const Rank rank : members) apply(step, rank, members);
  }

 private:
  void apply(const Step& step, Rank rank, const std::vector<Rank>& members) {
    using Kind = Step::Kind;
    switch (step.kind) {
      case Kind::store:
        fill_bytes(step.seed, at(rank, step.target.first), step.bytes);
        break;
      case Kind::put:
        move(step, rank, step.peer);
        if (step.signals) raise(step);
        break;
      case Kind::get:
        move(step, step.peer, rank);
        break;
      case Kind::signal:
        raise(step);
        break;
      case Kind::atomic: {
        const std::uint64_t before = word(step.peer, step.word, step.type);
        if (step.fetch != Step::Fetch::none && step.observed < 0)
          std::memcpy(at(rank, step.target.first), &before, std::size_t(size_bytes_of(step.type)));
        write(step.peer, step.word, step.type, updated(step.atomic_op, step.type, before, step.value, step.compare));
        break;
      }
      case Kind::critical:
        write(step.peer, step.target.first, WordType::u64,
              word(step.peer, step.target.first, WordType::u64) + step.value);
        break;
      case Kind::broadcast:
        std::memmove(at(rank, step.source.first), at(members[std::size_t(step.root)], step.source.first),
                     std::size_t(step.bytes));
        break;
      case Kind::all_gather:
        for (std::size_t m = 0; m < members.size(); ++m)
          std::memcpy(at(rank, step.target.first + Index(m) * step.bytes), at(members[m], step.source.first),
                      std::size_t(step.bytes));
        break;
      case Kind::allocate:
        ranks_[std::size_t(rank)][std::size_t(step.word.array)].assign(std::size_t(step.bytes), std::byte{});
        break;
      default:
        break;
    }
  }
  void move(const Step& step, Rank from, Rank to) {
    for_each_coordinate(step.extents, [&](const Indices& i) {
      Index source = 0, target = 0;
      for (int d = 0; d < i.size(); ++d) {
        source += i[d] * step.source.strides[d];
        target += i[d] * step.target.strides[d];
      }
      std::memcpy(at(to, step.target.first + target * step.width), at(from, step.source.first + source * step.width),
                  std::size_t(step.width));
    });
  }
  void raise(const Step& step) {
    const AtomicOp op = step.signal_op == SignalOp::set ? AtomicOp::set : AtomicOp::add;
    write(step.peer, step.word, WordType::u64,
          updated(op, WordType::u64, word(step.peer, step.word, WordType::u64), step.value, 0));
  }
  void write(Rank rank, Place place, WordType type, std::uint64_t value) {
    std::memcpy(at(rank, place), &value, std::size_t(size_bytes_of(type)));
  }

  std::vector<std::array<std::vector<std::byte>, arrays>> ranks_;
};

/// The program of a seed.
class ProgramGenerator {
 public:
  explicit ProgramGenerator(std::uint64_t seed) : random_(seed), memory_(begun(random_, out_)) {}

  Program generate() {
    std::vector<Rank> all;
    for (Rank r = 0; r < out_.ranks; ++r) all.push_back(r);
    teams_ = {{0, all}};
    if (random_.one_in(3)) split();
    const Index epochs = random_.between(1, 3);
    for (Index epoch = 0; epoch < epochs; ++epoch) {
      used_ = {};
      if (epoch > 0 && random_.one_in(3)) allocate();
      scripts();
      close();
    }
    return std::move(out_);
  }

 private:
  using Kind = Step::Kind;
  using Steps = std::vector<Step>;
  struct TeamShape {
    int handle = 0;
    std::vector<Rank> members;
  };
  /// A transfer, and the bytes that both of its sides may touch.
  struct Transfer {
    Step step;
    Place heap, own;
    Index heap_bytes = 0, own_bytes = 0;
  };
  struct Flag {
    Step step;
    std::uint64_t before = 0, after = 0;
  };

  static PlainMemory begun(Random& random, Program& out) {
    out.ranks = int(random.one_in(8) ? random.between(1, ranks_max) : random.between(2, 4));
    out.contexts = int(random.between(1, 3));
    out.peers = random.one_in(2) ? PeerKind::reachable : PeerKind::messaged;
    for (Index& bytes : out.first_bytes) bytes = random.between(16, 64) * 8;
    return PlainMemory(out.ranks, out.first_bytes);
  }

  Rank any_rank() { return Rank(random_.below(out_.ranks)); }
  int any_context() { return int(random_.below(out_.contexts)); }
  bool maybe() { return random_.one_in(2); }
  std::uint32_t everyone() const { return (std::uint32_t(1) << out_.ranks) - 1; }
  static std::uint32_t bits_of(const std::vector<Rank>& ranks) {
    std::uint32_t bits = 0;
    for (const Rank rank : ranks) bits |= std::uint32_t(1) << rank;
    return bits;
  }
  static Step needed(Step step) {
    step.needed = true;
    return step;
  }

  /// Bytes that no other script of this epoch has. Where there are none, the script is given up.
  Place take(Index bytes, Index alignment = 8) {
    const Index first = random_.below(symmetric_arrays);
    for (Index i = 0; i < symmetric_arrays; ++i) {
      const auto array = std::size_t((first + i) % symmetric_arrays);
      const Index offset = ceil_divide(used_[array], alignment) * alignment;
      if (offset + bytes > memory_.size_bytes(int(array))) continue;
      used_[array] = offset + bytes;
      return {int(array), offset};
    }
    is_full_ = true;
    return {};
  }
  Place take_own(Index bytes) {
    const Index offset = ceil_divide(used_[own_array], 16) * 16;
    if (offset + bytes > memory_.size_bytes(own_array)) {
      is_full_ = true;
      return {};
    }
    used_[own_array] = offset + bytes;
    return {own_array, offset};
  }

  /// Takes memory for the near side of a transfer, on its own rank: local memory, or symmetric memory.
  Place take_side(Index bytes, Index alignment = 16) {
    return random_.one_in(3) ? take(bytes, alignment) : take_own(bytes);
  }

  // Steps.

  static Step step(Kind kind, Rank rank) {
    Step out;
    out.kind = kind;
    out.ranks = std::uint32_t(1) << rank;
    return out;
  }
  Step store(Rank rank, Place place, Index bytes) {
    Step out = step(Kind::store, rank);
    out.target.first = place;
    out.bytes = bytes;
    out.seed = random_.bits();
    return out;
  }
  static Step check(Rank rank, Place place, Index bytes) {
    Step out = step(Kind::check, rank);
    out.target.first = place;
    out.bytes = bytes;
    return out;
  }
  static Step in_context(Kind kind, Rank rank, int context) {
    Step out = step(kind, rank);
    out.context = context;
    return out;
  }
  static Step meeting(Kind kind, const TeamShape& team) {
    Step out;
    out.kind = kind;
    out.ranks = bits_of(team.members);
    out.team = team.handle;
    return out;
  }

  /// Strides of a box that is dense but for some room, in any order of its dimensions, forwards or backwards; what it
  /// takes, in elements, and where in that element 0 lies.
  struct Room {
    Indices strides;
    Index elements = 0, first = 0;
  };
  Room room_for(const Indices& extents, Step::Form form) {
    Room out{.strides = Indices::filled(extents.size(), 1), .elements = 1};
    if (form != Step::Form::view) {
      out.elements = extents[0];
      return out;
    }
    std::vector<Index> order;
    for (int d = 0; d < extents.size(); ++d) order.push_back(d);
    random_.shuffle(order);
    Index stride = 1;
    for (const Index d : order) {
      if (random_.one_in(4)) stride += random_.between(1, 2);
      const bool backwards = random_.one_in(4);
      out.strides[int(d)] = backwards ? -stride : stride;
      const Index span = stride * (std::max<Index>(extents[int(d)], 1) - 1);
      if (backwards) out.first += span;
      out.elements += span;
      stride *= std::max<Index>(extents[int(d)], 1);
      stride = std::max(stride, out.elements);
    }
    return out;
  }

  Transfer transfer(Kind kind, Rank rank, Rank peer, int context) {
    Transfer out;
    out.step = in_context(kind, rank, context);
    Step& made = out.step;
    made.peer = peer;
    made.form = random_.pick<Step::Form>({Step::Form::element, Step::Form::span, Step::Form::view});
    made.completion = made.form != Step::Form::element && maybe() ? Completion::nonblocking : Completion::blocking;
    switch (made.form) {
      case Step::Form::element:
        made.extents = {1};
        break;
      case Step::Form::span:
        made.extents = {random_.one_in(10) ? 0 : random_.between(1, 12)};
        made.slack = random_.one_in(4) ? random_.between(-2, 2) : 0;
        break;
      case Step::Form::view:
        for (Index d = random_.between(1, 3); d > 0; --d)
          made.extents.push_back(random_.one_in(20) ? 0 : random_.between(1, 3));
    }
    made.width = made.form == Step::Form::view ? random_.pick<int>({1, 2, 4, 8, 16, 32})
                                               : random_.pick<int>({1, 2, 4, 8, 12, 16});
    const Room heap = room_for(made.extents, made.form), own = room_for(made.extents, made.form);
    const bool is_put = kind == Kind::put;
    const Index target_slack = std::max<Index>(made.slack, 0), source_slack = std::max<Index>(-made.slack, 0);
    out.heap_bytes = (heap.elements + (is_put ? target_slack : source_slack)) * made.width;
    out.own_bytes = (own.elements + (is_put ? source_slack : target_slack)) * made.width;
    out.heap = take(out.heap_bytes, made.width == 12 ? 4 : std::min(made.width, 16));
    out.own = take_side(out.own_bytes);
    const Side there{out.heap + heap.first * made.width, heap.strides};
    const Side here{out.own + own.first * made.width, own.strides};
    made.target = is_put ? there : here;
    made.source = is_put ? here : there;
    return out;
  }

  /// A comparison that holds after, and held for none before.
  void compare(Step& out, const std::vector<std::uint64_t>& before, std::uint64_t after) {
    for (int tries = 0; tries < 20; ++tries) {
      const auto comparison = Comparison(random_.below(6));
      std::uint64_t wanted = maybe() ? after : random_.pick(before);
      wanted += std::uint64_t(random_.between(-1, 1));
      const auto holds_of = [&](std::uint64_t seen) { return compares(out.type, seen, comparison, wanted); };
      if (!holds_of(after) || std::any_of(before.begin(), before.end(), holds_of)) continue;
      out.comparison = comparison;
      out.value = wanted;
      return;
    }
    out.comparison = Comparison::equal;
    out.value = after;
  }
  Step wait(Rank rank, Place word, WordType type, const std::vector<std::uint64_t>& before, std::uint64_t after) {
    Step out = needed(step(Kind::wait, rank));
    out.context = any_context();
    out.word = word;
    out.type = type;
    out.polls = random_.one_in(3);
    compare(out, before, after);
    return out;
  }
  Step wait(Rank rank, const Flag& flag) {
    return wait(rank, flag.step.word, flag.step.type, {flag.before}, flag.after);
  }

  /// Changes a word at the peer by whatever means.
  Flag raise(Steps& steps, Rank rank, Rank peer, int context) {
    Flag out;
    const Place word = take(8);
    const Index means = random_.below(3);
    if (means == 0) {
      out.step = step(Kind::signal, rank);
      signal(out, peer, word);
    } else if (means == 1) {
      out.step = step(Kind::put, rank);
      Step& made = out.step;
      made.type = random_.pick<WordType>(
          {WordType::u8, WordType::u16, WordType::u32, WordType::i32, WordType::u64, WordType::i64});
      made.width = size_bytes_of(made.type);
      made.form = maybe() ? Step::Form::element : Step::Form::span;
      made.extents = {1};
      const Place own = take_own(8);
      made.target = {word, {1}};
      made.source = {own, {1}};
      out.before = memory_.word(peer, word, made.type);
      Step source = store(rank, own, made.width);
      do {
        ++source.seed;
        out.after = 0;
        fill_bytes(source.seed, reinterpret_cast<std::byte*>(&out.after), made.width);
      } while (out.after == out.before);
      steps.push_back(source);
    } else {
      out.step = step(Kind::atomic, rank);
      Step& made = out.step;
      made.type = random_.pick<WordType>({WordType::u32, WordType::i32, WordType::u64, WordType::i64});
      made.atomic_op = random_.pick<AtomicOp>({AtomicOp::set, AtomicOp::add, AtomicOp::bit_xor});
      out.before = memory_.word(peer, word, made.type);
      made.value = made.atomic_op == AtomicOp::set ? out.before + 1 + std::uint64_t(random_.below(100))
                                                   : std::uint64_t(random_.between(1, 100));
      out.after = updated(made.atomic_op, made.type, out.before, made.value, 0);
    }
    out.step.peer = peer;
    out.step.context = context;
    out.step.word = word;
    return out;
  }
  /// Makes it one of a signal, alone or with a put.
  void signal(Flag& out, Rank peer, Place word) {
    out.step.signals = true;
    out.step.word = word;
    out.step.type = maybe() ? WordType::u64 : WordType::i64;
    out.step.signal_op = maybe() ? SignalOp::set : SignalOp::add;
    out.before = memory_.word(peer, word, WordType::u64);
    signal_again(out);
  }
  void signal_again(Flag& out) {
    const auto by = std::uint64_t(maybe() ? random_.between(1, 100) : -random_.between(1, 100));
    out.step.value = out.step.signal_op == SignalOp::set ? out.before + by : by;
    out.after = out.before + by;
  }

  // Scripts. Each takes its own bytes, and is right whatever others do with theirs.

  /// Data with its signal, in rounds: the next one when the receiver has said that it has read the last.
  Steps push_signal() {
    Steps out;
    const Rank from = any_rank(), to = any_rank();
    const int context = any_context();
    const Transfer data = transfer(Kind::put, from, to, context);
    Flag flag{.step = data.step};
    if (flag.step.form == Step::Form::element) flag.step.form = Step::Form::span;
    if (flag.step.form == Step::Form::view) flag.step.completion = Completion::blocking;
    signal(flag, to, take(8));
    for (Index rounds = random_.between(1, 2); rounds > 0; --rounds) {
      out.push_back(store(from, data.own, data.own_bytes));
      out.push_back(flag.step);
      out.push_back(wait(to, flag));
      out.back().needed = !is_empty(flag.step);
      out.push_back(check(to, data.heap, data.heap_bytes));
      if (rounds == 1) break;
      if (flag.step.completion == Completion::nonblocking) out.push_back(in_context(Kind::quiet, from, context));
      const Flag credit = raise(out, to, from, any_context());
      out.push_back(credit.step);
      out.push_back(wait(from, credit));
      out.back().needed = !is_empty(flag.step) && from != to;
      flag.before = flag.after;
      signal_again(flag);
    }
    return out;
  }
  static bool is_empty(const Step& step) {
    return std::find(step.extents.begin(), step.extents.end(), 0) != step.extents.end();
  }

  /// Data, then a fence or a quiet, then a flag; by way of another rank where a quiet was.
  Steps push_ordered() {
    Steps out;
    const Rank from = any_rank(), to = any_rank();
    const int context = any_context();
    const bool fences = maybe();
    std::vector<Transfer> data;
    bool any = false;
    for (Index puts = random_.between(1, 3); puts > 0; --puts) {
      data.push_back(transfer(Kind::put, from, to, context));
      any |= !is_empty(data.back().step);
      out.push_back(store(from, data.back().own, data.back().own_bytes));
      out.push_back(data.back().step);
    }
    out.push_back(in_context(fences ? Kind::fence : Kind::quiet, from, context));
    out.back().needed = any;
    Rank at = from;
    if (!fences && maybe()) {
      at = any_rank();
      const Flag relay = raise(out, from, at, any_context());
      out.push_back(relay.step);
      out.push_back(wait(at, relay));
      out.back().needed = any && at != from && to != from;
    }
    const Flag flag = raise(out, at, to, fences ? context : any_context());
    out.push_back(flag.step);
    out.push_back(wait(to, flag));
    out.back().needed = any && (fences || (to != from && to != at));
    for (const Transfer& one : data) out.push_back(check(to, one.heap, one.heap_bytes));
    return out;
  }

  /// The owner stores and says so; another gets, and says so; the owner stores again.
  Steps pull() {
    Steps out;
    const Rank owner = any_rank(), reader = any_rank();
    const int context = any_context();
    const Transfer data = transfer(Kind::get, reader, owner, context);
    const bool any = !is_empty(data.step);
    out.push_back(store(owner, data.heap, data.heap_bytes));
    const Flag there = raise(out, owner, reader, any_context());
    out.push_back(there.step);
    out.push_back(wait(reader, there));
    out.back().needed = any && owner != reader;
    out.push_back(data.step);
    if (data.step.completion == Completion::nonblocking) {
      out.push_back(in_context(Kind::quiet, reader, context));
      out.back().needed = any;
    }
    out.push_back(check(reader, data.own, data.own_bytes));
    if (maybe()) {
      const Flag read = raise(out, reader, owner, any_context());
      out.push_back(read.step);
      out.push_back(wait(owner, read));
      out.back().needed = any && owner != reader;
      out.push_back(store(owner, data.heap, data.heap_bytes));
    }
    return out;
  }

  /// Two puts to the same bytes, and perhaps a look at them.
  Steps overwrite() {
    Steps out;
    const Rank from = any_rank(), to = any_rank();
    const int context = any_context();
    const Transfer data = transfer(Kind::put, from, to, context);
    const bool any = !is_empty(data.step);
    out.push_back(store(from, data.own, data.own_bytes));
    out.push_back(data.step);
    const bool fences = data.step.completion == Completion::blocking && maybe();
    out.push_back(in_context(fences ? Kind::fence : Kind::quiet, from, context));
    out.back().needed = any;
    out.push_back(store(from, data.own, data.own_bytes));
    out.push_back(data.step);
    if (maybe()) {
      out.push_back(in_context(Kind::quiet, from, context));
      out.back().needed = any;
      Transfer back;
      back.step = data.step;
      back.step.kind = Kind::get;
      back.step.context = any_context();
      back.step.completion = Completion::blocking;
      back.own = take_side(data.own_bytes);
      back.step.source = data.step.target;
      back.step.target = {back.own + (data.step.source.first.offset - data.own.offset), data.step.source.strides};
      back.step.slack = 0;
      out.push_back(back.step);
      out.push_back(check(from, back.own, data.own_bytes));
    }
    return out;
  }

  /// One receiver of several, each with a word of its own or all with one.
  Steps gather() {
    Steps out;
    const Rank to = any_rank();
    const Index senders = random_.between(1, 4), words = senders + random_.below(3);
    const Index elements = random_.between(1, 6), bytes = elements * 4;
    const Place data = take(words * bytes), first_word = take(words * 8);
    if (is_full_) return {};
    const bool sums = maybe();
    Step collect = needed(step(Kind::collect, to));
    collect.context = any_context();
    collect.collect = Step::Collect(random_.below(6));
    collect.type = maybe() ? WordType::u64 : WordType::i64;
    collect.word = first_word;
    collect.count = words;
    collect.target.first = data;
    collect.bytes = bytes;
    std::vector<Index> places;
    std::vector<std::uint64_t> before;
    for (Index i = 0; i < words; ++i) {
      places.push_back(i);
      before.push_back(memory_.word(to, first_word + 8 * i, WordType::u64));
    }
    random_.shuffle(places);
    collect.skips = (std::uint32_t(1) << words) - 1;
    const std::uint64_t value = sums ? 1 : random_.bits();
    for (Index i = 0; i < senders; ++i) {
      const Rank from = any_rank();
      const Place own = take_side(bytes);
      Step put = in_context(Kind::put, from, any_context());
      put.peer = to;
      put.completion = maybe() ? Completion::blocking : Completion::nonblocking;
      put.width = 4;
      put.extents = {elements};
      put.source = {own, {1}};
      put.target = {data + places[std::size_t(i)] * bytes, {1}};
      put.signals = true;
      put.signal_op = sums ? SignalOp::add : SignalOp::set;
      put.word = sums ? first_word : first_word + 8 * places[std::size_t(i)];
      put.value = value;
      collect.skips &= ~(std::uint32_t(1) << places[std::size_t(i)]);
      out.push_back(store(from, own, bytes));
      out.push_back(put);
    }
    if (sums) {
      std::vector<std::uint64_t> partial;
      for (Index i = 0; i < senders; ++i) partial.push_back(before[0] + std::uint64_t(i));
      out.push_back(wait(to, first_word, collect.type, partial, before[0] + std::uint64_t(senders)));
      out.push_back(check(to, data, words * bytes));
    } else {
      compare(collect, before, value);
      out.push_back(collect);
    }
    return out;
  }

  /// Updates of one word by one rank, each of which sees the last.
  Steps updates() {
    Steps out;
    const Rank from = any_rank(), at = any_rank();
    const int context = any_context();
    const Place word = take(8);
    const WordType type = random_.pick<WordType>({WordType::u32, WordType::i32, WordType::u64, WordType::i64});
    std::uint64_t now = memory_.word(at, word, type);
    bool is_open = false;  // the last one is held back by no more than a fence
    for (Index count = random_.between(2, 5); count > 0; --count) {
      Step made = in_context(Kind::atomic, from, context);
      made.peer = at;
      made.word = word;
      made.type = type;
      made.atomic_op = AtomicOp(random_.below(8));
      made.fetch = Step::Fetch(random_.below(3));
      if (made.fetch == Step::Fetch::none && !may_not_fetch(made.atomic_op)) made.fetch = Step::Fetch::blocking;
      if (made.fetch != Step::Fetch::none && made.atomic_op == AtomicOp::set) made.atomic_op = AtomicOp::swap;
      made.value = random_.bits();
      if (made.atomic_op == AtomicOp::add && maybe()) made.value = 1;
      made.compare = maybe() ? now : random_.bits();
      // A fence does not order what brings a value and does not wait for it.
      if (is_open && made.fetch == Step::Fetch::nonblocking) made.fetch = Step::Fetch::blocking;
      if (made.fetch != Step::Fetch::none) made.target.first = take_side(8);
      now = updated(made.atomic_op, type, now, made.value, made.compare);
      out.push_back(made);
      if (made.fetch == Step::Fetch::nonblocking) {
        out.push_back(needed(in_context(Kind::quiet, from, context)));
      } else if (made.fetch == Step::Fetch::none && count > 1) {
        out.push_back(in_context(maybe() ? Kind::fence : Kind::quiet, from, context));
        out.back().needed = made.atomic_op == AtomicOp::set;  // what others do may commute
      }
      is_open = made.fetch == Step::Fetch::none && out.back().kind == Kind::fence;
      if (made.fetch != Step::Fetch::none) out.push_back(check(from, made.target.first, size_bytes_of(type)));
    }
    return out;
  }
  static bool may_not_fetch(AtomicOp op) {
    return op != AtomicOp::fetch && op != AtomicOp::swap && op != AtomicOp::compare_swap;
  }

  /// Updates of one word by many.
  Steps contest() {
    Steps out;
    const Rank at = any_rank();
    const Place word = take(8);
    Contest law;
    law.law = Contest::Law(random_.below(5));
    law.type = random_.pick<WordType>({WordType::u32, WordType::i32, WordType::u64, WordType::i64});
    law.before = memory_.word(at, word, law.type);
    const AtomicOp bits = random_.pick<AtomicOp>({AtomicOp::bit_or, AtomicOp::bit_and, AtomicOp::bit_xor});
    for (Index count = random_.between(2, 6); count > 0; --count) {
      const Rank from = any_rank();
      Step made = in_context(Kind::atomic, from, any_context());
      made.peer = at;
      made.word = word;
      made.type = law.type;
      made.fetch = maybe() ? Step::Fetch::blocking : Step::Fetch::nonblocking;
      made.compare = law.before;
      made.value = 1000 * std::uint64_t(count) + std::uint64_t(random_.below(1000));
      switch (law.law) {
        case Contest::Law::bounds:
          if (maybe()) made.fetch = Step::Fetch::none;
          [[fallthrough]];
        case Contest::Law::sums:
          made.atomic_op = AtomicOp::add;
          break;
        case Contest::Law::swaps:
          made.atomic_op = AtomicOp::swap;
          break;
        case Contest::Law::claims:
          made.atomic_op = AtomicOp::compare_swap;
          break;
        case Contest::Law::bits:
          made.atomic_op = bits;
          made.value = std::uint64_t(1) << (4 * count);
          if (bits == AtomicOp::bit_and) made.value = ~made.value;
      }
      if (made.fetch != Step::Fetch::none) made.observed = out_.observations++;
      law.tries.push_back({made.value, made.observed});
      out.push_back(made);
    }
    Step look = in_context(Kind::atomic, at, any_context());
    look.peer = at;
    look.word = word;
    look.type = law.type;
    look.atomic_op = AtomicOp::fetch;
    look.fetch = Step::Fetch::blocking;
    look.observed = law.after = out_.observations++;
    if (is_full_) return {};
    deferred_.push_back(look);
    deferred_.push_back(store(at, word, 8));
    out_.contests.push_back(std::move(law));
    return out;
  }

  /// Many add under a lock.
  Steps locked() {
    Steps out;
    const Rank at = any_rank();
    const Place lock = take(8), sum = take(8);
    const std::uint64_t open = memory_.word(at, lock, WordType::u64);
    for (Index count = random_.between(2, 4); count > 0; --count) {
      Step made = in_context(Kind::critical, any_rank(), any_context());
      made.peer = at;
      made.word = lock;
      made.compare = open;
      made.target.first = sum;
      made.value = random_.bits();
      out.push_back(made);
    }
    return out;
  }

  /// Every member puts to the next one, and all meet.
  Steps exchange() {
    Steps out;
    const TeamShape team = random_.pick(teams_);
    const auto size = Index(team.members.size());
    const int context = any_context();
    const Index elements = random_.between(1, 8);
    const Place data = take(8 * elements), own = take_side(8 * elements);
    const Index distance = random_.below(size);
    for (Index m = 0; m < size; ++m) {
      const Rank rank = team.members[std::size_t(m)];
      Step put = in_context(Kind::put, rank, context);
      put.peer = team.members[std::size_t((m + distance) % size)];
      put.completion = maybe() ? Completion::blocking : Completion::nonblocking;
      put.width = 8;
      put.extents = {elements};
      put.target = {data, {1}};
      put.source = {own, {1}};
      out.push_back(store(rank, own, 8 * elements));
      out.push_back(put);
    }
    const bool completes = context == 0 && maybe();
    if (!completes)
      for (const Rank rank : team.members) out.push_back(needed(in_context(Kind::quiet, rank, context)));
    // A barrier alone completes the default context.
    const bool meets_only = !completes && (context == 0 || maybe());
    out.push_back(meeting(meets_only ? Kind::sync : Kind::barrier, team));
    out.back().needed = completes || (size > 1 && distance > 0);
    for (const Rank rank : team.members) out.push_back(check(rank, data, 8 * elements));
    return out;
  }

  Steps collective() {
    Steps out;
    const TeamShape team = random_.pick(teams_);
    const auto size = Index(team.members.size());
    Step made = meeting(maybe() ? Kind::broadcast : Kind::all_gather, team);
    made.bytes = random_.below(40);
    made.root = int(random_.below(size));
    made.source.first = take_side(made.bytes);
    made.target.first = take_side(made.bytes * size);
    for (const Rank rank : team.members) out.push_back(store(rank, made.source.first, made.bytes));
    out.push_back(made);
    for (const Rank rank : team.members) {
      out.push_back(check(rank, made.source.first, made.bytes));
      out.push_back(check(rank, made.target.first, made.bytes * size));
    }
    return out;
  }

  /// A source that is written again, and a target that is looked at, when the transfer is known to be over.
  Steps reuse() {
    Steps out;
    const Rank rank = any_rank(), peer = any_rank();
    const int context = any_context();
    Transfer data = transfer(maybe() ? Kind::put : Kind::get, rank, peer, context);
    if (data.step.form == Step::Form::element) data.step.form = Step::Form::span;
    data.step.completion = Completion::nonblocking;
    const bool any = !is_empty(data.step);
    out.push_back(store(rank, data.own, data.own_bytes));
    out.push_back(data.step);
    if (maybe()) out.push_back(in_context(Kind::fence, rank, context));
    out.push_back(in_context(Kind::quiet, rank, context));
    out.back().needed = any;
    if (data.step.kind == Kind::get) out.push_back(check(rank, data.own, data.own_bytes));
    out.push_back(store(rank, data.own, data.own_bytes));
    return out;
  }

  /// A get whose data is then put to another rank, with a signal.
  Steps forward() {
    Steps out;
    const Rank owner = any_rank(), by = any_rank(), to = any_rank();
    const int context = any_context();
    const Index elements = random_.between(1, 8), bytes = 8 * elements;
    Step get = in_context(Kind::get, by, context), put = in_context(Kind::put, by, context);
    for (Step* one : {&get, &put}) {
      one->completion = maybe() ? Completion::blocking : Completion::nonblocking;
      one->width = 8;
      one->extents = {elements};
      one->target.strides = one->source.strides = {1};
    }
    const Place own = take_side(bytes);
    get.peer = owner;
    get.source.first = take(bytes);
    get.target.first = put.source.first = own;
    put.peer = to;
    put.target.first = take(bytes);
    Flag flag{.step = put};
    signal(flag, to, take(8));
    out.push_back(store(owner, get.source.first, bytes));
    const Flag there = raise(out, owner, by, any_context());
    out.push_back(there.step);
    out.push_back(wait(by, there));
    out.back().needed = owner != by;
    out.push_back(get);
    if (get.completion == Completion::nonblocking) out.push_back(needed(in_context(Kind::quiet, by, context)));
    out.push_back(flag.step);
    if (put.completion == Completion::nonblocking && maybe())
      out.push_back(needed(in_context(Kind::quiet, by, context)));
    if (out.back().kind == Kind::quiet || put.completion == Completion::blocking) out.push_back(store(by, own, bytes));
    out.push_back(wait(to, flag));
    out.push_back(check(to, put.target.first, bytes));
    return out;
  }

  /// A transfer that only the end of the epoch completes.
  Steps left_open() {
    Steps out;
    const Rank rank = any_rank(), peer = any_rank();
    const Transfer data = transfer(maybe() ? Kind::put : Kind::get, rank, peer, any_context());
    out.push_back(store(rank, data.own, data.own_bytes));
    out.push_back(data.step);
    return out;
  }

  Steps words() {
    Steps out;
    if (out_.peers != PeerKind::reachable) return out;
    for (Index count = random_.between(1, 3); count > 0; --count) {
      const Rank from = any_rank(), to = any_rank();
      const Index elements = random_.between(1, 4);
      Step raised = step(Kind::raise_word, from), waited = step(Kind::wait_word, to);
      raised.peer = to;
      waited.peer = from;
      waited.needed = from != to;
      Step get = in_context(Kind::get, to, any_context());
      get.peer = from;
      get.width = 8;
      get.extents = {elements};
      get.source = {take(8 * elements), {1}};
      get.target = {take_side(8 * elements), {1}};
      out.push_back(store(from, get.source.first, 8 * elements));
      out.push_back(raised);
      out.push_back(waited);
      out.push_back(get);
      out.push_back(check(to, get.target.first, 8 * elements));
    }
    return out;
  }

  // Epochs.

  void scripts() {
    std::vector<Steps> all;
    for (Index count = random_.between(1, 4); count > 0; --count) {
      is_full_ = false;
      const std::size_t contests = out_.contests.size(), deferred = deferred_.size();
      Steps one = script();
      if (is_full_) {
        out_.contests.resize(contests);
        deferred_.resize(deferred);
      } else if (!one.empty()) {
        all.push_back(std::move(one));
      }
    }
    std::vector<std::size_t> next(all.size());
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < all.size(); ++s) order.insert(order.end(), all[s].size(), s);
    random_.shuffle(order);
    for (const std::size_t s : order) add(all[s][next[s]++]);
  }
  Steps script() {
    switch (random_.below(14)) {
      case 0:
        return push_signal();
      case 1:
      case 2:
        return push_ordered();
      case 3:
        return pull();
      case 4:
        return overwrite();
      case 5:
        return gather();
      case 6:
        return updates();
      case 7:
        return contest();
      case 8:
        return random_.one_in(2) ? locked() : words();
      case 9:
        return exchange();
      case 10:
        return collective();
      case 11:
        return reuse();
      case 12:
        return forward();
      default:
        return left_open();
    }
  }

  /// All transfers are complete and known to be, and every byte is looked at.
  void close() {
    for (int context = 1; context < out_.contexts; ++context) {
      Step all = in_context(Kind::quiet, 0, context);
      all.ranks = everyone();
      add(all);
    }
    add(meeting(Kind::barrier, teams_[0]));
    for (const Step& step : deferred_) add(step);
    deferred_.clear();
    for (Rank rank = 0; rank < out_.ranks; ++rank)
      for (int array = 0; array < arrays; ++array)
        add(check(rank, {array, 0}, array == own_array ? used_[own_array] : memory_.size_bytes(array)));
    add(meeting(maybe() ? Kind::sync : Kind::barrier, teams_[0]));
  }

  void allocate() {
    Step made = meeting(Kind::allocate, teams_[0]);
    made.word.array = int(random_.below(symmetric_arrays));
    made.bytes = random_.between(16, 64) * 8;
    made.seed = random_.bits();
    add(made);
  }

  void split() {
    const int handle = 1;
    if (maybe()) {
      Step made = meeting(Kind::split_2d, teams_[0]);
      made.count = random_.between(1, out_.ranks);
      const auto x_size = Rank(made.count);
      for (Rank y = 0; y * x_size < out_.ranks; ++y) {
        teams_.push_back({handle, {}});
        for (Rank x = 0; x < x_size && y * x_size + x < out_.ranks; ++x)
          teams_.back().members.push_back(y * x_size + x);
      }
      for (Rank x = 0; x < x_size; ++x) {
        teams_.push_back({handle + 1, {}});
        for (Rank rank = x; rank < out_.ranks; rank += x_size) teams_.back().members.push_back(rank);
      }
      add(made);
      return;
    }
    Step made = meeting(Kind::split_strided, teams_[0]);
    made.root = int(any_rank());
    const auto apart = int(random_.between(1, out_.ranks));
    made.value = std::uint64_t(apart);
    made.count = random_.between(1, (out_.ranks - 1 - made.root) / apart + 1);
    teams_.push_back({handle, {}});
    for (Index m = 0; m < made.count; ++m) teams_.back().members.push_back(made.root + int(m) * apart);
    add(made);
  }

  /// Makes the step on plain memory, which gives the expected results.
  void add(Step step) {
    std::vector<Rank> members;
    if (step.team == 0) {
      for (Rank rank = 0; rank < out_.ranks; ++rank)
        if (step.ranks >> rank & 1) members.push_back(rank);
    } else {
      for (const TeamShape& team : teams_)
        if (team.handle == step.team && bits_of(team.members) == step.ranks) members = team.members;
    }
    memory_.apply(step, members);
    if (step.kind == Kind::raise_word) ++words_[std::size_t(step.peer)][std::size_t(members[0])];
    if (step.kind == Kind::wait_word) step.value = words_[std::size_t(members[0])][std::size_t(step.peer)];
    if (step.kind == Kind::check) expect(step, members[0], step.target.first, step.bytes);
    if (step.kind == Kind::collect) expect(step, members[0], step.target.first, step.bytes * step.count);
    if (step.kind == Kind::wait) expect(step, members[0], step.word, size_bytes_of(step.type));
    out_.steps.push_back(std::move(step));
  }
  void expect(Step& step, Rank rank, Place place, Index bytes) {
    step.expected = out_.expected.size();
    const std::byte* from = memory_.at(rank, place);
    out_.expected.insert(out_.expected.end(), from, from + bytes);
  }

  Random random_;
  Program out_;
  PlainMemory memory_;
  std::vector<TeamShape> teams_;
  std::array<Index, arrays> used_{};
  std::array<std::array<std::uint64_t, ranks_max>, ranks_max> words_{};  ///< by owner and who raises them
  std::vector<Step> deferred_;
  bool is_full_ = false;
};

}  // namespace tranship::test

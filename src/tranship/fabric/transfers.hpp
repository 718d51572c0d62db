// Detail: Transfers: the implementation behind the calls of a Context. If the peer's heap is in the rank's table, the
// calling thread makes the copy, store or atomic itself, inline; all other calls go out of line (transfers.cpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/fabric/atomic.hpp>
#include <tranship/fabric/seam/wait_note.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/lanes/heap_table.hpp>

namespace tranship {
class Transport;
struct CopyBlock;
}  // namespace tranship

namespace tranship::detail {

/// Everything that a put, a get or an atomic of the calling thread needs; also used by code that is compiled at run
/// time. A store to a word that others wait for must release. Every call except a poll sets `acted`.
struct DirectTransfers {
  HeapTable heaps;
  mutable bool acted = false;  ///< the rank has done something other than poll since its last look
};

class Transfers {
 protected:
  /// `transport` carries the transfers to peers that are not direct; nullptr if all peers are.
  Transfers(World& world, std::unique_ptr<Transport> transport, int spin_rounds, bool are_sizes_equal,
            bool checks_blocks);
  ~Transfers();

  /// The bytes that one side of a transfer touches: [first, end) from its base.
  struct Reach {
    std::int64_t first = 0;
    std::int64_t end = 0;
  };
  static Reach reach_of(const CopyBlock& block, const long long* strides, int width);
  /// A row of `count` adjacent elements of `width` bytes, part of a slice of the heap that has `slice` elements.
  struct Run {
    std::size_t bytes = 0;
    std::size_t width = 1;
    std::size_t count = 0;
    Index slice = 0;
  };
  struct SignalAt {
    void* local = nullptr;
    std::uint64_t value = 0;
    SignalOp op = SignalOp::set;
  };
  template <class T>
  static constexpr WordKind kind_of = std::is_floating_point_v<T> ? WordKind::floating : WordKind::integer;
  template <class T>
  static constexpr bool is_word = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8;

  /// Returns the address at which this rank finds the peer's counterpart of `local`, or nullptr unless a direct
  /// transfer of `bytes` bytes is allowed.
  std::byte* direct(const void* local, std::size_t bytes, Rank peer) const noexcept {
    return reinterpret_cast<std::byte*>(direct_.heaps.at(local, bytes, peer));
  }

  /// Returns that address for the first element of a slice; nullptr if the slice is empty.
  template <class T>
  std::byte* direct(Symmetric<T> slice, Rank peer) const noexcept {
    return slice.size() > 0 ? direct(slice.local(), sizeof(T), peer) : nullptr;
  }
  /// Returns that address for a word that is raised or updated; nullptr unless it is aligned to its size.
  template <class T>
  std::byte* direct_word(Symmetric<T> word, Rank peer) const noexcept {
    return is_in_place<T>(word.local()) ? direct(word, peer) : nullptr;
  }
  void check_one(const char* what, Index size, CallSite where) const {
    if (size < 1) [[unlikely]]
      refuse_count(what, 1, size, where);
  }
  /// Checks that variables which this rank looks at lie in its own heap.
  template <class T>
  void check_waitables(const char* what, Symmetric<T> variables, CallSite where) const {
    const HeapTable& heaps = direct_.heaps;
    if (!heaps.contains(heaps.offset_of(variables.local()), bytes_of(variables)) || !is_in_place<T>(variables.local()))
        [[unlikely]]
      checked_words(what, variables.local(), variables.size(), sizeof(T), where);
  }
  template <class T>
  void check_waitable(const char* what, Symmetric<T> variable, CallSite where) const {
    check_one(what, variable.size(), where);
    check_waitables(what, Symmetric<T>::at(variable.local(), 1), where);
  }
  /// Returns the size of `array`, or SIZE_MAX if it does not fit.
  template <class T>
  static std::size_t bytes_of(Symmetric<T> array) noexcept {
    const bool fits = std::size_t(array.size()) <= std::size_t(INT64_MAX) / sizeof(T);
    return fits ? std::size_t(array.size()) * sizeof(T) : SIZE_MAX;
  }

  // Stores release and loads acquire, so that a rank that waits for an element sees what was written before it. On x86
  // this costs nothing.
  template <class T>
  static void store(std::byte* to, const T& value) noexcept {
    if constexpr (is_word<T>)
      if (alignof(T) == sizeof(T) || is_in_place<T>(to))
        return store_word(reinterpret_cast<Word<T>*>(to), std::bit_cast<Word<T>>(value));
    std::memcpy(to, &value, sizeof value);
  }
  template <class T>
  static void load(const std::byte* from, T& value) noexcept {
    if constexpr (is_word<T>)
      if (alignof(T) == sizeof(T) || is_in_place<T>(from)) {
        value = std::bit_cast<T>(load_word(reinterpret_cast<const Word<T>*>(from)));
        return;
      }
    std::memcpy(&value, from, sizeof value);
  }
  template <class T>
  static bool is_in_place(const void* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) % sizeof(T) == 0;
  }
  static void raise(std::byte* at, std::uint64_t value, SignalOp op) noexcept {
    raise_word(reinterpret_cast<std::uint64_t*>(at), value, op);
  }

  /// Copies more than 64 bytes; source and target may overlap.
  void put_many(void* to, const void* from, std::size_t bytes) const noexcept;
  void get_many(void* to, const void* from, std::size_t bytes) const noexcept;
  using CopyMany = decltype(&Transfers::put_many);
  // GCC 12 warns here if it knows the size of an array: it takes the lengths of the branches for the length copied.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
  /// Copies up to 64 bytes in few instructions, and passes longer copies to `many`.
  void copy(void* to, const void* from, std::size_t bytes, CopyMany many) const noexcept {
    const auto some = [&]<class Word>(Word) {  // copies the first and the last word; they may overlap
      Word first, last;
      std::memcpy(&first, from, sizeof first);
      std::memcpy(&last, static_cast<const std::byte*>(from) + bytes - sizeof last, sizeof last);
      std::memcpy(to, &first, sizeof first);
      std::memcpy(static_cast<std::byte*>(to) + bytes - sizeof last, &last, sizeof last);
    };
    struct Pair {
      std::uint64_t words[2];
    };
    struct Four {
      std::uint64_t words[4];
    };
    if (bytes == 8) {
      std::uint64_t word;  // memcpy must not be given overlapping ranges
      std::memcpy(&word, from, sizeof word);
      return void(std::memcpy(to, &word, sizeof word));
    }
    if (bytes > 64) return (this->*many)(to, from, bytes);
    if (bytes >= 32) return some(Four{});
    if (bytes >= 16) return some(Pair{});
    if (bytes > 8) return some(std::uint64_t{});
    if (bytes >= 4) return some(std::uint32_t{});
    if (bytes >= 2) return some(std::uint16_t{});
    if (bytes == 1) std::memcpy(to, from, 1);
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  /// Returns the row that moves between a slice of the heap and `other` elements.
  template <class T>
  Run smaller(Symmetric<T> ours, Index other, CallSite where) const {
    if (ours.size() != other && are_sizes_equal_) [[unlikely]]
      refuse_sizes(ours.size(), other, where);
    // A negative size, or one that overflows, exceeds every heap as an unsigned number: then nothing moves.
    const std::size_t count = std::min(std::size_t(ours.size()), std::size_t(other));
    return {count * sizeof(T), sizeof(T), count, ours.size()};
  }
  template <class T>
  void put_span(Symmetric<T> target, std::span<const T> source, Completion completion, Rank peer, CallSite where) {
    const Run run = smaller(target, Index(source.size()), where);
    direct_.acted = true;
    if (std::byte* to = direct(target.local(), bytes_of(target), peer)) [[likely]]
      copy(to, source.data(), run.bytes, &Transfers::put_many);
    else
      put_checked(target.local(), source.data(), run, nullptr, completion, peer, where);
  }
  template <class T>
  void get_span(std::span<std::remove_const_t<T>> target, Symmetric<T> source, Completion completion, Rank peer,
                CallSite where) {
    const Run run = smaller(source, Index(target.size()), where);
    if (const std::byte* from = direct(source.local(), bytes_of(source), peer)) [[likely]]
      copy(target.data(), from, run.bytes, &Transfers::get_many);
    else
      get_checked(target.data(), source.local(), run, completion, peer, where);
    if (--polls_left_ <= 0) [[unlikely]]
      look_at("get", source.local(), peer, target.data(), run.bytes, where);
  }
  template <class T, class S>
  void put_signal_span(Symmetric<T> target, std::span<const T> source, Symmetric<S> signal, S value, SignalOp op,
                       Completion completion, Rank peer, CallSite where) {
    const Run run = smaller(target, Index(source.size()), where);
    std::byte* to = direct(target.local(), bytes_of(target), peer);
    std::byte* word = direct(signal, peer);
    direct_.acted = true;
    if (to && word && is_in_place<S>(word)) [[likely]] {
      copy(to, source.data(), run.bytes, &Transfers::put_many);
      raise(word, std::uint64_t(value), op);
    } else {
      check_one("the signal of a put_signal", signal.size(), where);
      const SignalAt at{signal.local(), std::uint64_t(value), op};
      put_checked(target.local(), source.data(), run, &at, completion, peer, where);
    }
  }

  template <class S>
  void put_signal_view(const StridedView& target, const StridedView& source, Symmetric<S> signal, S value, SignalOp op,
                       Completion completion, Rank peer, CallSite where) {
    check_one("the signal of a put_signal", signal.size(), where);
    const SignalAt at{signal.local(), std::uint64_t(value), op};
    put_view(target, source, &at, completion, peer, where);
  }

  template <AtomicOp op, class T>
  static T apply(std::byte* at, T operand, T expected) noexcept {
    using Word = Word<T>;
    auto* word = reinterpret_cast<Word*>(at);
    return std::bit_cast<T>(update_word<op>(word, std::bit_cast<Word>(operand), std::bit_cast<Word>(expected)));
  }
  static constexpr const char* name_of(AtomicOp op) noexcept {
    constexpr const char* names[] = {
#define TRANSHIP_ATOMIC_OP(op, fetching) fetching,
#include <tranship/kernels/atomics.def>
    };
    return names[static_cast<int>(op)];
  }
  template <AtomicOp op, class T>
  T atomic(Symmetric<T> at, T operand, T expected, Rank peer, CallSite where) {
    T before{};
    if (std::byte* word = direct_word(at, peer)) [[likely]]
      before = apply<op>(word, operand, expected);
    else {
      check_one(name_of(op), at.size(), where);
      atomic_checked({at.local(), sizeof(T), kind_of<T>}, op, &operand, &expected, &before, Completion::blocking, peer,
                     where);
    }
    polled(name_of(op), at.local(), peer, before, where);
    return before;
  }
  template <AtomicOp op, class T>
  void update(Symmetric<T> at, T operand, T expected, Rank peer, CallSite where) {
    direct_.acted = true;
    if (std::byte* word = direct_word(at, peer)) [[likely]]
      return void(apply<op>(word, operand, expected));
    check_one("an atomic update", at.size(), where);
    atomic_checked({at.local(), sizeof(T), kind_of<T>}, op, &operand, &expected, nullptr, Completion::blocking, peer,
                   where);
  }
  template <AtomicOp op, class T>
  void atomic_nbi(T& before, Symmetric<T> at, T operand, T expected, Rank peer, CallSite where) {
    if (std::byte* word = direct_word(at, peer)) [[likely]]
      before = apply<op>(word, operand, expected);
    else {
      check_one(name_of(op), at.size(), where);
      atomic_checked({at.local(), sizeof(T), kind_of<T>}, op, &operand, &expected, &before, Completion::nonblocking,
                     peer, where);
    }
    polled(name_of(op), at.local(), peer, before, where);
  }

  template <class T>
  WaitNote note_of(const T* variable, Comparison comparison, T wanted, const char* label, Rank raised_by,
                   CallSite where) const {
    WaitNote note(label, raised_by, where);
    note.flag_rank = rank_;
    note.flag_index = std::int64_t(direct_.heaps.offset_of(variable));
    note.wants(comparison, wanted);
    return note;
  }
  template <class T>
  T wait(const T* variable, Comparison comparison, T wanted, const char* label, Rank raised_by, CallSite where) {
    T seen = load_word(variable);
    // A tight loop first: a signal of a rank that runs on another core arrives within it.
    for (int round = 0; round < spin_rounds_ && !holds(seen, comparison, wanted); ++round) seen = load_word(variable);
    if (!holds(seen, comparison, wanted)) [[unlikely]] {
      WaitNote note = note_of(variable, comparison, wanted, label, raised_by, where);
      world_->wait_until(
          [&] {
            seen = load_word(variable);
            note.sees(seen);
            return holds(seen, comparison, wanted);
          },
          note);
    }
    direct_.acted = true;
    acquired(Symmetric<const T>::at(variable, 1));
    return seen;
  }
  template <class T>
  bool found(const T* variable, Comparison comparison, T value) const {
    acquired(Symmetric<const T>::at(variable, 1));
    return holds<T>(load_word(variable), comparison, value);
  }
  /// Called after a test has failed. Returns false.
  template <class T>
  bool missed(const char* label, Symmetric<T> variables, Comparison comparison, T value, CallSite where) const {
    if (--polls_left_ > 0 || variables.size() == 0) [[likely]]
      return false;
    WaitNote note = note_of(variables.local(), comparison, value, label, WaitNote::anyone, where);
    note.sees(load_word(variables.local()));
    look(note);
    return false;
  }
  /// Called after a value has arrived that a loop may poll. The value of an _nbi call may not be there yet; it only
  /// shows whether anything changes.
  template <class T>
  TRANSHIP_UNHOOKED void polled(const char* label, const void* local, Rank peer, const T& value, CallSite where) const {
    if (--polls_left_ > 0) [[likely]]
      return;
    if constexpr (std::is_integral_v<T>) {
      WaitNote note = note_of(static_cast<const T*>(local), Comparison::equal, value, label, WaitNote::anyone, where);
      note.shows = WaitNote::Shows::value;
      note.flag_rank = peer;
      note.sees(value);
      look(note);
    } else {
      look_at(label, local, peer, &value, sizeof value, where);
    }
  }
  /// The values that several variables are compared with: one for all, or one for each.
  template <class T>
  struct Wanted {
    const T* first;
    Index stride;

    T operator[](Index i) const { return first[i * stride]; }
  };
  template <class T>
  Wanted<T> each_of(Symmetric<T> variables, std::span<const T> values, CallSite where) const {
    if (Index(values.size()) < variables.size()) refuse_values(values.size(), variables.size(), where);
    return {values.data(), 1};
  }
  template <class T>
  Index find_any(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip) const {
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i) && found<T>(variables.local() + i, comparison, wanted[i])) return i;
    return -1;
  }
  static bool skipped(std::span<const int> skip, Index i) noexcept {
    return std::size_t(i) < skip.size() && skip[std::size_t(i)] != 0;
  }
  template <class T>
  void wait_all(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                CallSite where) {
    check_waitables("wait_until_all", variables, where);
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i))
        wait(variables.local() + i, comparison, wanted[i], "wait_until_all", WaitNote::anyone, where);
  }
  template <class T>
  Index wait_any(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                 const char* label, CallSite where) {
    check_waitables(label, variables, where);
    Index first = 0;
    while (first < variables.size() && skipped(skip, first)) ++first;
    if (first == variables.size()) return -1;
    const T* shown = variables.local() + first;  // the note shows it for all of them
    WaitNote note = note_of(shown, comparison, wanted[first], label, WaitNote::anyone, where);
    Index place = -1;
    world_->wait_until(
        [&] {
          note.sees(load_word(shown));
          return (place = find_any<T>(variables, comparison, wanted, skip)) >= 0;
        },
        note);
    direct_.acted = true;
    return place;
  }
  template <class T>
  Index wait_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison, Wanted<T> wanted,
                  std::span<const int> skip, CallSite where) {
    if (Index(places.size()) < variables.size()) refuse_room(places.size(), variables.size(), where);
    if (wait_any<T>(variables, comparison, wanted, skip, "wait_until_some", where) < 0) return 0;
    return find_some<T>(variables, places, comparison, wanted, skip, where);
  }
  template <class T>
  bool find_all(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                CallSite where) const {
    check_waitables("test_all", variables, where);
    poll();
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i) && !found<T>(variables.local() + i, comparison, wanted[i]))
        return missed("test_all", variables.from(i), comparison, wanted[i], where);
    return direct_.acted = true;
  }
  template <class T>
  Index find_one(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                 CallSite where) const {
    check_waitables("test_any", variables, where);
    poll();
    const Index place = find_any<T>(variables, comparison, wanted, skip);
    if (place >= 0)
      direct_.acted = true;
    else if (variables.size() > 0)
      missed("test_any", variables, comparison, wanted[0], where);
    return place;
  }
  template <class T>
  Index find_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison, Wanted<T> wanted,
                  std::span<const int> skip, CallSite where) const {
    if (Index(places.size()) < variables.size()) refuse_room(places.size(), variables.size(), where);
    check_waitables("test_some", variables, where);
    poll();
    Index count = 0;
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i) && found<T>(variables.local() + i, comparison, wanted[i])) places[std::size_t(count++)] = i;
    if (count > 0)
      direct_.acted = true;
    else if (variables.size() > 0)
      missed("test_some", variables, comparison, wanted[0], where);
    return count;
  }

  void put_checked(void* target, const void* source, Run run, const SignalAt* signal, Completion completion, Rank peer,
                   CallSite where);
  void get_checked(void* target, const void* source, Run run, Completion completion, Rank peer, CallSite where);
  void put_view(const StridedView& target, const StridedView& source, const SignalAt* signal, Completion completion,
                Rank peer, CallSite where);
  void get_view(const StridedView& target, const StridedView& source, Completion completion, Rank peer, CallSite where);
  void get_block(void* target, const CopyBlock& block, int width, const void* source, Completion completion, Rank peer,
                 CallSite where);
  void put_block(void* target, const CopyBlock& block, int width, const void* source, const SignalAt* signal,
                 Completion completion, Rank peer, CallSite where);
  /// Puts with a signal to a messaged peer, as put_signal() does, but the bytes may leave after the call has returned.
  std::shared_ptr<const std::atomic<bool>> put_departing(void* target, std::span<const std::byte> source,
                                                         const std::shared_ptr<const void>& owner,
                                                         const SignalAt& signal, Rank peer, CallSite where);
  void signal_checked(const SignalAt& signal, Rank peer, CallSite where);
  struct AtomicWord {
    void* local = nullptr;
    std::size_t width = 0;
    WordKind kind{};
  };
  void atomic_checked(const AtomicWord& word, AtomicOp op, const void* operand, const void* expected, void* before,
                      Completion completion, Rank peer, CallSite where);
  /// Throws unless the elements lie in this rank's heap. Returns the offset of the first byte, or 0 if there are no
  /// elements.
  std::size_t checked_elements(const char* what, const void* local, Index size, std::size_t width,
                               CallSite where) const;
  /// Throws unless the slice of a run lies in this rank's heap.
  void check_slice(const char* what, const void* local, const Run& run, CallSite where) const;
  /// Checks words, which must also be aligned to their size.
  std::size_t checked_words(const char* what, const void* local, Index size, std::size_t width, CallSite where) const;
  void* peer_address(const void* local, Index size, std::size_t width, Rank peer, CallSite where) const;
  /// Returns the offset of `local` in the heap. Throws `invalid_use` unless [local + first, local + end) lies in the
  /// heap and, where blocks are checked, in one block that is allocated.
  std::size_t checked_offset(const char* what, const void* local, std::int64_t first, std::int64_t end,
                             CallSite where) const;
  void check_peer(Rank peer, CallSite where) const;
  /// Returns the address of a word, which other ranks may load meanwhile, at a peer that is_direct().
  std::byte* checked_word(const char* what, const void* local, std::size_t bytes, Rank peer, CallSite where) const;
  bool is_direct(Rank peer) const noexcept {
    return direct_.heaps.is_direct(peer);
  }
  /// Requires a peer that is_direct().
  std::byte* at_peer(std::size_t offset, Rank peer) const noexcept {
    return reinterpret_cast<std::byte*>(direct_.heaps.heap_of(peer)) + offset;
  }
  /// Returns the address within the heap of this rank's memory. Registered memory has two addresses; this is the common
  /// one.
  const std::byte* in_heap(const void* own) const noexcept;
  bool may_overlap(const void* to, const void* from, std::size_t bytes) const noexcept;
  /// Returns true if [source + from.first, source + from.end) and [target + to.first, target + to.end) overlap.
  bool overlap(const void* target, Reach to, const void* source, Reach from) const noexcept;
  [[noreturn]] void refuse_sizes(Index ours, Index other, CallSite where) const;
  [[noreturn]] void refuse_count(const char* what, Index needed, Index size, CallSite where) const;
  [[noreturn]] void refuse_room(std::size_t room, Index needed, CallSite where) const;
  [[noreturn]] void refuse_values(std::size_t values, Index variables, CallSite where) const;
  void fence_transport(std::optional<Rank> peer, CallSite where);
  void quiet_transport(std::optional<Rank> peer, CallSite where);
  /// Checks for failures and deadlines, and sets the number of polls until the next check.
  void look(const WaitNote& note) const;
  /// Makes this check after bytes have come from `peer`.
  void look_at(const char* label, const void* local, Rank peer, const CopyBlock& block, int width, const void* target,
               CallSite where) const;
  void look_at(const char* label, const void* local, Rank peer, const void* seen, std::size_t bytes,
               CallSite where) const;
  void poll_transport() const;
  void seen_in_transport(const void* local, std::size_t bytes) const;
  void touches_in_transport(const void* local, std::size_t bytes, Touch touch, const char* name, CallSite where) const;
  void check_touched(const void* local, Index size, std::size_t width, CallSite where) const;
  void touches(const void* local, std::size_t bytes, Touch touch, const char* name, CallSite where) const {
    if (transport_) [[unlikely]]
      touches_in_transport(local, bytes, touch, name, where);
  }
  template <class T>
  void touches(Symmetric<T> array, Touch touch, const char* name, CallSite where) const {
    if (!transport_) [[likely]]
      return;
    check_touched(array.local(), array.size(), sizeof(T), where);
    touches_in_transport(array.local(), bytes_of(array), touch, name, where);
  }
  /// Called after a look at elements that peers write here.
  template <class T>
  void acquired(Symmetric<T> array) const {
    if (transport_) [[unlikely]]
      seen_in_transport(array.local(), bytes_of(array));
  }
  /// Called before a look, without a wait, at elements that peers write here.
  void poll() const {
    if (transport_) [[unlikely]]
      poll_transport();
  }

  World* world_;
  DirectTransfers direct_;
  mutable int polls_left_ = 1;  // until the next look
  int size_;
  Rank rank_;
  int spin_rounds_;
  bool are_sizes_equal_;  // otherwise the smaller size counts
  bool checks_blocks_;
  std::size_t heap_bytes_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace tranship::detail

// BufferOracle: what a few buffers, leases and scopes should do, cell by cell and in the plainest way. It says of each
// operation whether it is refused, what it copies, and what every memory holds after it.
//
// There are at most two buffers; one of them is made by duplicating the other, and either may lose its handle while
// leases of it are open. A copy has a number, which two buffers share until one of them needs a copy of its own.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <tranship/memory/buffer.hpp>

namespace tranship::test {

inline constexpr int cell_count = 4;
inline constexpr int memory_count = 3;  // the host and two devices
inline constexpr int buffer_count = 2;
inline constexpr int lease_count = 2;  // open at once
inline constexpr int scope_count = 2;  // nested
using Value = std::uint64_t;           // wraps, so every order of sums and products gives the same

/// The kind of the devices; the oracle does not care.
inline DeviceKind model_kind = DeviceKind::fake;
inline Device device_of(int memory) {
  return memory == 0 ? Device::host() : Device::of(model_kind, memory - 1);
}

enum class Act : std::uint8_t {
  use,      ///< opens a lease, uses it, closes it
  open,     ///< opens a lease, uses it, and keeps it
  close,    ///< uses a lease that was kept, and closes it
  abandon,  ///< the same, but without a commit
  prefetch,
  evict,
  drop,
  invalidate,
  duplicate,
  freeze,
  forget,  ///< the handle goes
  enter,   ///< a scope
  leave,
};

struct Op {
  Act act{};
  int buffer = 0;
  int memory = 0;
  Intent intent = Intent::read;
  Combine combine = Combine::sum;
  int lower = 0, upper = cell_count;
  int slot = 0;  ///< of the lease to be closed
};

inline std::string text_of(const Op& op) {
  static const char* const names[] = {"use",        "open",      "close",  "abandon", "prefetch", "evict", "drop",
                                      "invalidate", "duplicate", "freeze", "forget",  "enter",    "leave"};
  std::string out = names[int(op.act)];
  if (op.act == Act::leave) return out;
  if (op.act == Act::close || op.act == Act::abandon) return out + " " + std::to_string(op.slot);
  if (op.act != Act::enter) out += op.buffer == 0 ? " a" : " b";
  if (op.act != Act::duplicate && op.act != Act::freeze && op.act != Act::forget)
    out += " " + to_string(device_of(op.memory));
  if (op.act == Act::use || op.act == Act::open) {
    out += std::string(" ") + name_of(op.intent);
    if (op.intent == Intent::accumulate) out += std::string(" ") + name_of(op.combine);
  }
  if (op.act == Act::use || op.act == Act::open || op.act == Act::prefetch || op.act == Act::invalidate)
    out += " [" + std::to_string(op.lower) + "," + std::to_string(op.upper) + ")";
  return out;
}

/// What a kernel makes of a cell.
inline Value changed(Intent intent, Combine combine, Value old, Value operand) {
  switch (intent) {
    case Intent::read:
      return old;
    case Intent::write:
      return operand;
    case Intent::read_write:
      return 5 * old + operand;
    case Intent::accumulate:
      break;
  }
  switch (combine) {
    case Combine::sum:
      return old + operand;
    case Combine::product:
      return old * (2 * operand + 1);
    case Combine::minimum:
      return std::min(old, operand);
    case Combine::maximum:
      break;
  }
  return std::max(old, operand);
}

/// A set of memories.
using Memories = unsigned;
constexpr Memories only(int memory) {
  return 1u << memory;
}

class BufferOracle {
 public:
  struct Cell {
    Value value = 0;
    bool is_written = false;
    bool is_absent = false;  ///< its value is elsewhere, or was written half
    Memories valid = 0, partial = 0;
    Combine combine = Combine::sum;  ///< of the partial ones
    bool is_valid(int memory) const { return (valid & only(memory)) != 0; }
    bool is_partial(int memory) const { return (partial & only(memory)) != 0; }
  };
  struct State {
    bool has_handle = false;
    bool is_frozen = false;
    std::array<Cell, cell_count> cells{};
    std::array<int, memory_count> copies{-1, -1, -1};  ///< their numbers; -1: none
  };
  struct Kept {
    Op op;
    int copy = -1;  ///< what it looks at
  };
  struct Scope {
    int memory = 0;
    std::vector<int> used;  ///< buffers, in the order of their first uses
  };
  /// What an operation does beside changing the state.
  struct Outcome {
    Index between_bytes = 0;                       ///< copied from one memory to another
    Index within_bytes = 0;                        ///< copied so that a buffer has a copy of its own
    std::array<bool, buffer_count> has_changed{};  ///< of each buffer, whether its version has
  };

  explicit BufferOracle(Residency residency) : residency_(residency) { states_[0].has_handle = true; }

  const State& state(int buffer) const { return states_[std::size_t(buffer)]; }
  const std::optional<Kept>& lease(int slot) const { return leases_[std::size_t(slot)]; }
  const std::vector<Scope>& scopes() const { return scopes_; }
  /// The operand of what is used next.
  Value operand() const { return (uses_ + 1) * 0x9e3779b97f4a7c15u; }
  int free_slot() const {
    int slot = 0;
    while (slot < lease_count && leases_[std::size_t(slot)]) ++slot;
    return slot;
  }
  bool is_alive(int buffer) const { return state(buffer).has_handle || has_lease(buffer); }

  /// Whether there is what the operation is about.
  bool is_possible(const Op& op) const {
    switch (op.act) {
      case Act::close:
      case Act::abandon:
        return lease(op.slot).has_value();
      case Act::enter:
        return int(scopes_.size()) < scope_count;
      case Act::leave:
        return !scopes_.empty();
      case Act::open:
        return state(op.buffer).has_handle && free_slot() < lease_count;
      case Act::duplicate:
        return state(op.buffer).has_handle && !is_alive(1 - op.buffer);
      default:
        return state(op.buffer).has_handle;
    }
  }

  /// Does it; nothing when it is refused, and returns nothing then.
  std::optional<Outcome> step(const Op& op) {
    BufferOracle next = *this;
    next.outcome_ = {};
    if (!next.act(op)) return std::nullopt;
    *this = std::move(next);
    return outcome_;
  }

  /// All that the rest depends on, but for the values. Equal for two that differ in the names of fake devices, buffers
  /// and slots alone.
  std::string key() const { return std::min({key(false, false), key(false, true), key(true, false), key(true, true)}); }
  /// Whether the two fake devices are in the same state, so that either stands for both.
  bool is_symmetric() const {
    return std::min(key(false, false), key(false, true)) == std::min(key(true, false), key(true, true));
  }

 private:
  State& at(int buffer) { return states_[std::size_t(buffer)]; }

  bool has_lease(int buffer) const {
    return std::any_of(leases_.begin(), leases_.end(),
                       [&](const auto& kept) { return kept && kept->op.buffer == buffer; });
  }
  bool has_lease_on(int buffer, int memory) const {
    return std::any_of(leases_.begin(), leases_.end(), [&](const auto& kept) {
      return kept && kept->op.buffer == buffer && kept->op.memory == memory;
    });
  }
  bool has_writer(int buffer) const {
    return std::any_of(leases_.begin(), leases_.end(), [&](const auto& kept) {
      return kept && kept->op.buffer == buffer && kept->op.intent != Intent::read;
    });
  }
  bool conflicts(const Op& op) const {
    for (const auto& kept : leases_) {
      if (!kept || kept->op.buffer != op.buffer) continue;
      const Op& other = kept->op;
      if (other.intent == Intent::read && op.intent == Intent::read) continue;
      if (other.intent == Intent::accumulate && op.intent == Intent::accumulate && other.memory != op.memory &&
          other.combine == op.combine)
        continue;
      if (std::max(other.lower, op.lower) < std::min(other.upper, op.upper)) return true;
    }
    return false;
  }
  /// Somebody else looks at this copy, so it must stay as it is.
  bool is_shared(int buffer, int memory) const {
    const int copy = state(buffer).copies[std::size_t(memory)];
    const int other = 1 - buffer;
    if (is_alive(other) && state(other).copies[std::size_t(memory)] == copy) return true;
    return std::any_of(leases_.begin(), leases_.end(),
                       [&](const auto& kept) { return kept && kept->op.buffer == other && kept->copy == copy; });
  }
  static bool is_needed(const Cell& cell, int memory) {
    return cell.is_partial(memory) || ((cell.is_written || cell.partial != 0) && cell.valid == only(memory));
  }

  /// The memory is about to be written: it needs a copy of its own, with all that it holds but for what the lease will
  /// overwrite.
  void own(const Op& op) {
    State& s = at(op.buffer);
    int& copy = s.copies[std::size_t(op.memory)];
    if (copy >= 0 && !is_shared(op.buffer, op.memory)) return;
    if (copy >= 0)
      for (int i = 0; i < cell_count; ++i) {
        const Cell& cell = s.cells[std::size_t(i)];
        const bool is_overwritten = op.intent == Intent::write && i >= op.lower && i < op.upper;
        if (!is_overwritten && (cell.is_valid(op.memory) || cell.is_partial(op.memory)))
          outcome_.within_bytes += Index(sizeof(Value));
      }
    copy = next_copy_++;
  }

  /// Makes the memory ready for an access.
  bool make_ready(const Op& op) {
    State& s = at(op.buffer);
    bool puts = s.copies[std::size_t(op.memory)] < 0 || op.intent != Intent::read;
    std::array<Cell, cell_count> after = s.cells;
    for (int i = op.lower; i < op.upper && op.intent != Intent::write; ++i) {
      Cell& cell = after[std::size_t(i)];
      if (cell.is_absent) return false;
      const bool merges = cell.partial != 0 && (op.intent != Intent::accumulate || cell.combine != op.combine);
      const bool is_nothing = cell.valid == 0 && cell.partial == 0;
      const bool is_here =
          !merges && (cell.is_valid(op.memory) || (op.intent == Intent::accumulate && cell.is_partial(op.memory)));
      puts = puts || !is_here;
      if (merges) {
        for (int other = 0; other < memory_count; ++other)
          if (other != op.memory && cell.is_partial(other)) copied();
        if (cell.valid != 0 && !cell.is_valid(op.memory)) copied();
        cell.partial = 0;
        cell.valid = only(op.memory);
        cell.is_written = true;
      } else if (is_nothing) {
        cell.valid = only(op.memory);
      } else if (!is_here && op.intent == Intent::accumulate) {
        cell.partial |= only(op.memory);
        cell.combine = op.combine;
      } else if (!is_here) {
        cell.valid |= only(op.memory);
        if (cell.is_written) copied();  // else it is filled with the zeros that all begin with
      }
      // From now on its copy holds what no other does; those who accumulate elsewhere must begin with nothing.
      if (op.intent == Intent::accumulate && cell.is_valid(op.memory)) cell.valid = only(op.memory);
    }
    if (puts) own(op);
    s.cells = after;
    return true;
  }
  void copied() { outcome_.between_bytes += Index(sizeof(Value)); }

  void use(const Op& op) {
    if (op.intent == Intent::read) return;
    for (int i = op.lower; i < op.upper; ++i) {
      Value& value = at(op.buffer).cells[std::size_t(i)].value;
      value = changed(op.intent, op.combine, value, operand() + Value(i));
    }
    ++uses_;
  }
  bool open(const Op& op) {
    if ((op.intent != Intent::read && state(op.buffer).is_frozen) || conflicts(op)) return false;
    if (!make_ready(op)) return false;
    note_use(op);
    use(op);
    return true;
  }
  void close(const Op& op) {
    if (op.intent == Intent::read) return;
    outcome_.has_changed[std::size_t(op.buffer)] = true;
    for (int i = op.lower; i < op.upper; ++i) {
      Cell& cell = at(op.buffer).cells[std::size_t(i)];
      cell.is_written = true;
      if (cell.is_absent && op.intent != Intent::write) continue;  // another lease has abandoned it
      cell.is_absent = false;
      if (op.intent == Intent::accumulate && cell.is_partial(op.memory)) continue;
      cell.valid = only(op.memory);
      if (op.intent != Intent::accumulate) cell.partial = 0;
    }
  }
  void abandon(const Op& op) {
    if (op.intent == Intent::read) return;
    outcome_.has_changed[std::size_t(op.buffer)] = true;
    for (int i = op.lower; i < op.upper; ++i) {
      Cell& cell = at(op.buffer).cells[std::size_t(i)];
      cell = {.value = cell.value, .is_written = true, .is_absent = true};
    }
  }
  void note_use(const Op& op) {
    if (residency_ != Residency::release) return;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (scope->memory != op.memory) continue;
      if (std::count(scope->used.begin(), scope->used.end(), op.buffer) == 0) scope->used.push_back(op.buffer);
      return;
    }
  }
  void forget_copy(const Op& op) {
    State& s = at(op.buffer);
    s.copies[std::size_t(op.memory)] = -1;
    for (Cell& cell : s.cells) {
      cell.valid &= ~only(op.memory);
      cell.partial &= ~only(op.memory);
    }
  }
  bool invalidate(const Op& op) {
    const Op write{.buffer = op.buffer, .intent = Intent::write, .lower = op.lower, .upper = op.upper};
    if (state(op.buffer).is_frozen || conflicts(write)) return false;
    abandon(write);  // it is as absent
    return true;
  }
  bool drop(const Op& op) {
    const State& s = state(op.buffer);
    if (s.copies[std::size_t(op.memory)] < 0) return true;
    if (has_lease_on(op.buffer, op.memory)) return false;
    for (const Cell& cell : s.cells)
      if (is_needed(cell, op.memory)) return false;
    forget_copy(op);
    return true;
  }
  bool evict(const Op& op) {
    const State& s = state(op.buffer);
    if (s.copies[std::size_t(op.memory)] < 0) return true;
    if (has_lease_on(op.buffer, op.memory)) return false;
    const auto is_saved = [&](const Cell& cell) { return is_needed(cell, op.memory); };
    for (int i = 0; i < cell_count; ++i)
      if (is_saved(s.cells[std::size_t(i)]) &&
          (op.memory == 0 || conflicts({.act = Act::use, .buffer = op.buffer, .lower = i, .upper = i + 1})))
        return false;
    if (std::any_of(s.cells.begin(), s.cells.end(), is_saved)) own({.buffer = op.buffer});
    // Each value's part in this memory moves to the host, once, and nothing else.
    for (Cell& cell : at(op.buffer).cells) {
      if (!is_saved(cell)) continue;
      copied();
      if (cell.is_partial(op.memory) && cell.is_valid(0)) {
        cell.valid = only(0);
      } else if (cell.is_partial(op.memory)) {
        cell.partial |= only(0);
      } else {
        cell.valid |= only(0);
        cell.partial &= ~only(0);
      }
    }
    forget_copy(op);
    return true;
  }

  bool act(const Op& op) {
    switch (op.act) {
      case Act::use:
        if (!open(op)) return false;
        close(op);
        return true;
      case Act::open:
        if (!open(op)) return false;
        leases_[std::size_t(free_slot())] = Kept{op, state(op.buffer).copies[std::size_t(op.memory)]};
        return true;
      case Act::close:
      case Act::abandon: {
        const Op lease = leases_[std::size_t(op.slot)]->op;
        use(lease);
        op.act == Act::close ? close(lease) : abandon(lease);
        leases_[std::size_t(op.slot)].reset();
        clear_dead();
        return true;
      }
      case Act::prefetch:
        return !conflicts(op) && make_ready(op);
      case Act::evict:
        return evict(op);
      case Act::drop:
        return drop(op);
      case Act::invalidate:
        return invalidate(op);
      case Act::duplicate: {
        if (has_writer(op.buffer)) return false;
        State& copy = at(1 - op.buffer);
        copy = state(op.buffer);
        copy.is_frozen = false;
        return true;
      }
      case Act::freeze:
        if (has_writer(op.buffer)) return false;
        at(op.buffer).is_frozen = true;
        return true;
      case Act::forget:
        at(op.buffer).has_handle = false;
        // Whatever leases are still open, nobody can ask for its values again: scopes have nothing to save.
        for (Scope& scope : scopes_) std::erase(scope.used, op.buffer);
        clear_dead();
        return true;
      case Act::enter:
        scopes_.push_back({op.memory, {}});
        return true;
      case Act::leave: {
        const Scope scope = scopes_.back();
        scopes_.pop_back();
        for (const int buffer : scope.used) evict({.buffer = buffer, .memory = scope.memory});
        return true;
      }
    }
    return false;
  }
  void clear_dead() {
    for (int buffer = 0; buffer < buffer_count; ++buffer)
      if (!is_alive(buffer)) at(buffer) = {};
  }

  std::string key(bool swap_devices, bool swap_buffers) const {
    const auto memory_of = [&](int memory) { return swap_devices && memory > 0 ? 3 - memory : memory; };
    const auto buffer_of = [&](int buffer) { return swap_buffers ? 1 - buffer : buffer; };
    const auto set_of = [&](Memories set) {
      return swap_devices ? (set & 1u) | (set & 2u) << 1 | (set & 4u) >> 1 : set;
    };
    std::string out;
    std::vector<int> copies{-1};  // in the order in which they are met
    const auto add = [&](int number) { out.push_back(char('0' + number)); };
    const auto add_copy = [&](int copy) {
      auto found = std::find(copies.begin(), copies.end(), copy);
      if (found == copies.end()) found = copies.insert(found, copy);
      add(int(found - copies.begin()));
    };
    for (int b = 0; b < buffer_count; ++b) {
      const State& s = state(buffer_of(b));
      add(s.has_handle + 2 * s.is_frozen);
      for (const Cell& cell : s.cells) {
        add(int(set_of(cell.valid)) + 8 * cell.is_written + 16 * cell.is_absent);
        add(int(set_of(cell.partial)));
        add(cell.partial != 0 ? int(cell.combine) : 0);
      }
      for (int memory = 0; memory < memory_count; ++memory) add_copy(s.copies[std::size_t(memory_of(memory))]);
    }
    std::vector<std::string> kept;
    for (const auto& lease : leases_) {
      if (!lease) continue;
      std::string before = std::exchange(out, "");
      for (const int number :
           {buffer_of(lease->op.buffer), memory_of(lease->op.memory), int(lease->op.intent),
            lease->op.intent == Intent::accumulate ? int(lease->op.combine) : 0, lease->op.lower, lease->op.upper})
        add(number);
      const bool is_current = state(lease->op.buffer).copies[std::size_t(lease->op.memory)] == lease->copy;
      const bool is_known = std::count(copies.begin(), copies.end(), lease->copy) > 0;
      add(is_current ? 0 : is_known ? 1 : 2);
      kept.push_back(std::exchange(out, before));
    }
    std::sort(kept.begin(), kept.end());
    for (const std::string& text : kept) out += '|' + text;
    for (const Scope& scope : scopes_) {
      out += '/';
      add(memory_of(scope.memory));
      for (const int buffer : scope.used) add(buffer_of(buffer));
    }
    return out;
  }

  Residency residency_;
  std::array<State, buffer_count> states_;
  std::array<std::optional<Kept>, lease_count> leases_;
  std::vector<Scope> scopes_;
  Outcome outcome_;
  int next_copy_ = 0;
  Value uses_ = 0;
};

}  // namespace tranship::test

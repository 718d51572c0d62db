// Detail: Ledger: what every transfer between memories moved, by which way, how long it took, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/device.hpp>
#include <tranship/base/result.hpp>
#include <tranship/memory/region.hpp>

namespace tranship {

enum class Cause : std::uint8_t {
  first_touch,  ///< the memory had no copy of it yet
  stale,        ///< its copy had been overtaken by a write elsewhere
  merge,        ///< partial sums (or minima, ...) of several memories became one value
  halo,         ///< ghosts were fetched
  eviction,     ///< the only valid copy had to leave
  export_,      ///< an export wanted it in another memory
  prefetch,     ///< it was asked for in advance
  duplicate,    ///< a copy-on-write duplicate was written
};
const char* name_of(Cause cause);

enum class Route : std::uint8_t {
  direct,        ///< one memory to the other
  through_host,  ///< by way of pinned memory of the host
  within,        ///< within one memory
};
const char* name_of(Route route);

/// One copy of one region of one buffer.
struct CopyRecord {
  std::uint64_t number = 0;         ///< counts from 1, in the order in which copies were given to their streams
  std::string buffer;               ///< its name
  std::uint64_t buffer_number = 0;  ///< tells it from others of that name
  Device source, target;
  Region region;
  std::int64_t bytes = 0;
  Route route = Route::direct;
  Cause cause = Cause::first_touch;
  CallSite requester{"", 0};  ///< who wanted the data
  CallSite writer{"", 0};     ///< who had written it; line 0 where that is not known
  std::int64_t begin_ns = 0;  ///< now_ns() when it was given to its stream
  std::int64_t end_ns = 0;    ///< when it was over, or was found to be
};

/// "host -> fake:0 4096 bytes [0,512) of 'u', stale since write at a.cpp:12, for b.cpp:40".
std::string to_string(const CopyRecord& record);

/// A region that goes back and forth between two memories. What happens to it between other memories does not count.
struct PingPong {
  std::string buffer;
  Device a, b;
  Region region;    ///< that all of its copies have in common
  Index turns = 0;  ///< copies one way directly after copies the other way
  std::int64_t bytes = 0;
};

/// Thread-safe. Keeps the last `records_max` records and the sums of all. An entry costs a copy some 0.3 us, its clock
/// included, and allocates nothing; the calls that return lists copy them.
class CopyLedger {
 public:
  static constexpr std::size_t records_max = 1 << 16;

  CopyLedger();
  ~CopyLedger();

  struct Sums {
    Index copies = 0;
    std::int64_t bytes = 0;
  };

  /// Returns the number it was given. Numbers go on after clear().
  std::uint64_t add(const CopyRecord& record);
  /// Does nothing where the record is no longer kept.
  void set_end(std::uint64_t number, std::int64_t end_ns);

  std::vector<CopyRecord> records() const;
  Sums sums() const;
  Sums sums(Cause cause) const;
  Sums sums(Device source, Device target) const;
  /// Zeros that have not been written, and that a memory was given without a copy: `copies` is how often it was filled.
  Sums fills() const;
  void add_fill(std::int64_t bytes);
  void clear();

  /// Regions of at least `turns_min` turns among the records, those with the most bytes first. No cell is in two of one
  /// buffer and pair of devices.
  std::vector<PingPong> ping_pongs(Index turns_min = 3) const;
  /// The records as a JSON text of the Trace Event Format, which Perfetto and chrome://tracing open: a track for each
  /// pair of devices, and further ones of that name where copies overlap, which viewers would not show; times in
  /// microseconds from the first record. What is not over yet lasts 0 and says so.
  std::string trace_json() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While one exists in this thread, a copy that was not asked for by name (prefetch and export are asked for) throws
/// `invalid_use` before anything moves, naming the copy, its cause, and where this was opened. Nests; may be closed in
/// any order, but in the thread that opened it.
class NoImplicitCopies {
 public:
  explicit NoImplicitCopies(CallSite where = CallSite::here());
  ~NoImplicitCopies();
  NoImplicitCopies(const NoImplicitCopies&) = delete;
  NoImplicitCopies& operator=(const NoImplicitCopies&) = delete;

 private:
  friend void check_scopes(std::span<const CopyRecord> copies);
  NoImplicitCopies* outer_;
  CallSite where_;
};

/// While one exists in this thread, copies of more than `bytes_max` in all throw `invalid_use` before anything moves,
/// with both numbers. Nests; each counts. May be closed in any order, but in the thread that opened it.
class ByteBudget {
 public:
  explicit ByteBudget(std::int64_t bytes_max, CallSite where = CallSite::here());
  ~ByteBudget();
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;
  std::int64_t spent_bytes() const noexcept { return spent_bytes_; }

 private:
  friend void check_scopes(std::span<const CopyRecord> copies);
  friend void spend(std::int64_t bytes) noexcept;
  ByteBudget* outer_;
  CallSite where_;
  std::int64_t bytes_max_;
  std::int64_t spent_bytes_ = 0;
};

/// Throws when the scopes that are open in this thread forbid these copies, taken together.
void check_scopes(std::span<const CopyRecord> copies);
/// Counts what has been copied against the open budgets.
void spend(std::int64_t bytes) noexcept;

}  // namespace tranship

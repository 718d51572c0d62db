// Detail: CopyLedger records each copy between memories: what it moved, by which route, how long it took, and why. The
// scopes NoImplicitCopies and ByteBudget limit copies.
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
  first_touch,  ///< the memory had no value of these cells yet
  stale,        ///< a write in another memory had made its values stale
  merge,        ///< partial sums (or minima, ...) of several memories were merged into one value
  halo,         ///< ghosts were fetched
  eviction,     ///< the only valid copy had to leave its memory
  export_,      ///< an export needed it in another memory
  prefetch,     ///< the program asked for it in advance
  duplicate,    ///< a copy shared with a duplicate was about to change
};
const char* name_of(Cause cause);

enum class Route : std::uint8_t {
  direct,        ///< from one memory to the other
  through_host,  ///< through pinned memory of the host
  within,        ///< inside one memory
};
const char* name_of(Route route);

/// One copy of one region of one buffer.
struct CopyRecord {
  std::uint64_t number = 0;         ///< counts from 1, in the order in which copies were enqueued
  std::string buffer;               ///< name of the buffer
  std::uint64_t buffer_number = 0;  ///< distinguishes buffers of one name
  Device source, target;
  Region region;
  std::int64_t bytes = 0;
  Route route = Route::direct;
  Cause cause = Cause::first_touch;
  CallSite requester{"", 0};  ///< the call that needed the data
  CallSite writer{"", 0};     ///< the call that wrote it; line 0 when not known
  std::int64_t begin_ns = 0;  ///< now_ns() when it was enqueued
  std::int64_t end_ns = 0;    ///< now_ns() when it completed, or was found complete; 0 before
};

/// "host -> fake:0 4096 bytes [0,512) of 'u', stale since write at a.cpp:12, for b.cpp:40".
std::string to_string(const CopyRecord& record);

/// A region that was copied back and forth between two memories. Copies from and to other memories do not count.
struct PingPong {
  std::string buffer;
  Device a, b;
  Region region;    ///< cells that all these copies have in common
  Index turns = 0;  ///< number of copies in one direction that directly follow a copy in the other
  std::int64_t bytes = 0;
};

/// Thread-safe. Keeps the last `records_max` records and the sums of all since clear(). A record costs a copy some
/// 0.3 us, clock included, and allocates nothing once the list is full; the calls that return lists copy them.
class CopyLedger {
 public:
  static constexpr std::size_t records_max = 1 << 16;

  CopyLedger();
  ~CopyLedger();

  struct Sums {
    Index copies = 0;
    std::int64_t bytes = 0;
  };

  /// Adds a record and returns its number. Numbers continue after clear().
  std::uint64_t add(const CopyRecord& record);
  /// Does nothing when the record is no longer kept.
  void set_end(std::uint64_t number, std::int64_t end_ns);

  std::vector<CopyRecord> records() const;
  Sums sums() const;
  Sums sums(Cause cause) const;
  Sums sums(Device source, Device target) const;
  /// Fills with zeros instead of copies, of cells that have never been written; `copies` counts the fills.
  Sums fills() const;
  void add_fill(std::int64_t bytes);
  void clear();

  /// Regions with at least `turns_min` turns among the kept records, most bytes first. No cell occurs in two regions of
  /// one buffer and pair of devices.
  std::vector<PingPong> ping_pongs(Index turns_min = 3) const;
  /// The records as JSON in the Trace Event Format, for Perfetto and chrome://tracing. Each pair of devices has a
  /// track, and further tracks of the same name where copies overlap, which viewers could not show otherwise. Times are
  /// in microseconds from the first record. A copy that is still in progress has length 0 and is marked.
  std::string trace_json() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While one lives, an implicit copy in this thread throws `invalid_use` before anything moves; the message names the
/// copy, its cause and the call site of the scope. Prefetches and exports are explicit and stay allowed. Scopes nest,
/// and may be destroyed in any order, in the thread that made them.
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

/// While one lives, copies of this thread that exceed `bytes_max` in total throw `invalid_use` before anything moves,
/// with both numbers. Scopes nest, and a copy counts in each. They may be destroyed in any order, in the thread that
/// made them. The constructor throws `invalid_use` for a negative number.
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

/// Throws `invalid_use` when a scope of this thread forbids these copies, taken together.
void check_scopes(std::span<const CopyRecord> copies);
/// Charges copied bytes to the open budgets of this thread.
void spend(std::int64_t bytes) noexcept;

}  // namespace tranship

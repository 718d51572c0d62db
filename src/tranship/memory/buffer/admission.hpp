// Private: Admission, who may hold which lease of a buffer when: the leases that are open, and what they and a frozen
// buffer forbid. It knows nothing of memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/memory/buffer/shape.hpp>
#include <tranship/memory/buffer/storage.hpp>

namespace tranship::detail {

inline bool writes(Intent intent) {
  return intent != Intent::read;
}

/// An access whose defaults are resolved.
struct Request {
  Intent intent = Intent::read;
  Combine combine = Combine::sum;
  Device device;
  MemoryId memory = 0;
  Stream* stream = nullptr;
  const Region* region = nullptr;  ///< null: the whole buffer
  std::optional<Cause> cause;
  CallSite where{"", 0};
  MemoryId leaving = -1;  ///< whose copy is to be given back; -1: none
};

struct OpenLease {
  bool is_open = false;
  Intent intent{};
  Combine combine{};
  MemoryId memory = 0;
  bool is_whole = true;
  Region region;  // unless it is the whole buffer
  std::optional<Cause> cause;
  bool is_void = false;  // it could not be handed out, so nothing is written under it
  CallSite where{"", 0};
  std::shared_ptr<Storage> storage;  // what it reads, when the buffer has another copy since
};

class Admission {
 public:
  explicit Admission(const BufferShape& shape) : shape_(shape) {}

  const Region& region_of(const Request& request) const { return request.region ? *request.region : shape_.whole; }
  const Region& region_of(const OpenLease& lease) const { return lease.is_whole ? shape_.whole : lease.region; }

  /// Throws where the buffer can never grant a request as it is now.
  void check(const Request& request) const {
    if (request.intent == Intent::accumulate || is_frozen()) check_intent(request);
    if (!request.region) return;
    for (const Box& box : request.region->boxes())
      if (box.dims() != shape_.extents.size() || shape_.whole.empty() || !within(box, shape_.whole.boxes()[0]))
        refuse(box, request);
  }
  /// Throws where an open lease forbids it.
  void check_conflicts(const Request& request) const {
    if (open_count_ > 0) check_open(request);
  }
  /// Throws when a lease that writes is open; `done` says what it forbids.
  void check_no_writer(const char* done, CallSite where) const;
  /// Throws when a lease is open on the memory's copy, which is to be given back.
  void check_unused(MemoryId memory, CallSite where) const;

  /// Enters a lease that has been granted, and returns its slot.
  int enter(const Request& request);
  /// The lease of a slot is over.
  void leave(int slot) {
    leases_[slot].is_open = false;
    --open_count_;
  }
  int open_count() const { return open_count_; }
  OpenLease& lease(int slot) { return leases_[slot]; }
  const OpenLease& lease(int slot) const { return leases_[slot]; }
  int slot_count() const { return int(leases_.size()); }
  bool is_open_on(MemoryId memory) const { return open_lease_on(memory) != nullptr; }
  /// Calls f(lease) for each open one.
  template <class F>
  void for_each_open(F&& f) {
    for (OpenLease& lease : leases_)
      if (lease.is_open) f(lease);
  }
  template <class F>
  void for_each_open(F&& f) const {
    for (const OpenLease& lease : leases_)
      if (lease.is_open) f(lease);
  }

  bool is_frozen() const { return frozen_.line > 0; }
  void freeze(CallSite where) {
    if (!is_frozen()) frozen_ = where;
  }

 private:
  void check_intent(const Request& request) const;
  [[noreturn]] void refuse(const Box& box, const Request& request) const;
  void check_open(const Request& request) const;
  /// The first open lease that `is_wanted(lease)`; null when there is none.
  template <class F>
  const OpenLease* open_lease(F&& is_wanted) const {
    for (const OpenLease& lease : leases_)
      if (lease.is_open && is_wanted(lease)) return &lease;
    return nullptr;
  }
  const OpenLease* open_lease_on(MemoryId memory) const {
    return open_lease([&](const OpenLease& lease) { return lease.memory == memory; });
  }

  const BufferShape& shape_;
  std::vector<OpenLease> leases_;
  int open_count_ = 0;
  CallSite frozen_{"", 0};  // line 0: it is not
};

inline int Admission::enter(const Request& request) {
  int slot = 0;
  if (open_count_ > 0)
    while (slot < int(leases_.size()) && leases_[slot].is_open) ++slot;
  if (slot == int(leases_.size())) leases_.emplace_back();
  OpenLease& entry = leases_[slot];
  entry.is_open = true;
  entry.is_void = false;
  entry.intent = request.intent;
  entry.combine = request.combine;
  entry.memory = request.memory;
  entry.where = request.where;
  entry.cause = request.cause;
  entry.is_whole = request.region == nullptr;
  if (request.region) entry.region = *request.region;
  ++open_count_;
  return slot;
}

}  // namespace tranship::detail

// Private: Admission decides which leases of a buffer may be open at one time: it keeps the open leases and refuses
// requests that conflict with them or with a frozen buffer. It knows no memory.
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
  MemoryId leaving = -1;  ///< the memory whose copy will be given back; -1: none
};

struct OpenLease {
  bool is_open = false;
  Intent intent{};
  Combine combine{};
  MemoryId memory = 0;
  bool is_whole = true;
  Region region;  // empty for the whole buffer
  std::optional<Cause> cause;
  bool is_void = false;  // opening failed later, so nothing has been written under it
  CallSite where{"", 0};
  std::shared_ptr<Storage> storage;  // the copy that it uses, where the buffer has replaced it since
};

class Admission {
 public:
  explicit Admission(const BufferShape& shape) : shape_(shape) {}

  const Region& region_of(const Request& request) const { return request.region ? *request.region : shape_.whole; }
  const Region& region_of(const OpenLease& lease) const { return lease.is_whole ? shape_.whole : lease.region; }

  /// Throws when the request is invalid whatever leases are open: a frozen buffer, a region outside it.
  void check(const Request& request) const {
    if (request.intent == Intent::accumulate || is_frozen()) check_intent(request);
    if (!request.region) return;
    for (const Box& box : request.region->boxes())
      if (box.dims() != shape_.extents.size() || shape_.whole.empty() || !within(box, shape_.whole.boxes()[0]))
        refuse(box, request);
  }
  /// Throws when an open lease forbids the request.
  void check_conflicts(const Request& request) const {
    if (open_count_ > 0) check_open(request);
  }
  /// Throws when a lease that writes is open; `done` is the participle for the message ("frozen").
  void check_no_writer(const char* done, CallSite where) const;
  /// Throws when a lease is open on the memory's copy. Callers are about to give it back.
  void check_unused(MemoryId memory, CallSite where) const;

  /// Records a granted lease and returns its slot.
  int enter(const Request& request);
  /// Ends the lease in a slot.
  void leave(int slot) {
    leases_[slot].is_open = false;
    --open_count_;
  }
  int open_count() const { return open_count_; }
  OpenLease& lease(int slot) { return leases_[slot]; }
  const OpenLease& lease(int slot) const { return leases_[slot]; }
  int slot_count() const { return int(leases_.size()); }
  bool is_open_on(MemoryId memory) const { return open_lease_on(memory) != nullptr; }
  /// Calls f(lease) for each open lease.
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
  /// Returns the first open lease for which `is_wanted(lease)` is true; null when there is none.
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
  CallSite frozen_{"", 0};  // line 0: not frozen
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

#include "tranship/memory/buffer/admission.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/memory/combination.hpp>

namespace tranship::detail {

void Admission::check(const Request& request) const {
  const std::string& name = shape_.options.name;
  if (writes(request.intent) && is_frozen())
    throw_error(ErrorCode::invalid_use, "buffer '{}' was frozen at {}; {} at {} would change it", name,
                to_string(frozen_), name_of(request.intent), to_string(request.where));
  if (request.intent == Intent::accumulate && !can_combine(request.combine, shape_.type))
    throw_error(ErrorCode::invalid_use, "buffer '{}' of {} has no {}", name, tranship::name_of(shape_.type),
                name_of(request.combine));
  if (!request.region) return;
  for (const Box& box : request.region->boxes()) {
    if (box.dims() != shape_.extents.size())
      throw_error(ErrorCode::invalid_use, "a region of {} of buffer '{}', which has {}",
                  amount(box.dims(), "dimension"), name, shape_.extents.size());
    if (shape_.whole.empty() || !within(box, shape_.whole.boxes()[0]))
      throw_error(ErrorCode::invalid_use, "region {} leaves buffer '{}' of extents [{}]",
                  tranship::to_string(*request.region), name, tranship::to_string(shape_.extents));
  }
}

void Admission::check_conflicts(const Request& request) const {
  if (open_count_ == 0) return;
  for (const OpenLease& other : leases_) {
    if (!other.is_open) continue;
    if (!writes(other.intent) && !writes(request.intent)) continue;
    const bool apart = other.memory != request.memory && other.combine == request.combine;
    if (other.intent == Intent::accumulate && request.intent == Intent::accumulate && apart) continue;
    const Region& theirs = region_of(other);
    if (!theirs.overlaps(region_of(request))) continue;
    throw_error(ErrorCode::invalid_use,
                "buffer '{}': {} of {} on {} at {} conflicts with the open {} of {} on {} since {}",
                shape_.options.name, name_of(request.intent), tranship::to_string(region_of(request)),
                tranship::to_string(request.device), to_string(request.where), name_of(other.intent),
                tranship::to_string(theirs), tranship::to_string(shape_.devices.device_of(other.memory)),
                to_string(other.where));
  }
}

void Admission::check_no_writer(const char* done, CallSite where) const {
  if (const OpenLease* writer = open_lease([](const OpenLease& lease) { return writes(lease.intent); }))
    throw_error(ErrorCode::invalid_use, "buffer '{}' cannot be {} at {}: {} since {} is open", shape_.options.name,
                done, to_string(where), name_of(writer->intent), to_string(writer->where));
}

void Admission::check_unused(MemoryId memory, CallSite where) const {
  if (const OpenLease* other = open_lease_on(memory))
    throw_error(ErrorCode::invalid_use, "buffer '{}': its copy on {} cannot be given back at {}: {} since {} is open",
                shape_.options.name, tranship::to_string(shape_.devices.device_of(memory)), to_string(where),
                name_of(other->intent), to_string(other->where));
}

int Admission::enter(const Request& request) {
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

#include "tranship/memory/buffer/admission.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/memory/combination.hpp>

namespace tranship::detail {

void Admission::check_intent(const Request& request) const {
  if (writes(request.intent) && is_frozen())
    throw_error(ErrorCode::invalid_use, "buffer '{}' was frozen at {}; {} at {} would change it", shape_.options.name,
                to_string(frozen_), name_of(request.intent), to_string(request.where));
  if (request.intent == Intent::accumulate && !can_combine(request.combine, shape_.type))
    throw_error(ErrorCode::invalid_use, "buffer '{}' of {} has no {}", shape_.options.name,
                tranship::name_of(shape_.type), name_of(request.combine));
}

void Admission::refuse(const Box& box, const Request& request) const {
  if (box.dims() != shape_.extents.size())
    throw_error(ErrorCode::invalid_use, "the region has {}, buffer '{}' has {}", amount(box.dims(), "dimension"),
                shape_.options.name, shape_.extents.size());
  throw_error(ErrorCode::invalid_use, "region {} leaves buffer '{}' of extents [{}]",
              tranship::to_string(*request.region), shape_.options.name, tranship::to_string(shape_.extents));
}

void Admission::check_open(const Request& request) const {
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

}  // namespace tranship::detail

#include "tranship/fabric/seam/call.hpp"

#include <fmt/core.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/base/sync.hpp>

namespace tranship {

const char* name_of(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::none:
      return "none";
    case CallKind::barrier:
      return "barrier";
    case CallKind::sync:
      return "sync";
    case CallKind::all_gather:
      return "all_gather";
    case CallKind::broadcast:
      return "broadcast";
    case CallKind::allocate:
      return "allocate";
    case CallKind::release:
      return "free";
    case CallKind::shared_flags:
      return "shared_flags";
    case CallKind::registration:
      return "register_memory";
    case CallKind::split:
      return "split";
    case CallKind::sub_world:
      return "sub_world";
    case CallKind::all_reduce:
      return "all_reduce";
    case CallKind::reduce:
      return "reduce";
    case CallKind::reduce_scatter:
      return "reduce_scatter";
    case CallKind::gather_symmetric:
      return "all_gather of symmetric memory";
    case CallKind::all_to_all:
      return "all_to_all";
    case CallKind::broadcast_symmetric:
      return "broadcast of symmetric memory";
    case CallKind::kernel_team:
      return "kernel_team";
    case CallKind::agreement:
      return "agreement";
  }
  return "?";
}

namespace {

/// Describes a collective operation on symmetric memory; the place of source and target is a hash.
std::string symmetric_of(const Call& call) {
  return fmt::format(" of {} of {} in place {:04x}", amount(call.size_bytes, "byte"),
                     name_of(static_cast<ElementType>(call.type)), call.detail >> 48);
}

}  // namespace

std::string to_string(const Call& call) {
  std::string text = name_of(call.kind);
  switch (call.kind) {
    case CallKind::none:
    case CallKind::barrier:
    case CallKind::sync:
      return text;
    case CallKind::release:
      return text + fmt::format(" of block {}", call.detail);
    case CallKind::split:
      if (call.detail >> 60 == 1 || call.detail >> 60 == 2)
        return text + fmt::format(" in rows of {}", call.size_bytes);
      if (call.detail >> 60 == 3) return text + " by a list";
      if (call.detail >> 60 == 4) return "shared_team";
      if (call.detail >> 60 == 5) return "node_team";
      return text + fmt::format(" of {} from {}, {} apart", amount(call.size_bytes, "member"), call.detail >> 32,
                                static_cast<std::int32_t>(call.detail));
    case CallKind::all_gather:
    case CallKind::registration:
    case CallKind::sub_world:
    case CallKind::kernel_team:
    case CallKind::agreement:
      return text + fmt::format(" of {}", amount(call.size_bytes, "byte"));
    case CallKind::broadcast:
      return text + fmt::format(" of {} from {}", amount(call.size_bytes, "byte"), call.detail);
    case CallKind::shared_flags:
      return text + fmt::format(", {} per rank", call.size_bytes / sizeof(RealSync::Word));
    case CallKind::all_reduce:
    case CallKind::reduce_scatter:
      return text + fmt::format(" ({}){}", name_of(static_cast<Reduction>(call.detail & 0xffff)), symmetric_of(call));
    case CallKind::reduce:
      return text + fmt::format(" ({}) to {}{}", name_of(static_cast<Reduction>(call.detail & 7)),
                                call.detail >> 3 & 0x1fff, symmetric_of(call));
    case CallKind::gather_symmetric:
    case CallKind::all_to_all:
      return text + symmetric_of(call);
    case CallKind::broadcast_symmetric:
      return text + fmt::format(" from {}{}", call.detail & 0xffff, symmetric_of(call));
    case CallKind::allocate:
      break;
  }
  return text + fmt::format(" of {} of {}, aligned to {}", amount(call.size_bytes, "byte"),
                            name_of(static_cast<ElementType>(call.type)), call.detail);
}

}  // namespace tranship

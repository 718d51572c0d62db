#include <fmt/core.h>

#include <tranship/base/element_type.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/seam/call.hpp>

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
    case CallKind::reduce_scatter:
      return "reduce_scatter";
    case CallKind::collect:
      return "all_gather of symmetric memory";
    case CallKind::all_to_all:
      return "all_to_all";
    case CallKind::spread:
      return "broadcast of symmetric memory";
    case CallKind::kernel_team:
      return "kernel_team";
  }
  return "?";
}

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
      if (call.detail >> 60 != 0) return text + fmt::format(" in rows of {}", call.size_bytes);
      return text + fmt::format(" of {} members from {}, {} apart", call.size_bytes, call.detail >> 32,
                                static_cast<std::int32_t>(call.detail));
    case CallKind::all_gather:
    case CallKind::registration:
    case CallKind::sub_world:
    case CallKind::kernel_team:
      return text + fmt::format(" of {} bytes", call.size_bytes);
    case CallKind::broadcast:
      return text + fmt::format(" of {} bytes from {}", call.size_bytes, call.detail);
    case CallKind::shared_flags:
      return text + fmt::format(", {} per rank", call.size_bytes / sizeof(RealSync::Word));
    case CallKind::all_reduce:
    case CallKind::reduce_scatter:
    case CallKind::collect:
    case CallKind::all_to_all:
    case CallKind::spread:
      return text + fmt::format(" of {} bytes of {} at {} of the heap (operation or root {})", call.size_bytes,
                                name_of(static_cast<ElementType>(call.type)), call.detail >> 16, call.detail & 0xffff);
    case CallKind::allocate:
      break;
  }
  return text + fmt::format(" of {} bytes of {}, aligned to {}", call.size_bytes,
                            name_of(static_cast<ElementType>(call.type)), call.detail);
}

}  // namespace tranship

#include "tranship/fabric/peer_views.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

StridedView at_peer(Context& rma, StridedView view, Rank peer, CallSite where) {
  // The whole extent of the view, from its lowest byte to its highest.
  std::int64_t first = 0, last = 0;
  const int width = size_bytes(view.type);
  for (int d = 0; d < view.extents.size(); ++d) {
    const Index reach = (view.extents[d] - 1) * view.strides[d] * width;
    (reach < 0 ? first : last) += reach;
  }
  const bool is_empty = checked_product(view.extents) == 0;
  auto* const lowest = static_cast<std::byte*>(view.data) + first;
  const std::span<std::byte> there =
      rma.peer_array(Symmetric<std::byte>::at(lowest, is_empty ? 0 : last - first + width), peer, where);
  if (!is_empty) view.data = there.data() - first;
  return view;
}

MulticastView at_members(Context& rma, const Team& team, const StridedView& view, CallSite where) {
  MulticastView there{.first = at_peer(rma, view, team.world_rank(0), where), .members = team.size()};
  const auto* before = static_cast<const std::byte*>(there.first.data);
  for (int member = 1; member < team.size(); ++member) {
    const auto* data = static_cast<const std::byte*>(at_peer(rma, view, team.world_rank(member), where).data);
    if (member == 1) there.stride_bytes = data - before;
    if (data - before != there.stride_bytes)
      throw_error(ErrorCode::unsupported,
                  "a compiled multicast array needs heaps at equal steps: those of members {} and {} lie {} apart, "
                  "those of members 0 and 1 {}",
                  member - 1, member, amount(data - before, "byte"), amount(there.stride_bytes, "byte"));
    before = data;
  }
  return there;
}

}  // namespace tranship

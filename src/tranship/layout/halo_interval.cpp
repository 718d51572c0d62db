#include "tranship/layout/halo_interval.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

Interval send_interval(Interval owned, Index width, Side side, Points points) {
  const Index shared = points == Points::interfaces ? 1 : 0;
  if (width < 0) throw_error(ErrorCode::invalid_use, "a halo is {} wide: a width is 0 or more", amount(width, "point"));
  if (width > owned.length() - shared)
    throw_error(ErrorCode::invalid_use, "a halo of {} takes {} from the {} side, but this part owns {}",
                amount(width, "point"), amount(width, "owned point"), name_of(side), owned.length() - shared);
  if (side == Side::low) return {owned.lower + shared, owned.lower + shared + width};
  return {owned.upper - shared - width, owned.upper - shared};
}

Interval receive_interval(Interval owned, Index width, Side side) {
  if (width < 0) throw_error(ErrorCode::invalid_use, "a halo is {} wide: a width is 0 or more", amount(width, "point"));
  if (side == Side::low) return {owned.lower - width, owned.lower};
  return {owned.upper, owned.upper + width};
}

}  // namespace tranship

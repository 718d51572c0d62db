// Private: the innermost scopes of a thread. Fibers carry their own.
#pragma once

namespace tranship {

class Offload;
class NoImplicitCopies;
class ByteBudget;

namespace detail {

struct ThreadScopes {
  Offload* offload = nullptr;
  NoImplicitCopies* ban = nullptr;
  ByteBudget* budget = nullptr;
};
inline constinit thread_local ThreadScopes thread_scopes;

}  // namespace detail
}  // namespace tranship

// Private: the innermost scopes of a thread. Each fiber has scopes of its own.
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

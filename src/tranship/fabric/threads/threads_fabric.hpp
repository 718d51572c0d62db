// Private: The threads back-end: ranks are threads of one process, so every address is reachable unchanged. launch()
// makes it.
#pragma once

#include <tranship/fabric/shared/shared_fabric.hpp>

namespace tranship {

class ThreadsFabric final : public SharedFabric {
 public:
  using SharedFabric::SharedFabric;

  void* reach(Rank, const void* address) const noexcept override { return const_cast<void*>(address); }
  bool is_exposed(const void*) const noexcept override { return true; }
};

}  // namespace tranship

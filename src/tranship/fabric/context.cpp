#include "tranship/fabric/context.hpp"

#include <cstdlib>
#include <exception>
#include <string_view>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship {
namespace {

HeapChecks default_checks(HeapChecks wanted) {
  const char* text = std::getenv("TRANSHIP_HEAP_CHECKS");
  if (text == nullptr || *text == '\0' || std::string_view(text) == "bounds") return wanted;
  if (std::string_view(text) == "blocks") return HeapChecks::blocks;
  throw_error(ErrorCode::bad_text, "TRANSHIP_HEAP_CHECKS is '{}'; it must be bounds or blocks", text);
}

/// Used in a forked child: sends every call to the checked path, which throws before it calls the transport.
class NoTransport final : public Transport {
 public:
  void put(Remote, const CopyBlock&, int, const void*, const Signal*, Completion, CallSite) override {}
  void get(void*, const CopyBlock&, int, Remote, Completion, CallSite) override {}
  void atomic(Remote, int, WordKind, AtomicOp, std::uint64_t, std::uint64_t, void*, Completion, CallSite) override {}
  void fence(std::optional<Rank>, CallSite) override {}
  void quiet(std::optional<Rank>, CallSite) override {}
  void seen(const void*, std::size_t) override {}
  void touches(const void*, std::size_t, Touch, const char*, CallSite) override {}
  void poll(std::int64_t) override {}
  void abandon() noexcept override {}
};

/// The first context makes it, before any fork.
NoTransport& no_transport() {
  static auto& none = *new NoTransport;
  return none;
}

}  // namespace

void Context::close_in_child() noexcept {
  direct_.heaps.size_bytes = 0;
  direct_.heaps.count = 0;
  // Neither is destroyed: one belongs to the rank, the other lives for ever.
  static_cast<void>(transport_.release());
  transport_.reset(&no_transport());
}

Context::Context(World& world, const ContextOptions& options)
    : Transfers(world, world.fabric_->transport(world), world.spin_rounds(), options.sizes == SizeRule::equal,
                default_checks(options.checks) == HeapChecks::blocks),
      exceptions_before_(std::uncaught_exceptions()) {
  world.check_process();
  no_transport();
  in_process_ = detail::add_forked(*this);
  in_world_ = world.contexts_.insert(world.contexts_.end(), this);
}

Context::~Context() {
  detail::remove_forked(in_process_);
  if (!world_->process_.is_here()) {
    static_cast<void>(transport_.release());
    return;
  }
  world_->contexts_.erase(in_world_);
  try {
    if (transport_ && world_->is_failing_since(exceptions_before_))
      transport_->abandon();
    else
      quiet({"~Context", 0});
  } catch (...) {  // failed ranks report it themselves; what a simulation finds, the rank's next call throws
  }
}

}  // namespace tranship

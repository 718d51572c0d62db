// Private: MemoryUse, by which an operation of this library that takes its time says which memory of its rank it reads
// and writes meanwhile, where a simulation looks for races.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship::detail {

/// Lasts from its making to its destruction. Refers to the context, which must outlive it.
class MemoryUse {
 public:
  using Part = Transport::Use;

  /// True where a simulation looks for races. The parts need not be listed elsewhere.
  static bool is_watched(const Context& context) noexcept {
    return context.transport_ && context.transport_->watches_uses();
  }

  /// What the rank does at this moment, under a name that is a literal. Only where it is watched. Throws `race`.
  static void touches(const Context& context, const void* first, std::size_t size_bytes, Touch touch, const char* name,
                      CallSite where) {
    context.transport_->touches(first, size_bytes, touch, name, where);
  }

  MemoryUse() = default;  ///< of no memory
  /// `name` is the operation ("an exchange"), `completion` the call that ends it ("finish()"); both are literals.
  /// Throws `race`.
  MemoryUse(Context& context, std::span<const Part> parts, const char* name, const char* completion, CallSite where)
      : transport_(context.transport_.get()), number_(transport_->begin_use(parts, name, completion, where)) {}
  MemoryUse(MemoryUse&& other) noexcept
      : transport_(std::exchange(other.transport_, nullptr)), number_(other.number_) {}
  MemoryUse& operator=(MemoryUse&& other) noexcept {
    std::swap(transport_, other.transport_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~MemoryUse() {
    if (transport_) transport_->end_use(number_);
  }

 private:
  Transport* transport_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace tranship::detail

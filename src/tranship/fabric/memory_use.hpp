// Private: MemoryUse: tells a simulation that looks for races which memory of its rank a lasting operation of this
// library reads and writes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship::detail {

/// Lasts from construction to destruction. Refers to the context, which must outlive it.
class MemoryUse {
 public:
  using Part = Transport::Use;

  /// Returns true where a simulation looks for races. Elsewhere the parts need not be listed.
  static bool is_watched(const Context& context) noexcept {
    return context.transport_ && context.transport_->watches_uses();
  }

  /// Declares an access that the rank makes at this moment; `name` is a literal. Call it only if is_watched(). Throws
  /// `race`.
  static void touches(const Context& context, const void* first, std::size_t size_bytes, Touch touch, const char* name,
                      CallSite where) {
    context.transport_->touches(first, size_bytes, touch, name, where);
  }

  MemoryUse() = default;  ///< uses no memory
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

/// A scope in which an operation of this library makes the accesses that its MemoryUse has declared. They are not
/// reported again, and what the operation learns about peers remains unknown to the program, which may only rely on
/// what the operation promises. Within such a scope, `is_covered` = false begins a scope in which another operation
/// advances.
class CoveredCalls {
 public:
  explicit CoveredCalls(Context& context, bool is_covered = true) noexcept
      : transport_(context.transport_.get()), was_covered_(transport_ && transport_->set_covered(is_covered)) {}
  CoveredCalls(const CoveredCalls&) = delete;
  CoveredCalls& operator=(const CoveredCalls&) = delete;
  ~CoveredCalls() {
    if (transport_) transport_->set_covered(was_covered_);
  }

 private:
  Transport* transport_;
  bool was_covered_;
};

}  // namespace tranship::detail

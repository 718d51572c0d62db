#include "tranship/fabric/lanes/fiber.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cxxabi.h>

#include <tranship/base/error.hpp>
#include <tranship/fabric/lanes/fiber_sanitizers.hpp>
#include <tranship/memory/buffer/thread_scopes.hpp>

namespace tranship {
namespace {

namespace context = boost::context;

thread_local Fiber* current_fiber = nullptr;

/// The exceptions in flight or being handled, which the C++ runtime lists per thread. Each fiber has a list of its own.
class Exceptions {
 public:
  static constexpr std::size_t bytes = 16;  // a pointer and a count, by the C++ ABI

  void exchange() noexcept {
    void* of_thread = abi::__cxa_get_globals();
    unsigned char here[bytes];
    std::memcpy(here, of_thread, bytes);
    std::memcpy(of_thread, kept_, bytes);
    std::memcpy(kept_, here, bytes);
  }

 private:
  unsigned char kept_[bytes] = {};
};

/// Stacks with a guard page below them. Each thread keeps the stacks of ended fibers for later ones: mapping a stack,
/// protecting its guard page and touching the others for the first time takes longer than a small kernel.
class Stacks {
 public:
  explicit Stacks(std::size_t size_bytes) : size_bytes_(size_bytes) {}

  context::stack_context allocate() {
    if (has_ended_) return Mapped(size_bytes_).allocate();
    std::vector<Kept::Stack>& kept = kept_.stacks;
    const auto found = std::find_if(kept.rbegin(), kept.rend(),
                                    [this](const Kept::Stack& stack) { return stack.asked_bytes == size_bytes_; });
    if (found == kept.rend()) return Mapped(size_bytes_).allocate();
    const context::stack_context stack = found->context;
    kept_.bytes -= stack.size;
    kept.erase(std::next(found).base());
    return stack;
  }
  void deallocate(context::stack_context& stack) noexcept {
#if defined(TRANSHIP_ASAN)
    // Frames that never return leave shadow marks on memory that is reused.
    __asan_unpoison_memory_region(static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
    if (has_ended_ || !kept_.keep({stack, size_bytes_})) Mapped(size_bytes_).deallocate(stack);
  }

 private:
  using Mapped = context::protected_fixedsize_stack;
  struct Kept {
    struct Stack {
      context::stack_context context;
      std::size_t asked_bytes;
    };
    /// Address space for the largest block of lanes. Pages that no lane has touched take no memory.
    static constexpr std::size_t bytes_max = std::size_t(320) << 20;

    Kept() = default;
    Kept(const Kept&) = delete;
    ~Kept() {
      for (Stack& stack : stacks) Mapped(stack.asked_bytes).deallocate(stack.context);
      has_ended_ = true;
    }
    bool keep(const Stack& stack) noexcept try {
      if (bytes + stack.context.size > bytes_max) return false;
      stacks.push_back(stack);
      bytes += stack.context.size;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }

    std::vector<Stack> stacks;
    std::size_t bytes = 0;
  };
  static thread_local Kept kept_;
  /// Destructors of static variables run after `kept_` is destroyed.
  static constinit thread_local bool has_ended_;

  std::size_t size_bytes_;
};
thread_local Stacks::Kept Stacks::kept_;
constinit thread_local bool Stacks::has_ended_ = false;

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  context::fiber inside;
  context::fiber outside;
  Exceptions exceptions;
  detail::ThreadScopes scopes = detail::thread_scopes;
  bool ended = false;
#if defined(TRANSHIP_TSAN)
  void* tsan_inside = __tsan_create_fiber(0);
  void* tsan_outside = nullptr;
  ~State() {
    __tsan_destroy_fiber(tsan_inside);
  }
#elif defined(TRANSHIP_ASAN)
  context::stack_context stack;
  const void* outer_stack = nullptr;
  std::size_t outer_stack_bytes = 0;
  void* outer_fake_stack = nullptr;
  void* inner_fake_stack = nullptr;
#endif

  void enter() {
    exceptions.exchange();
#if defined(TRANSHIP_TSAN)
    tsan_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_inside, 0);
#elif defined(TRANSHIP_ASAN)
    __sanitizer_start_switch_fiber(&outer_fake_stack, static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
    inside = std::move(inside).resume();
#if defined(TRANSHIP_ASAN)
    __sanitizer_finish_switch_fiber(outer_fake_stack, nullptr, nullptr);
#endif
    exceptions.exchange();
  }
  /// Called on the fiber's own stack before leaving it.
  void leave([[maybe_unused]] bool for_good) {
#if defined(TRANSHIP_TSAN)
    __tsan_switch_to_fiber(tsan_outside, 0);
#elif defined(TRANSHIP_ASAN)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &inner_fake_stack, outer_stack, outer_stack_bytes);
#endif
  }
  /// Called on the fiber's own stack after arriving there.
  void arrive() {
#if defined(TRANSHIP_ASAN)
    __sanitizer_finish_switch_fiber(inner_fake_stack, &outer_stack, &outer_stack_bytes);
#endif
  }
};

Fiber::Fiber(std::function<void()> body, std::size_t stack_bytes) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.body = std::move(body);
  Stacks stacks(stack_bytes);
  const context::stack_context stack = stacks.allocate();
#if defined(TRANSHIP_ASAN)
  state.stack = stack;
#endif
  state.inside = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), stacks,
                                [&state](context::fiber&& outside) {
                                  state.arrive();
                                  state.outside = std::move(outside);
                                  state.body();
                                  state.ended = true;
                                  state.leave(true);
                                  return std::move(state.outside);
                                });
}

Fiber::~Fiber() = default;
Fiber::Fiber(Fiber&&) noexcept = default;

void Fiber::resume() {
  TRANSHIP_ASSERT(!state_->ended && current_fiber != this);
  Fiber* const before = std::exchange(current_fiber, this);
  std::swap(state_->scopes, detail::thread_scopes);
  state_->enter();
  std::swap(state_->scopes, detail::thread_scopes);
  current_fiber = before;
}

bool Fiber::ended() const noexcept {
  return state_->ended;
}
Fiber* Fiber::current() noexcept {
  return current_fiber;
}

void Fiber::suspend() {
  TRANSHIP_ASSERT(current_fiber != nullptr);
  State& state = *current_fiber->state_;
  state.leave(false);
  state.outside = std::move(state.outside).resume();
  state.arrive();
}

}  // namespace tranship

// Private: the calls of the driver, as software cards answer them. Two lists name them.
#pragma once

#include <cuda.h>

#include <tranship/cuda/software/state.hpp>

namespace tranship::cuda::software {

namespace calls {
#define TRANSHIP_DRIVER_CALL(name) decltype(::name) name;
#include <tranship/cuda/driver_calls.def>
#include <tranship/cuda/software/more_calls.def>
#undef TRANSHIP_DRIVER_CALL
}  // namespace calls

/// The state of the process; null before there are cards, and once the process ends: the driver ends with it, before
/// objects of the program that are older than it.
State* callable() noexcept;
CUresult why_not_callable() noexcept;

const KernelTwin* twin_named(std::string_view name);

/// The effect of a call while a stream is captured, and in a host function.
enum class Kind : unsigned char {
  plain,     ///< allowed in captures
  unsafe,    ///< ends captures, unless they are relaxed
  forbidden  ///< ends captures
};

/// How this thread interacts with captures: cuThreadExchangeStreamCaptureMode.
extern thread_local CUstreamCaptureMode capture_mode_of_thread;

/// The card of the current context of this thread; null where it has none.
Card* current_card() noexcept;
/// Ends the capture under way if a call of `kind` ends it; returns true if it did.
bool ends_capture(State& all, Kind kind);

/// Calls `f(state, card, lock)` for the current context, unless the call is refused.
template <class F>
CUresult on_card(Kind kind, F f) {
  State* const all = callable();
  if (!all) return why_not_callable();
  if (in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  Lock lock(all->mutex);
  Card* const card = current_card();
  if (!card) return CUDA_ERROR_INVALID_CONTEXT;
  if (card->failure != CUDA_SUCCESS) return card->failure;
  if (ends_capture(*all, kind)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return f(*all, *card, lock);
}

/// The stream of a handle, or null and why.
struct FoundStream {
  Stream* stream = nullptr;
  CUresult why = CUDA_SUCCESS;
};
FoundStream find_stream(State& all, Card& card, CUstream handle);

/// Like on_card, for a stream to which work is given.
template <class F>
CUresult on_stream(CUstream handle, F f) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock& lock) -> CUresult {
    const FoundStream found = find_stream(all, card, handle);
    if (!found.stream) return found.why;
    Stream& stream = *found.stream;
    if (stream.card->failure != CUDA_SUCCESS) return stream.card->failure;
    if (stream.capture && stream.capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return f(all, stream, lock);
  });
}

}  // namespace tranship::cuda::software

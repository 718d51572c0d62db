// Streams, events, host functions and words that streams write and wait for.
#include <algorithm>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {
namespace {

Event* event_of(State& all, CUevent handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  return all.events.count(event) ? event : nullptr;
}

void invalidate(const std::shared_ptr<Capture>& capture) {
  capture->is_invalid = true;
}

}  // namespace

thread_local CUstreamCaptureMode capture_mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool ends_capture(State& all, Kind kind) {
  if (kind == Kind::plain) return false;
  if (kind == Kind::unsafe && capture_mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  bool ends = false;
  for (const auto& capture : all.captures) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool is_meant =
        kind == Kind::forbidden || (is_own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
        (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture_mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (!is_meant) continue;
    invalidate(capture);
    ends = true;
  }
  return ends;
}

FoundStream find_stream(State& all, Card& card, CUstream handle) {
  Stream* stream = nullptr;
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    stream = &card.legacy;
    bool is_implicit = false;
    for (const auto& capture : all.captures)
      for (const Stream* captured : capture->streams)
        if (captured->card == &card && captured->is_blocking()) {
          invalidate(capture);
          is_implicit = true;
        }
    if (is_implicit) return {nullptr, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT};
  } else if (handle == CU_STREAM_PER_THREAD) {
    auto& own = card.of_threads[std::this_thread::get_id()];
    if (!own) {
      own = std::make_unique<Stream>();
      own->card = &card;
      own->queue = card.next_queue++ % int(card.queues.size());
    }
    stream = own.get();
  } else
    for (const auto& any : all.cards)
      if (any->streams.count(reinterpret_cast<Stream*>(handle))) stream = reinterpret_cast<Stream*>(handle);
  if (!stream) return {nullptr, CUDA_ERROR_INVALID_HANDLE};
  return {stream, CUDA_SUCCESS};
}

namespace calls {

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  return on_card(Kind::plain, [&](State&, Card& card, Lock&) {
    if (!handle || (flags & ~unsigned(CU_STREAM_NON_BLOCKING))) return CUDA_ERROR_INVALID_VALUE;
    auto* const stream = new Stream;
    stream->card = &card;
    stream->flags = flags;
    stream->priority = std::clamp(priority, -5, 0);
    stream->queue = card.next_queue++ % int(card.queues.size());
    card.streams.insert(stream);
    *handle = reinterpret_cast<CUstream>(stream);
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamCreate(CUstream* handle, unsigned flags) {
  return calls::cuStreamCreateWithPriority(handle, flags, 0);
}
CUresult cuStreamDestroy(CUstream handle) {
  return on_stream(handle, [&](State&, Stream& stream, Lock&) {
    Card& card = *stream.card;
    if (!card.streams.count(&stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream.capture) {
      invalidate(stream.capture);
      stream.capture->streams.erase(&stream);
    }
    for (PendingFree& free : card.pending_frees)
      if (free.stream == &stream) free.stream = nullptr;
    card.streams.erase(&stream);
    delete &stream;  // its work goes on
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamQuery(CUstream handle) {
  // A host function may ask, unlike by the call of the runtime, and it has no context.
  if (State* const all = in_host_function ? callable() : nullptr) {
    const Lock lock(all->mutex);
    for (const auto& card : all->cards)
      if (auto* const stream = reinterpret_cast<Stream*>(handle); card->streams.count(stream))
        return is_over(stream->last) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return on_card(Kind::unsafe, [&](State& all, Card& card, Lock&) {
    const FoundStream found = find_stream(all, card, handle);
    if (!found.stream) return found.why;
    if (found.stream->card->failure != CUDA_SUCCESS) return found.stream->card->failure;
    if (found.stream->capture) {
      invalidate(found.stream->capture);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return is_over(found.stream->last) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}
CUresult cuStreamSynchronize(CUstream handle) {
  return on_card(Kind::unsafe, [&](State& all, Card& card, Lock& lock) {
    const FoundStream found = find_stream(all, card, handle);
    if (!found.stream) return found.why;
    if (found.stream->capture) {
      invalidate(found.stream->capture);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    const OpRef last = found.stream->last;
    return all.wait(lock, *found.stream->card, [&] { return is_over(last); });
  });
}
CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    const Event* const event = event_of(all, event_handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~unsigned(CU_EVENT_WAIT_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
    if (event->capture) {
      const auto& capture = event->capture;
      if (std::find(all.captures.begin(), all.captures.end(), capture) == all.captures.end())
        return CUDA_ERROR_INVALID_VALUE;
      if (stream.capture && stream.capture != capture) {
        invalidate(stream.capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
      }
      if (!stream.capture) {
        stream.capture = capture;
        capture->streams.insert(&stream);
        stream.tails.clear();
      }
      for (const int node : event->nodes)
        if (std::find(stream.tails.begin(), stream.tails.end(), node) == stream.tails.end())
          stream.tails.push_back(node);
      return CUDA_SUCCESS;
    }
    if (!event->op) return CUDA_SUCCESS;  // never recorded
    if (stream.capture) {
      invalidate(stream.capture);
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    const auto wait = std::make_shared<MarkOp>(*stream.card);
    if (!is_over(event->op)) wait->after.push_back(event->op);
    all.submit_op(stream, wait);
    return CUDA_SUCCESS;
  });
}
CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* argument) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    all.submit(stream, [=](Card& card) {
      auto op = std::make_shared<HostOp>(card);
      op->function = function;
      op->argument = argument;
      return op;
    });
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    const auto range = all.memory.find(address);
    if (!range || address % 8 != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto stretch = all.memory.stretches(address, 8, true);
    if (stretch.size() != 1) return CUDA_ERROR_INVALID_VALUE;
    all.submit(stream, [=](Card& card) {
      auto op = std::make_shared<WriteValueOp>(card);
      op->target = stretch[0].first;
      op->owner = stretch[0].owner;
      op->value = value;
      return op;
    });
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamWaitValue64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return on_stream(handle, [&](State& all, Stream& stream, Lock&) {
    const auto range = all.memory.find(address);
    if (!range || address % 8 != 0 || (flags & ~3u)) return CUDA_ERROR_INVALID_VALUE;
    const auto stretch = all.memory.stretches(address, 8, false);
    if (stretch.size() != 1) return CUDA_ERROR_INVALID_VALUE;
    all.submit(stream, [=](Card& card) {
      auto op = std::make_shared<WaitValueOp>(card);
      op->source = stretch[0].first;
      op->owner = stretch[0].owner;
      op->value = value;
      op->flags = flags;
      return op;
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    auto* const event = new Event{&card, flags, nullptr, nullptr, {}};
    all.events.insert(event);
    *handle = reinterpret_cast<CUevent>(event);
    return CUDA_SUCCESS;
  });
}
CUresult cuEventDestroy(CUevent handle) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    Event* const event = event_of(all, handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    all.events.erase(event);
    delete event;
    return CUDA_SUCCESS;
  });
}
CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  return on_stream(stream_handle, [&](State& all, Stream& stream, Lock&) {
    Event* const event = event_of(all, handle);
    if (!event || event->card != stream.card) return CUDA_ERROR_INVALID_HANDLE;
    if (stream.capture) {
      event->capture = stream.capture;
      event->nodes = stream.tails;
      return CUDA_SUCCESS;
    }
    event->capture = nullptr;
    event->op = std::make_shared<MarkOp>(*stream.card);
    all.submit_op(stream, event->op);
    return CUDA_SUCCESS;
  });
}
CUresult cuEventQuery(CUevent handle) {
  State* const all = callable();
  if (!all) return why_not_callable();
  const Lock lock(all->mutex);
  const Event* const event = event_of(*all, handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  const bool is_complete = is_over(event->op);
  // A host function may ask for what is over.
  if (in_host_function && !is_complete) return CUDA_ERROR_NOT_PERMITTED;
  if (event->card->failure != CUDA_SUCCESS) return event->card->failure;
  if (ends_capture(*all, Kind::unsafe)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (event->capture) return CUDA_ERROR_INVALID_VALUE;
  return is_complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent handle) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock& lock) {
    const Event* const event = event_of(all, handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) return CUDA_ERROR_INVALID_VALUE;
    const OpRef op = event->op;
    return all.wait(lock, *event->card, [&] { return is_over(op); });
  });
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent second) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    const Event *const a = event_of(all, first), *const b = event_of(all, second);
    if (!a || !b || !a->op || !b->op || ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
      return CUDA_ERROR_INVALID_HANDLE;
    if (!is_over(a->op) || !is_over(b->op)) return CUDA_ERROR_NOT_READY;
    *milliseconds = float(double(b->op->over_ns - a->op->over_ns) / 1e6);
    return CUDA_SUCCESS;
  });
}

}  // namespace calls
}  // namespace tranship::cuda::software

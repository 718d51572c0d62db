// Asks about events and streams: which record a wait binds to, what is destroyed while work is pending, and what
// cudaFree and the memory pool wait for.
#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

cudaError_t put(cudaStream_t stream, Word* mark) {
  return launch(stream, {}, put_word, mark, Word(1));
}

void never_recorded() {
  const Stream stream;
  const Event fresh, fresh_too, untimed(cudaEventDisableTiming);
  Word* const mark = Marks::next();
  const cudaError_t status = cudaStreamWaitEvent(stream, fresh, 0);
  TRANSHIP_CUDA(put(stream, mark));
  said("cudaStreamWaitEvent of an event never recorded lets the stream go on", comes(mark), "yes", name_of(status));
  told("cudaEventQuery of an event never recorded", name_of(cudaEventQuery(fresh)), "cudaSuccess");
  told("cudaEventSynchronize of an event never recorded", name_of(cudaEventSynchronize(fresh)), "cudaSuccess");
  float ms = -1;
  told("cudaEventElapsedTime of events never recorded", name_of(cudaEventElapsedTime(&ms, fresh, fresh_too)),
       "cudaErrorInvalidResourceHandle");
  TRANSHIP_CUDA(cudaEventRecord(untimed, stream));
  TRANSHIP_CUDA(cudaEventRecord(fresh, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  told("cudaEventElapsedTime with an event made with cudaEventDisableTiming",
       name_of(cudaEventElapsedTime(&ms, untimed, fresh)), "cudaErrorInvalidResourceHandle");
  {
    const Event begin, end;
    TRANSHIP_CUDA(cudaEventRecord(begin, stream));
    const Gate gate(stream);
    TRANSHIP_CUDA(cudaEventRecord(end, stream));
    const cudaError_t pending = cudaEventElapsedTime(&ms, begin, end);
    const bool held = gate.holds();
    said("cudaEventElapsedTime returns while the second event is pending", held, "yes", name_of(pending));
    told("cudaEventElapsedTime while the second event is pending", name_of(pending), "cudaErrorNotReady");
    told("cudaEventQuery while the event is pending", name_of(cudaEventQuery(end)), "cudaErrorNotReady");
    const cudaError_t reversed = cudaEventElapsedTime(&ms, end, begin);
    told("cudaEventElapsedTime while the first event is pending", name_of(reversed), "cudaErrorNotReady");
    gate.open();
    TRANSHIP_CUDA(cudaStreamSynchronize(stream));
    const cudaError_t backwards = cudaEventElapsedTime(&ms, end, begin);
    told("cudaEventElapsedTime from the later to the earlier event",
         name_of(backwards) + (backwards != cudaSuccess ? ""
                               : ms < 0                 ? ", negative"
                               : ms > 0                 ? ", positive"
                                                        : ", zero"),
         "cudaSuccess, negative");
  }
}

void recorded_again() {
  const Stream one, two, three;
  const Event event;
  {
    const Gate gate(one);
    Word* const mark = Marks::next();
    TRANSHIP_CUDA(cudaEventRecord(event, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(two, event, 0));
    TRANSHIP_CUDA(cudaEventRecord(event, three));
    TRANSHIP_CUDA(put(two, mark));
    const bool stays = stays_away(mark);
    said("a wait for a pending event goes on holding after the event is recorded again in an idle stream",
         stays && gate.holds(), "yes, the wait binds the record that was last at the call");
    told(
        "cudaEventQuery of an event that is pending in one stream and was recorded again in an idle one",
        name_of(cudaEventSynchronize(event) == cudaSuccess && gate.holds() ? cudaEventQuery(event) : cudaErrorNotReady),
        "cudaSuccess, the last record counts");
    gate.open();
    said("a wait for a pending event that was recorded again in an idle stream ends with the first record", comes(mark),
         "yes");
  }
  {
    // The wait is still behind a gate when its event, which is complete, is recorded again and pending.
    TRANSHIP_CUDA(cudaEventRecord(event, three));
    TRANSHIP_CUDA(cudaStreamSynchronize(three));
    const Gate before_wait(two), gate(one);
    Word* const mark = Marks::next();
    TRANSHIP_CUDA(cudaStreamWaitEvent(two, event, 0));
    TRANSHIP_CUDA(put(two, mark));
    TRANSHIP_CUDA(cudaEventRecord(event, one));
    told("cudaEventQuery of an event that was complete and is recorded again behind a kernel",
         name_of(cudaEventQuery(event)), "cudaErrorNotReady");
    before_wait.open();
    const bool came = comes(mark, 20);
    said(
        "a wait for a complete event passes though the event is recorded again, pending, before the stream comes to it",
        came && gate.holds(), "yes");
    gate.open();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  {
    // Both waits are enqueued, each for its own record of one event.
    const Stream four;
    const Gate first(one), second(two);
    Word* const mark_first = Marks::next();
    Word* const mark_second = Marks::next();
    TRANSHIP_CUDA(cudaEventRecord(event, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(three, event, 0));
    TRANSHIP_CUDA(put(three, mark_first));
    TRANSHIP_CUDA(cudaEventRecord(event, two));
    TRANSHIP_CUDA(cudaStreamWaitEvent(four, event, 0));
    TRANSHIP_CUDA(put(four, mark_second));
    first.open();
    const bool came = comes(mark_first, 50), other_came = comes(mark_second, 5);
    said("two waits for two records of one event end each with its own record", came && !other_came && second.holds(),
         "yes");
    second.open();
    said("the second of two waits for two records of one event ends", comes(mark_second), "yes");
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  {
    // The host waits in the same situation.
    const Gate gate(one);
    TRANSHIP_CUDA(cudaEventRecord(event, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(one, event, 0));
    Word* const mark = Marks::next();
    TRANSHIP_CUDA(put(one, mark));
    gate.open();
    said("a stream that waits for an event of its own goes on", comes(mark), "yes");
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
}

void destroyed() {
  const Stream one, two;
  {
    cudaEvent_t event;
    TRANSHIP_CUDA(cudaEventCreate(&event));
    const Gate gate(one);
    Word* const mark = Marks::next();
    TRANSHIP_CUDA(cudaEventRecord(event, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(two, event, 0));
    TRANSHIP_CUDA(put(two, mark));
    const cudaError_t status = cudaEventDestroy(event);
    const bool held = gate.holds();
    said("cudaEventDestroy returns while the event and a wait for it are pending", held, "yes", name_of(status));
    const bool stays = stays_away(mark) && gate.holds();
    said("a wait for an event holds on after the event was destroyed", stays, "yes");
    gate.open();
    said("a wait for an event that was destroyed ends with its record", comes(mark), "yes");
  }
  {
    cudaStream_t stream = new_stream();
    const Gate gate(stream);
    Word* const mark = Marks::next();
    const Event event;
    TRANSHIP_CUDA(put(stream, mark));
    TRANSHIP_CUDA(cudaEventRecord(event, stream));
    const cudaError_t status = cudaStreamDestroy(stream);
    const bool held = gate.holds();
    said("cudaStreamDestroy returns while work is pending", held, "yes", name_of(status));
    told("cudaEventQuery of a pending event whose stream was destroyed", name_of(cudaEventQuery(event)),
         "cudaErrorNotReady");
    gate.open();
    said("work that was pending when its stream was destroyed is done", comes(mark), "yes");
    told("cudaEventSynchronize of an event whose stream was destroyed", name_of(cudaEventSynchronize(event)),
         "cudaSuccess");
  }
  TRANSHIP_CUDA(cudaDeviceSynchronize());
}

void waits_of_the_host() {
  const Stream one, two;
  const auto waits = [&](const std::string& what, const std::string& expectation, const auto& call) {
    const Gate gate(one, 0.05);
    Word* const mark = Marks::next();
    TRANSHIP_CUDA(put(one, mark));
    const cudaError_t status = call();
    const bool held = gate.holds();
    const bool is_over = now_in(mark) != 0;
    gate.open();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    told(what + ", while a kernel holds a non-blocking stream and another kernel is behind it",
         name_of(status) + (held      ? ", returns"
                            : is_over ? ", waits for both"
                                      : ", waits for the first"),
         expectation);
  };
  waits("cudaStreamQuery of the stream", "cudaErrorNotReady, returns", [&] { return cudaStreamQuery(one); });
  waits("cudaStreamSynchronize of the stream", "cudaSuccess, waits for both",
        [&] { return cudaStreamSynchronize(one); });
  waits("cudaStreamSynchronize of another stream", "cudaSuccess, returns", [&] { return cudaStreamSynchronize(two); });
  waits("cudaStreamSynchronize of the default stream", "cudaSuccess, returns",
        [&] { return cudaStreamSynchronize(nullptr); });
  waits("cudaDeviceSynchronize", "cudaSuccess, waits for both", [&] { return cudaDeviceSynchronize(); });
  void* memory = nullptr;
  TRANSHIP_CUDA(cudaMalloc(&memory, 1 << 20));
  waits("cudaFree", "cudaSuccess, waits for both", [&] { return cudaFree(memory); });
}

void freed_in_use() {
  // The kernel behind the gate stores to the memory.
  const Stream stream;
  void* memory = nullptr;
  Word* const mark = Marks::next();
  TRANSHIP_CUDA(cudaMalloc(&memory, 64 << 20));
  const Gate gate(stream, 0.05);
  TRANSHIP_CUDA(launch(stream, {64, 256}, put_words, static_cast<Word*>(memory), 1u << 20, Word(5)));
  TRANSHIP_CUDA(put(stream, mark));
  const cudaError_t status = cudaFree(memory);
  const bool is_over = now_in(mark) != 0;
  const cudaError_t end = cudaStreamSynchronize(stream);
  told("cudaFree of memory that a queued kernel will store to",
       is_over && end == cudaSuccess ? "waits until the kernel is over" : name_of(status) + ", then " + name_of(end),
       "waits until the kernel is over");
}

void pooled() {
  const std::size_t bytes = 4 << 20;
  const Stream one, two;
  void *first = nullptr, *second = nullptr;
  const cudaError_t status = cudaMallocAsync(&first, bytes, one);
  if (status != cudaSuccess) return told("cudaMallocAsync", name_of(status), "cudaSuccess");
  TRANSHIP_CUDA(cudaFreeAsync(first, one));
  TRANSHIP_CUDA(cudaMallocAsync(&second, bytes, one));
  said("cudaMallocAsync after cudaFreeAsync in the same stream gives the same address", first == second, "yes");
  TRANSHIP_CUDA(cudaStreamSynchronize(one));
  {
    const Gate gate(one);
    TRANSHIP_CUDA(cudaFreeAsync(second, one));
    void* third = nullptr;
    Word* const mark = Marks::next();
    TRANSHIP_CUDA(cudaMallocAsync(&third, bytes, two));
    const bool held = gate.holds();
    TRANSHIP_CUDA(put(two, mark));
    const bool came = comes(mark, 5);
    said("cudaMallocAsync in another stream returns while the free is pending", held, "yes");
    told("cudaMallocAsync in another stream while the free is pending",
         std::string(third == second ? "the same address" : "another address") +
             (came && gate.holds() ? ", and the stream goes on" : ", and the stream waits"),
         "another address and goes on, or the same and waits: the pool may add a dependency");
    gate.open();
    TRANSHIP_CUDA(cudaFreeAsync(third, two));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  {
    void *before = nullptr, *after = nullptr;
    const Event event(cudaEventDisableTiming);
    TRANSHIP_CUDA(cudaMallocAsync(&before, bytes, one));
    const Gate gate(one);
    TRANSHIP_CUDA(cudaFreeAsync(before, one));
    TRANSHIP_CUDA(cudaEventRecord(event, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(two, event, 0));
    TRANSHIP_CUDA(cudaMallocAsync(&after, bytes, two));
    said("cudaMallocAsync in a stream that waits for an event after the pending free gives the same address",
         before == after, "yes, the pool follows event dependencies");
    gate.open();
    TRANSHIP_CUDA(cudaFreeAsync(after, two));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  {
    void* memory = nullptr;
    TRANSHIP_CUDA(cudaMallocAsync(&memory, bytes, one));
    told("cudaFree of memory of cudaMallocAsync", name_of(cudaFree(memory)), "cudaSuccess");
    void* plain = nullptr;
    TRANSHIP_CUDA(cudaMalloc(&plain, bytes));
    const cudaError_t freed = cudaFreeAsync(plain, one);
    const cudaError_t end = cudaDeviceSynchronize();
    told("cudaFreeAsync of memory of cudaMalloc", name_of(freed) + ", then " + name_of(end),
         "cudaSuccess or cudaErrorInvalidValue, then cudaSuccess");
    if (freed != cudaSuccess) TRANSHIP_CUDA(cudaFree(plain));
  }
  {
    // In practice the call maps the memory, whatever the stream waits for.
    void* early = nullptr;
    const Gate gate(one);
    TRANSHIP_CUDA(cudaMallocAsync(&early, bytes, one));
    TRANSHIP_CUDA(put(two, static_cast<Word*>(early)));
    const cudaError_t used = cudaStreamSynchronize(two);
    const bool held = gate.holds();
    told("a kernel in another stream uses memory of cudaMallocAsync before its stream comes to the allocation",
         name_of(used) + (held ? "" : ", after the allocation"), "cudaSuccess, though it is not allowed");
    gate.open();
    if (used != cudaSuccess) return;
    TRANSHIP_CUDA(cudaFreeAsync(early, two));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
}

}  // namespace

void ask_events(const Options&) {
  never_recorded();
  recorded_again();
  destroyed();
}

void ask_streams(const Options&) {
  waits_of_the_host();
  freed_in_use();
  pooled();
}

}  // namespace tranship::device

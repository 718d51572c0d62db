// Asks about graphs: when captured work runs, when a launch reads its inputs, in what order launches of one graph run,
// and what an update changes. Read next: captures.cpp.
#include "facts/semantics/graphs.hpp"

#include <array>
#include <atomic>

#include "facts/semantics/cases.hpp"

namespace tranship::device {
namespace {

void CUDART_CB count_call(void* at) {
  ++*static_cast<std::atomic<int>*>(at);
}

void when_it_runs() {
  const Stream stream;
  static std::atomic<int> calls{0};
  PinnedArray<Word> source(16);
  CardArray<Word> target(16);
  Word* const mark = Marks::next();
  source[0] = 5;
  target.fill(0);
  Graph graph(stream, [&] {
    TRANSHIP_CUDA(put(stream, mark));
    TRANSHIP_CUDA(cudaMemcpyAsync(target.data(), source.data(), 128, cudaMemcpyDefault, stream));
    TRANSHIP_CUDA(cudaLaunchHostFunc(stream, count_call, &calls));
  });
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  said("a kernel, a copy or a host function that is captured runs before the graph is launched",
       !stays_away(mark) || target.read()[0] != 0 || calls != 0, "no");
  Executable executable(graph);
  said("captured work runs when its graph is instantiated", !stays_away(mark) || calls != 0, "no");
  told("cudaGraphUpload", name_of(cudaGraphUpload(executable, stream)), "cudaSuccess");
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  said("captured work runs when its graph is uploaded", !stays_away(mark) || calls != 0, "no");
  graph.destroy();
  source[0] = 6;
  for (int i = 0; i < 5; ++i) TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  said("an executable graph can be launched after its graph was destroyed", now_in(mark) == 1, "yes");
  told("a host function's node in five launches is called", std::to_string(calls) + " times", "5 times");
  told("a copy's node from pinned memory that was overwritten after the capture copies",
       target.read()[0] == 6 ? "the bytes of the launch" : "the bytes of the capture", "the bytes of the launch");
}

void order_of_launches() {
  const Stream one, two;
  CardArray<Word> words(32);
  const auto most = [&](const auto& launches) {
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    words.fill(0);
    launches();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    return words.read()[16];
  };
  const Graph graph(
      one, [&] { TRANSHIP_CUDA(launch(one, {}, count_present, words.data(), words.data() + 16, Word(2'000'000))); });
  const Executable executable(graph), another(graph);
  for (const Executable* each : {&executable, &another}) {
    TRANSHIP_CUDA(cudaGraphLaunch(*each, one));
    TRANSHIP_CUDA(cudaGraphLaunch(*each, two));
  }
  const auto answer_most = [&](const std::string& question, Word count, const std::string& expectation) {
    told(question, count == 1 ? "one after the other" : std::to_string(count) + " at once", expectation);
  };
  answer_most("two launches of one executable graph in one stream run", most([&] {
                TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
                TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
              }),
              "one after the other");
  answer_most("two launches of one executable graph in two streams run", most([&] {
                TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
                TRANSHIP_CUDA(cudaGraphLaunch(executable, two));
              }),
              "one after the other");
  answer_most("launches of two executable graphs of one graph in two streams run", most([&] {
                TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
                TRANSHIP_CUDA(cudaGraphLaunch(another, two));
              }),
              "2 at once");
  const Event begin(cudaEventDisableTiming), end(cudaEventDisableTiming);
  const Graph parallel(one, [&] {
    TRANSHIP_CUDA(cudaEventRecord(begin, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(two, begin, 0));
    for (const cudaStream_t stream : {cudaStream_t(one), cudaStream_t(two)})
      TRANSHIP_CUDA(launch(stream, {}, count_present, words.data(), words.data() + 16, Word(2'000'000)));
    TRANSHIP_CUDA(cudaEventRecord(end, two));
    TRANSHIP_CUDA(cudaStreamWaitEvent(one, end, 0));
  });
  const Executable forked(parallel);
  answer_most("two nodes of a graph without an edge between them run",
              most([&] { TRANSHIP_CUDA(cudaGraphLaunch(forked, one)); }), "2 at once");
  answer_most("a graph and a kernel after it in the same stream run", most([&] {
                TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
                TRANSHIP_CUDA(launch(one, {}, count_present, words.data(), words.data() + 16, Word(2'000'000)));
              }),
              "one after the other");
}

void parameters() {
  const Stream stream;
  Word* const old_mark = Marks::next();
  Word* const new_mark = Marks::next();
  PutParameters given{old_mark, 1, {}};
  void* pointers[] = {&given};
  const Graph graph(stream, [&] {
    TRANSHIP_CUDA(cudaLaunchKernel(symbol(put_by_parameters), dim3(1), dim3(1), pointers, 0, stream));
    given.at = new_mark;
  });
  const Executable executable(graph);
  TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  told("a kernel's parameters that were overwritten after the captured launch are those of",
       now_in(old_mark) == 1   ? "the call"
       : now_in(new_mark) == 1 ? "later"
                               : "neither",
       "the call");
}

void updates() {
  const Stream stream;
  std::array<Word*, 5> marks;
  for (Word*& mark : marks) mark = Marks::next();
  const Graph graph(stream, [&] { TRANSHIP_CUDA(put(stream, marks[0])); });
  const Executable executable(graph);
  TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));  // a first launch, which is not timed
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  *static_cast<volatile Word*>(marks[0]) = 0;

  const auto changed = [&](const std::string& what, Word* before, Word* after, const auto& change) {
    const Gate gate(stream);
    TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));
    const cudaError_t status = change();
    const bool held = gate.holds();
    TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));
    gate.open();
    TRANSHIP_CUDA(cudaStreamSynchronize(stream));
    const bool is_right = now_in(before) == 1 && now_in(after) == 1;
    told(what + " while a launch is pending",
         status != cudaSuccess ? name_of(status)
                               : std::string(is_right              ? "changes the launches after it alone"
                                             : now_in(before) == 0 ? "changes the pending launch too"
                                                                   : "does not change the next launch") +
                                     (held ? "" : ", and waits for it"),
         "changes the launches after it alone");
  };
  changed("cudaGraphExecKernelNodeSetParams", marks[0], marks[1], [&] {
    Word value = 1;
    void* pointers[] = {&marks[1], &value};
    cudaKernelNodeParams wanted = {};
    wanted.func = const_cast<void*>(symbol(put_word));
    wanted.gridDim = wanted.blockDim = dim3(1);
    wanted.kernelParams = pointers;
    return cudaGraphExecKernelNodeSetParams(executable, graph.first_node(), &wanted);
  });
  const Graph other(stream, [&] { TRANSHIP_CUDA(put(stream, marks[2])); });
  *static_cast<volatile Word*>(marks[1]) = 0;
  changed("cudaGraphExecUpdate", marks[1], marks[2], [&] {
    cudaGraphExecUpdateResultInfo said_of;
    return cudaGraphExecUpdate(executable, other, &said_of);
  });
  const Graph longer(stream, [&] {
    TRANSHIP_CUDA(put(stream, marks[3]));
    TRANSHIP_CUDA(put(stream, marks[4]));
  });
  cudaGraphExecUpdateResultInfo said_of = {};
  const cudaError_t status = cudaGraphExecUpdate(executable, longer, &said_of);
  told("cudaGraphExecUpdate by a graph of more nodes",
       name_of(status) + ", result " + std::to_string(int(said_of.result)),
       "cudaErrorGraphExecUpdateFailure, result 2, the topology");
  *static_cast<volatile Word*>(marks[2]) = 0;
  const cudaError_t launched = cudaGraphLaunch(executable, stream);
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  told("the executable graph after an update that failed",
       launched == cudaSuccess && now_in(marks[2]) == 1 && now_in(marks[3]) == 0 ? "runs as before" : name_of(launched),
       "runs as before");
}

void updated_copy() {
  const Stream stream;
  const CardArray<Word> source(std::vector<Word>(16, 9));
  PinnedArray<Word> first(16), second(16);
  const Graph graph(
      stream, [&] { TRANSHIP_CUDA(cudaMemcpyAsync(first.data(), source.data(), 64, cudaMemcpyDeviceToHost, stream)); });
  const Executable executable(graph);
  const cudaError_t status = cudaGraphExecMemcpyNodeSetParams1D(executable, graph.first_node(), second.data(),
                                                                source.data(), 64, cudaMemcpyDeviceToHost);
  if (status == cudaSuccess) TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  told("cudaGraphExecMemcpyNodeSetParams1D to another pinned target",
       status != cudaSuccess        ? name_of(status)
       : now_in(second.data()) == 9 ? "works"
                                    : "does nothing",
       "works");
}

/// Words 1 are from the capture, 2 from the launch, 3 from after it; words 7 are from the card.
class PageableCopy {
 public:
  enum class Way { to_card, from_card };
  PageableCopy(Way way, std::size_t bytes) : way_(way), bytes_(bytes), card_(bytes / 8), host_(bytes / 8) {}

  std::string ask() {
    write(1);
    TRANSHIP_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    const cudaError_t status =
        way_ == Way::to_card ? cudaMemcpyAsync(card_.data(), host_.data(), bytes_, cudaMemcpyHostToDevice, stream_)
                             : cudaMemcpyAsync(host_.data(), card_.data(), bytes_, cudaMemcpyDeviceToHost, stream_);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    const cudaError_t end = cudaStreamEndCapture(stream_, &graph);
    if (status != cudaSuccess || end != cudaSuccess) return name_of(status) + ", the capture ends with " + name_of(end);
    const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
    if (made != cudaSuccess) return "is captured, cudaGraphInstantiate: " + name_of(made);
    const std::string out = launched(executable);
    TRANSHIP_CUDA(cudaGraphExecDestroy(executable));
    TRANSHIP_CUDA(cudaGraphDestroy(graph));
    return out;
  }

 private:
  void write(Word number) { write_words(host_.data(), host_.size(), random_word(number)); }
  bool is(const std::vector<Word>& seen, Word number) const {
    return count_words(seen.data(), seen.size(), random_word(number)) == seen.size();
  }
  std::string launched(cudaGraphExec_t executable) {
    write(7);
    card_.write(host_);
    write(2);
    const Gate gate(stream_, 0.1);
    const cudaError_t status = cudaGraphLaunch(executable, stream_);
    const bool held = gate.holds();
    const bool is_there = is(host_, 7);
    if (way_ == Way::to_card) write(3);
    gate.open();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    if (status != cudaSuccess) return "is captured, cudaGraphLaunch: " + name_of(status);
    const std::string out =
        held ? "the launch returns while the stream is held; " : "the launch waits for the stream; ";
    if (way_ == Way::from_card)
      return out + (is_there       ? "all bytes are there at its return"
                    : is(host_, 7) ? "the bytes come later"
                                   : "they never come");
    const std::vector<Word> seen = card_.read();
    return out + (is(seen, 1)   ? "the bytes of the capture arrive"
                  : is(seen, 2) ? "the bytes of the launch arrive"
                  : is(seen, 3) ? "the bytes written after the launch arrive"
                                : "a mixture of bytes arrives");
  }

  Way way_;
  std::size_t bytes_;
  CardArray<Word> card_;
  std::vector<Word> host_;
  Stream stream_;
};

void pageable_copies() {
  for (const std::size_t bytes : {std::size_t(8), std::size_t(64) << 10, std::size_t(1) << 20}) {
    const std::string name = "a captured cudaMemcpyAsync of " + size_name(bytes);
    told(name + " from pageable memory", PageableCopy(PageableCopy::Way::to_card, bytes).ask(),
         "the launch returns; the bytes written after the launch arrive");
    told(name + " to pageable memory", PageableCopy(PageableCopy::Way::from_card, bytes).ask(),
         "the launch returns; the bytes come later");
  }
}

void destroyed_while_pending() {
  const Stream stream;
  Word* const mark = Marks::next();
  const Graph graph(stream, [&] { TRANSHIP_CUDA(put(stream, mark)); });
  Executable executable(graph);
  const Gate gate(stream);
  TRANSHIP_CUDA(cudaGraphLaunch(executable, stream));
  const cudaError_t status = executable.destroy();
  const bool held = gate.holds();
  gate.open();
  const bool came = comes(mark);
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  told("cudaGraphExecDestroy while a launch is pending",
       name_of(status) + (held ? ", returns" : ", waits for it") +
           (came ? "; the launch is done" : "; it is never done"),
       "cudaSuccess, returns; the launch is done");
}

void forks() {
  const Stream one, two, never_joined, lone;
  const Event begin(cudaEventDisableTiming), end(cudaEventDisableTiming), outside(cudaEventDisableTiming);
  const Event fresh(cudaEventDisableTiming);
  Word* const first = Marks::next();
  Word* const second = Marks::next();
  TRANSHIP_CUDA(cudaEventRecord(outside, two));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  {
    const Graph graph(one, [&] {
      TRANSHIP_CUDA(put(one, first));
      TRANSHIP_CUDA(cudaEventRecord(begin, one));
      TRANSHIP_CUDA(cudaStreamWaitEvent(two, begin, 0));
      TRANSHIP_CUDA(put(two, second));
      TRANSHIP_CUDA(cudaEventRecord(end, two));
      TRANSHIP_CUDA(cudaStreamWaitEvent(one, end, 0));
    });
    const Executable executable(graph);
    TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
    TRANSHIP_CUDA(cudaStreamSynchronize(one));
    told("a fork to another stream by events and the join of it in a capture",
         (now_in(first) == 1 && now_in(second) == 1 ? "works, " : "does not run, ") +
             std::to_string(graph.node_count()) + " nodes for 2 kernels",
         "works, 2 nodes for 2 kernels");
    told("cudaEventQuery of an event that was recorded in a capture", name_of(cudaEventQuery(begin)),
         "cudaErrorCapturedEvent");
    told("cudaEventSynchronize of an event that was recorded in a capture", name_of(cudaEventSynchronize(begin)),
         "cudaErrorCapturedEvent");
    told("cudaStreamWaitEvent, outside, of an event that was recorded in a capture that has ended",
         name_of(cudaStreamWaitEvent(lone, begin, 0)), "cudaErrorStreamCaptureIsolation or cudaErrorCapturedEvent");
    TRANSHIP_CUDA(cudaEventRecord(begin, two));
    TRANSHIP_CUDA(cudaStreamSynchronize(two));
    told("cudaEventQuery of it after it was recorded again outside", name_of(cudaEventQuery(begin)), "cudaSuccess");
  }
  const auto ended = [&](const std::string& name, const std::string& expectation, const auto& enqueue) {
    TRANSHIP_CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    const cudaError_t status = enqueue();
    cudaGraph_t graph = nullptr;
    const cudaError_t end_status = cudaStreamEndCapture(one, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    told(name, name_of(status) + ", the capture ends with " + name_of(end_status), expectation);
  };
  ended("a fork that is not joined", "cudaSuccess, the capture ends with cudaErrorStreamCaptureUnjoined", [&] {
    TRANSHIP_CUDA(cudaEventRecord(begin, one));
    TRANSHIP_CUDA(cudaStreamWaitEvent(never_joined, begin, 0));
    return put(never_joined, second);
  });
  ended("a captured stream waits for an event that was recorded outside",
        "cudaErrorStreamCaptureIsolation, the capture ends with cudaErrorStreamCaptureInvalidated",
        [&] { return cudaStreamWaitEvent(one, outside, 0); });
  ended("a captured stream waits for an event never recorded", "unknown",
        [&] { return cudaStreamWaitEvent(one, fresh, 0); });
  ended("a captured stream waits for an event that was recorded outside, with cudaEventWaitExternal",
        "cudaSuccess, the capture ends with cudaSuccess",
        [&] { return cudaStreamWaitEvent(one, outside, cudaEventWaitExternal); });
  ended("cudaStreamBeginCapture of a stream that is captured", "cudaErrorIllegalState",
        [&] { return cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal); });
  const Graph inner(two, [&] { TRANSHIP_CUDA(put(two, second)); });
  const Executable inner_executable(inner);
  ended("cudaGraphLaunch of another graph in a captured stream", "cudaSuccess, the capture ends with cudaSuccess",
        [&] { return cudaGraphLaunch(inner_executable, one); });
  cudaGraph_t nothing = nullptr;
  told("cudaStreamEndCapture of a stream that is not captured", name_of(cudaStreamEndCapture(one, &nothing)),
       "cudaErrorIllegalState");

  const Event external(cudaEventDisableTiming);
  cudaError_t recorded = cudaSuccess;
  Graph graph(one, [&] {
    TRANSHIP_CUDA(put(one, first));
    recorded = cudaEventRecordWithFlags(external, one, cudaEventRecordExternal);
  });
  if (recorded != cudaSuccess) return told("cudaEventRecordExternal in a capture", name_of(recorded), "cudaSuccess");
  const Executable executable(graph);
  const Gate gate(one);
  TRANSHIP_CUDA(cudaGraphLaunch(executable, one));
  const cudaError_t pending = cudaEventQuery(external);
  gate.open();
  TRANSHIP_CUDA(cudaStreamSynchronize(one));
  told("cudaEventQuery of an event recorded by a graph with cudaEventRecordExternal, launch pending and over",
       name_of(pending) + ", " + name_of(cudaEventQuery(external)), "cudaErrorNotReady, cudaSuccess");
}

}  // namespace

void ask_graphs(const Options&) {
  when_it_runs();
  order_of_launches();
  parameters();
  updates();
  updated_copy();
  pageable_copies();
  forks();
  destroyed_while_pending();
}

}  // namespace tranship::device

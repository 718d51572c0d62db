// Captures and graphs. Captured work is made at each launch, node by node.
#include <algorithm>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software::calls {

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    if (!handle || handle == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const FoundStream found = find_stream(all, card, handle);
    if (!found.stream) return found.why;
    Stream& stream = *found.stream;
    if (stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = &stream;
    capture->streams.insert(&stream);
    stream.capture = capture;
    stream.tails.clear();
    all.captures.push_back(std::move(capture));
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    const FoundStream found = find_stream(all, card, handle);
    if (!found.stream) return found.why;
    Stream& stream = *found.stream;
    const auto capture = stream.capture;
    if (!capture || capture->origin != &stream) return CUDA_ERROR_ILLEGAL_STATE;
    // Work of other streams must come before the end of this one.
    std::vector<bool> is_joined(capture->graph->nodes.size(), false);
    std::vector<int> open = stream.tails;
    while (!open.empty()) {
      const auto node = std::size_t(open.back());
      open.pop_back();
      if (is_joined[node]) continue;
      is_joined[node] = true;
      const auto& after = capture->graph->nodes[node].after;
      open.insert(open.end(), after.begin(), after.end());
    }
    const bool is_whole = std::all_of(is_joined.begin(), is_joined.end(), [](bool joined) { return joined; });
    for (Stream* const one : capture->streams) {
      one->capture = nullptr;
      one->tails.clear();
    }
    std::erase(all.captures, capture);
    if (out) *out = nullptr;
    if (capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!is_whole) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    Graph* const graph = capture->graph.get();
    all.graphs.insert(graph);
    all.graph_owners[graph] = capture->graph;
    *out = reinterpret_cast<CUgraph>(graph);
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph handle, unsigned long long) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock&) {
    const auto found = all.graph_owners.find(reinterpret_cast<Graph*>(handle));
    if (found == all.graph_owners.end() || !out) return CUDA_ERROR_INVALID_VALUE;
    auto* const exec = new GraphExec{found->second, nullptr};
    all.execs.insert(exec);
    *out = reinterpret_cast<CUgraphExec>(exec);
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return on_stream(stream_handle, [&](State& all, Stream& stream, Lock& lock) {
    auto* const exec = reinterpret_cast<GraphExec*>(handle);
    if (!all.execs.count(exec)) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture) {
      stream.capture->is_invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    Card& card = *stream.card;
    const auto begin = std::make_shared<MarkOp>(card), end = std::make_shared<MarkOp>(card);
    if (!is_over(exec->last_launch)) begin->after.push_back(exec->last_launch);
    all.submit_op(stream, begin);
    std::vector<OpRef> made;
    bool waits = false;
    for (const Node& node : exec->graph->nodes) {
      const OpRef op = node.make(card);
      op->after.push_back(begin);
      for (const int before : node.after) op->after.push_back(made[std::size_t(before)]);
      card.unqueued.push_back(op);
      end->after.push_back(op);
      made.push_back(op);
      waits |= node.is_waited_for;
    }
    all.submit_op(stream, end);
    exec->last_launch = end;
    if (!waits) return CUDA_SUCCESS;
    return all.wait(lock, card, [&] { return is_over(end); });
  });
}
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    auto* const exec = reinterpret_cast<GraphExec*>(handle);
    if (!all.execs.count(exec)) return CUDA_ERROR_INVALID_VALUE;
    all.execs.erase(exec);
    delete exec;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphDestroy(CUgraph handle) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    auto* const graph = reinterpret_cast<Graph*>(handle);
    if (!all.graphs.count(graph)) return CUDA_ERROR_INVALID_VALUE;
    all.graphs.erase(graph);
    all.graph_owners.erase(graph);
    return CUDA_SUCCESS;
  });
}

}  // namespace tranship::cuda::software::calls

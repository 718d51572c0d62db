// Captures and graphs. Captured work is made at each launch, node by node.
#include <algorithm>

#include <tranship/cuda/software/calls.hpp>

namespace tranship::cuda::software {

UserObject::~UserObject() {
  State& all = *state();
  all.host_functions.push_back([function = destroy, of = argument] { function(of); });
  all.host_work.notify_one();
}

namespace {

/// Takes references of the program away.
CUresult released(State& all, UserObject* object, unsigned count) {
  const auto found = all.user_objects.find(object);
  if (found == all.user_objects.end() || count == 0 || count > found->second.size()) return CUDA_ERROR_INVALID_VALUE;
  found->second.resize(found->second.size() - count);
  if (found->second.empty()) all.user_objects.erase(found);
  return CUDA_SUCCESS;
}

}  // namespace

namespace calls {

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
CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                const CUgraphNode** dependencies, const CUgraphEdgeData** edges, std::size_t* count) {
  return on_card(Kind::plain, [&](State& all, Card& card, Lock&) {
    const FoundStream found = find_stream(all, card, handle);
    if (!found.stream) return found.why;
    // Nodes have no handles here.
    if (!status || dependencies || edges || count) return CUDA_ERROR_INVALID_VALUE;
    const auto& capture = found.stream->capture;
    *status = !capture              ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id) *id = reinterpret_cast<cuuint64_t>(capture.get());
    if (graph) *graph = reinterpret_cast<CUgraph>(capture->graph.get());
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return calls::cuStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (!callable()) return why_not_callable();
  if (in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, capture_mode_of_thread);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject* out, void* argument, CUhostFn destroy, unsigned references, unsigned flags) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    if (!out || !destroy || references == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
      return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<UserObject> made(new UserObject{destroy, argument});
    all.user_objects[made.get()].assign(references, made);
    *out = reinterpret_cast<CUuserObject>(made.get());
    return CUDA_SUCCESS;
  });
}
CUresult cuUserObjectRelease(CUuserObject handle, unsigned count) {
  return on_card(Kind::plain,
                 [&](State& all, Card&, Lock&) { return released(all, reinterpret_cast<UserObject*>(handle), count); });
}
CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned count, unsigned flags) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    auto* graph = reinterpret_cast<Graph*>(handle);
    const bool is_captured = std::any_of(all.captures.begin(), all.captures.end(),
                                         [&](const auto& one) { return one->graph.get() == graph; });
    const auto found = all.user_objects.find(reinterpret_cast<UserObject*>(object));
    if (!(is_captured || all.graphs.count(graph)) || found == all.user_objects.end() || count == 0 ||
        (flags & ~unsigned(CU_GRAPH_USER_OBJECT_MOVE)))
      return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<UserObject> kept = found->second.front();
    if (flags & CU_GRAPH_USER_OBJECT_MOVE)
      if (const CUresult moved = released(all, kept.get(), count); moved != CUDA_SUCCESS) return moved;
    graph->kept.insert(graph->kept.end(), count, kept);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  return on_card(Kind::plain, [&](State& all, Card&, Lock&) {
    auto* const graph = reinterpret_cast<Graph*>(handle);
    // Nodes have no handles here: they are only counted.
    if (!all.graphs.count(graph) || nodes || !count) return CUDA_ERROR_INVALID_VALUE;
    *count = graph->nodes.size();
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph handle, unsigned long long) {
  return on_card(Kind::unsafe, [&](State& all, Card&, Lock&) {
    const auto found = all.graph_owners.find(reinterpret_cast<Graph*>(handle));
    if (found == all.graph_owners.end() || !out) return CUDA_ERROR_INVALID_VALUE;
    auto* const exec = new GraphExec{found->second, found->first->kept, nullptr};
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
    end->kept = exec->kept;
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
    graph->kept.clear();
    all.graphs.erase(graph);
    all.graph_owners.erase(graph);
    return CUDA_SUCCESS;
  });
}

}  // namespace calls
}  // namespace tranship::cuda::software

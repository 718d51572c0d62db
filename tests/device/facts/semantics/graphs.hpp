// These classes own graphs, which are destroyed with their objects. Read next: graphs.cpp, captures.cpp.
#pragma once

#include "facts/semantics/tools.hpp"

namespace tranship::device {

inline cudaError_t put(cudaStream_t stream, Word* mark, Word value = 1) {
  return launch(stream, {}, put_word, mark, value);
}

class Graph {
 public:
  template <class F>
  Graph(cudaStream_t stream, const F& enqueue) {
    TRANSHIP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    TRANSHIP_CUDA(cudaStreamEndCapture(stream, &graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  operator cudaGraph_t() const { return graph_; }  // NOLINT: the conversion is intended
  void destroy() {
    TRANSHIP_CUDA(cudaGraphDestroy(graph_));
    graph_ = nullptr;
  }
  std::size_t node_count() const {
    std::size_t count = 0;
    TRANSHIP_CUDA(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }
  cudaGraphNode_t first_node() const {
    std::size_t count = 1;
    cudaGraphNode_t node = nullptr;
    TRANSHIP_CUDA(cudaGraphGetNodes(graph_, &node, &count));
    return node;
  }

 private:
  cudaGraph_t graph_ = nullptr;
};

class Executable {
 public:
  explicit Executable(cudaGraph_t graph) { TRANSHIP_CUDA(cudaGraphInstantiate(&executable_, graph, 0)); }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }
  operator cudaGraphExec_t() const { return executable_; }  // NOLINT: the conversion is intended
  cudaError_t destroy() {
    const cudaError_t status = cudaGraphExecDestroy(executable_);
    executable_ = nullptr;
    return status;
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tranship::device

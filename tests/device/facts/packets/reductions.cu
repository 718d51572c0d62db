// Measures sums over 2, 4 and 8 ranks that are blocks of one launch: the time of a call within a launch and of a call
// that is a launch, for each way of reductions.hpp. Checks that every rank has the sum in the order of ranks, to the
// bit.
#include "facts/packets/reductions.hpp"

namespace tranship::device {
namespace {

class Reductions {
 public:
  explicit Reductions(const Options& options) : quick_(options.quick()), stream_(new_stream()) {
    numbers_.resize(sources_.size());
    // The numbers have both signs and several magnitudes, so that the order of summation shows.
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const Word bits = scrambled(90210 + i);
      numbers_[i] = std::ldexp(float(int(bits & 0xffffff) - 0x800000), -23 + int(bits >> 40 & 7));
    }
    sources_.write(numbers_);
  }
  ~Reductions() { cudaStreamDestroy(stream_); }

  template <unsigned ranks>
  void all() {
    for (const unsigned bytes : {8u, 1024u, 16u << 10, 64u << 10, 1u << 20}) {
      expected_ = sums(ranks, bytes / 4);
      one<Way::packets, ranks>(bytes);
      one<Way::loads, ranks>(bytes);
      if (bytes / 16 < ranks) continue;
      one<Way::packets_in_two, ranks>(bytes);
      one<Way::two_pulling, ranks>(bytes);
      one<Way::two_pushing, ranks>(bytes);
    }
  }

 private:
  static std::vector<unsigned> parts_for(unsigned bytes) {
    if (bytes == 8) return {1};
    if (bytes == 1024) return {1, 2};
    if (bytes == 1 << 20) return {4, 8, 16};
    return {1, 2, 4, 8};
  }
  /// Returns the number of lanes that have work in the first loop, rounded to whole warps.
  template <Way way, unsigned ranks>
  static unsigned lanes_for(unsigned bytes, unsigned parts) {
    unsigned things = bytes / 8;
    if (way == Way::packets_in_two) things /= ranks;
    if (way == Way::loads) things = (things + 1) / 2;
    if (way == Way::two_pulling || way == Way::two_pushing) things /= 2 * ranks;
    return std::clamp((things / parts + 31) / 32 * 32, 32u, 512u);
  }
  /// Returns the sums for both parities.
  std::vector<float> sums(unsigned ranks, unsigned count) const {
    std::vector<float> out(2 * count);
    for (unsigned parity = 0; parity < 2; ++parity)
      for (unsigned i = 0; i < count; ++i) {
        float sum = numbers_[parity * std::size_t(reduced_floats_max) + i];
        for (unsigned rank = 1; rank < ranks; ++rank)
          sum += numbers_[(rank * 2 + parity) * std::size_t(reduced_floats_max) + i];
        out[parity * count + i] = sum;
      }
    return out;
  }

  Field field(unsigned bytes, unsigned parts, unsigned warm_rounds, unsigned rounds) const {
    return {sources_.data(), targets_.data(),    packets_.data(), results_.data(), signals_.data(), calls_.data(),
            words_.data(),   words_.data() + 16, bytes / 4,       parts,           warm_rounds,     rounds};
  }
  void clear() {
    packets_.fill(0xa5);
    results_.fill(0xa5);
    signals_.fill(0);
    calls_.fill(0);
    words_.fill(0);
  }
  bool is_lost() const { return words_.read()[16] != 0; }

  template <unsigned ranks>
  long long wrong(unsigned bytes) const {
    const unsigned count = bytes / 4;
    std::vector<float> got(count);
    long long out = 0;
    for (unsigned rank = 0; rank < ranks; ++rank)
      for (unsigned parity = 0; parity < 2; ++parity) {
        TRANSHIP_CUDA(cudaMemcpy(got.data(), targets_.data() + (rank * 2 + parity) * std::size_t(reduced_floats_max),
                                 bytes, cudaMemcpyDeviceToHost));
        if (std::memcmp(got.data(), expected_.data() + parity * count, bytes) == 0) continue;
        for (unsigned i = 0; i < count; ++i)
          out += std::memcmp(&got[i], &expected_[parity * count + i], sizeof(float)) != 0;
      }
    return out;
  }

  template <Way way, unsigned ranks>
  void one(unsigned bytes) {
    const std::string name =
        "sum of " + bytes_text(bytes) + " over " + std::to_string(ranks) + " ranks, " + words_of(way);
    const unsigned rounds = quick_ ? 4 : bytes == 1 << 20 ? 24 : 200;
    const int samples = quick_ ? 1 : 9;
    const auto lanes = [&](unsigned parts) { return lanes_for<way, ranks>(bytes, parts); };
    Samples best;
    unsigned best_parts = 0;
    long long wrongs = 0, cases = 0;
    std::string others;
    for (const unsigned parts : parts_for(bytes)) {
      if (int(parts * ranks) > multiprocessors()) continue;
      clear();
      targets_.fill(0xa5);
      Samples us;
      for (int sample = -1; sample < samples; ++sample) {
        const unsigned warm_rounds = rounds / 10 + 1;
        launch_together(reductions<way, ranks>, ranks * parts, lanes(parts), stream_,
                        field(bytes, parts, warm_rounds, rounds));
        TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
        const std::vector<Word> words = words_.read();
        if (words[16] != 0) return fault(name + ": a packet or a signal did not come");
        if (sample >= 0) us.values.push_back(double(words[0]) * 1e-3 / rounds);
      }
      wrongs += wrong<ranks>(bytes);
      cases += 2ll * ranks * (bytes / 4);
      char text[64];
      std::snprintf(text, sizeof text, "%s%u: %.2f", others.empty() ? "us by blocks a rank: " : ", ", parts,
                    us.median());
      others += text;
      if (best_parts == 0 || us.median() < best.median()) {
        best = us;
        best_parts = parts;
      }
    }
    if (best_parts == 0) return answer(name, "not run", "the card has too few multiprocessors");
    figure(name, best, "us",
           "a call within a launch; " + others + "; best with " + std::to_string(lanes(best_parts)) + " lanes a block");
    clear();
    targets_.fill(0xa5);
    const Samples queued = graph<way, ranks>(bytes, best_parts, lanes(best_parts));
    if (!queued.values.empty()) {
      if (is_lost()) return fault(name + ", a launch each: a packet or a signal did not come");
      wrongs += wrong<ranks>(bytes);
      cases += 2ll * ranks * (bytes / 4);
      figure(name + ", a launch each", queued, "us", "graphs of one node, 20 in a row");
    }
    check("to the bit on all ranks: " + name, cases, wrongs);
  }

  /// Returns no samples where a cooperative launch cannot be a node of a graph.
  template <Way way, unsigned ranks>
  Samples graph(unsigned bytes, unsigned parts, unsigned lanes) {
    constexpr int many = 20;
    if (!graphs_work_) return {};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t once = nullptr;
    Field arguments = field(bytes, parts, 0, 1);
    void* pointers[] = {&arguments};
    TRANSHIP_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    cudaError_t status = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(reductions<way, ranks>),
                                                     dim3(ranks * parts), dim3(lanes), pointers, 0, stream_);
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    if (status == cudaSuccess) status = ended;
    if (status == cudaSuccess) status = cudaGraphInstantiate(&once, graph, 0);
    if (graph != nullptr) TRANSHIP_CUDA(cudaGraphDestroy(graph));
    if (!graphs_told_ || status != cudaSuccess)
      answer("a cooperative launch as a node of a graph", status == cudaSuccess ? "works" : cudaGetErrorName(status));
    graphs_told_ = true;
    graphs_work_ = status == cudaSuccess;
    cudaGetLastError();
    if (!graphs_work_) return {};
    TRANSHIP_CUDA(cudaGraphUpload(once, stream_));
    const Samples out = card_us(stream_, quick_ ? 1 : 9, [&] {
                          for (int i = 0; i < many; ++i) TRANSHIP_CUDA(cudaGraphLaunch(once, stream_));
                        }).mapped([](double us) { return us / many; });
    TRANSHIP_CUDA(cudaGraphExecDestroy(once));
    return out;
  }

  bool quick_;
  bool graphs_work_ = true, graphs_told_ = false;
  cudaStream_t stream_;
  std::vector<float> numbers_, expected_;
  CardArray<float> sources_{std::size_t(ranks_max) * 2 * reduced_floats_max};
  CardArray<float> targets_{std::size_t(ranks_max) * 2 * reduced_floats_max};
  CardArray<Vector> packets_{std::size_t(ranks_max) * 2 * ranks_max * (reduced_floats_max / 2)};
  CardArray<Vector> results_{std::size_t(ranks_max) * 2 * ranks_max * (reduced_floats_max / 4)};
  CardArray<Word> signals_{std::size_t(ranks_max) * 2 * parts_max * 16};
  CardArray<Word> calls_{std::size_t(ranks_max) * parts_max};
  CardArray<Word> words_{32};
};

}  // namespace

void packet_reductions(const Options& options) {
  Reductions reductions(options);
  reductions.all<2>();
  reductions.all<4>();
  reductions.all<8>();
}

}  // namespace tranship::device

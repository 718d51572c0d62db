// Runs the packing kernel on a card: checks against the plain loop, rates as fractions of a device copy, and the halo
// regions of NDSL beside CUDA's own copies. kernels/host/piece_list.hpp makes lists of moves into what the kernel
// (kernels/move_pieces.hpp) moves.
//
//   device_packing [--part checks|figures|ndsl] [--lists N] [--seed N] [--small] [--break]
//
// --small leaves out what needs gigabytes, for runs under a checker. --break moves one piece of each random list by one
// vector; the check of the lists must then report lists that are wrong.
#include <cstring>

#include "packing/card_pattern.hpp"
#include "packing/pack.hpp"
#include "packing/packing.hpp"

namespace tranship::device {
namespace {

CardArenas arenas_of(long long bytes, cudaStream_t stream) {
  CardArenas out;
  out.bytes = bytes;
  for (unsigned char** arena : {&out.sources, &out.targets})
    if (cudaMalloc(arena, static_cast<std::size_t>(bytes)) != cudaSuccess) {
      cudaGetLastError();
      cudaFree(out.sources);
      return {};
    }
  fill_pattern(out.sources, bytes, stream);
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  return out;
}

int run(const std::string& part, const PackingOptions& options) {
  cudaStream_t stream;
  TRANSHIP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  answer("packing: kernels", pack_resources(), std::to_string(pack_groups_min()) + " multiprocessors");
  const bool is_all = part.empty();
  if (is_all || part == "checks") check_random_lists(options, stream);
  if (options.has_large) {
    CardArenas arenas = arenas_of(4800ll << 20, stream);
    if (!arenas.sources) {
      answer("packing: arenas of 4.8 GB", "no memory", "1.5 GB are used, larger moves are left out");
      arenas = arenas_of(1500ll << 20, stream);
    }
    if (!arenas.sources) {
      fault("packing: no memory for two arenas of 1.5 GB");
      return 3;
    }
    if (is_all || part == "checks") check_large_lists(arenas, stream);
    if (is_all || part == "ndsl") measure_ndsl(arenas, stream);
    if (is_all || part == "figures") measure_shapes(arenas, stream);
  }
  return 0;
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  using tranship::device::fault;
  std::string part;
  tranship::device::PackingOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--part" && i + 1 < argc)
      part = argv[++i];
    else if (word == "--lists" && i + 1 < argc)
      options.lists = std::atoi(argv[++i]);
    else if (word == "--seed" && i + 1 < argc)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--small")
      options.has_large = false;
    else if (word == "--break")
      options.is_broken = true;
    else {
      fault("packing: unknown option " + word);
      return 2;
    }
  }
  if (!part.empty() && part != "checks" && part != "figures" && part != "ndsl") {
    fault("packing: unknown part " + part);
    return 2;
  }
  try {
    return tranship::device::run(part, options);
  } catch (const std::exception& error) {
    fault(std::string("packing: ") + error.what());
    return 3;
  }
}

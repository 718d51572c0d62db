// Asks about blocks and warps: how many are resident at once, which launches run side by side, what a priority does,
// where blocks go, and which blocks make progress while others spin.
#include <algorithm>
#include <set>

#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

int blocks_each(const void* kernel, unsigned threads, std::size_t shared_bytes) {
  int out = 0;
  TRANSHIP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out, kernel, int(threads), shared_bytes));
  return out;
}

void occupancy() {
  const Stream stream;
  CardArray<Word> words(32), of_each(2048);
  for (const auto& [threads, shared_bytes] : {std::pair<unsigned, std::size_t>{32, 0},
                                              {256, 0},
                                              {1024, 0},
                                              {256, 40 << 10},
                                              {256, 100 << 10},
                                              {64, 200 << 10}}) {
    if (shared_bytes > std::size_t(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin))) continue;
    TRANSHIP_CUDA(cudaFuncSetAttribute(symbol(count_resident), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       int(std::max<std::size_t>(shared_bytes, 48 << 10))));
    const int each = blocks_each(symbol(count_resident), threads, shared_bytes);
    const std::string name = "blocks of " + std::to_string(threads) + " lanes with " + size_name(shared_bytes) +
                             " of shared memory that are there at once";
    if (each == 0) {
      told(name, "none fit", "as many as cudaOccupancyMaxActiveBlocksPerMultiprocessor says");
      continue;
    }
    words.fill(0);
    of_each.fill(0);
    TRANSHIP_CUDA(launch(stream, {unsigned(each * multiprocessors() * 2), threads, shared_bytes}, count_resident,
                         words.data(), words.data() + 16, of_each.data(), of_each.data() + 1024, Word(5'000'000)));
    TRANSHIP_CUDA(cudaStreamSynchronize(stream));
    const std::vector<Word> most_of = of_each.read();
    const Word most = words.read()[16], most_each = *std::max_element(most_of.begin() + 1024, most_of.end());
    const Word wanted = Word(each) * Word(multiprocessors());
    answer(name,
           most == wanted && most_each == Word(each)
               ? "as many as the occupancy says"
               : std::to_string(most) + ", on one multiprocessor " + std::to_string(most_each),
           "the occupancy says " + std::to_string(each) + " on each of " + std::to_string(multiprocessors()) + ", " +
               std::to_string(wanted) + " in all; expected: as many");
  }
}

enum class Launch { plain, cooperative };

/// Starts two launches whose blocks all wait for one another, each with a `share` of the blocks that fit.
void side_by_side(Launch how, double share, const std::string& expectation) {
  const Stream one, two;
  CardArray<Gathering> gathering(1);
  const int each = blocks_each(symbol(gather), 256, 0);
  const int all = each * multiprocessors();
  const unsigned blocks = unsigned(std::max(1, int(all * share)));
  gathering.fill(0);
  TRANSHIP_CUDA(cudaMemset(gathering.data()->fewest_seen, 0xff, sizeof(Word)));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  Gathering* at = gathering.data();
  Word wanted = 2 * Word(blocks), limit_ns = 50'000'000;
  void* pointers[] = {&at, &wanted, &limit_ns};
  for (const cudaStream_t stream : {cudaStream_t(one), cudaStream_t(two)})
    if (how == Launch::cooperative)
      TRANSHIP_CUDA(cudaLaunchCooperativeKernel(symbol(gather), dim3(blocks), dim3(256), pointers, 0, stream));
    else
      TRANSHIP_CUDA(launch(stream, {blocks, 256}, gather, at, wanted, limit_ns));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const Gathering seen = gathering.read()[0];
  const Word fewest = seen.fewest_seen[0];
  answer(
      std::string("two ") + (how == Launch::cooperative ? "cooperative" : "plain") + " launches of " +
          std::to_string(blocks) + " blocks in two streams on a card that holds " + std::to_string(all),
      seen.gave_up[0] == 0     ? "run side by side"
      : fewest == Word(blocks) ? "run one after the other"
      : fewest > Word(blocks)  ? "the second begins in part, with " + std::to_string(fewest - blocks) + " blocks"
                               : "not even the first is there: " + std::to_string(fewest) + " blocks",
      std::to_string(seen.gave_up[0]) + " of " + std::to_string(wanted) + " blocks gave up; expected: " + expectation);
}

void priorities() {
  int least = 0, greatest = 0;
  TRANSHIP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  told("priorities of streams, least and greatest", std::to_string(least) + ", " + std::to_string(greatest), "0, -5");
  const int all = blocks_each(symbol(device::stay), 256, 0) * multiprocessors();
  CardArray<Span> spans(2);
  std::vector<Span> none{{~0ull, 0}, {~0ull, 0}};
  const auto race = [&](const std::string& name, int waves, Word stay_ns, int first_priority, int second_priority,
                        const std::string& expectation) {
    cudaStream_t first, second;
    TRANSHIP_CUDA(cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, first_priority));
    TRANSHIP_CUDA(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, second_priority));
    spans.write(none);
    TRANSHIP_CUDA(launch(first, {unsigned(all * waves), 256}, device::stay, spans.data(), stay_ns));
    usleep(1000);
    TRANSHIP_CUDA(launch(second, {unsigned(multiprocessors()), 256}, device::stay, spans.data() + 1, Word(1000)));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const std::vector<Span> seen = spans.read();
    const double length = double(seen[0].last_end_ns - seen[0].first_begin_ns) * 1e-3;
    const double begin = (double(seen[1].first_begin_ns) - double(seen[0].first_begin_ns)) * 1e-3;
    const double end = (double(seen[1].last_end_ns) - double(seen[0].first_begin_ns)) * 1e-3;
    answer(name,
           end < length     ? "overtakes what is queued"
           : begin < length ? "begins among the last"
                            : "waits for all",
           "the first launch lasts " + us_text(length) + ", of " + std::to_string(waves) + " waves of " +
               us_text(double(stay_ns) * 1e-3) + "; the second is launched about 1 ms after it, begins after " +
               us_text(begin) + " and ends after " + us_text(end) + "; expected: " + expectation);
    TRANSHIP_CUDA(cudaStreamDestroy(first));
    TRANSHIP_CUDA(cudaStreamDestroy(second));
  };
  race("a small launch of the greatest priority behind a large one of the least", 40, 250'000, least, greatest,
       "overtakes what is queued");
  race("a small launch of the same priority behind a large one", 40, 250'000, least, least, "begins among the last");
  race("a small launch of the greatest priority behind one whose blocks fill the card for 20 ms", 1, 20'000'000, least,
       greatest, "waits for all, running blocks are not put aside");
}

std::string list(const std::vector<unsigned>& values, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < std::min(count, values.size()); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return out;
}

void places() {
  const Stream stream;
  const unsigned count = unsigned(std::max(64, multiprocessors() * 2));
  CardArray<unsigned> of_block(count);
  for (const unsigned threads : {32u, 256u, 1024u}) {
    of_block.fill(0xff);
    TRANSHIP_CUDA(launch(stream, {count, threads}, note_multiprocessors, of_block.data()));
    TRANSHIP_CUDA(cudaStreamSynchronize(stream));
    const std::vector<unsigned> seen = of_block.read();
    const std::set<unsigned> first(seen.begin(), seen.begin() + multiprocessors());
    answer("multiprocessors of blocks 0 to 7, of " + std::to_string(threads) + " lanes", list(seen, 8),
           "the first " + std::to_string(multiprocessors()) + " blocks are on " + std::to_string(first.size()) +
               " multiprocessors; expected: all different");
  }
  if (!is_hopper_or_later()) return;
  TRANSHIP_CUDA(cudaFuncSetAttribute(symbol(note_multiprocessors), cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  for (const unsigned size : {2u, 4u, 8u, 16u}) {
    of_block.fill(0xff);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(64);
    config.blockDim = dim3(256);
    config.stream = stream;
    cudaLaunchAttribute wanted = {};
    wanted.id = cudaLaunchAttributeClusterDimension;
    wanted.val.clusterDim.x = size;
    wanted.val.clusterDim.y = wanted.val.clusterDim.z = 1;
    config.attrs = &wanted;
    config.numAttrs = 1;
    unsigned* at = of_block.data();
    void* pointers[] = {&at};
    const std::string name = "multiprocessors of a cluster of " + std::to_string(size) + " blocks";
    const cudaError_t status = cudaLaunchKernelExC(&config, symbol(note_multiprocessors), pointers);
    const cudaError_t end = cudaStreamSynchronize(stream);
    if (status != cudaSuccess || end != cudaSuccess) {
      told(name, name_of(status) + ", " + name_of(end), "all different");
      continue;
    }
    const std::vector<unsigned> seen = of_block.read();
    unsigned alike = 0;
    for (unsigned i = 0; i < 64; i += size)
      alike += std::set<unsigned>(seen.begin() + i, seen.begin() + i + size).size() != size;
    answer(name, list(seen, size),
           std::to_string(alike) + " of " + std::to_string(64 / size) +
               " clusters have two blocks on one multiprocessor; expected: all different");
  }
}

void progress() {
  const Stream stream;
  CardArray<Word> words(32);
  const Word limit_ns = 50'000'000;
  const auto ask = [&](const std::string& name, const auto& enqueue) {
    words.fill(0);
    TRANSHIP_CUDA(enqueue());
    TRANSHIP_CUDA(cudaStreamSynchronize(stream));
    const Word out = words.read()[16];
    told(name, out == 1 ? "yes" : out == 2 ? "no, it gives up" : "no answer", "yes");
  };
  for (const int in_shared : {0, 1})
    for (const int setter : {0, 1})
      ask("lane " + std::to_string(1 - setter) + " of a warp that spins for a later store of lane " +
              std::to_string(setter) + (in_shared ? " in shared memory" : " on the card") + " gets on",
          [&] {
            return launch(stream, {1, 32}, lane_waits_for_lane, setter, in_shared, words.data(), limit_ns,
                          words.data() + 16);
          });
  for (const int setter : {0, 31})
    ask("31 warps of a block that spin for a store of warp " + std::to_string(setter) + " get on", [&] {
      return launch(stream, {1, 1024}, warps_wait_for_warp, setter, words.data(), limit_ns, words.data() + 16);
    });
}

void fairness(bool quick) {
  const Stream stream;
  const unsigned links = 1 << 16;
  std::vector<Word> chain(links);
  for (unsigned i = 0; i < links; ++i) chain[i] = (i * 40503ull + 4099) % links;
  const CardArray<Word> card_chain(chain);
  CardArray<Word> words(32);
  const auto clocks = [&](Spinning how, Working what, unsigned warps, Samples& into) {
    const int steps = what == Working::computing ? 20000 : 500;
    for (int round = -2; round < (quick ? 1 : 9); ++round) {
      words.fill(0);
      TRANSHIP_CUDA(launch(stream, {1, 32 * warps}, work_beside_spinners, how, what, steps,
                           static_cast<const Word*>(card_chain.data()), words.data(), Word(100'000'000),
                           words.data() + 16));
      TRANSHIP_CUDA(cudaStreamSynchronize(stream));
      if (round >= 0) into.values.push_back(double(words.read()[16]));
    }
  };
  for (const Working what : {Working::computing, Working::loading}) {
    Samples alone;
    clocks(Spinning::not_at_all, what, 1, alone);
    const double base = alone.median();
    if (base <= 0) return fault("a warp alone takes no time");
    for (const unsigned others : {3u, 4u, 31u})
      for (const auto& [how, name] :
           {std::pair<Spinning, const char*>{Spinning::on_the_card, "a word on the card"},
            {Spinning::on_the_card_sleeping, "a word on the card, with __nanosleep(100)"},
            {Spinning::in_shared, "a word in shared memory"},
            {Spinning::in_shared_sleeping, "a word in shared memory, with __nanosleep(100)"}}) {
        Samples beside;
        clocks(how, what, others + 1, beside);
        figure(std::string("a warp that ") + (what == Working::computing ? "computes" : "loads from the L2") +
                   ", beside " + std::to_string(others) + " warps of its block that spin on " + name,
               beside.mapped([&](double value) { return value / base; }), "times",
               "as long as alone, " + std::to_string((long long)base) + " clocks; warps 4, 8, ... share its scheduler");
      }
  }
}

}  // namespace

void ask_blocks(const Options& options) {
  occupancy();
  side_by_side(Launch::cooperative, 0.5, "run side by side");
  side_by_side(Launch::cooperative, 0.6, "run one after the other");
  side_by_side(Launch::plain, 0.5, "run side by side");
  side_by_side(Launch::plain, 0.6, "the second begins in part");
  priorities();
  places();
  progress();
  fairness(options.quick());
}

}  // namespace tranship::device

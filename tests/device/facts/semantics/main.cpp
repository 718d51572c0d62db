// Asks how CUDA's runtime and driver behave in the corners that a back-end, and a double of CUDA on the CPU, must get
// right. Each question gives an answer beside what was expected. Each kind of question has its own process, and what
// may end a context comes last in its own process too, so that a wrong guess loses nothing else. --case NAME asks one
// kind, in this process; --seconds limits the whole run. Read next: cases.hpp, tools.hpp.
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {

namespace {

constexpr int no_card = 4;
enum class Ending { well, any };
struct Case {
  const char* name;
  void (*ask)(const Options&);
  Ending ending;
  bool quick;  ///< also asked with --quick
};
const Case cases[] = {
    {"copies", ask_copies, Ending::well, true},
    {"order", ask_order, Ending::well, true},
    {"events", ask_events, Ending::well, true},
    {"streams", ask_streams, Ending::well, true},
    {"host functions", ask_host_functions, Ending::well, true},
    {"graphs", ask_graphs, Ending::well, true},
    {"captures", ask_captures, Ending::well, true},
    {"mapping", ask_mapping, Ending::well, true},
    {"errors", ask_errors, Ending::well, true},
    {"blocks", ask_blocks, Ending::well, true},
    {"limits", ask_limits, Ending::well, true},
    {"wrong memory", ask_wrong_memory, Ending::any, false},
    {"calls of host functions", ask_calls_of_host_functions, Ending::any, false},
    {"fault by address", fault_by_address, Ending::any, false},
    {"fault seen first", fault_seen_first, Ending::any, false},
    {"fault beside others", fault_beside_others, Ending::any, false},
    {"fault before host functions", fault_before_host_functions, Ending::any, false},
    {"fault in another process", fault_in_another_process, Ending::any, false},
    {"fault, unmapped", fault_unmapped, Ending::any, false},
    {"fault, no access", fault_without_access, Ending::any, false},
    {"fault, read only", fault_read_only, Ending::any, false},
    {"fault, unmapped in use", fault_unmapped_in_use, Ending::any, false},
    {"copy to unmapped", copy_to_unmapped, Ending::any, false},
    {"fault in a graph", fault_in_graph, Ending::any, false},
    {"fault by trap", fault_by_trap, Ending::any, false},
    {"fault by assertion", fault_by_assertion, Ending::any, false},
    {"fault by misalignment", fault_by_misalignment, Ending::any, false},
    {"fault beyond shared", fault_beyond_shared, Ending::any, false},
    {"fault by recursion", fault_by_recursion, Ending::any, false},
    {"fault after free", fault_after_free, Ending::any, false},
    {"launch into a destroyed stream", launch_into_destroyed_stream, Ending::any, false},
};
const Case quiet = {"fault quietly", fault_quietly, Ending::any, false};

/// After a process has lost its context the card may be unavailable for a moment, which is also a fact to report.
bool has_card() {
  const double begin = now_us();
  cudaError_t status = cudaFree(nullptr);
  std::string first;
  const auto may_pass = [&] { return status != cudaErrorInsufficientDriver && status != cudaErrorNoDevice; };
  while (status != cudaSuccess && may_pass() && now_us() - begin < 2e6) {
    if (first.empty()) first = cudaGetErrorName(status);
    usleep(20000);
    cudaGetLastError();
    status = cudaFree(nullptr);
  }
  if (!first.empty())
    answer("a process that begins right after another finds the card", status == cudaSuccess ? "later" : "no",
           first + " for " + us_text(now_us() - begin));
  return status == cudaSuccess;
}

int ask(const Case& one, const Options& options) {
  if (!has_card()) {
    fault(std::string("semantics, case ") + one.name + ": no card");
    return no_card;
  }
  load_kernels();
  one.ask(options);
  return 0;
}

}  // namespace

Word* Marks::next() {
  static Word* words = nullptr;
  static int used = 0;
  constexpr int count = 1024, apart = 16;
  if (words == nullptr || used == count) {
    TRANSHIP_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&words), count * apart * sizeof(Word), cudaHostAllocMapped));
    std::memset(words, 0, count * apart * sizeof(Word));
    used = 0;
  }
  return words + apart * used++;
}

Gate::Gate(cudaStream_t stream, double limit_s, Start start) {
  // Like the marks, levers are never freed: the kernel may read them at any later time.
  static Levers* levers = nullptr;
  static int used = 0;
  constexpr int count = 256;
  if (levers == nullptr || used == count) {
    TRANSHIP_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&levers), count * sizeof(Levers), cudaHostAllocMapped));
    std::memset(levers, 0, count * sizeof(Levers));
    used = 0;
  }
  levers_ = levers + used++;
  TRANSHIP_CUDA(launch(stream, {}, device::hold, levers_, Word(limit_s * 1e9)));
  if (start == Start::awaited && !comes(levers_->started, 2000))
    fault("a kernel that is to hold a stream does not start");
}

std::string size_name(std::size_t bytes) {
  if (bytes >= (1 << 20) && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1024 && bytes % 1024 == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

int run_case(const char* name, bool quick, double limit_s, int first) {
  const std::string begin_at = std::to_string(first);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Each stream gets a queue of its own, so that none waits for another by chance.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    unsetenv("CUDA_LAUNCH_BLOCKING");
    execl("/proc/self/exe", "device_facts_semantics", "--case", name, "--first", begin_at.c_str(),
          quick ? "--quick" : nullptr, nullptr);
    _exit(3);
  }
  return status_of(child, limit_s);
}

namespace {

int run(const Options& options) {
  const std::string wanted = options.text("--case", "");
  if (wanted == quiet.name) return ask(quiet, options);
  if (!wanted.empty()) {
    for (const Case& one : cases)
      if (wanted == one.name) return ask(one, options);
    fault("no case " + wanted);
    return 3;
  }
  const double limit = now_us() + double(options.number("--seconds", 50)) * 1e6;
  int lost = 0, count = 0;
  for (const Case& one : cases) {
    if (options.quick() && !one.quick) continue;
    if (now_us() > limit) {
      answer(std::string("questions about ") + one.name, "not asked", "no time was left");
      continue;
    }
    const int status = run_case(one.name, options.quick(), 8);
    ++count;
    if (status == 0) continue;
    if (status == no_card && count == 1) return 3;
    const std::string how = status < 0      ? "was killed after 8 s"
                            : status >= 128 ? "was ended by signal " + std::to_string(status - 128)
                                            : "ended with " + std::to_string(status);
    if (one.ending == Ending::any && status != 3 && status != no_card) {
      answer(std::string("the process of the case '") + one.name + "'", how);
      continue;
    }
    ++lost;
    fault(std::string("semantics, case ") + one.name + ": " + how);
  }
  return lost == count ? 3 : 0;
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  return tranship::device::run(tranship::device::Options(argc, argv));
}

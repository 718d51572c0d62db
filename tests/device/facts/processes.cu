// Runs several processes on one card without MPS. The program finds out whether memory can be shared by file
// descriptors (VMM) and by legacy IPC handles, and how fast kernels of different processes signal one another when the
// card gives each its time slice in turn. The parent forks before any CUDA call and makes none. The children meet
// through a page of shared host memory, and all waits are bounded.
#include <atomic>
#include <csignal>
#include <new>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts/driver.hpp"
#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

constexpr int processes_max = 4;

/// The processes of one team share this page on the host.
struct Board {
  std::atomic<int> arrived[16];
  std::atomic<int> hops_seen[processes_max];
  std::atomic<Word> elapsed_ns[processes_max];
  std::atomic<Word> token;
  std::atomic<int> failed;
  cudaIpcMemHandle_t ipc_handle;
};

class Member {
 public:
  Member(int rank, int size, Board& board, const int (*sockets)[2], bool quick)
      : rank_(rank), size_(size), board_(board), sockets_(sockets), quick_(quick) {}

  void run() {
    if (rank_ == 0) {
      answer("compute mode of the card", std::to_string(attribute(cudaDevAttrComputeMode)),
             "0: shared by processes, 3: one process only");
    }
    TRANSHIP_CUDA(cudaFree(nullptr));
    meet(0);
    share_by_descriptor();
    meet(1);
    if (words_ != nullptr) {
      hops_by_kernels();
      meet(2);
      hops_by_hosts();
      meet(3);
    }
    share_by_ipc();
    meet(4);
  }

 private:
  /// Each process waits for all; a process that is alone for 6 s ends. The first meeting may last longer, because
  /// contexts are being made.
  void meet(int place) {
    board_.arrived[place].fetch_add(1);
    for (const double limit = now_us() + (place == 0 ? 15e6 : 6e6); board_.arrived[place].load() < size_;) {
      if (now_us() > limit || board_.failed.load() != 0) {
        board_.failed.store(1);
        fault(team() + ": rank " + std::to_string(rank_) + " waits in vain at meeting " + std::to_string(place));
        std::_Exit(3);
      }
      usleep(50);
    }
  }
  std::string team() const { return std::to_string(size_) + " processes on one card"; }

  static bool send_descriptor(int socket, int descriptor) {
    char byte = 'd';
    iovec part{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    return sendmsg(socket, &message, 0) == 1;
  }
  /// Returns -1 where no descriptor comes within 5 s.
  static int receive_descriptor(int socket) {
    const timeval limit{5, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(socket, &message, 0) != 1 || byte != 'd') return -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
    return descriptor;
  }

  void share_by_descriptor();
  void hops_by_kernels();
  void hops_by_hosts();
  void share_by_ipc();

  int rank_, size_;
  Board& board_;
  const int (*sockets_)[2];
  bool quick_;
  Physical physical_;
  Word* words_ = nullptr;
};

__global__ void check_and_mark(Word* words, int rank, Word wanted, int* wrong) {
  if (words[16] != wanted) *wrong = 1;
  words[32 + rank] = wanted + Word(rank) + 1;
}
__global__ void set_word(Word* word, Word value) {
  *word = value;
}

/// The token is a count: process `rank` increments it when it is its turn. The kernel takes `hops` turns of all
/// processes, or ends when the time is over.
__global__ void pass_token(Word* token, int rank, int size, int hops, Word limit_ns, Word* out) {
  const Word begin = global_ns();
  Word mine = 0, first = 0, last = 0;
  bool in_time = true;
  for (int turn = rank; turn < hops && in_time; turn += size) {
    while (load_relaxed_sys(token) < Word(turn) && in_time) in_time = global_ns() - begin < limit_ns;
    if (!in_time) break;
    load_acquire_sys(token);
    fence_sys();
    store_relaxed_sys(token, Word(turn) + 1);
    last = global_ns();
    if (mine++ == 0) first = last;
  }
  out[0] = mine;
  out[1] = first;
  out[2] = last;
}
__global__ void raise_by_one(Word* word) {
  *word += 1;
}

void Member::share_by_descriptor() {
  const Driver& driver = Driver::get();
  if (rank_ == 0)
    answer("memory handles as POSIX file descriptors",
           driver.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 1 ? "yes" : "no",
           "device attribute");
  physical_.bytes = std::max<std::size_t>(Physical::granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), 2 << 20);
  const Word wanted = scrambled(Word(size_));
  bool shared = true;
  std::string problem;
  if (rank_ == 0) {
    const CUmemAllocationProp properties = Physical::properties(Physical::Sharing::file_descriptor);
    int descriptor = -1;
    CUresult status = driver.cuMemCreate(&physical_.handle, physical_.bytes, &properties, 0);
    if (status == CUDA_SUCCESS)
      status = driver.cuMemExportToShareableHandle(&descriptor, physical_.handle,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    shared = status == CUDA_SUCCESS;
    if (!shared) problem = driver.error(status);
    for (int other = 1; other < size_; ++other)
      if (shared)
        shared = send_descriptor(sockets_[other][0], descriptor);
      else if (write(sockets_[other][0], "n", 1) != 1)
        problem += ", and a socket is closed";
    if (descriptor >= 0) close(descriptor);
  } else {
    const int descriptor = receive_descriptor(sockets_[rank_][1]);
    shared = descriptor >= 0;
    if (shared) {
      const CUresult status =
          driver.cuMemImportFromShareableHandle(&physical_.handle, reinterpret_cast<void*>(std::intptr_t(descriptor)),
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
      shared = status == CUDA_SUCCESS;
      if (!shared) problem = driver.error(status);
      close(descriptor);
    } else {
      problem = "no descriptor came";
    }
  }
  if (!shared) {
    fault(team() + ", rank " + std::to_string(rank_) + ": sharing by a file descriptor: " + problem);
    board_.hops_seen[0].store(-1);
  }
  meet(5);
  if (board_.hops_seen[0].load() < 0) return;
  words_ = reinterpret_cast<Word*>(mapped(physical_));
  if (rank_ == 0) {
    TRANSHIP_CUDA(cudaMemset(words_, 0, 4096));
    set_word<<<1, 1>>>(words_ + 16, wanted);
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  meet(6);
  CardArray<int> wrong(1);
  wrong.fill(0);
  check_and_mark<<<1, 1>>>(words_, rank_, wanted, wrong.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  long long wrongs = wrong.read()[0];
  meet(7);
  std::vector<Word> marks(std::size_t(size_), 0);
  TRANSHIP_CUDA(cudaMemcpy(marks.data(), words_ + 32, marks.size() * sizeof(Word), cudaMemcpyDeviceToHost));
  for (int i = 0; i < size_; ++i) wrongs += marks[std::size_t(i)] != wanted + Word(i) + 1;
  check(team() + ": memory shared by a file descriptor, seen by rank " + std::to_string(rank_), 1 + size_, wrongs);
}

void Member::hops_by_kernels() {
  CardArray<Word> out(3);
  out.fill(0);
  const int hops = quick_ ? 8 : 400;
  if (rank_ == 0) TRANSHIP_CUDA(cudaMemset(words_, 0, 128));
  pass_token<<<1, 1>>>(words_ + 48, rank_, size_, 0, 1, out.data());  // loads the kernel
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  meet(8);
  pass_token<<<1, 1>>>(words_, rank_, size_, hops, 3'000'000'000, out.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const std::vector<Word> seen = out.read();
  board_.hops_seen[rank_].store(int(seen[0]));
  board_.elapsed_ns[rank_].store(seen[2] - seen[1]);
  meet(9);
  if (rank_ != 0) return;
  int total = 0;
  for (int i = 0; i < size_; ++i) total += board_.hops_seen[i].load();
  answer(team() + ": kernels that spin for one another's signals get on",
         total == hops ? "yes"
         : total > 1   ? "slowly"
                       : "no",
         std::to_string(total) + " of " + std::to_string(hops) + " hops in 3 s; expected: yes, by time slices");
  if (seen[0] > 1)
    figure(team() + ": hop from a spinning kernel to one of another process",
           Samples{{double(seen[2] - seen[1]) * 1e-3 / double((seen[0] - 1) * Word(size_))}}, "us",
           "mean; expected: milliseconds, a time slice");
}

void Member::hops_by_hosts() {
  const int hops = quick_ ? 8 : 400;
  if (rank_ == 0) {
    TRANSHIP_CUDA(cudaMemset(words_, 0, 128));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    board_.token.store(0);
  }
  raise_by_one<<<1, 1>>>(words_ + 48);
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  meet(10);
  const double begin = now_us();
  bool in_time = true;
  int done = 0;
  for (int turn = rank_; turn < hops && in_time; turn += size_) {
    while (board_.token.load(std::memory_order_acquire) < Word(turn) && in_time) in_time = now_us() - begin < 3e6;
    if (!in_time) break;
    raise_by_one<<<1, 1>>>(words_);
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    board_.token.store(Word(turn) + 1, std::memory_order_release);
    ++done;
  }
  const double us = now_us() - begin;
  meet(11);
  if (rank_ != 0) return;
  Word total = 0;
  TRANSHIP_CUDA(cudaMemcpy(&total, words_, sizeof total, cudaMemcpyDeviceToHost));
  check(team() + ": a word raised by kernels in turn, signalled by the hosts", (long long)board_.token.load(),
        (long long)board_.token.load() - (long long)total, "of " + std::to_string(hops) + " hops in 3 s");
  if (done != 0)
    figure(team() + ": hop by launch, synchronize and a signal of the host", Samples{{us / double(done * size_)}}, "us",
           "mean");
}

void Member::share_by_ipc() {
  void* memory = nullptr;
  const Word wanted = scrambled(77 + Word(size_));
  cudaError_t status = cudaSuccess;
  if (rank_ == 0) {
    TRANSHIP_CUDA(cudaMalloc(&memory, 2 << 20));
    TRANSHIP_CUDA(cudaMemcpy(memory, &wanted, sizeof wanted, cudaMemcpyHostToDevice));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    status = cudaIpcGetMemHandle(&board_.ipc_handle, memory);
    answer("cudaIpcGetMemHandle", cudaGetErrorName(status));
    board_.hops_seen[1].store(status == cudaSuccess ? 1 : -1);
    cudaGetLastError();
  }
  meet(12);
  if (board_.hops_seen[1].load() < 0) return;
  void* opened = nullptr;
  status = cudaIpcOpenMemHandle(&opened, board_.ipc_handle, cudaIpcMemLazyEnablePeerAccess);
  cudaGetLastError();
  if (rank_ == 0) {
    answer("cudaIpcOpenMemHandle in the process that made the handle", cudaGetErrorName(status),
           "expected: refused, so threads as ranks need VMM");
  } else {
    std::string value = cudaGetErrorName(status);
    if (status == cudaSuccess) {
      Word seen = 0;
      TRANSHIP_CUDA(cudaMemcpy(&seen, opened, sizeof seen, cudaMemcpyDeviceToHost));
      value = seen == wanted ? "works" : "opens, but shows other bytes";
    }
    answer(team() + ": cudaIpcOpenMemHandle in process " + std::to_string(rank_), value, "expected: works");
  }
  if (status == cudaSuccess) TRANSHIP_CUDA(cudaIpcCloseMemHandle(opened));
  meet(13);
  if (rank_ == 0) TRANSHIP_CUDA(cudaFree(memory));
}

/// Returns how many of the processes ended well.
int run_team(int size, bool quick) {
  void* const page = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 0;
  Board& board = *new (page) Board{};
  int sockets[processes_max][2];
  for (int i = 0; i < size; ++i)
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]) != 0) return 0;
  pid_t children[processes_max];
  for (int rank = 0; rank < size; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Member(rank, size, board, sockets, quick).run();
      std::_Exit(0);
    }
  }
  const double limit = now_us() + 25e6;
  int left = size, well = 0;
  bool is_late = false;
  bool ended[processes_max] = {};
  while (left > 0 && now_us() < limit + 3e6) {
    if (!is_late && now_us() > limit) {
      is_late = true;
      fault(std::to_string(size) + " processes on one card: killed after 25 s");
    }
    for (int rank = 0; rank < size; ++rank) {
      if (ended[rank]) continue;
      if (is_late && children[rank] > 0) kill(children[rank], SIGKILL);
      int status = 0;
      if (children[rank] > 0 && waitpid(children[rank], &status, WNOHANG) == 0) continue;
      ended[rank] = true;
      --left;
      if (children[rank] > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        ++well;
      else
        board.failed.store(1);
    }
    usleep(2000);
  }
  if (left > 0) return well;  // a process is stuck in the driver and still holds the page
  for (int i = 0; i < size; ++i) {
    close(sockets[i][0]);
    close(sockets[i][1]);
  }
  munmap(page, sizeof(Board));
  return well;
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  using namespace tranship::device;
  const Options options(argc, argv);
  int well = run_team(2, options.quick());
  if (!options.quick()) well += run_team(4, false);
  return well > 0 ? 0 : 3;
}

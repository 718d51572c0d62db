// One-sided transfers with MPI: its one-sided calls, messages, loads and stores in a shared window.
#include <iterator>

#include <contest/one_sided.hpp>

#include "mpi_methods.hpp"
#include "mpi_window.hpp"

namespace contest {
namespace {

/// Calls that do nothing but give progress to a library that only progresses inside calls.
void get_on() {
  int has_come = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE);
}

/// MPI_Win_allocate and one passive epoch for all.
class OneSidedCalls {
 public:
  OneSidedCalls(const WindowLayout& layout, int rank) : layout_(layout), peer_(1 - rank) {
    MPI_Win_allocate(MPI_Aint(layout.size) * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window_, &handle_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, handle_);
    ask_for_huge_pages(window_, std::size_t(layout.size) * sizeof(Word));
    fill(window_, layout.size, 0);
    MPI_Win_sync(handle_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~OneSidedCalls() {
    MPI_Win_unlock_all(handle_);
    MPI_Win_free(&handle_);
  }
  OneSidedCalls(const OneSidedCalls&) = delete;
  OneSidedCalls& operator=(const OneSidedCalls&) = delete;

  Word* window() const { return window_; }

  void p(Word value) { put(keep(value), 1, 0); }
  void put(std::int64_t place, const Word* local) { put(local, layout_.words, place); }
  void quiet() { MPI_Win_flush(peer_, handle_); }
  Word g() {
    Word value = 0;
    MPI_Get(&value, 1, MPI_UINT64_T, peer_, 0, 1, MPI_UINT64_T, handle_);
    MPI_Win_flush(peer_, handle_);
    return value;
  }
  void get(Word* local) {
    MPI_Get(local, int(layout_.words), MPI_UINT64_T, peer_, 0, int(layout_.words), MPI_UINT64_T, handle_);
    MPI_Win_flush(peer_, handle_);
  }
  void add(Word value) { MPI_Accumulate(keep(value), 1, MPI_UINT64_T, peer_, 0, 1, MPI_UINT64_T, MPI_SUM, handle_); }
  Word fetch_add(Word value) {
    Word before = 0;
    MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, peer_, 0, MPI_SUM, handle_);
    MPI_Win_flush(peer_, handle_);
    return before;
  }

  void send(const Word* local, Word turn) {
    put(0, local);
    quiet();
    signal(turn);
  }
  void receive(Word turn) { await(turn); }
  void signal(Word turn) {
    put(&turn, 1, layout_.signal);
    quiet();
  }
  void await(Word turn) {
    constexpr int spins = 1000;
    for (int spin = 1; __atomic_load_n(window_ + layout_.signal, __ATOMIC_ACQUIRE) != turn; ++spin)
      if (spin % spins == 0) get_on();
  }
  /// The target must be in a call for some transfers to progress.
  void finish() { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  /// Keeps a value that is put, because it must not change before a flush.
  const Word* keep(Word value) {
    if (kept_ == std::size(values_)) {
      MPI_Win_flush_local(peer_, handle_);
      kept_ = 0;
    }
    values_[kept_] = value;
    return &values_[kept_++];
  }
  void put(const Word* local, std::int64_t words, std::int64_t place) {
    MPI_Put(local, int(words), MPI_UINT64_T, peer_, MPI_Aint(place), int(words), MPI_UINT64_T, handle_);
  }

  const WindowLayout layout_;
  const int peer_;
  Word* window_ = nullptr;
  MPI_Win handle_ = MPI_WIN_NULL;
  Word values_[1024] = {};
  std::size_t kept_ = 0;
};

class Messages {
 public:
  Messages(const WindowLayout& layout, int rank)
      : words_(int(layout.words)), peer_(1 - rank), memory_(memory(layout.size, page_bytes)) {}

  Word* window() const { return reinterpret_cast<Word*>(memory_.get()); }

  void send(const Word* local, Word) { MPI_Send(local, words_, MPI_UINT64_T, peer_, 0, MPI_COMM_WORLD); }
  void receive(Word) { MPI_Recv(window(), words_, MPI_UINT64_T, peer_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  void signal(Word) { MPI_Send(nullptr, 0, MPI_UINT64_T, peer_, 0, MPI_COMM_WORLD); }
  void await(Word) { MPI_Recv(nullptr, 0, MPI_UINT64_T, peer_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  const int words_, peer_;
  const Memory memory_;
};

class Window : private SharedWindow, public ByHand {
 public:
  Window(const WindowLayout& layout, int rank) : SharedWindow(layout.size), ByHand(layout, windows(), rank) {}

 private:
  std::vector<Word*> windows() const {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<Word*> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(reinterpret_cast<Word*>(of(rank)));
    return all;
  }
};

}  // namespace

Methods mpi_one_sided_methods(const Work& work, int rank) {
  Methods methods;
  add_one_sided<OneSidedCalls>(methods, work, rank, "RMA", rank);
  add_one_sided<Messages>(methods, work, rank, work.transfer == Transfer::barrier ? "Barrier" : "send/recv", rank);
  add_one_sided<Window>(methods, work, rank, "window", rank);
  return methods;
}

}  // namespace contest

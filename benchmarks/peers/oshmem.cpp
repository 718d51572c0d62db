// OpenSHMEM as Open MPI has it: version 1.4, which has no put with a signal yet.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <contest/one_sided.hpp>
#include <shmem.h>

namespace {

using namespace contest;

class Shmem {
 public:
  Shmem(const WindowLayout& layout, int rank)
      : layout_(layout),
        peer_(1 - rank),
        window_(static_cast<Word*>(shmem_align(page_bytes, std::size_t(layout.size) * 8))) {
    if (!window_) throw std::bad_alloc();
    ask_for_huge_pages(window_, std::size_t(layout.size) * sizeof(Word));
    for (std::int64_t i = 0; i < layout.size; ++i) window_[i] = 0;
    shmem_barrier_all();
  }
  ~Shmem() { shmem_free(window_); }
  Shmem(const Shmem&) = delete;
  Shmem& operator=(const Shmem&) = delete;

  Word* window() const { return window_; }

  void p(Word value) { shmem_uint64_p(window_, value, peer_); }
  void put(std::int64_t place, const Word* local) { shmem_put64(window_ + place, local, words(), peer_); }
  void quiet() { shmem_quiet(); }
  Word g() { return shmem_uint64_g(window_, peer_); }
  void get(Word* local) { shmem_get64(local, window_, words(), peer_); }
  void add(Word value) { shmem_ulong_atomic_add(window_, value, peer_); }
  Word fetch_add(Word value) { return shmem_ulong_atomic_fetch_add(window_, value, peer_); }

  void send(const Word* local, Word turn) {
    shmem_put64(window_, local, words(), peer_);
    shmem_fence();
    signal(turn);
  }
  void receive(Word turn) { await(turn); }
  void signal(Word turn) { shmem_uint64_p(window_ + layout_.signal, turn, peer_); }
  void await(Word turn) { shmem_uint64_wait_until(window_ + layout_.signal, SHMEM_CMP_EQ, turn); }
  void barrier() { shmem_barrier_all(); }
  void finish() { shmem_barrier_all(); }

 private:
  std::size_t words() const { return std::size_t(layout_.words); }

  const WindowLayout layout_;
  const int peer_;
  Word* const window_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "started by tranship-bench with the path of a stage; got %d arguments\n", argc - 1);
    return 2;
  }
  // With it, this version crashes at its end.
  ::setenv("OMPI_MCA_btl", "^openib", 1);
  shmem_init();
  const int rank = shmem_my_pe();
  try {
    const StageMemory stage = StageMemory::open(argv[1]);
    pin(rank, shmem_n_pes());
    act(*stage, rank, [&](const Work& work) {
      Methods methods;
      if (work.task == Task::one_sided) add_one_sided<Shmem>(methods, work, rank, "", rank);
      return methods;
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    shmem_global_exit(1);
  }
  shmem_finalize();
  return 0;
}

// StarPU with a memory node of its own kind: a "disk" whose transfers are copies in memory, which count the bytes. The
// array is acquired on either node, because a node without workers cannot be given tasks.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include <contest/coherence.hpp>
#include <contest/methods.hpp>
extern "C" {  // which this header of StarPU 1.3 does not say itself
#include <starpu_disk.h>
}
#include <starpu.h>

namespace {

using namespace contest;

std::int64_t copied_bytes = 0;

starpu_disk_ops memory_ops() {
  starpu_disk_ops ops = {};
  ops.plug = [](void*, starpu_ssize_t) -> void* { return &copied_bytes; };
  ops.unplug = [](void*) {};
  ops.bandwidth = [](unsigned, void*) { return 1; };
  ops.alloc = [](void*, std::size_t size) { return allocate(size); };
  ops.free = [](void*, void* memory, std::size_t) { std::free(memory); };
  ops.open = [](void*, void* position, std::size_t) { return position; };
  ops.close = [](void*, void*, std::size_t) {};
  ops.read = [](void*, void* memory, void* to, off_t offset, std::size_t size) {
    std::memcpy(to, static_cast<char*>(memory) + offset, size);
    copied_bytes += std::int64_t(size);
    return int(size);
  };
  ops.write = [](void*, void* memory, const void* from, off_t offset, std::size_t size) {
    std::memcpy(static_cast<char*>(memory) + offset, from, size);
    copied_bytes += std::int64_t(size);
    return 0;
  };
  return ops;
}

void check(int status, const char* call) {
  if (status < 0) throw std::runtime_error(std::string(call) + ": " + std::strerror(-status));
}

class Handle final : public TwoMemories {
 public:
  Handle(std::int64_t cells, unsigned node) : memory_(memory(cells)), cells_(cells), node_(node) {
    starpu_vector_data_register(&handle_, STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(memory_.get()),
                                std::uint32_t(cells), sizeof(double));
  }
  ~Handle() override { starpu_data_unregister(handle_); }

  double* begin(Place place, Use use, Cells cells) override {
    const int node = node_of(place);
    const bool overwrites = use == Use::write && cells.count == cells_;
    check(starpu_data_acquire_on_node(handle_, node,
                                      use == Use::read ? STARPU_R
                                      : overwrites     ? STARPU_W
                                                       : STARPU_RW),
          "starpu_data_acquire_on_node");
    const auto* vector =
        static_cast<const starpu_vector_interface*>(starpu_data_get_interface_on_node(handle_, unsigned(node)));
    return reinterpret_cast<double*>(place == Place::host ? vector->ptr : vector->dev_handle);
  }
  void end(Place place, Use) override { starpu_data_release_on_node(handle_, node_of(place)); }
  std::int64_t moved_bytes() override { return copied_bytes; }

 private:
  int node_of(Place place) const { return place == Place::host ? STARPU_MAIN_RAM : int(node_); }

  Memory memory_;
  std::int64_t cells_;
  unsigned node_;
  starpu_data_handle_t handle_ = nullptr;
};

/// Workers, which take part in transfers, spin; they may only while this contestant has its turn.
class Awake final : public Method {
 public:
  Awake(const Work& work, unsigned node) {
    starpu_resume();
    inner_ = coherence_method(work, "", std::make_unique<Handle>(work.axes[0].extent, node));
    starpu_pause();
  }
  ~Awake() override {
    starpu_resume();
    inner_.reset();
    starpu_pause();
  }
  std::string name() const override { return inner_->name(); }
  void write(double salt) override { inner_->write(salt); }
  void spoil() override { inner_->spoil(); }
  double read() override { return inner_->read(); }
  std::int64_t count_wrong(double salt) override { return inner_->count_wrong(salt); }
  std::int64_t moved_bytes() override { return inner_->moved_bytes(); }
  void run() override {
    starpu_resume();
    inner_->run();
    starpu_pause();
  }

 private:
  std::unique_ptr<Method> inner_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "started by tranship-bench with the path of a stage; got %d arguments\n", argc - 1);
    return 2;
  }
  try {
    const StageMemory stage = StageMemory::open(argv[1]);
    // StarPU writes its measurements of the machine to the folder of this run.
    if (const char* folder = std::getenv("TMPDIR")) ::setenv("STARPU_HOME", folder, 0);
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = 1;
    conf.ncuda = conf.nopencl = 0;
    check(starpu_init(&conf), "starpu_init");
    starpu_disk_ops ops = memory_ops();
    const int node = starpu_disk_register(&ops, nullptr, -1);
    check(node, "starpu_disk_register");
    starpu_pause();
    act(*stage, 0, [&](const Work& work) {
      Methods methods;
      if (work.task == Task::coherence) methods.push_back(std::make_unique<Awake>(work, unsigned(node)));
      return methods;
    });
    starpu_resume();
    starpu_shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

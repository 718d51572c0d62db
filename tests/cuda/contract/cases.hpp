// The contract of a driver: what the back-end for cards rests on, asked of any table of driver calls. A software card
// must keep it, and a real card has to be asked first.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <tranship/cuda/software/all_calls.hpp>

namespace tranship::contract {

/// What cases use; gathers what is wrong.
class Bench {
 public:
  /// `code` is a library of the kernels of kernels.cu. A context is current afterwards.
  Bench(const cuda::software::AllCalls& calls, const void* code);
  ~Bench();
  Bench(const Bench&) = delete;

  const cuda::software::AllCalls& cu;
  const void* code;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUlibrary library = nullptr;

  /// A kernel by its name in kernels.hpp, ready to be launched.
  CUfunction kernel(const std::string& name);
  template <class Args>
  CUresult launch(const std::string& name, int blocks, int lanes, Args args, CUstream stream,
                  unsigned shared_bytes = 0) {
    void* parameters[] = {&args};
    return cu.cuLaunchKernel(kernel(name), unsigned(blocks), 1, 1, unsigned(lanes), 1, 1, shared_bytes, stream,
                             parameters, nullptr);
  }

  void expect(bool is_so, const std::string& what);
  void expect(CUresult is, CUresult wanted, const std::string& what);
  void ok(CUresult is, const std::string& what) { expect(is, CUDA_SUCCESS, what); }
  std::string name_of(CUresult result) const;

  int checks = 0;
  std::vector<std::string> wrong;

 private:
  std::map<std::string, CUfunction> kernels_;
};

struct Case {
  const char* name;
  void (*run)(Bench& bench);
  /// The context is lost afterwards.
  bool breaks = false;
  int cards = 1;  ///< that it needs
};
std::span<const Case> all_cases();

}  // namespace tranship::contract

// The contract of drivers, kept by software cards under several seeds.
#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/cuda/software/lane.hpp>

#include "cuda/contract/cases.hpp"
#include "cuda/contract/kernels.hpp"
#include "cuda/software_cards.hpp"

namespace tranship::contract {
namespace {

using cuda::software::AllCalls;

[[maybe_unused]] const bool are_registered = [] {
#define TRANSHIP_CONTRACT_TWIN(name, Args, shared)               \
  cuda::software::register_kernel(cuda::software::twin_of<Args>( \
      "contract_" #name, [](const auto& lane, const Args& args) { name(lane, args); }, 1024, shared));
  TRANSHIP_CONTRACT_KERNELS(TRANSHIP_CONTRACT_TWIN)
#undef TRANSHIP_CONTRACT_TWIN
  return true;
}();

class DriverContract : public testing::TestWithParam<int> {};

TEST_P(DriverContract, IsKept) {
  const Case& one = all_cases()[std::size_t(GetParam())];
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const AllCalls& cu = test::software_calls(seed);
    ASSERT_EQ(cu.cuInit(0), CUDA_SUCCESS);
    Bench bench(cu, "no code");
    one.run(bench);
    if (!one.breaks) EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    std::string wrong;
    for (const std::string& text : bench.wrong) wrong += text + "\n";
    EXPECT_EQ(wrong, "") << one.name << ", seed " << seed << "\n" << cuda::software::failure_of(0);
    EXPECT_GT(bench.checks, 0);
    if (one.breaks) EXPECT_NE(cuda::software::failure_of(0), "");
  }
}

INSTANTIATE_TEST_SUITE_P(SoftwareCards, DriverContract, testing::Range(0, int(all_cases().size())),
                         [](const auto& info) {
                           std::string name;
                           for (const char* c = all_cases()[std::size_t(info.param)].name; *c; ++c)
                             if (*c != ' ') name += name.empty() || c[-1] == ' ' ? char(std::toupper(*c)) : *c;
                           return name;
                         });

}  // namespace
}  // namespace tranship::contract

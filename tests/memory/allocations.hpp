// How often this thread has called operator new: pool_test.cpp replaces it for the whole test program.
#pragma once

namespace tranship::test {

long long allocations_of_thread();

}  // namespace tranship::test

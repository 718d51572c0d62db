// A project that knows of tranship only what an installed copy tells it.
#include <cstdio>

#include <all_headers.hpp>

#include <tranship/base/error.hpp>
#include <tranship/layout/distribution.hpp>

int main() {
  const auto box = tranship::Box::of_extents({2, 3});
  std::printf("%lld cells\n", static_cast<long long>(box.count()));

  // An Error crosses the border of the library, with its message (made by a library that stays inside) intact.
  try {
    tranship::checked_product({std::int64_t{1} << 62, 4});
  } catch (const tranship::Error& error) {
    return error.code() == tranship::ErrorCode::overflow && !error.message().empty() ? 0 : 1;
  }
  return 1;
}

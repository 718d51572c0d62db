// A store while a peer puts: the race hooks of the installed package find it.
#include <cstdio>

#include <tranship/base/error.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sim/simulate.hpp>

int main() {
  try {
    tranship::simulate({.ranks = 2}, [](tranship::World& world) {
      auto words = world.allocate<int>(4);
      if (world.rank() == 0) return world.context().p(words.slice(2, 1), 1, 1);
      for (int i = 0; i < 4; ++i) words[i] = 3;
    });
  } catch (const tranship::Error& error) {
    std::puts(error.what());
    return error.code() == tranship::ErrorCode::race ? 0 : 1;
  }
  return 1;
}

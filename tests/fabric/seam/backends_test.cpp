#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/backends.hpp>
#include <tranship/fabric/world_id.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace backends_test {

std::optional<RankScope> join() {
  return {};
}
WorldId make_id() {
  return {};
}
std::optional<RankScope> join_by_id(const WorldId&, Rank, int, const JoinOptions&) {
  return {};
}

std::string refusal_of(const Backend& backend) {
  const Error error = error_of_rank([&] { register_backend(backend); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_use);
  return error.message();
}

std::size_t count_of(std::string_view name) {
  std::size_t count = 0;
  for (const Backend& backend : available_backends()) count += backend.name == name ? 1 : 0;
  return count;
}

TEST(Backends, one_that_is_registered_twice_is_refused_by_name) {
  constexpr Backend mine{.name = "mine", .state = Backend::State::present, .note = "of a test", .join = &join};
  register_backend(mine);
  EXPECT_EQ(refusal_of(mine), "back-end 'mine' is registered already");
  EXPECT_EQ(count_of("mine"), 1U);
  for (const char* name : {"threads", "processes", "sim", "hosts", "dealt"})
    EXPECT_EQ(refusal_of({.name = name, .state = Backend::State::present, .join = &join}),
              "back-end '" + std::string(name) + "' is registered already");
}

TEST(Backends, one_takes_the_place_of_what_this_build_has_not) {
  EXPECT_EQ(count_of("cuda"), 1U);
  register_backend({.name = "cuda", .state = Backend::State::present, .note = "here", .join = &join});
  EXPECT_EQ(count_of("cuda"), 1U);
  EXPECT_EQ(available_backends().front().name, "cuda");
  EXPECT_EQ(refusal_of({.name = "cuda", .state = Backend::State::absent, .note = ""}),
            "back-end 'cuda' is registered already");
}

TEST(Backends, one_that_lacks_a_function_is_refused_by_name) {
  constexpr auto present = Backend::State::present;
  EXPECT_EQ(refusal_of({.name = "odd", .state = present, .note = ""}),
            "back-end 'odd' lacks join, join_by_id and launch: it starts no rank");
  EXPECT_EQ(refusal_of({.name = "odd", .state = present, .note = "", .join = &join, .make_id = &make_id}),
            "back-end 'odd' lacks join_by_id: it makes ids by which no process can join");
  EXPECT_EQ(refusal_of({.name = "odd", .state = present, .note = "", .join = &join, .join_by_id = &join_by_id}),
            "back-end 'odd' lacks make_id: processes can join by ids, and it makes none");
  EXPECT_EQ(refusal_of({.name = "", .state = present, .note = "", .join = &join}),
            "a back-end is registered without a name");
  EXPECT_EQ(count_of("odd"), 0U);
}

/// Sets the variable while it lives.
class Chosen {
 public:
  explicit Chosen(const char* name) { setenv("TRANSHIP_BACKEND", name, 1); }
  ~Chosen() { before_.empty() ? unsetenv("TRANSHIP_BACKEND") : setenv("TRANSHIP_BACKEND", before_.c_str(), 1); }
  Chosen(const Chosen&) = delete;
  Chosen& operator=(const Chosen&) = delete;

 private:
  std::string before_ = std::getenv("TRANSHIP_BACKEND") ? std::getenv("TRANSHIP_BACKEND") : "";
};

TEST(Backends, the_environment_chooses_on_which_one_processes_run) {
  for (const bool dealt : {false, true}) {
    const Chosen chosen(dealt ? "dealt" : "hosts");
    launch_processes(4, [&](World& world) {
      for (Rank rank = 0; rank < 4; ++rank) {
        const bool here = dealt ? rank % 2 == world.rank() % 2 : rank / 2 == world.rank() / 2;
        require((world.peer_kind(rank) == PeerKind::reachable) == here, "rank {} of rank {}", rank, world.rank());
      }
    });
  }
  const Chosen nothing("");
  launch_processes(
      2, [](World& world) { require(world.peer_kind(1 - world.rank()) == PeerKind::reachable, "not one machine"); });
}

TEST(Backends, a_choice_that_starts_no_processes_is_refused_by_name) {
  for (const char* name : {"nothing", "sim", "mpi"}) {
    const Chosen chosen(name);
    const Error error = error_of_rank([] { launch_processes(2, [](World&) {}); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("there are: dealt, hosts"), std::string::npos) << error.message();
  }
}

}  // namespace backends_test
}  // namespace tranship::test

// Processes that were started apart and join a world by an id: what they agree on, what is refused, and how they die.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/random.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/processes/join_messages.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

#include "support/error_of.hpp"
#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr int processes_max = 64;

/// What the processes of a test tell each other, beside what is tested.
struct Beside {
  std::atomic<int> ids;
  WorldId id[4];
  std::atomic<int> steps[8];
  std::atomic<pid_t> pids[processes_max];
  char said[processes_max][1200];

  void publish(const WorldId& made) {
    id[ids] = made;
    ++ids;
  }
  const WorldId& published(int which = 0) {
    wait([&] { return ids > which; });
    return id[which];
  }
  void wait_for(int step, int value) {
    wait([&] { return steps[step] >= value; });
  }

 private:
  template <class Ready>
  static void wait(Ready&& ready) {
    const Deadline deadline = Deadline::after_seconds(60);
    while (!ready()) {
      if (deadline.passed()) throw Error(ErrorCode::timeout, "test: another process has not come");
      RealSync::yield();
    }
  }
};

struct Outcome {
  int status = 0;
  std::string said;
};

/// Runs `body(i, beside)` in so many processes, which share nothing else. An Error is what they have said at the end.
std::vector<Outcome> apart(int processes, const std::function<void(int, Beside&)>& body) {
  void* const memory = mmap(nullptr, sizeof(Beside), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& beside = *new (memory) Beside();
  std::fflush(nullptr);  // what is buffered would be written by all
  std::vector<pid_t> pids;
  for (int i = 0; i < processes; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(120);
      beside.pids[i] = getpid();
      const std::string error = error_of([&] { body(i, beside); });
      error.copy(beside.said[i], sizeof beside.said[i] - 1);
      _exit(error.empty() ? 0 : 1);
    }
    pids.push_back(pid);
  }
  std::vector<Outcome> out;
  for (int i = 0; i < processes; ++i) {
    int status = 0;
    waitpid(pids[std::size_t(i)], &status, 0);
    out.push_back({status, beside.said[i]});
  }
  munmap(memory, sizeof(Beside));
  return out;
}

void expect_well(const std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].status, 0) << i << ": " << outcomes[i].said;
}
/// Each rank has ended well, but for those that were killed.
void expect_well_but_for(const std::vector<Outcome>& outcomes, std::initializer_list<int> killed) {
  for (int i = 0; i < int(outcomes.size()); ++i) {
    const bool is_killed = std::find(killed.begin(), killed.end(), i) != killed.end();
    EXPECT_EQ(outcomes[std::size_t(i)].status, is_killed ? SIGKILL : 0) << i << ": " << outcomes[std::size_t(i)].said;
  }
}
void expect_says(const Outcome& outcome, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(outcome.said.find(part), std::string::npos) << part << " is missing in: " << outcome.said;
}

constexpr JoinOptions small{.heap_bytes = std::size_t(1) << 20, .timeout_ns = 60 * second};
constexpr JoinOptions patient{.heap_bytes = std::size_t(1) << 20, .timeout_ns = INT64_MAX};
// For those that wait for what never comes; where others must have come until then, the longer one.
constexpr JoinOptions brief{.heap_bytes = std::size_t(1) << 20, .timeout_ns = second};
constexpr JoinOptions hasty{.heap_bytes = std::size_t(1) << 20, .timeout_ns = second / 5};

/// The id that process `maker` makes.
WorldId common_id(int i, Beside& beside, int maker, int which = 0) {
  if (i == maker) beside.publish(WorldId::make());
  return beside.published(which);
}

void use(World& world) {
  const auto word = world.allocate<int>(1);
  const Rank next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  world.context().p(word, world.rank() + 100, next);
  world.barrier();
  require(word[0] == before + 100, "{} of rank {}", word[0], before);
  const std::shared_ptr<void> memory = world.local_memory(64);
  *static_cast<int*>(memory.get()) = world.rank();
  const auto all = world.all_gather(memory.get());
  require(*static_cast<const int*>(world.reach(next, all[std::size_t(next)])) == next, "not reached");
  world.barrier();
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(WorldId, is_a_small_value_with_a_text) {
  static_assert(std::is_trivially_copyable_v<WorldId> && sizeof(WorldId) <= 128);
  const WorldId id = WorldId::make(), other = WorldId::make();
  EXPECT_NE(id, other);
  const std::string text = to_string(id);
  EXPECT_EQ(text.size(), 128U);
  EXPECT_EQ(parse_world_id(text), id);
  EXPECT_EQ(error_of([&] { parse_world_id(text.substr(1)); }),
            "bad_text: the text of a world id has 128 digits; this one has 127 characters");
  EXPECT_EQ(error_of([&] { parse_world_id(text.substr(1) + "G"); }),
            "bad_text: the text of a world id has digits 0 to 9 and a to f; character 128 has code 71");
}

TEST(Join, makes_a_world_whichever_rank_has_made_the_id) {
  for (const int maker : {0, 2, 3}) {
    expect_well(apart(4, [&](int i, Beside& beside) {
      RankScope scope = RankScope::join(common_id(i, beside, maker), i, 4, small);
      require(scope.world().rank() == i && scope.world().size() == 4, "{}", scope.world().rank());
      require(scope.world().timeout_ns() == 60 * second, "{}", scope.world().timeout_ns());
      use(scope.world());
      scope.finish();
    }));
  }
}

TEST(Join, works_for_one_and_for_many_ranks) {
  for (const int ranks : {1, 2, 32})
    expect_well(apart(ranks, [&](int i, Beside& beside) {
      RankScope scope = RankScope::join(common_id(i, beside, ranks / 2), (i + 5) % ranks, ranks, small);
      use(scope.world());
    }));
}

TEST(Join, may_be_called_before_the_maker_does) {
  expect_well(apart(3, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 1);
    if (i == 1) beside.wait_for(0, 2);
    ++beside.steps[0];
    RankScope scope = RankScope::join(id, i, 3, small);
    use(scope.world());
  }));
}

TEST(Join, works_by_an_id_of_the_parent_that_is_a_rank_itself) {
  const WorldId id = WorldId::make();
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = error_of([&] {
      RankScope scope = RankScope::join(id, 1, 2, small);
      use(scope.world());
    });
    if (!error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
    _exit(error.empty() ? 0 : 1);
  }
  {
    RankScope scope = RankScope::join(id, 0, 2, small);
    use(scope.world());
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Join, begins_and_ends_again_and_again_and_leaves_nothing) {
  const std::size_t named = named_memory();
  expect_well(apart(3, [&](int i, Beside& beside) {
    const std::size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    for (int round = 0; round < 3; ++round) {
      RankScope scope = RankScope::join(common_id(i, beside, round, round), (i + round) % 3, 3, small);
      use(scope.world());
      require(entries("/proc/self/task") == threads + 1, "{} threads", entries("/proc/self/task"));
      scope.finish();
    }
    require(entries("/proc/self/fd") == files, "{} files, not {}", entries("/proc/self/fd"), files);
    require(entries("/proc/self/task") == threads, "{} threads, not {}", entries("/proc/self/task"), threads);
  }));
  EXPECT_EQ(named_memory(), named);
}

TEST(Join, of_two_worlds_at_once_is_possible) {
  expect_well(apart(2, [&](int i, Beside& beside) {
    RankScope one = RankScope::join(common_id(i, beside, 0), i, 2, small);
    RankScope other = RankScope::join(common_id(i, beside, 1, 1), 1 - i, 2, small);
    use(one.world());
    one.finish();
    use(other.world());
  }));
}

TEST(Join, takes_the_heap_of_those_that_say_it) {
  expect_well(apart(3, [&](int i, Beside& beside) {
    JoinOptions options = small;
    if (i != 1) options.heap_bytes.reset();
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, 3, options);
    require(scope.world().heap_usage().reserved_bytes == std::size_t(1) << 20, "{}",
            scope.world().heap_usage().reserved_bytes);
  }));
}

TEST(Join, names_the_ranks_that_have_not_come) {
  for (const Outcome& outcome : apart(6, [&](int i, Beside&beside) {
         const std::vector<Rank> ranks = {7, 0, 1, 3, 4, 6};
         const WorldId id = common_id(i, beside, 1);
         ++beside.steps[0];
         beside.wait_for(0, 6);
         (void)RankScope::join(id, ranks[std::size_t(i)], 8, brief);
       }))
    EXPECT_EQ(outcome.said, "timeout: ranks 2 and 5 of 8 have not joined within 1 s");
  for (const Outcome& outcome :
       apart(1, [&](int i, Beside&beside) { (void)RankScope::join(common_id(i, beside, 0), 1, 2, hasty); }))
    EXPECT_EQ(outcome.said, "timeout: rank 0 of 2 has not joined within 0.2 s");
  for (const Outcome& outcome :
       apart(1, [&](int i, Beside&beside) { (void)RankScope::join(common_id(i, beside, 0), 1, 40, hasty); }))
    expect_says(outcome, {"ranks 0, 2, 3, ", ", 16 and 23 others of 40 have not joined"});
}

TEST(Join, ends_by_the_shortest_timeout_of_all) {
  const auto outcomes = apart(2, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    ++beside.steps[0];
    beside.wait_for(0, 2);
    (void)RankScope::join(id, i, 3, i == 1 ? brief : patient);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.said, "timeout: rank 2 of 3 has not joined within 1 s");
}

TEST(Join, says_that_the_maker_has_not_joined) {
  const auto outcomes = apart(2, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    if (i == 0) return beside.wait_for(0, 1);
    const std::string error = error_of([&] { (void)RankScope::join(id, 1, 2, hasty); });
    ++beside.steps[0];
    require(
        error == fmt::format("timeout: process {}, which has made this world id, has not joined itself within 0.2 s: "
                             "rank 1 of 2 waits for it",
                             beside.pids[0]),
        "{}", error);
  });
  expect_well(outcomes);
}

/// Two processes, of which each joins in its own way; both learn why that is no world.
void expect_all_refused(const std::function<RankScope(int, const WorldId&)>& join,
                        std::initializer_list<std::string> parts) {
  for (const Outcome& outcome : apart(2, [&](int i, Beside&beside) { (void)join(i, common_id(i, beside, 0)); }))
    expect_says(outcome, parts);
}

TEST(Join, is_refused_to_all_when_ranks_do_not_agree) {
  expect_all_refused([](int, const WorldId& id) { return RankScope::join(id, 1, 3, small); },
                     {"mismatch: two processes join as rank 1 of 3: process ", " and process "});
  expect_all_refused([](int i, const WorldId& id) { return RankScope::join(id, i, 3 + i, small); },
                     {"mismatch: process ", " joins as rank 1 of 4, process ", " a world of 3 ranks"});
  expect_all_refused(
      [](int i, const WorldId& id) {
        return RankScope::join(id, i, 2, {.heap_bytes = std::size_t(4096) << i, .timeout_ns = 60 * second});
      },
      {"mismatch: rank 1 (process ", ") asks for symmetric heaps of 8192 bytes, process ", " for 4096 bytes"});
}

TEST(Join, is_refused_before_anything_happens_where_the_call_is_wrong) {
  const WorldId id = WorldId::make();
  EXPECT_EQ(error_of([&] { (void)RankScope::join(id, 3, 3); }),
            "invalid_use: rank 3 cannot join a world of 3 ranks: a rank is at least 0 and below the size");
  EXPECT_EQ(error_of([&] { (void)RankScope::join(id, -1, 3); }),
            "invalid_use: rank -1 cannot join a world of 3 ranks: a rank is at least 0 and below the size");
  EXPECT_EQ(error_of([&] { (void)RankScope::join(WorldId{}, 0, 3); }),
            "invalid_use: these 64 bytes are no world id: they begin with 00000000");
  for (std::size_t i = 0; i < WorldId::size_bytes; ++i) {
    WorldId garbled = id;
    garbled.bytes[i] ^= 4;
    EXPECT_NE(error_of([&] { (void)RankScope::join(garbled, 0, 3); }).find("are no world id"), std::string::npos) << i;
  }
  RankScope scope = RankScope::join(id, 0, 1);  // none of that has used it
  use(scope.world());
}

/// An id as another machine, or another container, would have made it.
WorldId changed_at(std::size_t byte) {
  WorldId id = WorldId::make();
  id.bytes[byte] ^= 1;
  std::uint64_t mixed = 0;
  for (std::size_t i = 0; i + 8 < id.bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, id.bytes.data() + i, 8);
    mixed = splitmix64(mixed + word + 0x9e3779b97f4a7c15u);
  }
  std::memcpy(id.bytes.data() + 56, &mixed, 8);
  return id;
}

TEST(Join, tells_ids_of_other_machines_and_containers) {
  EXPECT_NE(error_of([&] {
              (void)RankScope::join(changed_at(8), 0, 2);
            }).find("mismatch: this world id was made on another machine"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)RankScope::join(changed_at(24), 0, 2);
            }).find("mismatch: this world id was made in another container of this machine (network namespace "),
            std::string::npos);
}

TEST(Join, tells_that_the_maker_has_ended) {
  WorldId made{};
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t maker = fork();
  if (maker == 0) {
    const WorldId own = WorldId::make();
    _exit(write(pipe_ends[1], own.bytes.data(), own.bytes.size()) == 64 ? 0 : 1);
  }
  ASSERT_EQ(read(pipe_ends[0], made.bytes.data(), made.bytes.size()), 64);
  waitpid(maker, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  EXPECT_EQ(error_of([&] { (void)RankScope::join(made, 1, 2); }),
            fmt::format("peer_lost: process {}, which has made this world id, has ended (rank 1 of 2 joins)", maker));
}

TEST(Join, hears_what_was_sent_by_one_that_went_without_listening) {
  const SocketName name = random_socket_name();
  const LocalSocket entrance = LocalSocket::listening(name);
  const std::vector<std::byte> hello(100), refusal(200);
  const int guests = test::is_brief() ? 1000 : 4000;
  std::thread host([&] {
    for (int i = 0; i < guests;) {
      const std::optional<LocalSocket> guest = entrance.accept();
      if (!guest) continue;
      guest->send(refusal);
      ++i;
    }
  });
  int heard = 0;
  for (int i = 0; i < guests; ++i) {
    LocalSocket::Connection connection = LocalSocket::connect(name, 10 * second);
    while (connection.error == EAGAIN) connection = LocalSocket::connect(name, 10 * second);
    if (!connection.socket) break;
    connection.socket->send(hello);
    LocalSocket::Incoming incoming;
    do {
      incoming = connection.socket->receive();
    } while (incoming.state == LocalSocket::Incoming::State::nothing);
    heard += incoming.state == LocalSocket::Incoming::State::message && incoming.bytes.size() == refusal.size();
  }
  host.join();
  EXPECT_EQ(heard, guests);
}

TEST(Join, by_an_id_that_was_used_is_refused) {
  expect_well(apart(3, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    if (i < 2) {
      RankScope scope = RankScope::join(id, i, 2, small);
      ++beside.steps[0];
      const std::string again = error_of([&] { (void)RankScope::join(id, i, 2, small); });
      require(
          again == fmt::format("invalid_use: process {} has joined a world by this id before, or tried to: an id is "
                               "used once",
                               getpid()),
          "{}", again);
      beside.wait_for(1, 1);
      use(scope.world());  // the late one has not disturbed it
      scope.finish();
      ++beside.steps[2];
      return beside.wait_for(3, 1);
    }
    beside.wait_for(0, 2);
    const std::string late = error_of([&] { (void)RankScope::join(id, 1, 2, small); });
    ++beside.steps[1];
    require(
        late == fmt::format("invalid_use: the world of this id has its 2 ranks already (process {} has made it): an "
                            "id is used once",
                            beside.pids[0]),
        "{}", late);
    beside.wait_for(2, 2);
    // In a process that has not tried before, after the world has ended.
    const pid_t child = fork();
    if (child == 0) {
      const std::string said = error_of([&] { (void)RankScope::join(id, 1, 2, small); });
      std::fprintf(stderr, "%s",
                   said.find("takes no ranks under it any more") == std::string::npos ? said.c_str() : "");
      _exit(said.find("invalid_use: ") == 0 && said.find("takes no ranks under it any more") != std::string::npos ? 0
                                                                                                                  : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ++beside.steps[3];
    require(status == 0, "status {}", status);
  }));
}

TEST(Join, is_refused_to_all_where_the_system_allows_too_few_files_or_bytes) {
  const auto outcomes = apart(2, [&](int i, Beside& beside) {
    const rlimit files{100, 100};
    require(setrlimit(RLIMIT_NOFILE, &files) == 0, "no limit");
    (void)RankScope::join(common_id(i, beside, 0), i, 50, small);
  });
  expect_says(outcomes[0], {"no_memory: 50 ranks that are processes need 114 open files; this process may have 100"});
  EXPECT_NE(outcomes[1].status, 0);
  const JoinOptions large{.heap_bytes = std::size_t(1) << 31, .timeout_ns = 60 * second};
  const auto limited = [&](int process, decltype(RLIMIT_AS) what) {
    return apart(2, [&](int i, Beside& beside) {
      const rlimit bytes{std::size_t(1) << 30, std::size_t(1) << 30};
      require(i != process || setrlimit(what, &bytes) == 0, "no limit");
      (void)RankScope::join(common_id(i, beside, 0), i, 2, large);
    });
  };
  for (const Outcome& outcome : limited(0, RLIMIT_FSIZE))
    expect_says(outcome, {"no_memory: cannot make symmetric heaps of 2147483648 bytes for each of 2 ranks: ",
                          "are limited to 107"});
#if !defined(TRANSHIP_SANITIZED)
  for (const Outcome& outcome : limited(1, RLIMIT_AS))
    expect_says(outcome, {"no_memory: ", "cannot reserve ", " bytes of addresses for shared memory"});
#endif
}

TEST(Join, of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  expect_well(apart(2, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    if (i == 1) {
      require(setuid(65534) == 0, "no other user");
      const std::string error = error_of([&] { (void)RankScope::join(id, 1, 2, small); });
      require(error == "mismatch: this world id was made by a process of user 0, this process is one of 65534", "{}",
              error);
    } else {
      const std::string error = error_of([&] { (void)RankScope::join(id, 0, 2, hasty); });
      require(error == "timeout: rank 1 of 2 has not joined within 0.2 s", "{}", error);
    }
  }));
}

/// The socket of the process that has made an id, by the bytes that are its name.
LocalSocket entrance_of(const WorldId& id) {
  SocketName name;
  std::memcpy(name.data(), id.bytes.data() + 32, name.size());
  LocalSocket::Connection connection = LocalSocket::connect(name, second);
  require(connection.socket.has_value(), "error {}", connection.error);
  return std::move(*connection.socket);
}

/// The next message that a socket brings.
std::vector<std::byte> next_message(const LocalSocket& socket) {
  pollfd polled{.fd = socket.descriptor(), .events = POLLIN};
  require(poll(&polled, 1, 60'000) == 1, "no message");
  return socket.receive().bytes;
}

TEST(Join, is_refused_to_processes_of_another_build) {
  using namespace join_messages;
  const auto with = [](const std::function<void(LocalSocket&)>& send_to) {
    return apart(2, [&](int i, Beside& beside) {
      const WorldId id = common_id(i, beside, 0);
      if (i == 0) return (void)RankScope::join(id, 0, 2, small);
      LocalSocket socket = entrance_of(id);
      send_to(socket);
      throw read_as<Refusal>(next_message(socket)).value().error();
    });
  };
  for (const Outcome& outcome : with([](LocalSocket& socket) {
         Hello hello;
         hello.rank = 1;
         hello.size = 2;
         std::strcpy(hello.build, "tranship 0.0.7 layout 1");
         send(socket, hello);
       }))
    expect_says(outcome, {"mismatch: process ", " was built with \"tranship 0.0.7 layout 1\", process ",
                          " with \"tranship 0.1.0 layout "});
  for (const Outcome& outcome : with([](LocalSocket& socket) {
         Head head(Kind::hello);
         head.version = '7';
         send(socket, head);
       }))
    expect_says(outcome, {"mismatch: process ", " joins by version 7 of the protocol, process ", " by version 1"});
}

TEST(Join, is_not_disturbed_by_what_other_programs_send) {
  using namespace join_messages;
  expect_well(apart(3, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    if (i == 2) {
      std::vector<LocalSocket> sockets;
      for (int attempt = 0; attempt < 20; ++attempt) {
        sockets.push_back(entrance_of(id));
        const std::vector<std::byte> noise(std::size_t(1) << attempt % 16, std::byte(attempt));
        for (int k = 0; k < attempt; ++k) sockets.back().send(noise, attempt % 2 == 0 ? STDERR_FILENO : -1);
        Hello truncated;
        if (attempt % 3 == 0) sockets.back().send(std::as_bytes(std::span(&truncated, 1)).first(100));
        if (attempt % 3 == 1) send(sockets.back(), Head(Kind::mapped));
        if (attempt % 3 == 2) send(sockets.back(), Refusal(Error(ErrorCode::io, "no")));
        if (attempt % 5 == 0) sockets.pop_back();
      }
      ++beside.steps[0];
      return beside.wait_for(1, 2);
    }
    beside.wait_for(0, 1);
    RankScope scope = RankScope::join(id, i, 2, small);
    use(scope.world());
    ++beside.steps[1];
  }));
}

TEST(Join, fails_for_all_when_one_dies_before_all_have_come) {
  using namespace join_messages;
  const auto outcomes = apart(3, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    if (i == 0) return (void)RankScope::join(id, 0, 4, patient);
    // What join() does until it is heard, so that one is there and then the other one is gone.
    if (i == 2) beside.wait_for(0, 1);
    Hello hello;
    hello.rank = i;
    hello.size = 4;
    hello.deadline_ns = INT64_MAX;
    SharedWorld::build().copy(hello.build, sizeof hello.build - 1);
    const LocalSocket socket = entrance_of(id);
    send(socket, hello);
    require(head_of(next_message(socket))->kind == Kind::heard, "not heard");
    if (i == 2) raise(SIGKILL);
    ++beside.steps[0];
    throw read_as<Refusal>(next_message(socket)).value().error();
  });
  for (const int i : {0, 1})
    expect_says(outcomes[std::size_t(i)],
                {"peer_lost: rank 2 (process ", ") has ended or given up before all 4 ranks had joined"});
}

TEST(Join, fails_for_all_when_the_maker_dies_before_all_have_come) {
  const auto outcomes = apart(2, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    if (i == 0) {
      beside.wait_for(0, 1);
      raise(SIGKILL);
    }
    ++beside.steps[0];
    (void)RankScope::join(id, i, 2, patient);
  });
  // Before it connects, or afterwards.
  expect_says(outcomes[1], {"process ", ", which has made this world id, "});
}

struct Stop {};
TEST(Join, can_be_interrupted_on_both_sides) {
  const auto outcomes = apart(2, [&](int i, Beside& beside) {
    const WorldId id = common_id(i, beside, 0);
    static int looks = 0;
    looks = 0;
    JoinOptions options = patient;
    if (i == 0)
      options.interrupt_check = [] {
        if (++looks > 3) throw Stop{};
      };
    try {
      (void)RankScope::join(id, i, 3, options);
      require(false, "it has joined");
    } catch (const Stop&) {
    }
  });
  EXPECT_EQ(outcomes[0].status, 0) << outcomes[0].said;
  expect_says(outcomes[1], {"which has made this world id, "});
}

// Deaths.

/// What a rank says that waits until another one has died.
Error end_of_waits(World& world) {
  return error_of_rank([&] {
    for (;;) world.barrier();
  });
}

TEST(Join, names_a_rank_that_was_killed_to_all_others) {
  for (const Rank victim : {0, 1, 4}) {
    const auto outcomes = apart(5, [&](int i, Beside& beside) {
      RankScope scope = RankScope::join(common_id(i, beside, 1), i, 5, patient);
      scope.world().barrier();
      if (i == victim) raise(SIGKILL);
      const Error seen = end_of_waits(scope.world());
      require_says(seen, ErrorCode::peer_lost,
                   {fmt::format("rank {} failed: process {} has ended without leaving the world", victim,
                                beside.pids[victim].load())
                        .c_str()});
      require(seen.peer == victim, "peer {}", seen.peer);
    });
    expect_well_but_for(outcomes, {victim});
  }
}

TEST(Join, names_a_rank_that_is_killed_while_the_others_poll_and_wait_for_it) {
  const auto outcomes = apart(4, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, 4, patient);
    World& world = scope.world();
    const auto flag = world.allocate<std::uint64_t>(1);
    world.barrier();
    ++beside.steps[0];
    if (i == 0) {
      beside.wait_for(0, 4);
      kill(beside.pids[3], SIGKILL);
    }
    const Error seen = error_of_rank([&] {
      if (i == 1)
        while (!world.context().test(flag, Comparison::equal, 1)) RealSync::pause();
      world.context().signal_wait(flag, Comparison::equal, 1, i == 3 ? 0 : 3);
    });
    require_says(seen, ErrorCode::peer_lost, {"rank 3 failed: process "});
  });
  expect_well_but_for(outcomes, {3});
}

TEST(Join, names_a_rank_that_ends_without_leaving) {
  for (const auto end : {+[] { _exit(0); }, +[] { std::exit(0); }, +[] { execl("/bin/true", "true", nullptr); }})
    expect_well(apart(3, [&](int i, Beside& beside) {
      RankScope scope = RankScope::join(common_id(i, beside, 0), i, 3, patient);
      scope.world().barrier();
      if (i == 2) end();
      const Error seen = end_of_waits(scope.world());
      require_says(seen, ErrorCode::peer_lost, {"rank 2 failed: process ", " has ended without leaving the world"});
    }));
}

TEST(Join, passes_on_what_a_rank_throws) {
  const auto outcomes = apart(3, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, 3, patient);
    scope.world().barrier();
    if (i == 1) return scope.fail(Error(ErrorCode::bad_file, "part 7 is short"));
    const Error seen = end_of_waits(scope.world());
    require_says(seen, ErrorCode::peer_lost, {"rank 1 failed: part 7 is short"});
  });
  expect_well(outcomes);
}

TEST(Join, watches_the_others_to_the_end_when_the_maker_and_more_have_left) {
  constexpr int ranks = 9;
  const auto outcomes = apart(ranks, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, ranks, patient);
    World& world = scope.world();
    world.barrier();
    // All leave in turn but for ranks 2 and 7.
    if (i != 2 && i != 7) {
      beside.wait_for(0, i < 2 ? i : i < 7 ? i - 1 : i - 2);
      scope.finish();
      ++beside.steps[0];
      return beside.wait_for(1, 1);  // the process goes on
    }
    beside.wait_for(0, ranks - 2);
    if (i == 7) raise(SIGKILL);
    const Error seen = error_of_rank([&] { world.wait_until([] { return false; }, "rank 7"); });
    ++beside.steps[1];
    require_says(seen, ErrorCode::peer_lost, {"rank 7 failed: process "});
  });
  expect_well_but_for(outcomes, {7});
}

TEST(Join, sees_the_end_of_several_at_once) {
  constexpr int ranks = 12;
  const auto outcomes = apart(ranks, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 4), i, ranks, patient);
    World& world = scope.world();
    world.barrier();
    // Two are left, with five dead ranks in a row on each side.
    if (i != 0 && i != 6) raise(SIGKILL);
    for (Rank dead = 0; dead < ranks; ++dead) {
      const Deadline deadline = Deadline::after_seconds(60);
      while (dead != 0 && dead != 6 && !world.has_ended(dead)) {
        require(!deadline.passed(), "rank {} is {}", dead, world.activity_of(dead));
        RealSync::yield();
      }
    }
    require_says(end_of_waits(world), ErrorCode::peer_lost, {" has ended without leaving the world"});
    ++beside.steps[0];
    beside.wait_for(0, 2);
  });
  expect_well_but_for(outcomes, {1, 2, 3, 4, 5, 7, 8, 9, 10, 11});
}

TEST(Join, ends_for_all_whenever_one_is_killed) {
  // At some point of joining, which waits for ranks that never come until its deadline; or of the first calls or of
  // leaving, where no wait has a deadline: what hangs ends by an alarm.
  SplitMix64 random(7);
  for (int round = 0; round < (test::is_brief() ? 10 : 30); ++round) {
    const int victim = int(random.below(4)), yields = int(random.below(400));
    const auto outcomes = apart(5, [&](int i, Beside& beside) {
      if (i == 4) {
        beside.wait_for(0, 4);
        for (int k = 0; k < yields; ++k) RealSync::yield();
        kill(beside.pids[victim], SIGKILL);
        return;
      }
      const WorldId id = common_id(i, beside, round % 4);
      ++beside.steps[0];
      RankScope scope = RankScope::join(id, i, 4, hasty);
      scope.world().set_timeout_ns(INT64_MAX);
      use(scope.world());
      if (round % 3 != 0) (void)end_of_waits(scope.world());
    });
    for (int i = 0; i < 4; ++i)
      EXPECT_NE(outcomes[std::size_t(i)].status, SIGALRM) << "rank " << i << " hangs in round " << round;
  }
}

TEST(Join, sees_an_end_though_some_of_those_that_watch_are_stopped) {
  const auto outcomes = apart(6, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, 6, patient);
    scope.world().barrier();
    ++beside.steps[0];
    if (i == 5) {
      // The two before it in the ring.
      beside.wait_for(0, 6);
      kill(beside.pids[3], SIGSTOP);
      kill(beside.pids[4], SIGSTOP);
      raise(SIGKILL);
    }
    const Error seen = end_of_waits(scope.world());
    require_says(seen, ErrorCode::peer_lost, {"rank 5 failed: process "});
    if (++beside.steps[1] == 3)
      for (const int stopped : {3, 4}) kill(beside.pids[stopped], SIGCONT);
  });
  expect_well_but_for(outcomes, {5});
}

TEST(Join, sees_the_end_of_a_rank_whose_children_live_on) {
  for (const bool executes : {false, true}) {
    const auto outcomes = apart(2, [&](int i, Beside& beside) {
      RankScope scope = RankScope::join(common_id(i, beside, 1), i, 2, patient);
      scope.world().barrier();
      if (i == 1) {
        const pid_t child = fork();
        if (child == 0) {
          alarm(120);
          if (executes) execlp("sleep", "sleep", "100", nullptr);
          for (;;) pause();
        }
        beside.pids[10] = child;
        ++beside.steps[0];
        for (;;) pause();
      }
      beside.wait_for(0, 1);
      kill(beside.pids[1], SIGKILL);
      const Error seen = end_of_waits(scope.world());
      require(kill(beside.pids[10], SIGKILL) == 0, "the child is gone");
      require_says(seen, ErrorCode::peer_lost, {"rank 1 failed: process "});
    });
    expect_well_but_for(outcomes, {1});
  }
}

TEST(Join, keeps_the_memory_that_a_child_of_a_rank_lets_go_of) {
  expect_well(apart(2, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, 2, small);
    std::shared_ptr<void> memory = scope.world().local_memory(1 << 16);
    *static_cast<int*>(memory.get()) = 42;
    const pid_t child = fork();
    if (child == 0) {
      memory.reset();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    require(status == 0 && *static_cast<const int*>(memory.get()) == 42, "{}", *static_cast<const int*>(memory.get()));
  }));
}

TEST(Join, is_not_left_by_a_child_that_a_rank_forks) {
  expect_well(apart(2, [&](int i, Beside& beside) {
    RankScope scope = RankScope::join(common_id(i, beside, 0), i, 2, small);
    scope.world().barrier();
    const pid_t child = fork();
    if (child == 0) {
      if (i == 0)
        scope.finish();
      else
        scope.fail(Error(ErrorCode::io, "the child"));
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    require(status == 0, "status {}", status);
    use(scope.world());
  }));
}

}  // namespace
}  // namespace tranship::test

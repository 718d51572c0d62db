// How channels move and end: programs that are legal by docs/dri.md alone, in any order of gets, puts, flushes and
// destroys, must end on every rank with the codes that it names.
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

#include <fmt/ranges.h>

#include <tranship/fabric/processes/launch_program.hpp>

#include "face/dri/dri_programs.hpp"
#include "support/paths.hpp"
#include "support/random_layouts.hpp"

namespace tranship::test {
namespace {

constexpr int sides = 2;

/// One channel of a random program: who is on either side, with which buffers, and when they go.
struct Line {
  struct Side {
    std::vector<int> ranks;
    int buffers = 1;
    bool is_user = false;
  } side[sides];
  int extent = 1;
  std::vector<int> frames;  ///< that each sender puts before it destroys its end
  std::vector<int> quits;   ///< frames after which each receiver destroys its end; `never`: after the end of the stream
  static constexpr int never = 1 << 20;

  int place_of(int s, int rank) const {
    const auto& ranks = side[s].ranks;
    const auto at = std::find(ranks.begin(), ranks.end(), rank);
    return at == ranks.end() ? -1 : int(at - ranks.begin());
  }
  /// The elements of one place: blocks are balanced, the first ones larger by one.
  std::pair<int, int> block(int s, int place) const {
    const int count = int(side[s].ranks.size()), base = extent / count, more = extent % count;
    const int first = place * base + std::min(place, more);
    return {first, first + base + (place < more ? 1 : 0)};
  }
  /// True when a receiver learns of frames from a sender: it gets elements from it or, where it gets none, the sender
  /// is the first one that has any.
  bool are_joined(int sender, int receiver) const {
    const auto [from, from_end] = block(DRI_SEND - 1, sender);
    const auto [to, to_end] = block(DRI_RECV - 1, receiver);
    return to == to_end ? sender == 0 : std::max(from, to) < std::min(from_end, to_end);
  }
};

enum class Act { get, gettest, put, flush, destroy };
struct Action {
  int line = 0, side = 0, frame = 0;
  Act act = Act::get;
  bool ends = false;  ///< a get that reads the end of the stream
};
struct Program {
  int world = 1;
  std::vector<Line> lines;
  std::vector<bool> is_cut;                  ///< by line: a receiver goes before it has got all
  std::vector<std::vector<Action>> actions;  ///< by rank
};

/// Executes a program as the document says, one call at a time, and writes down which call each rank makes when.
class Model {
 public:
  Model(Random& random, Program& program) : random_(random), program_(program) {
    for (const Line& line : program.lines)
      for (int s = 0; s < sides; ++s) ends_[s].emplace_back(line.side[s].ranks.size());
  }

  void run() {
    program_.actions.resize(std::size_t(program_.world));
    for (;;) {
      choices_.clear();
      bool any = false;
      for (int l = 0; l < int(program_.lines.size()); ++l)
        for (int s = 0; s < sides; ++s)
          for (int place = 0; place < int(ends_[s][l].size()); ++place) {
            any |= !end(l, s, place).is_gone;
            add_possible(l, s, place);
          }
      if (!any) break;
      require(!choices_.empty(), "the model stops");
      execute(choices_[random_.below(Index(choices_.size()))]);
    }
    for (int l = 0; l < int(program_.lines.size()); ++l) {
      bool is_cut = false;
      for (int p = 0; p < int(ends_[0][l].size()); ++p)
        for (int q = 0; q < int(ends_[1][l].size()); ++q)
          is_cut |= line(l).are_joined(p, q) && end(l, 1, q).got < end(l, 0, p).put;
      program_.is_cut.push_back(is_cut);
    }
  }

 private:
  struct End {
    int got = 0, put = 0;
    bool has_ended = false, is_gone = false;
  };
  struct Choice {
    Action action;
    int place = 0;
  };
  const Line& line(int l) const { return program_.lines[std::size_t(l)]; }
  End& end(int l, int s, int place) { return ends_[s][std::size_t(l)][std::size_t(place)]; }

  template <class F>
  bool all_joined(int l, int s, int place, F&& f) {
    bool all = true;
    for (int other = 0; other < int(ends_[1 - s][l].size()); ++other)
      if (s == 0 ? line(l).are_joined(place, other) : line(l).are_joined(other, place)) all &= f(end(l, 1 - s, other));
    return all;
  }
  /// True when so many frames of a sender have left it.
  bool have_left(int l, int place, int frames) {
    const int room = line(l).side[1].buffers;
    return all_joined(l, 0, place, [&](const End& to) { return to.is_gone || to.put + room >= frames; });
  }

  void add_possible(int l, int s, int place) {
    End& mine = end(l, s, place);
    if (mine.is_gone) return;
    const Line& on = line(l);
    const auto add = [&](Act act, int frame, bool ends = false) {
      choices_.push_back({{.line = l, .side = s, .frame = frame, .act = act, .ends = ends}, place});
    };
    const bool is_free = mine.got - mine.put < on.side[s].buffers;
    const Act get = random_.one_in(2) ? Act::get : Act::gettest;
    if (mine.got > mine.put) add(Act::put, mine.put);
    if (s == 0) {
      const int frames = on.frames[std::size_t(place)];
      if (mine.got < frames && is_free && have_left(l, place, mine.got - on.side[0].buffers + 1)) add(get, mine.got);
      if (!have_left(l, place, mine.put)) return;
      if (random_.one_in(4)) add(Act::flush, mine.put);
      if (mine.put == frames) add(Act::destroy, mine.put);
    } else {
      const bool has_come = all_joined(l, 1, place, [&](const End& from) { return from.put > mine.got; });
      const bool goes_on =
          all_joined(l, 1, place, [&](const End& from) { return from.put > mine.got || !from.is_gone; });
      if (is_free && !mine.has_ended && (has_come || !goes_on)) add(get, mine.got, !has_come);
      if (mine.has_ended || mine.got >= on.quits[std::size_t(place)]) add(Act::destroy, mine.got);
    }
  }

  void execute(const Choice& chosen) {
    const Action& action = chosen.action;
    End& mine = end(action.line, action.side, chosen.place);
    switch (action.act) {
      case Act::get:
      case Act::gettest:
        mine.has_ended = action.ends;
        mine.got += action.ends ? 0 : 1;
        break;
      case Act::put:
        ++mine.put;
        break;
      case Act::flush:
        break;
      case Act::destroy:
        mine.is_gone = true;
    }
    const int rank = line(action.line).side[action.side].ranks[std::size_t(chosen.place)];
    program_.actions[std::size_t(rank)].push_back(action);
  }

  Random& random_;
  Program& program_;
  std::vector<std::vector<End>> ends_[sides];  // by line and place
  std::vector<Choice> choices_;
};

Program random_program(std::uint64_t seed, int world) {
  Random random(seed);
  Program out{.world = world};
  const int lines = int(random.between(1, 3));
  for (int l = 0; l < lines; ++l) {
    Line& line = out.lines.emplace_back();
    for (Line::Side& side : line.side) {
      std::vector<int> all(static_cast<std::size_t>(world));
      std::iota(all.begin(), all.end(), 0);
      random.shuffle(all);
      all.resize(std::size_t(random.between(1, world)));
      side = {.ranks = all, .buffers = int(random.between(1, 3)), .is_user = random.one_in(2)};
    }
    line.extent = int(random.between(1, 6));
    const int frames = int(random.below(6));
    const bool are_uneven = random.one_in(6);
    for (std::size_t p = 0; p < line.side[0].ranks.size(); ++p)
      line.frames.push_back(are_uneven ? int(random.below(6)) : frames);
    for (std::size_t q = 0; q < line.side[1].ranks.size(); ++q)
      line.quits.push_back(random.one_in(8) ? int(random.below(frames + 1)) : Line::never);
  }
  Model(random, out).run();
  return out;
}

/// One rank of a program.
class Executor {
 public:
  Executor(const Program& program, int rank, int first_id) : program_(program), rank_(rank), first_id_(first_id) {}

  void run() {
    const int lines = int(program_.lines.size());
    channels_.resize(std::size_t(lines));
    held_.resize(std::size_t(lines));
    for (int l = 0; l < lines; ++l)
      for (int s = 0; s < sides; ++s)
        if (line(l).place_of(s, rank_) >= 0) create(l, s);
    for (auto& ends : channels_)
      for (DRI_Channel* channel : ends.of)
        if (channel) ok(DRI_Channel_connect(channel));
    int number = 0;
    for (const Action& action : program_.actions[std::size_t(rank_)]) {
      try {
        if (channels_[std::size_t(action.line)].of[action.side]) execute(action);
      } catch (const Error& wrong) {
        throw Error(ErrorCode::internal, fmt::format("rank {}, call {} (act {}, channel {}, side {}, frame {}{}): {}",
                                                     rank_, number, int(action.act), action.line, action.side,
                                                     action.frame, action.ends ? ", ends" : "", wrong.message()));
      }
      ++number;
    }
  }

 private:
  struct Ends {
    DRI_Channel* of[sides] = {};
  };
  struct Held {
    std::vector<DRI_Buffer_Id*> of[sides];
  };
  const Line& line(int l) const { return program_.lines[std::size_t(l)]; }
  int value(const Action& action, int element) const { return 1000 * action.line + 50 * action.frame + element; }

  void create(int l, int s) {
    const Line::Side& side = line(l).side[s];
    End end{.id = first_id_ + l,
            .side = s == 0 ? DRI_SEND : DRI_RECV,
            .ranks = side.ranks,
            .extent = line(l).extent,
            .type = DRI_INTEGER,
            .buffers = side.buffers};
    for (int i = 0; i < side.buffers && side.is_user; ++i)
      end.memory.push_back(memory_.emplace_back(std::size_t(line(l).extent), -1).data());
    channels_[std::size_t(l)].of[s] = created(end);
  }

  void execute(const Action& action) {
    DRI_Channel*& channel = channels_[std::size_t(action.line)].of[action.side];
    std::vector<DRI_Buffer_Id*>& held = held_[std::size_t(action.line)].of[action.side];
    DRI_Buffer_Id* buffer = nullptr;
    int code = DRI_SUCCESS, flag = 0;
    switch (action.act) {
      case Act::get:
        code = DRI_Channel_get(channel, &buffer);
        break;
      case Act::gettest:
        while (code == DRI_SUCCESS && flag == 0) code = DRI_Channel_gettest(channel, &buffer, &flag);
        break;
      case Act::put:
        buffer = held.front();
        held.erase(held.begin());
        if (action.side == 0) visit(action, buffer);
        return ok(DRI_Channel_put(channel, &buffer));
      case Act::flush:
        code = DRI_Channel_flush(channel);
        break;
      case Act::destroy:
        code = DRI_Channel_destroy(&channel);
        require(channel == nullptr, "a handle after destroy");
    }
    check(action, code);
    if (buffer) {
      held.push_back(buffer);
      if (action.side == 1) visit(action, buffer);
    }
    // Others may wait for what this end cannot do any more.
    if (code != DRI_SUCCESS && channel && program_.is_cut[std::size_t(action.line)]) {
      code = DRI_Channel_destroy(&channel);
      require(code == DRI_SUCCESS || code == DRI_ERR_PEER, "destroy gives {}: {}", code, DRI_Error_detail());
    }
  }

  void check(const Action& action, int code) const {
    const bool is_cut = program_.is_cut[std::size_t(action.line)], receives = action.side == 1;
    bool is_allowed = code == (action.ends ? DRI_ERR_END : DRI_SUCCESS);
    if (is_cut && !(receives && action.act == Act::destroy))
      is_allowed |= code == DRI_ERR_PEER || (receives && code == DRI_ERR_END);
    require(is_allowed, "code {}: {}", code, code == DRI_SUCCESS ? "" : DRI_Error_detail());
  }

  /// Writes the frame, or checks it.
  void visit(const Action& action, DRI_Buffer_Id* buffer) const {
    void* memory = nullptr;
    ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
    const auto [first, end] = line(action.line).block(action.side, line(action.line).place_of(action.side, rank_));
    for (int i = first; i < end; ++i) {
      int& at = static_cast<int*>(memory)[i - first];
      if (action.side == 0) at = value(action, i);
      require(at == value(action, i), "element {} is {}, not {}", i, at, value(action, i));
    }
  }

  const Program& program_;
  int rank_, first_id_;
  std::vector<Ends> channels_;
  std::vector<Held> held_;
  std::vector<std::vector<int>> memory_;
};

std::string text_of(const Program& program) {
  std::string out = fmt::format("{} ranks", program.world);
  for (const Line& line : program.lines)
    out +=
        fmt::format("; {} elements from {} ({} buffers{}, frames {}) to {} ({} buffers{}, quits {})", line.extent,
                    line.side[0].ranks, line.side[0].buffers, line.side[0].is_user ? " of the user" : "", line.frames,
                    line.side[1].ranks, line.side[1].buffers, line.side[1].is_user ? " of the user" : "", line.quits);
  return out;
}

/// A wait that cannot end fails soon.
class WithTimeout {
 public:
  explicit WithTimeout(const char* seconds) { setenv("TRANSHIP_TIMEOUT", seconds, 1); }
  WithTimeout(const WithTimeout&) = delete;
  WithTimeout& operator=(const WithTimeout&) = delete;
  ~WithTimeout() { unsetenv("TRANSHIP_TIMEOUT"); }
};

using DriChannels = Dri;
INSTANTIATE_TEST_SUITE_P(On, DriChannels, ::testing::Values(On::threads, On::sim, On::apart, On::dealt),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(DriChannels, random_programs_end_as_the_document_says) {
  const WithTimeout timeout("20");
  EXPECT_EQ(first_fault(0.1,
                        [&](std::uint64_t seed) -> std::string {
                          const Program program = random_program(seed, 1 + int(seed % 4));
                          const std::string found = test::fault(GetParam(), program.world, seed, [&] {
                            ok(DRI_Init(nullptr, nullptr));
                            Executor(program, rank_of_world(), 1).run();
                            ok(DRI_Finalize());
                          });
                          return found.empty() ? "" : fmt::format("seed {}: {}: {}", seed, text_of(program), found);
                        }),
            "");
}

// This program, with a filter that names the test, is one rank of 3.
TEST(DriChannelPrograms, DISABLED_random) {
  std::uint64_t seed = 1;
  try {
    ok(DRI_Init(nullptr, nullptr));
    for (; seed <= 40; ++seed) {
      const Program program = random_program(seed, 3);
      Executor(program, rank_of_world(), 10 * int(seed)).run();
    }
    ok(DRI_Finalize());
  } catch (const Error& wrong) {
    fmt::print(stderr, "seed {}: {}: {}\n", seed, text_of(random_program(seed, 3)), wrong.message());
    std::exit(1);
  }
}
TEST(DriChannelPrograms, random_ones_of_processes_end_as_the_document_says) {
  const WithTimeout timeout("20");
  const ProgramResult result = launch_program({}, {{3, this_program("DriChannelPrograms.DISABLED_random")}});
  EXPECT_EQ(result.exit_codes, std::vector<int>(3, 0)) << result.reason;
}

/// Puts or gets one frame of one element on an end of this rank.
void pass(DRI_Channel* channel, DRI_Side side, int value) {
  DRI_Buffer_Id* buffer = nullptr;
  void* memory = nullptr;
  ok(DRI_Channel_get(channel, &buffer));
  ok(DRI_Buffer_get_memory(buffer, &memory, nullptr));
  int& at = *static_cast<int*>(memory);
  if (side == DRI_SEND) at = value;
  require(at == value, "{} is not {}", at, value);
  ok(DRI_Channel_put(channel, &buffer));
}

/// Both ends of a channel between all ranks, one element for each.
struct Both {
  DRI_Channel *send = nullptr, *receive = nullptr;

  explicit Both(int world) {
    std::vector<int> all(static_cast<std::size_t>(world));
    std::iota(all.begin(), all.end(), 0);
    send = created({.id = 1, .side = DRI_SEND, .ranks = all, .extent = world, .type = DRI_INTEGER});
    receive = created({.id = 1, .side = DRI_RECV, .ranks = all, .extent = world, .type = DRI_INTEGER});
    ok(DRI_Channel_connect(send));
    ok(DRI_Channel_connect(receive));
  }
};

// The sending end of a rank goes before its receiving end, which stays in use.
TEST_P(DriChannels, a_rank_reads_the_end_of_its_own_stream) {
  const WithTimeout timeout("5");
  for (const int world : {1, 2})
    for (const bool tests : {false, true})
      EXPECT_EQ(fault(world,
                      [&] {
                        ok(DRI_Init(nullptr, nullptr));
                        Both ends(world);
                        pass(ends.send, DRI_SEND, 5);
                        ok(DRI_Channel_destroy(&ends.send));
                        pass(ends.receive, DRI_RECV, 5);
                        for (int again = 0; again < 2; ++again) {
                          DRI_Buffer_Id* buffer = nullptr;
                          int flag = 0, code = DRI_SUCCESS;
                          do
                            code = tests ? DRI_Channel_gettest(ends.receive, &buffer, &flag)
                                         : DRI_Channel_get(ends.receive, &buffer);
                          while (code == DRI_SUCCESS && !buffer);
                          refused(code, DRI_ERR_END, "channel 1: the stream has ended");
                        }
                        ok(DRI_Channel_destroy(&ends.receive));
                        ok(DRI_Finalize());
                      }),
                "");
}

// A receiving end that goes first: the rank's own frames have nowhere to go.
TEST_P(DriChannels, a_rank_is_told_that_its_own_receiving_end_has_gone) {
  const WithTimeout timeout("5");
  EXPECT_EQ(fault(1,
                  [&] {
                    ok(DRI_Init(nullptr, nullptr));
                    Both ends(1);
                    pass(ends.send, DRI_SEND, 1);
                    pass(ends.receive, DRI_RECV, 1);
                    ok(DRI_Channel_destroy(&ends.receive));
                    DRI_Buffer_Id* buffer = nullptr;
                    ok(DRI_Channel_get(ends.send, &buffer));
                    ok(DRI_Channel_put(ends.send, &buffer));
                    refused(DRI_Channel_get(ends.send, &buffer), DRI_ERR_PEER, "rank 0 has left");
                    int flag = 0;
                    refused(DRI_Channel_gettest(ends.send, &buffer, &flag), DRI_ERR_PEER, "rank 0 has left");
                    refused(DRI_Channel_flush(ends.send), DRI_ERR_PEER, "rank 0 has left");
                    refused(DRI_Channel_destroy(&ends.send), DRI_ERR_PEER, "rank 0 has left");
                    ok(DRI_Finalize());
                  }),
            "");
}

// Nothing comes, and nothing has ended: a loop over the test form ends at the deadline.
TEST_P(DriChannels, a_loop_over_tests_ends_at_the_deadline) {
  const WithTimeout timeout("0.05");
  for (const int world : {1, 2})
    EXPECT_EQ(fault(world,
                    [&] {
                      ok(DRI_Init(nullptr, nullptr));
                      Both ends(world);
                      DRI_Buffer_Id* buffer = nullptr;
                      int flag = 0, code = DRI_SUCCESS;
                      while (code == DRI_SUCCESS && flag == 0) code = DRI_Channel_gettest(ends.receive, &buffer, &flag);
                      refused(code, DRI_ERR_TIMEOUT, "channel 1: ");
                      ok(DRI_Channel_destroy(&ends.receive));
                      (void)DRI_Channel_destroy(&ends.send);
                      ok(DRI_Finalize());
                    }),
              "");
}

// More receivers than elements: one that gets none of the data learns how many frames there are, too.
TEST_P(DriChannels, a_receiver_without_elements_reads_the_end_of_the_stream) {
  const WithTimeout timeout("5");
  for (const bool tests : {false, true})
    EXPECT_EQ(fault(3,
                    [&] {
                      ok(DRI_Init(nullptr, nullptr));
                      const int rank = rank_of_world();
                      DRI_Channel* channel = created({.id = 1,
                                                      .side = rank == 0 ? DRI_SEND : DRI_RECV,
                                                      .ranks = rank == 0 ? std::vector{0} : std::vector{1, 2},
                                                      .type = DRI_INTEGER});
                      ok(DRI_Channel_connect(channel));
                      int frames = 0, code = DRI_SUCCESS;
                      while (code == DRI_SUCCESS && frames < 100) {
                        DRI_Buffer_Id* buffer = nullptr;
                        int flag = 0;
                        if (rank == 0 && frames == 5) break;
                        while (tests && code == DRI_SUCCESS && flag == 0)
                          code = DRI_Channel_gettest(channel, &buffer, &flag);
                        if (!tests) code = DRI_Channel_get(channel, &buffer);
                        if (code != DRI_SUCCESS) break;
                        ok(DRI_Channel_put(channel, &buffer));
                        ++frames;
                      }
                      require(frames == 5, "rank {} has {} frames", rank, frames);
                      if (rank > 0) refused(code, DRI_ERR_END, "channel 1: the stream has ended");
                      ok(DRI_Channel_destroy(&channel));
                      ok(DRI_Finalize());
                    }),
              "");
}

// A channel between ranks 1 and 2 of 3: its errors say which ranks they name.
TEST_P(DriChannels, errors_name_ranks_of_the_world) {
  EXPECT_EQ(fault(3,
                  [] {
                    ok(DRI_Init(nullptr, nullptr));
                    if (const int rank = rank_of_world(); rank > 0) {
                      const DRI_Side side = rank == 1 ? DRI_SEND : DRI_RECV;
                      DRI_Channel* channel = created({.id = 1, .side = side, .ranks = {rank}, .type = DRI_INTEGER});
                      ok(DRI_Channel_connect(channel));
                      DRI_Buffer_Id* buffer = nullptr;
                      if (rank == 2)
                        refused(DRI_Channel_get(channel, &buffer), DRI_ERR_END,
                                "rank 0 has left the exchange before its message 0 -> 1 of epoch 1 was done (rank 1); "
                                "here rank 0 is rank 1 of the world, rank 1 is rank 2");
                      ok(DRI_Channel_destroy(&channel));
                    }
                    ok(DRI_Finalize());
                  }),
            "");
}

// An object that another rank has made is refused with the number of that rank.
TEST(DriChannelsOfThreads, objects_of_another_rank_are_named) {
  std::atomic<DRI_Group*> group = nullptr;
  std::atomic<DRI_Channel*> channel = nullptr;
  std::atomic<bool> is_over = false;
  EXPECT_EQ(fault(On::threads, 2, 1,
                  [&] {
                    ok(DRI_Init(nullptr, nullptr));
                    const int rank = rank_of_world(), one = 1, dims[1] = {4};
                    if (rank == 1) {
                      DRI_Group* mine = nullptr;
                      ok(DRI_Group_create(1, &rank, &mine));
                      DRI_Channel* end = created({.id = 1, .side = DRI_SEND, .ranks = {1}});
                      channel = end;
                      group = mine;
                      while (!is_over) std::this_thread::yield();
                      ok(DRI_Channel_destroy(&end));
                    } else {
                      while (!group) std::this_thread::yield();
                      struct Over {
                        std::atomic<bool>& flag;
                        ~Over() { flag = true; }
                      } over{is_over};
                      DRI_Global_Data* data = nullptr;
                      DRI_Partition part = nullptr;
                      DRI_Distribution* distribution = nullptr;
                      ok(DRI_Global_Data_create(1, dims, DRI_FLOAT, &data));
                      ok(DRI_Partition_whole_create(&part));
                      refused(DRI_Distribution_create(data, group, &one, &part, nullptr, &distribution), DRI_ERR_HANDLE,
                              "the group belongs to rank 1; this is rank 0");
                      refused(DRI_Channel_connect(channel), DRI_ERR_HANDLE,
                              "channel 1 belongs to rank 1; this is rank 0");
                    }
                    ok(DRI_Finalize());
                  }),
            "");
}

/// A ring of channels, rank r to rank r + 1: all put two frames on theirs before they get two from the other one. The
/// second frame leaves its sender after the receiver has got the first one, while the sender waits for another channel.
void turn_ring(int world, int rounds) {
  const int rank = rank_of_world(), before = (rank + world - 1) % world;
  const std::vector<int> mine{rank};
  std::vector<int> out(1), in(1);
  DRI_Channel* send =
      created({.id = rank, .side = DRI_SEND, .ranks = mine, .type = DRI_INTEGER, .memory = {out.data()}});
  DRI_Channel* receive =
      created({.id = before, .side = DRI_RECV, .ranks = mine, .type = DRI_INTEGER, .memory = {in.data()}});
  for (int id = 0; id < world; ++id) {
    if (id == rank) ok(DRI_Channel_connect(send));
    if (id == before) ok(DRI_Channel_connect(receive));
  }
  for (int round = 0; round < rounds; ++round) {
    for (int frame = 2 * round; frame < 2 * round + 2; ++frame) pass(send, DRI_SEND, 1000 * rank + frame);
    for (int frame = 2 * round; frame < 2 * round + 2; ++frame) pass(receive, DRI_RECV, 1000 * before + frame);
  }
  ok(DRI_Channel_destroy(&send));
  ok(DRI_Channel_destroy(&receive));
}

TEST_P(DriChannels, a_ring_turns_while_all_wait) {
  const WithTimeout timeout("5");
  EXPECT_EQ(fault(
                3,
                [&] {
                  ok(DRI_Init(nullptr, nullptr));
                  turn_ring(3, 20);
                  ok(DRI_Finalize());
                },
                20),
            "");
}
TEST(DriChannelPrograms, DISABLED_ring) {
  try {
    ok(DRI_Init(nullptr, nullptr));
    turn_ring(3, 500);
    ok(DRI_Finalize());
  } catch (const Error& wrong) {
    fmt::print(stderr, "{}\n", wrong.message());
    std::exit(1);
  }
}
TEST(DriChannelPrograms, rings_of_processes_turn_while_all_wait) {
  const WithTimeout timeout("5");
  const ProgramResult result = launch_program({}, {{3, this_program("DriChannelPrograms.DISABLED_ring")}});
  EXPECT_EQ(result.exit_codes, std::vector<int>(3, 0)) << result.reason;
}

}  // namespace
}  // namespace tranship::test

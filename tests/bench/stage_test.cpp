// Contestants are held against a plain loop over cells; the stage is run by threads as it is by processes.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <contest/act.hpp>
#include <contest/loops.hpp>
#include <contest/memory.hpp>
#include <contest/methods.hpp>
#include <contest/stage.hpp>
#include <contest/work.hpp>
#include <gtest/gtest.h>
#include <harness/team.hpp>

#include <tranship/base/error.hpp>

namespace contest {
namespace {

Work matrix(std::int64_t n, std::int64_t m, Deal from0, Deal from1, Deal to0, Deal to1) {
  Work work;
  work.ranks = int(from0.parts * from1.parts);
  work.dims = 2;
  work.axes[0] = {n, from0, to0};
  work.axes[1] = {m, from1, to1};
  return work;
}

TEST(Work, EveryCellHasOneOwnerOnEachSide) {
  const Work work = matrix(50, 37, {2, 4}, {2, 3}, {1, 0}, {4, 5});
  for (const Side side : {Side::from, Side::to}) {
    std::set<std::int64_t> cells;
    std::int64_t stored = 0;
    for (int rank = 0; rank < work.ranks; ++rank) {
      const Local local = local_of(work, side, rank);
      stored += local.size;
      for (const auto i : local.cells[0])
        for (const auto j : local.cells[1]) cells.insert(i * 37 + j);
    }
    EXPECT_EQ(stored, 50 * 37);
    EXPECT_EQ(cells.size(), 50u * 37);
  }
}

TEST(Work, SharedCellsAreAllCellsOnce) {
  for (const Order order : {Order::same, Order::transposed}) {
    Work work = matrix(50, 37, {2, 4}, {2, 3}, {1, 0}, {4, 5});
    work.order = order;
    for (int to = 0; to < work.ranks; ++to) {
      const Local target = local_of(work, Side::to, to);
      std::vector<double> out(target.size, -1);
      for (int from = 0; from < work.ranks; ++from) {
        const Local source = local_of(work, Side::from, from);
        std::vector<double> in(source.size);
        write(work, source, in.data(), 3);
        const Shared shared = shared_cells(work, from, to);
        for (const auto& rows : shared.runs[0])
          for (const auto& columns : shared.runs[1])
            for (std::int64_t i = 0; i < rows.length; ++i)
              for (std::int64_t j = 0; j < columns.length; ++j) {
                double& cell = out[(rows.to + i) * target.strides[0] + (columns.to + j) * target.strides[1]];
                EXPECT_EQ(cell, -1);
                cell = in[(rows.from + i) * source.strides[0] + (columns.from + j) * source.strides[1]];
              }
      }
      EXPECT_EQ(count_wrong(work, target, out.data(), 3), 0);
      out[target.size / 2] += 1;
      EXPECT_EQ(count_wrong(work, target, out.data(), 3), 1);
    }
  }
}

Work cube(std::int64_t n, std::int64_t p0, std::int64_t p1, std::int64_t p2, int width, int fields) {
  Work work;
  work.task = Task::halo;
  work.ranks = int(p0 * p1 * p2);
  work.dims = 3;
  work.axes[0] = {n * p0, {p0, 0}, {}};
  work.axes[1] = {n * p1, {p1, 0}, {}};
  work.axes[2] = {n * p2, {p2, 0}, {}};
  work.width = width;
  work.fields = fields;
  return work;
}

TEST(Work, BordersFillEveryGhostCell) {
  for (const Work& work : {cube(4, 2, 1, 1, 1, 2), cube(4, 1, 1, 2, 3, 1), cube(3, 2, 2, 2, 2, 2)}) {
    std::vector<std::vector<double>> memories;
    std::vector<Fields> fields(work.ranks);
    for (int rank = 0; rank < work.ranks; ++rank) {
      for (int k = 0; k < work.fields; ++k) {
        memories.emplace_back(field_of(work, rank).size, -1);
        fields[rank].push_back(memories.back().data());
      }
      write_owned(work, rank, fields[rank], 5);
    }
    for (int rank = 0; rank < work.ranks; ++rank) {
      const Field field = field_of(work, rank);
      const auto borders = borders_of(work, rank);
      EXPECT_EQ(count_wrong_ghosts(work, rank, fields[rank], 5), payload_cells(work, rank));
      for (std::size_t i = 0; i < borders.size(); ++i) {
        const Box gives = borders_of(work, borders[i].neighbour)[borders.size() - 1 - i].gives;
        for (int k = 0; k < work.fields; ++k)
          copy_box(field, fields[borders[i].neighbour][k], gives, fields[rank][k], borders[i].takes);
      }
      EXPECT_EQ(count_wrong_ghosts(work, rank, fields[rank], 5), 0);
      const Box& last = borders.back().takes;
      fields[rank][0][(last.low[0] * field.stored[1] + last.low[1]) * field.stored[2] + last.low[2]] += 1;
      EXPECT_EQ(count_wrong_ghosts(work, rank, fields[rank], 5), 1);
    }
  }
}

/// Cell by cell: the addresses of a box, in lines of 8 cells.
void touch(std::set<std::int64_t>& lines, const Field& field, const Box& box) {
  for (std::int64_t i = 0; i < box.extents[0]; ++i)
    for (std::int64_t j = 0; j < box.extents[1]; ++j)
      for (std::int64_t k = 0; k < box.extents[2]; ++k)
        lines.insert((((box.low[0] + i) * field.stored[1] + box.low[1] + j) * field.stored[2] + box.low[2] + k) / 8);
}

TEST(Work, TouchedLinesAreCountedOnce) {
  for (const Work& work : {cube(4, 2, 1, 1, 1, 2), cube(9, 1, 1, 2, 3, 1), cube(5, 2, 2, 2, 2, 8)})
    for (int rank = 0; rank < work.ranks; ++rank) {
      std::vector<std::set<std::int64_t>> reads(work.ranks);
      std::set<std::int64_t> writes;
      for (int owner = 0; owner < work.ranks; ++owner)
        for (const Border& border : borders_of(work, owner))
          if (border.neighbour == rank) touch(reads[owner], field_of(work, owner), border.gives);
      for (const Border& border : borders_of(work, rank)) touch(writes, field_of(work, rank), border.takes);
      const TouchedLines touched = touched_lines(work, rank);
      for (int owner = 0; owner < work.ranks; ++owner)
        EXPECT_EQ(touched.reads[owner], std::int64_t(reads[owner].size()) * work.fields) << owner;
      EXPECT_EQ(touched.writes, std::int64_t(writes.size()) * work.fields);
    }
  // 4 x 4 x 4 cells stored, two rows a line: every line has ghosts, those of the two inner planes have owned cells.
  const TouchedLines small = touched_lines(cube(2, 1, 1, 1, 1, 3), 0);
  EXPECT_EQ(small.reads, std::vector<std::int64_t>{3 * 4});
  EXPECT_EQ(small.writes, 3 * 8);
}

TEST(Memory, IsZeroAndBeginsWithALine) {
  for (const std::int64_t elements : {0, 1, 9, 1000}) {
    const Memory some = memory(elements), aligned = memory(elements, 4096);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some.get()) % line_bytes, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.get()) % 4096, 0u);
    EXPECT_EQ(std::count(some.get(), some.get() + elements, 0.0), elements);
  }
}

/// Whether the system was asked for huge pages at an address: the flags of its mapping have "hg".
bool asked_for_huge_pages(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &end) == 2)
      is_here = first <= std::uintptr_t(address) && std::uintptr_t(address) < end;
    else if (is_here && line.starts_with("VmFlags:"))
      return line.find(" hg") != std::string::npos;
  }
  return false;
}

TEST(Memory, LargeArraysAreAskedToLieInHugePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "this system has none";
  constexpr std::int64_t least = huge_bytes_min / sizeof(double);
  const Memory large = memory(least), small = memory(least - 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.get()) % huge_page_bytes, 0u);
  EXPECT_TRUE(asked_for_huge_pages(large.get()));
  EXPECT_FALSE(asked_for_huge_pages(small.get()));
}

TEST(Loops, PackedBoxesAreUnpackedWhereTheyWere) {
  const Work work = cube(5, 1, 1, 1, 2, 1);
  const Field field = field_of(work, 0);
  std::vector<double> in(field.size), out(field.size), packed(field.size);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = double(i + 1);
  for (const Border& border : borders_of(work, 0)) {
    EXPECT_EQ(pack_box(field, in.data(), border.gives, packed.data()) - packed.data(), border.gives.cells());
    unpack_box(field, packed.data(), out.data(), border.gives);
    const Box& box = border.gives;
    for (std::int64_t i = box.low[0]; i < box.low[0] + box.extents[0]; ++i)
      for (std::int64_t j = box.low[1]; j < box.low[1] + box.extents[1]; ++j)
        for (std::int64_t k = box.low[2]; k < box.low[2] + box.extents[2]; ++k) {
          const std::int64_t at = (i * field.stored[1] + j) * field.stored[2] + k;
          EXPECT_EQ(out[at], in[at]);
        }
  }
}

TEST(Loops, TransposeTurnsRaggedMatrices) {
  std::vector<double> in(37 * 21), out(37 * 21);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = double(i);
  transpose(in.data(), 21, out.data(), 37, 37, 21);
  for (int i = 0; i < 37; ++i)
    for (int j = 0; j < 21; ++j) EXPECT_EQ(out[j * 37 + i], i * 21 + j);
}

/// Copies its own source to its own target; the second one forgets the last element.
class LocalCopy final : public RedistributionMethod {
 public:
  LocalCopy(const Work& work, int rank, int forgets)
      : RedistributionMethod(work, rank), forgets_(forgets), in_(memory(from_.size)), out_(memory(to_.size)) {
    use(in_.get(), out_.get());
  }
  std::string name() const override { return forgets_ ? "forgetful" : "right"; }
  void write(double salt) override {
    ++writes;
    RedistributionMethod::write(salt);
  }
  double read() override {
    ++reads;
    return RedistributionMethod::read();
  }
  void run() override { std::memcpy(target_, source_, std::size_t(to_.size - forgets_) * sizeof(double)); }

  static thread_local int writes, reads;

 private:
  int forgets_;
  Memory in_, out_;
};
thread_local int LocalCopy::writes = 0;
thread_local int LocalCopy::reads = 0;

TEST(Stage, RanksOpenCheckTimeAndQuit) {
  constexpr int ranks = 3;
  const StageMemory stage = StageMemory::make(ranks);
  int writes[ranks] = {}, reads[ranks] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const StageMemory mine = StageMemory::open(stage.path());
      act(*mine, rank, [&](const Work& work) {
        Methods methods;
        methods.push_back(std::make_unique<LocalCopy>(work, rank, 0));
        methods.push_back(std::make_unique<LocalCopy>(work, rank, 1));
        return methods;
      });
      writes[rank] = LocalCopy::writes;
      reads[rank] = LocalCopy::reads;
    });
  const auto command = [&](const Command& command) {
    stage->command = command;
    publish(*stage);
    EXPECT_TRUE(await_answer(*stage, 60'000'000'000));
  };

  command({.verb = Verb::open, .work = matrix(6, 8, {3, 0}, {1, 0}, {3, 0}, {1, 0})});
  EXPECT_EQ(stage->methods, 2);
  EXPECT_STREQ(stage->method_names[0], "right");
  EXPECT_STREQ(stage->method_names[1], "forgetful");
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(stage->wrong_cells[rank][0], 0);
    EXPECT_EQ(stage->wrong_cells[rank][1], 1);
  }
  command({.verb = Verb::run, .method = 0, .ops = 5, .freshness = Freshness::warm});
  command({.verb = Verb::run, .method = 0, .ops = 4, .freshness = Freshness::fresh});
  for (int op = 0; op < 4; ++op)
    for (int rank = 0; rank < ranks; ++rank) {
      const Span span = stage->spans[rank][op];
      EXPECT_LE(span.begin_ns, span.end_ns);
      EXPECT_GE(elapsed_ns(*stage, op), span.end_ns - span.begin_ns);
      // The barrier lies between operations: all ranks end one before any begins the next.
      for (int other = 0; op > 0 && other < ranks; ++other)
        EXPECT_GE(span.begin_ns, stage->spans[other][op - 1].end_ns);
    }
  command({.verb = Verb::close});
  command({.verb = Verb::quit});
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(writes[rank], 2 + 4);
    EXPECT_EQ(reads[rank], 4);
  }
}

TEST(Stage, ElapsedGoesFromTheFirstBeginToTheLastEnd) {
  const StageMemory stage = StageMemory::make(2);
  stage->spans[0][3] = {100, 180};
  stage->spans[1][3] = {120, 190};
  EXPECT_EQ(elapsed_ns(*stage, 3), 90);
}

TEST(Stage, AnAnswerThatDoesNotComeIsNoticed) {
  const StageMemory stage = StageMemory::make(1);
  publish(*stage);
  EXPECT_FALSE(await_answer(*stage, 1000));
  EXPECT_EQ(await_turn(*stage, 0), 1u);
  answer(*stage);
  EXPECT_TRUE(await_answer(*stage, 1000));
}

TEST(Team, AProgramThatEndsIsReportedWithItsLastWords) {
  tranship::bench::Team team({.name = "ls", .program = "ls"});
  try {
    // It is asked to list the stage, and ends.
    team.open({});
    FAIL() << "nothing was thrown";
  } catch (const tranship::Error& error) {
    EXPECT_EQ(error.code(), tranship::ErrorCode::io);
    EXPECT_NE(error.message().find("ls: the program has ended: /proc/"), std::string::npos) << error.message();
  }
}

TEST(Team, LaunchersAreTheirMpis) {
  using namespace tranship::bench;
  const auto has = [](const std::vector<std::string>& line, const std::string& word) {
    return std::find(line.begin(), line.end(), word) != line.end();
  };
  const TeamOptions ours{.name = "ours", .program = "/bin/ours", .ranks = 2};
  EXPECT_EQ(command_line(ours, "/stage"), (std::vector<std::string>{"/bin/ours", "/stage"}));
  TeamOptions processes = ours;
  processes.launcher = Launcher::tranship;
  EXPECT_EQ(command_line(processes, "/stage"),
            (std::vector<std::string>{"/bin/tranship", "launch", "-n", "2", "/bin/ours", "/stage"}));
  TeamOptions peer{.name = "peer", .program = "/bin/peer", .launcher = Launcher::open_mpi, .ranks = 2};
  EXPECT_EQ(command_line(peer, "/stage").front(), "mpirun.openmpi");
  EXPECT_EQ(command_line(peer, "/stage").back(), "/stage");
  peer.ranks = contest::core_count() + 1;
  EXPECT_TRUE(has(command_line(peer, "/stage"), "mpi_yield_when_idle"));
  peer.launcher = Launcher::mpich;
  EXPECT_EQ(command_line(peer, "/stage").front(), "mpiexec.mpich");
  EXPECT_TRUE(has(command_line(peer, "/stage"), std::to_string(peer.ranks)));
}

}  // namespace
}  // namespace contest

// Two ranks on two hosts: tranship beside the MPI that carries its messages, and beside a bare stream, in one process.
// usage: cluster ROUNDS [PART], as a job of two processes; PART is in the names of the rows. Rank 0 prints a JSON
// object for each row.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include <tranship/mpi.hpp>
#include <tranship/tranship.hpp>

#include "cluster/bare_stream.hpp"

namespace tranship::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Contestant {
  std::string name;
  std::function<void()> act;
  int times = 1;  ///< how often an act repeats the operation that the row measures
};

/// Bytes that all network interfaces of this host have sent, except the loopback interface.
double bytes_sent() {
  std::ifstream table("/proc/self/net/dev");
  double sent = 0;
  for (std::string line; std::getline(table, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).ends_with(" lo")) continue;
    std::istringstream fields(line.substr(colon + 1));
    double field = 0;
    for (int i = 0; i < 9; ++i) fields >> field;
    sent += field;
  }
  return sent;
}

class Bench {
 public:
  Bench(World& world, int rounds, std::string part)
      : world_(world), rank_(world.rank()), rounds_(rounds), part_(std::move(part)) {}

  World& world() { return world_; }
  int rank() const { return rank_; }

  /// Lets the contestants act in turn, and prints the median time of the slower rank. When both ranks send, it also
  /// prints the bytes that the first contestant sends on the wire, as a multiple of `bytes`.
  void row(const std::string& what, double bytes, const std::vector<Contestant>& contestants, int senders = 1) {
    if (what.find(part_) == std::string::npos) return;
    std::vector<std::vector<double>> seconds(contestants.size());
    for (int round = -1; round < rounds_; ++round)
      for (std::size_t i = 0; i < contestants.size(); ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const Clock::time_point start = Clock::now();
        contestants[i].act();
        double mine = seconds_since(start) / contestants[i].times, slower = 0;
        MPI_Allreduce(&mine, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (round >= 0) seconds[i].push_back(slower);
      }
    const double wire_bytes = senders == 2 ? sent_by_both(contestants[0]) : 0;
    if (rank_ != 0) return;
    std::string text;
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      std::nth_element(seconds[i].begin(), seconds[i].begin() + rounds_ / 2, seconds[i].end());
      text += fmt::format("{}\"{}\": {:.9g}", i ? ", " : "", contestants[i].name, seconds[i][std::size_t(rounds_ / 2)]);
    }
    print(what, bytes, text, senders == 2 ? fmt::format(", \"sent\": {:.5g}", wire_bytes / (2 * bytes)) : "");
  }
  void print(const std::string& what, double bytes, const std::string& seconds, const std::string& more = {}) {
    std::printf("{\"row\": \"%s\", \"bytes\": %.0f%s, \"seconds\": {%s}}\n", what.c_str(), bytes, more.c_str(),
                seconds.c_str());
    std::fflush(stdout);
  }
  void require(bool right, const char* who) {
    if (right) return;
    std::fprintf(stderr, "cluster: %s is wrong on rank %d\n", who, rank_);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 private:
  double sent_by_both(const Contestant& contestant) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = bytes_sent();
    contestant.act();
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = bytes_sent() - before, both = 0;
    MPI_Allreduce(&mine, &both, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return both;
  }

  World& world_;
  int rank_;
  int rounds_;
  std::string part_;
};

double entry(const Indices& cell) {
  return double(cell[0]) + 1e-4 * double(cell[1]);
}

void redistribution(Bench& bench, BareStream& stream, int n) {
  const int rank = bench.rank(), peer = 1 - rank, half = n / 2;
  Array<double> rows(bench.world(), distribution({n, n}, grid(2, 1), {block(), whole()}));
  Array<double> columns(bench.world(), distribution({n, n}, grid(1, 2), {whole(), block()}));
  rows.fill_owned(entry);
  Redistribution turn(rows, columns);
  const double* const from = rows.data();
  double* const to = columns.data();
  const auto check = [&](const char* who) {
    bench.require(columns.count_wrong(entry) == 0, who);
    columns.fill_owned([](const Indices&) { return -1.0; });
  };

  // Cells of one rank that stay.
  const auto keep = [&] {
    for (int i = 0; i < half; ++i)
      std::memcpy(to + (std::size_t(rank) * half + i) * half, from + std::size_t(i) * n + std::size_t(rank) * half,
                  half * sizeof(double));
  };
  std::vector<double> packed(std::size_t(half) * half);
  const auto by_isend = [&] {
    MPI_Request requests[2];
    MPI_Irecv(to + std::size_t(peer) * half * half, half * half, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    for (int i = 0; i < half; ++i)
      std::memcpy(&packed[std::size_t(i) * half], from + std::size_t(i) * n + std::size_t(peer) * half,
                  half * sizeof(double));
    MPI_Isend(packed.data(), half * half, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[1]);
    keep();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  };
  MPI_Datatype out[2], in[2];
  int ones[2] = {1, 1}, zeros[2] = {0, 0};
  for (int q = 0; q < 2; ++q) {
    const int mine[2] = {half, n}, theirs[2] = {n, half}, part[2] = {half, half};
    const int out_at[2] = {0, q * half}, in_at[2] = {q * half, 0};
    MPI_Type_create_subarray(2, mine, part, out_at, MPI_ORDER_C, MPI_DOUBLE, &out[q]);
    MPI_Type_create_subarray(2, theirs, part, in_at, MPI_ORDER_C, MPI_DOUBLE, &in[q]);
    MPI_Type_commit(&out[q]);
    MPI_Type_commit(&in[q]);
  }
  const auto by_alltoallw = [&] { MPI_Alltoallw(from, ones, zeros, out, to, ones, zeros, in, MPI_COMM_WORLD); };
  turn();
  check("tranship's redistribution");
  by_isend();
  check("MPI_Isend");
  by_alltoallw();
  check("MPI_Alltoallw");
  const std::size_t bytes = packed.size() * sizeof(double);
  bench.row(fmt::format("{0} x {0} doubles, rows to columns", n), double(bytes),
            {{"tranship", [&] { turn(); }},
             {"packed MPI_Isend", by_isend},
             {"MPI_Alltoallw", by_alltoallw},
             {"bare stream", [&] { stream.both_ways(bytes); }}},
            2);
}

double periodic(const Indices& cell) {
  return double(cell[0]) * 1e6 + double(cell[1]) * 1e3 + double(cell[2]);
}

/// Exchanges `fields` periodic arrays of `cells` cells a rank in each direction, with `width` ghosts on all sides.
void halo(Bench& bench, BareStream& stream, int cells, int fields, int width) {
  const int peer = 1 - bench.rank();
  const Partition torus = block().with_overlap(width, width, EdgePolicy::toroidal);
  const auto where = distribution({2 * cells, cells, cells}, grid(2, 1, 1), {torus, torus, torus});
  std::vector<Array<double>> arrays;
  for (int f = 0; f < fields; ++f) {
    arrays.emplace_back(bench.world(), where);
    arrays.back().fill_owned(periodic);
  }
  HaloExchange exchange(arrays);
  const int side = cells + 2 * width;
  const std::size_t plane = std::size_t(side) * side, slab = plane * width;
  const auto check = [&](const char* who) {
    for (Array<double>& one : arrays) bench.require(one.count_wrong(periodic) == 0, who);
    for (Array<double>& one : arrays) {
      std::fill_n(one.data(), plane * side, -1.0);
      one.fill_owned(periodic);
    }
  };
  // One dimension after the other: two slabs go to the peer, with the ghosts of the other dimensions in them.
  const auto by_dimension = [&] {
    for (Array<double>& one : arrays) {
      double* const u = one.data();
      for (int i = width; i < cells + width; ++i)
        for (int j = width; j < cells + width; ++j) {
          double* const row = u + i * plane + std::size_t(j) * side;
          std::memcpy(row, row + cells, width * sizeof(double));
          std::memcpy(row + cells + width, row + width, width * sizeof(double));
        }
      for (int i = width; i < cells + width; ++i) {
        double* const at = u + i * plane;
        std::memcpy(at, at + std::size_t(cells) * side, std::size_t(width) * side * sizeof(double));
        std::memcpy(at + std::size_t(cells + width) * side, at + std::size_t(width) * side,
                    std::size_t(width) * side * sizeof(double));
      }
    }
    std::vector<MPI_Request> requests(std::size_t(4 * fields));
    std::size_t next = 0;
    for (int f = 0; f < fields; ++f) {
      double* const u = arrays[std::size_t(f)].data();
      const int count = int(slab), low = 2 * f, high = 2 * f + 1;
      MPI_Irecv(u, count, MPI_DOUBLE, peer, high, MPI_COMM_WORLD, &requests[next++]);
      MPI_Irecv(u + (cells + width) * plane, count, MPI_DOUBLE, peer, low, MPI_COMM_WORLD, &requests[next++]);
      MPI_Isend(u + width * plane, count, MPI_DOUBLE, peer, low, MPI_COMM_WORLD, &requests[next++]);
      MPI_Isend(u + cells * plane, count, MPI_DOUBLE, peer, high, MPI_COMM_WORLD, &requests[next++]);
    }
    MPI_Waitall(int(next), requests.data(), MPI_STATUSES_IGNORE);
  };
  // Each of 26 neighbours gets a message of each field, described by a type.
  struct Neighbour {
    int peer, there, back;
    MPI_Datatype out, in;
  };
  std::vector<Neighbour> neighbours;
  for (int a = -1; a <= 1; ++a)
    for (int b = -1; b <= 1; ++b)
      for (int c = -1; c <= 1; ++c) {
        if (a == 0 && b == 0 && c == 0) continue;
        const int step[3] = {a, b, c}, sides[3] = {side, side, side};
        int part[3], out_at[3], in_at[3];
        for (int d = 0; d < 3; ++d) {
          part[d] = step[d] == 0 ? cells : width;
          out_at[d] = step[d] > 0 ? cells : width;
          in_at[d] = step[d] > 0 ? cells + width : step[d] < 0 ? 0 : width;
        }
        Neighbour one{.peer = a == 0 ? bench.rank() : peer,
                      .there = 9 * (a + 1) + 3 * (b + 1) + c + 1,
                      .back = 9 * (1 - a) + 3 * (1 - b) + 1 - c};
        MPI_Type_create_subarray(3, sides, part, out_at, MPI_ORDER_C, MPI_DOUBLE, &one.out);
        MPI_Type_create_subarray(3, sides, part, in_at, MPI_ORDER_C, MPI_DOUBLE, &one.in);
        MPI_Type_commit(&one.out);
        MPI_Type_commit(&one.in);
        neighbours.push_back(one);
      }
  const auto by_neighbour = [&] {
    std::vector<MPI_Request> requests;
    for (int f = 0; f < fields; ++f)
      for (const Neighbour& one : neighbours)
        MPI_Irecv(arrays[std::size_t(f)].data(), 1, one.in, one.peer, 27 * f + one.back, MPI_COMM_WORLD,
                  &requests.emplace_back());
    for (int f = 0; f < fields; ++f)
      for (const Neighbour& one : neighbours)
        MPI_Isend(arrays[std::size_t(f)].data(), 1, one.out, one.peer, 27 * f + one.there, MPI_COMM_WORLD,
                  &requests.emplace_back());
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  };
  for (Array<double>& one : arrays) std::fill_n(one.data(), plane * side, -1.0), one.fill_owned(periodic);
  exchange();
  check("tranship's halo");
  by_dimension();
  check("the halo by dimensions");
  by_neighbour();
  check("the halo by neighbours");
  const std::size_t bytes = 2 * slab * std::size_t(fields) * sizeof(double);
  bench.row(fmt::format("halo of {}³ doubles a rank, width {}, {}", cells, width,
                        fields == 1 ? "1 field" : fmt::format("{} fields", fields)),
            double(bytes),
            {{"tranship", [&] { exchange(); }},
             {"MPI, one dimension after the other", by_dimension},
             {"MPI, 26 messages", by_neighbour},
             {"bare stream", [&] { stream.both_ways(bytes); }}},
            2);
}

void ping_pong(Bench& bench, BareStream& stream, int bytes) {
  const int rank = bench.rank(), peer = 1 - rank, times = 20;
  World& world = bench.world();
  const auto inbox = world.allocate<std::byte>(bytes);
  const auto signal = world.allocate<std::uint64_t>(1);
  std::vector<std::byte> mine(static_cast<std::size_t>(bytes), std::byte(rank + 1)), theirs(mine.size());
  std::uint64_t turn = 0;
  const auto ours = [&] {
    for (int i = 0; i < times; ++i) {
      ++turn;
      if (rank == 0) world.context().put_signal(inbox, std::span(mine), signal, turn, SignalOp::set, peer);
      world.context().signal_wait(signal, Comparison::equal, turn);
      if (rank == 1) world.context().put_signal(inbox, std::span(mine), signal, turn, SignalOp::set, peer);
    }
  };
  const auto mpi = [&] {
    for (int i = 0; i < times; ++i) {
      if (rank == 0) MPI_Send(mine.data(), bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
      MPI_Recv(theirs.data(), bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(mine.data(), bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
    }
  };
  const auto raw = [&] {
    for (int i = 0; i < times; ++i) stream.there_and_back(std::size_t(bytes));
  };
  ours();
  bench.require(inbox[bytes - 1] == std::byte(peer + 1), "put_signal");
  bench.row(fmt::format("put_signal of {} bytes, half of there and back", bytes), bytes,
            {{"tranship", ours, 2 * times}, {"MPI_Send", mpi, 2 * times}, {"bare stream", raw, 2 * times}});
}

/// Rank 0 acts, and rank 1 waits for it in a call of the library that acts.
void one_sided(Bench& bench) {
  const int rank = bench.rank(), times = 50;
  World& world = bench.world();
  const auto word = world.allocate<std::uint64_t>(1);
  const auto ours = [&](auto&& act) {
    return [&bench, rank, act] {
      if (rank == 0)
        for (int i = 0; i < times; ++i) act();
      bench.world().barrier();
    };
  };
  std::uint64_t here = 0;
  std::vector<std::uint64_t> mine(1, 7);
  const auto put = ours([&] {
    world.context().put(word, std::span(mine), 1);
    world.context().quiet();
  });
  const auto get = ours([&] { here = world.context().g(word, 1); });
  const auto add = ours([&] { world.context().fetch_add<std::uint64_t>(word, 1, 1); });
  put();
  get();
  bench.require(rank == 1 || here == 7, "get");

  std::uint64_t* window_memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool has_window = MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window) == MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (has_window) MPI_Win_lock_all(0, window);
  const auto theirs = [&](auto&& act) {
    return [&bench, rank, act] {
      if (rank == 0)
        for (int i = 0; i < times; ++i) act();
      MPI_Barrier(MPI_COMM_WORLD);
    };
  };
  const std::uint64_t one = 1;
  const auto flush = [&] { MPI_Win_flush(1, window); };
  const auto mpi_put = theirs([&] { MPI_Put(&one, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window), flush(); });
  const auto mpi_get = theirs([&] { MPI_Get(&here, 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T, window), flush(); });
  const auto mpi_add = theirs([&] { MPI_Fetch_and_op(&one, &here, MPI_UINT64_T, 1, 0, MPI_SUM, window), flush(); });
  const auto row = [&](const char* what, const auto& by_us, const char* name, const auto& by_mpi) {
    std::vector<Contestant> contestants{{"tranship", by_us, times}};
    if (has_window) contestants.push_back({name, by_mpi, times});
    bench.row(what, 8, contestants);
  };
  row("put of 8 bytes and quiet", put, "MPI_Put and flush", mpi_put);
  row("get of 8 bytes", get, "MPI_Get and flush", mpi_get);
  row("fetch_add", add, "MPI_Fetch_and_op and flush", mpi_add);
  bench.row("barrier", 0,
            {{"tranship",
              [&] {
                for (int i = 0; i < times; ++i) world.barrier();
              },
              times},
             {"MPI_Barrier",
              [&] {
                for (int i = 0; i < times; ++i) MPI_Barrier(MPI_COMM_WORLD);
              },
              times}});
  if (has_window) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
  }

  // Rank 1 computes and calls no library: its progress thread answers.
  MPI_Barrier(MPI_COMM_WORLD);
  const Clock::time_point start = Clock::now();
  std::vector<double> seconds;
  if (rank == 0) {
    while (seconds_since(start) < 0.5) {
      const Clock::time_point before = Clock::now();
      here = world.context().g(word, 1);
      seconds.push_back(seconds_since(before));
    }
    std::sort(seconds.begin(), seconds.end());
    bench.print("get of 8 bytes from a rank that computes", 8,
                fmt::format("\"tranship\": {:.9g}, \"tranship, the slowest of 100\": {:.9g}",
                            seconds[seconds.size() / 2], seconds[seconds.size() * 99 / 100]));
  } else {
    while (seconds_since(start) < 0.7) {
    }
  }
  world.barrier();
}

/// Tells tests/hosts/jobs.py that this rank has done all: it ends the job when MPI_Finalize does not return.
void say_done(int rank) {
  const char* const folder = std::getenv("TRANSHIP_TEST_DONE_DIR");
  if (folder != nullptr) std::ofstream(fmt::format("{}/{}", folder, rank)) << 0;
}

}  // namespace
}  // namespace tranship::bench

int main(int count, char** arguments) try {
  using namespace tranship;
  using namespace tranship::bench;
  int level = 0, size = 0, rank = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size != 2) throw Error(ErrorCode::invalid_use, fmt::format("cluster measures 2 ranks, not {}", size));
  {
    RankScope scope = join_mpi(MPI_COMM_WORLD, {.heap_bytes = std::size_t(1) << 30});
    BareStream stream(scope.world());
    Bench bench(scope.world(), count > 1 ? std::atoi(arguments[1]) : 11, count > 2 ? arguments[2] : "");
    one_sided(bench);
    for (const int bytes : {8, 65'536, 1'048'576}) ping_pong(bench, stream, bytes);
    halo(bench, stream, 64, 1, 3);
    halo(bench, stream, 64, 8, 3);
    halo(bench, stream, 128, 1, 3);
    redistribution(bench, stream, 1024);
    redistribution(bench, stream, 4096);
  }
  say_done(rank);
  MPI_Finalize();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cluster: %s\n", error.what());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Programs of dri.h as tests write them: ranks of several kinds, calls that must succeed or be refused, and channels of
// one dimension.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/face/dri/state.hpp>

#include "support/ranks.hpp"

namespace tranship::test {

inline void ok(int code) {
  require(code == DRI_SUCCESS, "{}: {}", DRI_Error_string(code), DRI_Error_detail());
}
inline void refused(int code, int wanted, const char* part) {
  require(code == wanted && std::strstr(DRI_Error_detail(), part) != nullptr, "code {}, '{}', not {} with '{}'", code,
          DRI_Error_detail(), wanted, part);
}

/// Runs a body as ranks; what it finds wrong, or an empty text.
struct Body {
  std::function<void()> f;
  std::mutex mutex = {};
  std::string wrong = {};

  static int call(void* self) {
    Body& body = *static_cast<Body*>(self);
    try {
      body.f();
      return 0;
    } catch (const Error& error) {
      const std::lock_guard lock(body.mutex);
      if (body.wrong.empty()) body.wrong = error.message();
      return 1;
    }
  }
};
/// Ranks that are processes have a body each, and what one of them finds wrong leaves it as an error.
inline std::string fault_of_processes(On on, int count, const std::function<void()>& f) {
  try {
    run_on(on, count, [&](World& world) {
      Body body{.f = f};
      try {
        dri::run_body(world, Body::call, &body);
      } catch (const Error&) {
        if (!body.wrong.empty()) throw Error(ErrorCode::internal, body.wrong);
        throw;
      }
    });
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}
inline std::string fault(On on, int count, std::uint64_t seed, std::function<void()> f) {
  if (are_processes(on)) return fault_of_processes(on, count, f);
  Body body{.f = std::move(f)};
  const int code =
      on == On::threads ? DRI_Launch_threads(count, Body::call, &body) : DRI_Simulate(count, seed, Body::call, &body);
  if (!body.wrong.empty()) return body.wrong;
  return code == DRI_SUCCESS ? "" : DRI_Error_detail();
}
class Dri : public ::testing::TestWithParam<On> {
 public:
  std::string fault(int count, const std::function<void()>& f, std::uint64_t seeds = 4) const {
    for (std::uint64_t seed = 1; seed <= (GetParam() == On::sim ? seeds : 1); ++seed)
      if (std::string found = test::fault(GetParam(), count, seed, f); !found.empty()) return found;
    return "";
  }
};
inline int rank_of_world() {
  DRI_Group* world = nullptr;
  int rank = -1;
  ok(DRI_Group_create_world(&world));
  ok(DRI_Group_rank(world, &rank));
  ok(DRI_Group_destroy(&world));
  return rank;
}

/// One end of a channel for data of one dimension, which a group of ranks shares in balanced blocks.
struct End {
  int id = 0;
  DRI_Side side = DRI_SEND;
  std::vector<int> ranks;
  int extent = 1;
  DRI_Dataspec type = DRI_FLOAT;
  int buffers = 1;
  std::vector<void*> memory = {};  ///< the program's own, for as many buffers; none: that of the system
};
inline DRI_Channel* created(const End& end) {
  const int count = int(end.ranks.size());
  DRI_Global_Data* data = nullptr;
  DRI_Group* group = nullptr;
  DRI_Partition part = nullptr;
  DRI_Distribution* distribution = nullptr;
  DRI_Bufferset* buffers = nullptr;
  DRI_Channel* channel = nullptr;
  ok(DRI_Group_create(count, end.ranks.data(), &group));
  ok(DRI_Global_Data_create(1, &end.extent, end.type, &data));
  ok(DRI_Partition_block_create(nullptr, nullptr, 0, 1, &part));
  ok(DRI_Distribution_create(data, group, &count, &part, nullptr, &distribution));
  if (end.memory.empty())
    ok(DRI_Bufferset_system_create(end.buffers, distribution, &buffers));
  else
    ok(DRI_Bufferset_user_create(end.buffers, end.memory.data(), nullptr, distribution, &buffers));
  ok((end.side == DRI_SEND ? DRI_Channel_create_send : DRI_Channel_create_recv)(end.id, distribution, buffers,
                                                                                &channel));
  ok(DRI_Bufferset_destroy(&buffers));
  ok(DRI_Distribution_destroy(&distribution));
  ok(DRI_Partition_destroy(&part));
  ok(DRI_Group_destroy(&group));
  ok(DRI_Global_Data_destroy(&data));
  return channel;
}
/// This rank's only end of channel `id`, from rank 0 to rank 1: one float.
inline DRI_Channel* end_of(int id, int rank, int buffers) {
  return created({.id = id, .side = rank == 0 ? DRI_SEND : DRI_RECV, .ranks = {rank}, .buffers = buffers});
}

}  // namespace tranship::test

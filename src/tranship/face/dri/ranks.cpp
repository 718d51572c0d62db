// DRI_Init and DRI_Finalize, ranks that are threads or simulated, groups, codes, handles.
#include <algorithm>
#include <atomic>

#include <tranship/base/amounts.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/program_main.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/face/dri/state.hpp>

namespace tranship::dri {
namespace {

/// Destructors of static variables may call this after the text of their thread is destroyed.
std::string& last_detail() {
  static constinit thread_local bool has_ended = false;
  struct Detail {
    std::string text;
    ~Detail() { has_ended = true; }
  };
  thread_local Detail detail;
  if (!has_ended) return detail.text;
  static auto& late = *new std::string;
  return late;
}

void check_body(int ranks, int (*body)(void*)) {
  check_range("the number of ranks", ranks, 1, 4096);
  if (!body) refuse(DRI_ERR_ARGUMENT, "body is NULL");
  if (current()) refuse(DRI_ERR_ORDER, "this thread is a rank already");
}

}  // namespace

RankState*& current() noexcept {
  thread_local RankState* state = nullptr;
  return state;
}

RankState& initialised() {
  RankState* const state = current();
  if (!state || !state->is_initialised) refuse(DRI_ERR_ORDER, "DRI_Init has not been called on this thread");
  if (state->is_finalised) refuse(DRI_ERR_ORDER, "DRI_Finalize has been called");
  return *state;
}

void refuse_foreign(const RankState& mine, std::string_view object, Rank owner) {
  const Rank rank = mine.world->rank();
  refuse(DRI_ERR_HANDLE, "{} belongs to rank {}{}; this is rank {}", object, owner,
         owner == rank ? " of an earlier launch" : "", rank);
}

void run_body(World& world, int (*body)(void*), void* argument) {
  RankState state;
  state.world = &world;
  RankState* const outer = std::exchange(current(), &state);
  const int code = body(argument);
  current() = outer;
  // When the lines are destroyed, peers learn whether this rank ends or fails; a failing rank throws first.
  struct Closing {
    RankState& state;
    ~Closing() {
      for (const auto& channel : state.channels) {  // their handles may live on
        channel->rank = nullptr;
        channel->end = nullptr;
        channel->line.reset();
      }
      state.board.reset();
    }
  } closing{state};
  if (code != 0) throw_error(ErrorCode::user_exception, "the body of rank {} has returned {}", world.rank(), code);
  if (state.is_initialised && !state.is_finalised)
    throw_error(ErrorCode::user_exception, "the body of rank {} has returned without DRI_Finalize", world.rank());
}

int code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_use:
    case ErrorCode::overflow:
    case ErrorCode::bad_text:
      return DRI_ERR_ARGUMENT;
    case ErrorCode::unsupported:
      return DRI_ERR_UNSUPPORTED;
    case ErrorCode::mismatch:
      return DRI_ERR_MISMATCH;
    case ErrorCode::no_memory:
      return DRI_ERR_NO_MEMORY;
    case ErrorCode::timeout:
      return DRI_ERR_TIMEOUT;
    case ErrorCode::peer_lost:
      return DRI_ERR_PEER;
    case ErrorCode::user_exception:
      return DRI_ERR_PROGRAM;
    default:
      return DRI_ERR_INTERNAL;
  }
}

int failed(int code, std::string text) noexcept {
  last_detail() = std::move(text);
  return code;
}

Handles& Handles::all() {
  static Handles* const handles = new Handles;  // never destroyed: static destructors may use handles
  return *handles;
}

Handles::Objects::iterator Handles::find(const void* handle, std::string_view kind) {
  if (!handle) refuse(DRI_ERR_HANDLE, "the handle is NULL: one of the kind '{}' is needed", kind);
  const auto at = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
  if (at == objects_.end())
    refuse(DRI_ERR_HANDLE, "a handle of the kind '{}' is needed; this one has been destroyed, or is none", kind);
  if (at->second.kind != kind)
    refuse(DRI_ERR_HANDLE, "a handle of the kind '{}' is needed; this one is of the kind '{}'", kind, at->second.kind);
  return at;
}

namespace {

void create_group(std::vector<Rank> ranks, dri_group** group) {
  output(group, "group");
  const RankState& state = initialised();
  auto out = std::make_shared<Group>();
  out->token = state.token;
  out->owner = state.world->rank();
  const auto mine = std::find(ranks.begin(), ranks.end(), state.world->rank());
  out->rank = mine == ranks.end() ? -1 : int(mine - ranks.begin());
  out->ranks = std::move(ranks);
  *group = Handles::all().add<Group, dri_group>(std::move(out));
}

}  // namespace
}  // namespace tranship::dri

using namespace tranship;
using namespace tranship::dri;

extern "C" {

const char* DRI_Error_string(int code) {
  switch (code) {
    case DRI_SUCCESS:
      return "success";
    case DRI_ERR_HANDLE:
      return "a handle is NULL, destroyed, or of another kind";
    case DRI_ERR_ARGUMENT:
      return "an argument is out of range";
    case DRI_ERR_ORDER:
      return "a call at the wrong time";
    case DRI_ERR_MISMATCH:
      return "two sides that must agree do not";
    case DRI_ERR_UNSUPPORTED:
      return "this combination cannot be done";
    case DRI_ERR_NO_MEMORY:
      return "memory could not be obtained";
    case DRI_ERR_TIMEOUT:
      return "a deadline passed";
    case DRI_ERR_PEER:
      return "another rank has failed or left";
    case DRI_ERR_INTERNAL:
      return "the library itself is wrong";
    case DRI_ERR_PROGRAM:
      return "a rank of the program has failed";
    case DRI_ERR_END:
      return "the stream has ended";
    default:
      return "unknown code";
  }
}

const char* DRI_Error_detail(void) {
  return last_detail().c_str();
}
int DRI_Error_report(int code, const char* detail) {
  return failed(code, detail ? detail : "");
}

int DRI_Init(int*, char***) {
  RankState* began = nullptr;
  if (begins_as_simulated()) current() = nullptr;
  const int code = guarded([&] {
    if (current() && current()->is_initialised)
      refuse(DRI_ERR_ORDER, "{} has been called before: a rank begins once",
             current()->is_finalised ? "DRI_Finalize" : "DRI_Init");
    if (RankState* const state = current()) {
      state->board = std::make_unique<Switchboard>(*state->world);
      state->is_initialised = true;
      return;
    }
    auto state = std::make_unique<RankState>();
    state->scope.emplace(RankScope::join());
    state->world = &state->scope->world();
    state->board = std::make_unique<Switchboard>(*state->world);
    state->is_initialised = true;
    began = state.release();  // the rank of a process ends with the process
  });
  if (began) current() = began;
  return code;
}

int DRI_Finalize(void) {
  return guarded([] {
    RankState& state = initialised();
    if (!state.channels.empty()) {
      const Index count = Index(state.channels.size());
      refuse(DRI_ERR_ORDER, "{} {}: destroy {} first", counted(count, "channel"), plural(count, "exists", "exist"),
             plural(count, "it", "them"));
    }
    state.board.reset();
    state.is_finalised = true;
    if (state.scope) state.scope->finish();
  });
}

int DRI_Launch_threads(int ranks, int (*body)(void*), void* argument) {
  return guarded([&] {
    check_body(ranks, body);
    launch(ranks, [&](World& world) { run_body(world, body, argument); });
  });
}

int DRI_Simulate(int ranks, uint64_t seed, int (*body)(void*), void* argument) {
  return guarded([&] {
    check_body(ranks, body);
    simulate({.ranks = ranks, .seed = seed, .peers = PeerKind::messaged},
             [&](World& world) { run_body(world, body, argument); });
  });
}

int DRI_Group_create_world(dri_group** group) {
  return guarded([&] {
    std::vector<Rank> ranks(std::size_t(initialised().world->size()));
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = Rank(i);
    create_group(std::move(ranks), group);
  });
}

int DRI_Group_create_program(dri_group** group) {
  return guarded([&] {
    const Members members = program_members(*initialised().world);
    std::vector<Rank> ranks;
    for (int i = 0; i < members.count; ++i) ranks.push_back(members.rank_of(i));
    create_group(std::move(ranks), group);
  });
}

int DRI_Group_create(int count, const int ranks[], dri_group** group) {
  return guarded([&] {
    const int size = initialised().world->size();
    check_range("the number of ranks", count, 1, size);
    output(ranks, "ranks");
    std::vector<Rank> list(ranks, ranks + count);
    std::vector<bool> named(static_cast<std::size_t>(size));
    for (const Rank rank : list) {
      check_range("a rank of a group", rank, 0, size - 1);
      if (named[std::size_t(rank)]) refuse(DRI_ERR_ARGUMENT, "rank {} stands in the group twice", rank);
      named[std::size_t(rank)] = true;
    }
    create_group(std::move(list), group);
  });
}

int DRI_Group_rank(const dri_group* group, int* rank) {
  return guarded([&] { output(rank, "rank") = object_of<Group>(group)->rank; });
}
int DRI_Group_size(const dri_group* group, int* size) {
  return guarded([&] { output(size, "size") = int(object_of<Group>(group)->ranks.size()); });
}
int DRI_Group_destroy(dri_group** group) {
  return guarded([&] { Handles::all().take<Group>(group); });
}

}  // extern "C"

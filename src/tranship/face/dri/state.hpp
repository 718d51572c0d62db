// Private: the base of all functions of dri.h: the objects behind handles, the state of a rank, and how calls fail.
//
// A handle is a number in the shape of a pointer. No number is given out twice and no handle is ever dereferenced, so a
// handle that was destroyed or never existed is refused.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tranship/array/switchboard.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/rank_scope.hpp>
#define DRI_NO_VIEWS  // the program compiles the views against its own vsip.h
#include <tranship/face/dri/dri.h>

namespace tranship::dri {

/// Thrown to refuse a call, with a code of dri.h.
struct Refusal {
  int code;
  std::string text;
};
template <class... Args>
[[noreturn]] void refuse(int code, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{code, make_error(ErrorCode::invalid_use, format, std::forward<Args>(args)...).message()};
}

struct Channel;

/// One rank from DRI_Init to DRI_Finalize, or a thread that may become one.
struct RankState {
  World* world = nullptr;
  std::optional<RankScope> scope;  // set for a rank that is a process
  std::unique_ptr<Switchboard> board;
  std::vector<std::shared_ptr<Channel>> channels;
  bool is_initialised = false;
  bool is_finalised = false;
  /// Identifies the rank to which objects belong, even after it has gone.
  std::shared_ptr<const int> token = std::make_shared<const int>(0);
};

/// The rank of this thread; among simulated ranks, the one that runs.
RankState*& current() noexcept;
/// Throws `Refusal` before DRI_Init and after DRI_Finalize.
RankState& initialised();
/// Refuses an object that another rank has made, or this rank in an earlier launch.
[[noreturn]] void refuse_foreign(const RankState& mine, std::string_view object, Rank owner);

/// Runs `body`, which begins with DRI_Init and ends with DRI_Finalize, as this rank of an existing world. Throws
/// `user_exception` when it returns another code than 0 or does not finalise.
void run_body(World& world, int (*body)(void*), void* argument);

int code_of(ErrorCode code) noexcept;
int failed(int code, std::string text) noexcept;

/// Runs the body of a call and returns its code. Restores current(), because another simulated rank may have run
/// meanwhile.
template <class F>
int guarded(F&& f) {
  RankState* const mine = current();
  int code = DRI_SUCCESS;
  try {
    f();
  } catch (const Refusal& refusal) {
    code = failed(refusal.code, refusal.text);
  } catch (const Error& error) {
    code = failed(code_of(error.code()), error.message());
  } catch (const std::bad_alloc&) {
    code = failed(DRI_ERR_NO_MEMORY, "no memory");
  } catch (const std::exception& error) {
    code = failed(DRI_ERR_INTERNAL, error.what());
  }
  current() = mine;
  return code;
}

/// Callers in C have no source location, so waits name the call instead.
inline CallSite call_of(const char* function) noexcept {
  return {function, 0};
}

template <class T>
T& output(T* pointer, const char* what) {
  if (!pointer) refuse(DRI_ERR_ARGUMENT, "{} is NULL", what);
  return *pointer;
}
inline void check_range(const char* what, Index value, Index low, Index high) {
  if (value < low || value > high) refuse(DRI_ERR_ARGUMENT, "{} is {}; {} to {} are possible", what, value, low, high);
}

struct GlobalData {
  static constexpr std::string_view name = "global data";
  Indices extents;
  std::optional<DRI_Dataspec> type;
};
struct Group {
  static constexpr std::string_view name = "group";
  std::shared_ptr<const int> token;
  std::vector<Rank> ranks;
  Rank owner = -1;
  int rank = -1;  // the owner's place in `ranks`
};
struct OverlapObject {
  static constexpr std::string_view name = "overlap";
  OverlapSide side;
};
struct PartitionObject {
  static constexpr std::string_view name = "partition";
  Partition rule;
};
struct Layout {
  static constexpr std::string_view name = "layout";
  Index offset = 0;
  int ndims = -1;  // -1: unknown, because the arrays are the program's
  const int* order = nullptr;
  const int* strides = nullptr;
  std::vector<int> own_order, own_strides;
};
struct DistributionObject {
  static constexpr std::string_view name = "distribution";
  GlobalData data;
  std::shared_ptr<Group> group;
  Distribution value;  // with interleaved complex elements
  Rank rank = -1;      // the caller's rank in the world

  bool is_cyclic() const;
  ArraySpec spec(DRI_Dataspec type) const;
  DRI_Blockinfo slice(Index number) const;
  /// Returns the dimensions that a view of `dims` dimensions shows, in their order (DRI_Viewshape).
  std::vector<int> shown_by_view(int dims) const;
  /// Returns the shape of a view of slice `number`, without memory.
  DRI_Viewshape viewshape(const std::vector<int>& shown, int number) const;
  std::vector<Index> slices_along() const;
};
struct Bufferset {
  static constexpr std::string_view name = "bufferset";
  PipeBuffers buffers;
  std::shared_ptr<DistributionObject> distribution;
  bool is_used = false;  // by a channel
};
struct Attachment {
  void* value = nullptr;
  void (*on_put)(void*) = nullptr;
  void (*release)(void*) = nullptr;
};
/// An object of another library that the program has been lent with a buffer.
struct Loan {
  void* object = nullptr;
  void (*end)(void*) = nullptr;
};
struct BufferObject {
  static constexpr std::string_view name = "buffer";
  std::vector<Loan> lent_to_holder, lent_by_channel;  // guarded by Loans
  Channel* channel = nullptr;
  void* memory = nullptr;
  void* imaginary = nullptr;
  bool is_held = false;
  std::map<std::int64_t, Attachment> attached;
};
/// A cache of the shapes of views of one number of dimensions, because a channel is asked for them at each frame.
struct ViewShapes {
  std::vector<int> shown;                        // dimensions
  std::unordered_map<int, DRI_Viewshape> known;  // by slice
};
struct Channel {
  static constexpr std::string_view name = "channel";
  RankState* rank = nullptr;
  std::string label;
  DRI_Side side = DRI_SEND;
  DRI_Dataspec type = DRI_FLOAT;
  std::shared_ptr<DistributionObject> distribution;
  std::shared_ptr<Bufferset> buffers;
  bool waits_for_other_end = false;
  std::shared_ptr<PipeLine> line;  // shared by both ends if this rank is on both sides
  PipeEnd* end = nullptr;          // null until the channel is connected
  std::vector<dri_buffer*> handles;
  Index given = 0, taken_back = 0;
  std::mutex shapes_mutex;
  std::array<ViewShapes, 3> shapes;  // of views of 1, 2 and 3 dimensions

  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();
};

int size_bytes_of(DRI_Dataspec type);
bool is_split(DRI_Dataspec type) noexcept;
void check_type(DRI_Dataspec type);
std::string name_of(DRI_Dataspec type);
/// Returns true when a view of one type may show elements of the other.
bool is_shown_as(DRI_Dataspec elements, DRI_Dataspec view);

/// The objects behind all handles.
class Handles {
 public:
  static Handles& all();

  template <class T, class H>
  H* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const std::uintptr_t number = next_ += 16;
    objects_.emplace(number, Object{T::name, std::move(object)});
    return reinterpret_cast<H*>(number);  // NOLINT(performance-no-int-to-ptr): it is never followed
  }
  /// Throws `Refusal` unless `handle` is a handle of a T.
  template <class T>
  std::shared_ptr<T> get(const void* handle) {
    const std::lock_guard lock(mutex_);
    return std::static_pointer_cast<T>(find(handle, T::name)->second.object);
  }
  template <class T, class H>
  std::shared_ptr<T> take(H** handle) {
    if (!handle) refuse(DRI_ERR_ARGUMENT, "the address of the {} is NULL", T::name);
    const std::lock_guard lock(mutex_);
    const auto at = find(*handle, T::name);
    auto object = std::static_pointer_cast<T>(std::move(at->second.object));
    objects_.erase(at);
    *handle = nullptr;
    return object;
  }

 private:
  struct Object {
    std::string_view kind;
    std::shared_ptr<void> object;
  };
  using Objects = std::unordered_map<std::uintptr_t, Object>;
  Objects::iterator find(const void* handle, std::string_view kind);

  std::mutex mutex_;
  std::uintptr_t next_ = 0x1000;
  Objects objects_;
};

/// All loans, by object. Any thread may end one.
class Loans {
 public:
  static Loans& all();

  void lend(BufferObject& buffer, DRI_Loan kind, Loan loan);
  /// Call before the program destroys the object. Returns true if the object must stay; otherwise ends a loan of it.
  bool keeps(const void* object) noexcept;
  void end_of_holder(BufferObject& buffer) noexcept;
  void end_of_channel(BufferObject& buffer) noexcept;

 private:
  struct At {
    std::vector<Loan>* list;
    std::size_t index;
    DRI_Loan kind;
  };
  void remove(const void* object) noexcept;
  void end(std::vector<Loan>& list) noexcept;

  std::mutex mutex_;
  std::unordered_map<const void*, At> places_;
};

template <class T>
std::shared_ptr<T> object_of(const void* handle) {
  return Handles::all().get<T>(handle);
}

}  // namespace tranship::dri

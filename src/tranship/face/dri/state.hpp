// Private: what the functions of dri.h share: the objects that handles stand for, the state of a rank, and how calls
// fail.
//
// A handle is a number that is never given out twice, in the shape of a pointer that nothing follows. A handle that was
// destroyed, or never was one, is therefore refused and not followed.
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
#define DRI_NO_VIEWS  // those are compiled with the program, against its vsip.h
#include <tranship/face/dri/dri.h>

namespace tranship::dri {

/// A call that is refused, with a code of dri.h.
struct Refusal {
  int code;
  std::string text;
};
template <class... Args>
[[noreturn]] void refuse(int code, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{code, make_error(ErrorCode::invalid_use, format, std::forward<Args>(args)...).message()};
}

struct Channel;

/// One rank from DRI_Init to DRI_Finalize, or the thread that is to become one.
struct RankState {
  World* world = nullptr;
  std::optional<RankScope> scope;  // of a process
  std::unique_ptr<Switchboard> board;
  std::vector<std::shared_ptr<Channel>> channels;
  bool is_initialised = false;
  bool is_finalised = false;
  /// Which rank objects belong to, after it has gone, too.
  std::shared_ptr<const int> token = std::make_shared<const int>(0);
};

/// That of this thread; of simulated ranks that of the one that runs.
RankState*& current() noexcept;
/// Throws `Refusal` before DRI_Init and after DRI_Finalize.
RankState& initialised();
/// Refuses what another rank has made, or this one in an earlier launch.
[[noreturn]] void refuse_foreign(const RankState& mine, std::string_view object, Rank owner);

/// Runs a body that begins with DRI_Init and ends with DRI_Finalize as this rank of a world that is there. Throws
/// `user_exception` where it returns another code than 0, or does not finalise.
void run_body(World& world, int (*body)(void*), void* argument);

int code_of(ErrorCode code) noexcept;
int failed(int code, std::string text) noexcept;

/// What a call does: returns its code. Another simulated rank may have run meanwhile.
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

/// Callers in C have no source location to give: waits name the call instead.
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
  int rank = -1;  // the owner's place
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
  int ndims = -1;  // not known: the arrays are the program's
  const int* order = nullptr;
  const int* strides = nullptr;
  std::vector<int> own_order, own_strides;
};
struct DistributionObject {
  static constexpr std::string_view name = "distribution";
  GlobalData data;
  std::shared_ptr<Group> group;
  Distribution value;  // interleaved
  Rank rank = -1;      // of the world; the caller's

  bool is_cyclic() const;
  ArraySpec spec(DRI_Dataspec type) const;
  DRI_Blockinfo slice(Index number) const;
  /// The dimensions that a view of so many shows, in their order (DRI_Viewshape).
  std::vector<int> shown_by_view(int dims) const;
  /// Without memory.
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
/// What views of so many dimensions show, as far as it was asked for: a channel is asked again for each frame.
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
  std::shared_ptr<PipeLine> line;  // of both ends, where this rank is on both sides
  PipeEnd* end = nullptr;          // none until it is connected
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
/// Whether a view of one type may show elements of the other.
bool is_shown_as(DRI_Dataspec elements, DRI_Dataspec view);

/// All objects that handles stand for.
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
  /// Throws `Refusal` for what is no handle of a T.
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
  /// Before the object is destroyed by others. Whether it must stay; if not, a loan of it is over.
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

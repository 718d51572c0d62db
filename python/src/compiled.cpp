// The C functions that code compiled by Numba calls, without the interpreter's lock. Each returns 0, or -1 with
// Python's error set: compiled functions then return as from an exception of their own.
//
// They are called by the thread of a rank that has begun (Shmem::begin). Arrays come as their first elements' addresses
// with sizes in bytes, or, where elements do not lie side by side, as descriptors.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

#include <dlfcn.h>
#include <nanobind/nanobind.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/peer_views.hpp>
#include <tranship/fabric/typed_words.hpp>
#include <tranship/face/shmem/collectives.hpp>
#include <tranship/face/shmem/numbers.hpp>
#include <tranship/face/shmem/views.hpp>

#include "interpreter.hpp"
#include "shmem.hpp"

namespace tranship::python {
namespace {

using Status = std::int32_t;

constexpr CallSite compiled_site{"<compiled by Numba>", 0};

/// True after an operation has failed in a thread of a parallel loop that Python does not know, because its error would
/// be lost.
std::atomic<bool> has_lost_error = false;

Status fail_with(const std::exception_ptr& thrown) noexcept {
  if (PyGILState_GetThisThreadState() == nullptr) {
    has_lost_error = true;
    return -1;
  }
  const nb::gil_scoped_acquire acquire;
  try {
    raise_for(thrown);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return -1;
}
/// The function is not in Python's stable interface, but all versions have it.
bool has_gil() {
  static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check != nullptr && check() != 0;
}

/// Runs `f(shmem)`, for a simulated rank on its fiber. An operation that may wait lets other threads run Python.
enum class Waits : bool { no, yes };
template <class F>
Status guarded(Waits waits, F&& f) noexcept {
  try {
    Shmem& shmem = Shmem::of_this_thread();
    if (has_lost_error.load(std::memory_order_relaxed) && has_lost_error.exchange(false))  // a look costs nothing
      throw_error(ErrorCode::invalid_use,
                  "an operation was called in a thread of a parallel loop, which is not a rank, and was skipped: call "
                  "operations outside of parallel loops");
    FiberThread* const fiber = FiberThread::current();
    if ((waits == Waits::no && shmem.context().completes_at_once()) || (fiber == nullptr && !has_gil()))
      f(shmem);
    else if (has_gil())
      without_gil([&] { f(shmem); });
    else
      fiber->call([&] { f(shmem); });
    return 0;
  } catch (...) {
    return fail_with(std::current_exception());
  }
}

/// An array as compiled code describes it; strides in bytes.
struct Array {
  void* data;
  std::int64_t type;  ///< an ElementType
  std::int64_t dims;
  const std::int64_t* extents;
  const std::int64_t* strides;

  StridedView view() const {
    StridedView view{.data = data, .type = static_cast<ElementType>(type)};
    const int width = size_bytes(view.type);
    if (dims > dims_max)
      throw_error(ErrorCode::unsupported, "an array of {}: at most {} can be moved", amount(dims, "dimension"),
                  dims_max);
    for (int d = 0; d < dims; ++d) {
      if (strides[d] % width != 0)
        throw_error(ErrorCode::invalid_use, "a stride of {} is no multiple of elements of {}",
                    amount(strides[d], "byte"), width);
      view.extents.push_back(extents[d]);
      view.strides.push_back(strides[d] / width);
    }
    return view;
  }
};

template <class T>
Symmetric<T> one(void* at) {
  return Symmetric<T>::at(static_cast<T*>(at), 1);
}
/// Ranks, teams and numbers of operations come in 64 bits.
int int_of(std::int64_t number) {
  if (number < INT32_MIN || number > INT32_MAX) throw_error(ErrorCode::invalid_use, "{} is out of range", number);
  return static_cast<int>(number);
}

enum Transfer : std::int32_t { put, put_nbi, get, get_nbi };
constexpr const char* transfer_names[] = {"put", "put_nbi", "get", "get_nbi"};

/// Transfers between spans, or between views.
template <class End>
void transfer(Context& rma, std::int32_t kind, const End& to, const End& from, Rank peer) {
  switch (kind) {
    case put:
      return rma.put(to, from, peer, compiled_site);
    case put_nbi:
      return rma.put_nbi(to, from, peer, compiled_site);
    case get:
      return rma.get(to, from, peer, compiled_site);
    default:
      return rma.get_nbi(to, from, peer, compiled_site);
  }
}

extern "C" {

Status tranship_transfer(std::int32_t kind, void* target, void* source, std::int64_t bytes, std::int64_t peer) {
  const auto to = Symmetric<std::byte>::at(static_cast<std::byte*>(target), bytes);
  const auto from = Symmetric<std::byte>::at(static_cast<std::byte*>(source), bytes);
  // A transfer that fails has done nothing; guarded() below tries it again and reports the error.
  if (Context* rma = Shmem::direct_of_this_thread()) [[likely]] {
    try {
      transfer(*rma, kind, to, from, int_of(peer));
      return 0;
    } catch (...) {
    }
  }
  return guarded(Waits::no, [&](Shmem& shmem) {
    const bool is_turned = kind <= put_nbi && shmem.is_turned(target, source);
    transfer(shmem.context(), kind, is_turned ? from : to, is_turned ? to : from, int_of(peer));
  });
}
/// A get of 1, 2, 4 or 8 bytes.
Status tranship_get_word(std::int32_t bytes, void* target, void* source, std::int64_t peer) {
  if (Context* rma = Shmem::direct_of_this_thread()) [[likely]] {
    const auto get_as = [&]<class T>(T) {
      const T value = rma->g(one<T>(source), int_of(peer), compiled_site);
      std::memcpy(target, &value, sizeof value);
    };
    try {
      switch (bytes) {
        case 8:
          get_as(std::uint64_t());
          return 0;
        case 4:
          get_as(std::uint32_t());
          return 0;
        case 2:
          get_as(std::uint16_t());
          return 0;
        default:
          get_as(std::uint8_t());
          return 0;
      }
    } catch (...) {
      // tranship_transfer tries it again and reports the error.
    }
  }
  return tranship_transfer(get, target, source, bytes, peer);
}
Status tranship_transfer_views(std::int32_t kind, const Array* target, const Array* source, std::int64_t peer) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    const StridedView to = target->view(), from = source->view();
    const bool is_turned = kind <= put_nbi && shmem.is_turned(to.data, from.data);
    const MatchedViews pair = is_turned ? matched(from, to) : matched(to, from);
    transfer(shmem.context(), kind, pair.target, pair.source, int_of(peer));
  });
}
Status tranship_put_signal(const Array* target, const Array* source, void* signal, std::uint64_t value, std::int64_t op,
                           std::int64_t peer, std::int32_t blocking) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    Context& rma = shmem.context();
    const MatchedViews pair = matched(target->view(), source->view());
    const auto word = one<std::uint64_t>(signal);
    const SignalOp how = shmem_signal_op(int_of(op));
    blocking ? rma.put_signal(pair.target, pair.source, word, value, how, int_of(peer), compiled_site)
             : rma.put_signal_nbi(pair.target, pair.source, word, value, how, int_of(peer), compiled_site);
  });
}
Status tranship_signal(void* signal, std::uint64_t value, std::int64_t op, std::int64_t peer) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    Context& rma = shmem.context();
    rma.signal(one<std::uint64_t>(signal), value, shmem_signal_op(int_of(op)), int_of(peer), compiled_site);
  });
}
Status tranship_wait_until(void* variable, std::int32_t type, std::int64_t comparison, std::uint64_t value,
                           std::uint64_t* seen) {
  return guarded(Waits::yes, [&](Shmem& shmem) {
    Context& rma = shmem.context();
    const Comparison how = shmem_comparison(int_of(comparison));
    with_word<WordTypes::integers>(static_cast<ElementType>(type), "wait_until", [&]<class T>(T) {
      *seen =
          bits_of_word(rma.wait_until(one<T>(variable), how, word_of_bits<T>(value), WaitNote::anyone, compiled_site));
    });
  });
}
Status tranship_test(void* variable, std::int32_t type, std::int64_t comparison, std::uint64_t value,
                     std::uint64_t* holds) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    Context& rma = shmem.context();
    const Comparison how = shmem_comparison(int_of(comparison));
    with_word<WordTypes::integers>(static_cast<ElementType>(type), "test", [&]<class T>(T) {
      *holds = rma.test(one<T>(variable), how, word_of_bits<T>(value), compiled_site);
    });
  });
}
Status tranship_several(std::int32_t what, const Array* variables, std::int64_t comparison, const void* values,
                        std::int64_t values_count, const std::int32_t* status, std::int64_t status_count,
                        std::int64_t* places, std::int64_t* count) {
  const auto kind = static_cast<Several>(what);
  return guarded(waits(kind) ? Waits::yes : Waits::no, [&](Shmem& shmem) {
    const char* const name = several_names[what];
    const SymmetricSpan span = span_of(variables->view(), name);
    const Comparison how = shmem_comparison(int_of(comparison));
    with_word<WordTypes::integers>(span.type, name, [&]<class T>(T) {
      const auto words = Symmetric<T>::at(static_cast<T*>(span.local), span.count);
      *count = look_at_several<T>(shmem.context(), kind, words, std::span(places, std::size_t(span.count)), how,
                                  std::span(static_cast<const T*>(values), std::size_t(values_count)),
                                  std::span(status, std::size_t(status_count)), compiled_site);
    });
  });
}
Status tranship_peer_address(const Array* array, std::int64_t peer, void** address) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    *address = at_peer(shmem.context(), array->view(), int_of(peer), compiled_site).data;
  });
}
/// Returns the address of the first team member's elements, the distance between members in bytes, and their number.
Status tranship_multicast_address(const Array* array, std::int64_t team, void** first, std::int64_t* stride,
                                  std::int64_t* members) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    const MulticastView there = at_members(shmem.context(), shmem.team(int_of(team)), array->view(), compiled_site);
    *first = there.first.data;
    *stride = there.stride_bytes;
    *members = there.members;
  });
}
Status tranship_atomic(std::int64_t call, void* at, std::int32_t type, std::uint64_t operand, std::uint64_t expected,
                       std::int64_t peer, std::uint64_t* before) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    *before = run_atomic_on_bits(shmem.context(), static_cast<AtomicCall>(call), static_cast<ElementType>(type), at,
                                 operand, expected, int_of(peer), compiled_site);
  });
}
Status tranship_fence() {
  return guarded(Waits::yes, [](Shmem& shmem) { shmem.context().fence(compiled_site); });
}
/// Releases the objects that non-blocking transfers have kept alive, unless the operation failed.
Status release_after(Status done) noexcept {
  Shmem* const shmem = done == 0 ? Shmem::of_this_thread_if_any() : nullptr;
  if (shmem == nullptr || !shmem->rank().holds_any()) return done;
  const nb::gil_scoped_acquire acquire;
  shmem->rank().release();
  return done;
}
Status tranship_quiet() {
  return release_after(guarded(Waits::yes, [](Shmem& shmem) { shmem.context().quiet(compiled_site); }));
}
Status tranship_meet(std::int64_t team, std::int32_t completes) {
  const Status done = guarded(Waits::yes, [&](Shmem& shmem) {
    Team& members = shmem.team(int_of(team));
    completes ? members.barrier(compiled_site) : members.sync(compiled_site);
  });
  return completes ? release_after(done) : done;
}
Status tranship_team_place(std::int64_t team, std::int32_t* rank, std::int32_t* size) {
  return guarded(Waits::no, [&](Shmem& shmem) {
    Team& members = shmem.team(int_of(team));
    *rank = members.rank();
    *size = members.size();
  });
}
Status tranship_collective(std::int32_t kind, std::int64_t team, const Array* target, const Array* source,
                           std::int32_t reduction, std::int64_t root) {
  return guarded(Waits::yes, [&](Shmem& shmem) {
    run_collective(static_cast<ShmemCollective>(kind), shmem.team(int_of(team)), target->view(), source->view(),
                   static_cast<Reduction>(reduction), int_of(root), compiled_site);
  });
}

}  // extern "C"

}  // namespace

void add_compiled_names(nb::module_& module) {
#if defined(__x86_64__)
  // Compiled code knows how to read a variable of its thread on this processor.
  using Direct = detail::DirectTransfers;
  static const std::ptrdiff_t direct_from_thread_pointer = Shmem::direct_from_thread_pointer();
  nb::dict fields;
  fields["own"] = offsetof(Direct, heaps.own);
  fields["size_bytes"] = offsetof(Direct, heaps.size_bytes);
  fields["direct"] = offsetof(Direct, heaps.direct);
  fields["count"] = offsetof(Direct, heaps.count);
  fields["acted"] = offsetof(Direct, acted);
  module.attr("direct_transfers") =
      nb::make_tuple(reinterpret_cast<std::uintptr_t>(&direct_from_thread_pointer), fields);
#else
  module.attr("direct_transfers") = nb::none();
#endif
  module.attr("transfer_names") = names_of(transfer_names);
  nb::list atomics;
  for (const AtomicForm& form : atomic_forms) atomics.append(form.word);
  module.attr("atomic_names") = nb::tuple(atomics);
  module.attr("several_names") = names_of(several_names);
}

nb::dict compiled_functions() {
  nb::dict out;
  const auto add_function = [&](const char* name, auto* function) {
    out[name] = reinterpret_cast<std::uintptr_t>(function);
  };
  add_function("tranship_transfer", &tranship_transfer);
  add_function("tranship_get_word", &tranship_get_word);
  add_function("tranship_transfer_views", &tranship_transfer_views);
  add_function("tranship_put_signal", &tranship_put_signal);
  add_function("tranship_signal", &tranship_signal);
  add_function("tranship_wait_until", &tranship_wait_until);
  add_function("tranship_test", &tranship_test);
  add_function("tranship_several", &tranship_several);
  add_function("tranship_peer_address", &tranship_peer_address);
  add_function("tranship_multicast_address", &tranship_multicast_address);
  add_function("tranship_atomic", &tranship_atomic);
  add_function("tranship_fence", &tranship_fence);
  add_function("tranship_quiet", &tranship_quiet);
  add_function("tranship_meet", &tranship_meet);
  add_function("tranship_team_place", &tranship_team_place);
  add_function("tranship_collective", &tranship_collective);
  return out;
}

}  // namespace tranship::python

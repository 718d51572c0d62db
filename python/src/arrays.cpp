// Distributed arrays, and the exchanges and pipes that move them.
#include <algorithm>
#include <type_traits>

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <tranship/array/array.hpp>
#include <tranship/array/check_halo.hpp>
#include <tranship/array/ghosts.hpp>
#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/interface_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/array/pipe.hpp>
#include <tranship/array/records.hpp>
#include <tranship/array/redistribution.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/run/exchange.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "halo_options.hpp"
#include "interpreter.hpp"
#include "leases.hpp"
#include "rank_handle.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

/// A rank's part of an array. Its memory outlives the world; its other resources end with the world.
class LocalArray final : public Resident {
 public:
  LocalArray(std::shared_ptr<RankHandle> rank, ArrayRef ref, nb::object owner, DevicesHandle devices)
      : rank_(std::move(rank)),
        ref_(std::move(ref)),
        owner_(std::move(owner)),
        devices_(std::move(devices)),
        name_(ref_.coherence->name()) {}

  ~LocalArray() override { leave(); }
  LocalArray(const LocalArray&) = delete;
  LocalArray& operator=(const LocalArray&) = delete;

  void leave() noexcept override {
    without_gil([this] {
      if (!ref_.coherence) return;
      is_leased_ = ref_.coherence->is_tracked();
      is_on_host_ = !is_leased_ || ref_.coherence->is_on_host();
      ref_.coherence.reset();
    });
  }
  /// Returns true when leases have been opened, which makes the host's memory one copy of several.
  bool is_leased() const noexcept { return ref_.coherence ? ref_.coherence->is_tracked() : is_leased_; }
  /// Returns the cells on the host, after it has brought them up to date with this rank's other copies.
  HostCells read_on_host(CallSite where) const {
    if (ref_.coherence) return detail::read_on_host(ref_, where);
    if (!is_on_host_)
      throw Error(ErrorCode::invalid_use,
                  "array '" + name_ + "': the host did not have its last values when its world ended");
    return {};
  }
  const std::shared_ptr<RankHandle>& rank() const noexcept { return rank_; }
  const std::string& name() const noexcept { return name_; }
  const DevicesHandle& devices() const noexcept { return devices_; }
  /// For properties of the array itself, which need no world.
  const ArrayRef& ref() const noexcept { return ref_; }
  /// For calls that need the world. Throws `invalid_use` once it has ended.
  const ArrayRef& living() const {
    (void)rank_->world();
    return ref_;
  }

 private:
  std::shared_ptr<RankHandle> rank_;
  ArrayRef ref_;
  nb::object owner_;
  DevicesHandle devices_;
  std::string name_;
  bool is_leased_ = false, is_on_host_ = true;  // when the world ended
};
using ArrayHandle = std::shared_ptr<LocalArray>;

ArrayHandle with_rank(const std::shared_ptr<RankHandle>& rank, ArrayRef ref, DevicesHandle devices,
                      nb::object owner = {}) {
  auto array = std::make_shared<LocalArray>(rank, std::move(ref), std::move(owner), std::move(devices));
  rank->add(array);
  return array;
}

nb::dict interface_of(const LocalArray& array, Access access) {
  const StridedView& view = array.ref().view;
  if (view.imaginary)
    throw Error(ErrorCode::unsupported, "a complex array in two planes cannot be shown as one NumPy array");
  return array_interface(view, array.ref().is_const ? Access::read_only : access);
}
Access access_of(const LocalArray& array) {
  return array.is_leased() ? Access::read_only : Access::writable;
}

/// A block in which the host's memory may be read, or written.
struct HostBlock {
  ArrayHandle array;  // and its devices, which outlive the lease
  HostCells cells;
};

/// An exchange and the arrays that it moves, which C++ does not keep where they are foreign.
class Moving final : public Resident {
 public:
  Moving(std::shared_ptr<RankHandle> rank, std::shared_ptr<ArrayExchange> exchange, std::vector<ArrayHandle> arrays)
      : rank_(std::move(rank)), exchange_(std::move(exchange)), arrays_(std::move(arrays)) {
    Index bytes = 0;
    for (const ArrayHandle& array : arrays_) {
      const StridedView& view = array->ref().view;
      bytes += checked_product(view.extents) * size_bytes(view.type);
    }
    is_brief_ = bytes <= brief_bytes && rank_->world().context().completes_at_once();
  }
  ~Moving() override { release(); }
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

  /// Keeps the description of the exchange after the world: notebooks show exchanges that their ranks have returned.
  void leave() noexcept override {
    if (!exchange_) return;
    try {
      left_.emplace(Left{exchange_->schedule(), exchange_->plan(), exchange_->explain()});
    } catch (const std::exception&) {
      left_.reset();  // no memory for it
    }
    release();
  }
  Schedule schedule() const { return left_ ? left_->schedule : exchange().schedule(); }
  TransferPlan plan() const { return left_ ? left_->plan : exchange().plan(); }
  std::string explain() const { return left_ ? left_->explanation : exchange().explain(); }
  ArrayExchange& exchange() const {
    if (!exchange_ || rank_->is_in_child()) (void)rank_->world();
    return *exchange_;
  }
  void start(CallSite where) const {
    ArrayExchange& moved = exchange();
    without_gil_unless(is_brief_ && !moved.start_may_wait(), [&] { moved.start(where); });
  }
  bool test(CallSite where) const {
    ArrayExchange& moved = exchange();
    return without_gil_unless(is_brief_, [&] { return moved.test(where); });
  }
  void finish(CallSite where) const {
    ArrayExchange& moved = exchange();
    if (!is_brief_ || !test(where)) without_gil([&] { moved.finish(where); });
  }
  /// Waits as finish() does, but for a second at most. Returns false when the exchange is not complete then.
  bool finish_soon(CallSite where) const {
    World& world = rank_->world();
    struct Timeout {
      World& world;
      std::int64_t before;
      explicit Timeout(World& of) : world(of), before(of.timeout_ns()) {
        world.set_timeout_ns(std::min<std::int64_t>(before, 1'000'000'000));
      }
      ~Timeout() { world.set_timeout_ns(before); }
    } timeout(world);
    try {
      finish(where);
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
      return false;
    }
  }

 private:
  struct Left {
    Schedule schedule;
    TransferPlan plan;
    std::string explanation;
  };

  void release() noexcept {
    without_gil([this] { exchange_.reset(); });
  }

  std::shared_ptr<RankHandle> rank_;
  std::shared_ptr<ArrayExchange> exchange_;  // which deletes it as what it was made as
  std::optional<Left> left_;
  std::vector<ArrayHandle> arrays_;
  bool is_brief_ = false;
};
using MovingHandle = std::shared_ptr<Moving>;

/// Makes an exchange of `arrays` by `make(refs, where)`, with the interpreter's lock released.
template <class F>
MovingHandle moving(std::vector<ArrayHandle> arrays, F&& make) {
  if (arrays.empty()) throw Error(ErrorCode::invalid_use, "there is no array to exchange");
  const std::shared_ptr<RankHandle> rank = arrays.front()->rank();
  std::vector<ArrayRef> refs;
  for (const ArrayHandle& array : arrays) refs.push_back(array->living());
  const CallSite where = python_call_site();
  std::shared_ptr<ArrayExchange> exchange = without_gil([&]() -> std::shared_ptr<ArrayExchange> {
    using Made = std::invoke_result_t<F, const std::vector<ArrayRef>&, CallSite>;
    return std::make_shared<Made>(make(refs, where));
  });
  auto handle = std::make_shared<Moving>(rank, std::move(exchange), std::move(arrays));
  rank->add(handle);
  return handle;
}

Schedule schedule_named(const std::string& name) {
  if (name == "automatic") return Schedule::automatic;
  if (name == "direct") return Schedule::direct;
  if (name == "staged") return Schedule::staged;
  if (name == "measured") return Schedule::measured;
  throw Error(ErrorCode::invalid_use, "schedule='" + name + "': needs 'automatic', 'direct', 'staged' or 'measured'");
}

ExchangeOptions options_of(const std::string& schedule, bool snapshot) {
  return {.schedule = schedule_named(schedule), .sources = snapshot ? Sources::snapshot : Sources::in_place};
}

HaloOperation operation_of(bool adjoint, const std::string& combine) {
  const Combine how = combine_named(combine);
  if (adjoint) return how;
  if (how != Combine::sum)
    throw Error(ErrorCode::invalid_use, "combine='" + combine + "' applies to an adjoint, and this is an update");
  return HaloDirection::update;
}

Cells cells_named(const std::string& name) {
  for (const Cells cells : {Cells::owned, Cells::interior, Cells::boundary, Cells::ghosts, Cells::stored})
    if (name == name_of(cells)) return cells;
  throw Error(ErrorCode::invalid_use,
              "cells='" + name + "': needs 'owned', 'interior', 'boundary', 'ghosts' or 'stored'");
}

/// A pipe between arrays that are its buffers.
class PipeHandle final : public Resident {
 public:
  using Arrays = std::vector<ArrayHandle>;

  PipeHandle(std::shared_ptr<RankHandle> rank, Pipe pipe, Arrays from, Arrays to)
      : rank_(std::move(rank)), from_(std::move(from)), to_(std::move(to)) {
    pipe_.emplace(std::move(pipe));
    sends_ = pipe_->sends();
    receives_ = pipe_->receives();
  }
  ~PipeHandle() override { leave(); }
  PipeHandle(const PipeHandle&) = delete;
  PipeHandle& operator=(const PipeHandle&) = delete;

  void leave() noexcept override {
    without_gil([this] { pipe_.reset(); });
  }
  bool sends() const noexcept { return sends_; }
  bool receives() const noexcept { return receives_; }
  Pipe& pipe() {
    if (!pipe_) {
      (void)rank_->world();
      throw Error(ErrorCode::invalid_use, "the pipe has been closed");
    }
    return *pipe_;
  }
  PipeEnd& end(bool of_sender, CallSite where) { return of_sender ? pipe().sender(where) : pipe().receiver(where); }

 private:
  std::shared_ptr<RankHandle> rank_;
  Arrays from_, to_;
  std::optional<Pipe> pipe_;
  bool sends_ = false, receives_ = false;
};

PipeBuffers buffers_of(const std::vector<ArrayHandle>& arrays) {
  PipeBuffers out{.count = Index(arrays.size())};
  for (const ArrayHandle& array : arrays) out.arrays.push_back(array->living());
  return out;
}

/// Returns a NumPy array over the memory of `array`; the NumPy array keeps `self` alive.
nb::object numpy_view(const nb::object& self, const LocalArray& array, Access access) {
  // A namespace stands for the array: NumPy would first ask the array for its buffer, which comes from this function.
  nb::object shown = nb::module_::import_("types").attr("SimpleNamespace")();
  shown.attr("__array_interface__") = interface_of(array, access);
  shown.attr("owner") = self;
  return nb::module_::import_("numpy").attr("asarray")(shown);
}
nb::object shown_memory(const nb::object& self) {
  const auto& array = nb::cast<const LocalArray&>(self);
  return numpy_view(self, array, access_of(array));
}
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const auto object = nb::borrow(self);
    const nb::object array = shown_memory(object);
    return PyObject_GetBuffer(array.ptr(), view, flags);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  view->obj = nullptr;
  return -1;
}
/// Gives classes of the package the buffer of their attribute `local`: before 3.12, Python classes cannot define one.
int get_local_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  PyObject* const local = PyObject_GetAttrString(self, "local");
  if (local == nullptr) return -1;
  const int status = PyObject_GetBuffer(local, view, flags);
  Py_DECREF(local);
  return status;
}
PyType_Slot local_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_local_buffer)},
                             {Py_tp_doc, const_cast<char*>("Shows the memory of its attribute `local`.")},
                             {0, nullptr}};
PyType_Spec local_type = {.name = "tranship._core.ShowsLocal",
                          .basicsize = 0,
                          .itemsize = 0,
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          .slots = local_slots};
PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};

}  // namespace

void bind_arrays(nb::module_& module) {
  const nb::object shows_local = nb::steal(PyType_FromSpec(&local_type));
  if (!shows_local.is_valid()) throw nb::python_error();
  module.attr("ShowsLocal") = shows_local;
  nb::class_<LocalArray>(module, "LocalArray", nb::type_slots(array_slots))
      .def_prop_ro("__array_interface__", [](const LocalArray& self) { return interface_of(self, access_of(self)); })
      .def("numpy", &shown_memory)
      .def("writable_numpy",
           [](const nb::object& self) { return numpy_view(self, nb::cast<const LocalArray&>(self), Access::writable); })
      .def_prop_ro("is_leased", &LocalArray::is_leased)
      .def("read_on_host",
           [](const ArrayHandle& self) {
             const CallSite where = python_call_site();
             return HostBlock{self, without_gil([&] { return self->read_on_host(where); })};
           })
      .def("write_on_host",
           [](const ArrayHandle& self) {
             const CallSite where = python_call_site();
             if (self->is_leased() && self->ref().is_const)
               throw Error(ErrorCode::invalid_use, "array '" + self->name() + "' is read-only");
             const ArrayRef& array = self->is_leased() ? self->living() : self->ref();
             return HostBlock{
                 self, without_gil([&] {
                   return HostCells{array.coherence ? detail::write_on_host(array, where) : Lease(), Region()};
                 })};
           })
      .def("note_host_pointers",
           [](const LocalArray& self) {
             const CallSite where = python_call_site();
             without_gil([&] { self.living().coherence->note_host_pointers(where); });
           })
      .def_prop_ro("spec", [](const LocalArray& self) { return *self.ref().spec; })
      .def_prop_ro("distribution", [](const LocalArray& self) { return self.ref().spec->distribution; })
      .def(
          "open",
          [](const LocalArray& self, const std::string& intent, const std::string& cells, Index depth,
             const std::string& device, const std::string& combine,
             const std::optional<std::vector<std::pair<Indices, Indices>>>& boxes,
             const std::shared_ptr<LeaseViews>& views) {
            const CallSite where = python_call_site();
            const bool are_gone = views->are_gone();
            ArrayAccess access{.cells = cells_named(cells), .depth = depth, .device = device_named(device)};
            access.region = region_of(boxes);
            const Intent how = intent_named(intent);
            const Combine by = combine_named(combine);
            const ArrayRef& array = self.living();
            const bool reads_own =
                how == Intent::read && access.cells != Cells::ghosts && access.cells != Cells::stored;
            if (array.is_const && !reads_own)
              throw Error(ErrorCode::invalid_use,
                          "array '" + self.name() + "' is read-only: its own cells can be read");
            auto memory = without_gil([&] {
              Lease lease = detail::open_lease(array, how, by, access, where);
              if (are_gone) lease.forget_pointers();
              return std::make_shared<LeaseMemory>(self.devices(), std::move(lease));
            });
            return LeaseHandle(std::move(memory), views);
          },
          "intent"_a, "cells"_a, "depth"_a, "device"_a, "combine"_a, "boxes"_a.none(), "views"_a)
      .def(
          "explain_lease",
          [](const LocalArray& self, const std::string& intent, const std::string& cells, const std::string& device) {
            const ArrayAccess access{.cells = cells_named(cells), .device = device_named(device)};
            return detail::explain_lease(self.living(), intent_named(intent), access, python_call_site());
          },
          "intent"_a, "cells"_a, "device"_a)
      .def("ghost_counts",
           [](const LocalArray& self) {
             const GhostCounts counts = detail::ghost_counts(self.living());
             return std::array<Index, 3>{counts.exchanges, counts.cells_received, counts.cells_sent};
           })
      .def("__repr__",
           [](const LocalArray& self) { return "array '" + self.name() + "' " + to_text(*self.ref().spec); });
  module.def(
      "allocate_array",
      [](const std::shared_ptr<RankHandle>& rank, const ArraySpec& spec, const std::string& name,
         const DevicesHandle& devices, int inner_dims, std::string record) {
        World& world = rank->world();
        const bool is_brief = spec.distribution.storage(world.rank()).elements <= brief_bytes / size_bytes(spec.type);
        ArrayRef ref = without_gil_unless(
            is_brief, [&] { return allocate_array(world, spec, {.name = name, .devices = devices.get()}); });
        ref.inner_dims = inner_dims;
        ref.coherence->set_record(std::move(record));
        return with_rank(rank, std::move(ref), devices);
      },
      "world"_a, "spec"_a, "name"_a, "devices"_a.none(), "inner_dims"_a, "record"_a);
  module.def(
      "wrap_array",
      [](const std::shared_ptr<RankHandle>& rank, const ArraySpec& spec, std::uintptr_t data, const Indices& extents,
         const Indices& strides, bool is_const, nb::object owner, const std::string& name, int inner_dims,
         std::string record) {
        const StridedView view{
            .data = reinterpret_cast<void*>(data), .type = spec.type, .extents = extents, .strides = strides};
        ArrayRef ref = wrap_array(rank->world(), spec, view, {.name = name});
        ref.is_const = is_const;
        ref.inner_dims = inner_dims;
        ref.coherence->set_record(std::move(record));
        return with_rank(rank, std::move(ref), nullptr, std::move(owner));
      },
      "world"_a, "spec"_a, "data"_a, "extents"_a, "strides"_a, "is_const"_a, "owner"_a, "name"_a, "inner_dims"_a,
      "record"_a);
  module.def(
      "record_spec",
      [](const Distribution& distribution, std::size_t bytes, std::size_t alignment) {
        return spec_of_records(distribution, {.bytes = bytes, .alignment = alignment});
      },
      "distribution"_a, "bytes"_a, "alignment"_a);

  nb::class_<HostBlock>(module, "HostBlock", "Boxes of stored cells that have no value, in a block.")
      .def("__enter__",
           [](const HostBlock& self) {
             std::vector<std::pair<Indices, Indices>> out;
             for (const Box& box : self.cells.missing.boxes()) out.emplace_back(box.lower, box.upper);
             return out;
           })
      .def(
          "__exit__",
          [](HostBlock& self, nb::handle kind, nb::handle, nb::handle) {
            without_gil([&] { kind.is_none() ? self.cells.lease.close() : self.cells.lease.abandon(); });
          },
          "kind"_a.none(), "error"_a.none(), "trace"_a.none());

  nb::class_<Moving>(module, "Exchange")
      .def(
          "start", [](const Moving& self) { self.start(python_call_site()); },
          "Starts an exchange; it does not wait for peers. Sources must not be written, and targets not be touched,\n"
          "until finish() returns, unless it was made with snapshot=True.")
      .def(
          "test", [](const Moving& self) { return self.test(python_call_site()); },
          "Moves what has become possible; True when the exchange is complete.")
      .def(
          "finish", [](const Moving& self) { self.finish(python_call_site()); },
          "Waits until the exchange is complete, until the world's timeout at the latest.")
      .def("finish_soon", [](const Moving& self) { return self.finish_soon(python_call_site()); })
      .def(
          "__call__",
          [](const Moving& self) {
            const CallSite where = python_call_site();
            self.start(where);
            self.finish(where);
          },
          "start() and finish().")
      .def_prop_ro("schedule",
                   [](const Moving& self) {
                     switch (self.schedule()) {
                       case Schedule::direct:
                         return "direct";
                       case Schedule::staged:
                         return "staged";
                       default:
                         return "automatic";
                     }
                   })
      .def_prop_ro("plan", [](const Moving& self) { return self.plan(); })
      .def(
          "explain", [](const Moving& self) { return self.explain(); },
          "How this rank moves what: messages, bytes, lengths of runs.");

  nb::class_<PipeHandle>(module, "Pipe")
      .def_prop_ro("sends", &PipeHandle::sends)
      .def_prop_ro("receives", &PipeHandle::receives)
      .def_prop_ro("source", [](PipeHandle& self) { return self.pipe().source(); })
      .def_prop_ro("target", [](PipeHandle& self) { return self.pipe().target(); })
      .def("explain", [](PipeHandle& self) { return self.pipe().explain(); })
      .def("close", [](PipeHandle& self) { self.leave(); })
      .def(
          "get",
          [](PipeHandle& self, bool of_sender) {
            const CallSite where = python_call_site();
            PipeEnd& end = self.end(of_sender, where);
            return without_gil([&] { return end.get(where).number; });
          },
          "of_sender"_a)
      .def(
          "test_get",
          [](PipeHandle& self, bool of_sender) {
            const CallSite where = python_call_site();
            PipeEnd& end = self.end(of_sender, where);
            const std::optional<PipeBuffer> got = without_gil([&] { return end.test_get(where); });
            return got ? std::optional<Index>(got->number) : std::nullopt;
          },
          "of_sender"_a)
      .def(
          "put",
          [](PipeHandle& self, bool of_sender) {
            const CallSite where = python_call_site();
            PipeEnd& end = self.end(of_sender, where);
            without_gil([&] { end.put(where); });
          },
          "of_sender"_a)
      .def("drain",
           [](PipeHandle& self) {
             const CallSite where = python_call_site();
             PipeEnd& end = self.end(true, where);
             without_gil([&] { end.drain(where); });
           })
      .def("test_drained",
           [](PipeHandle& self) {
             const CallSite where = python_call_site();
             PipeEnd& end = self.end(true, where);
             return without_gil([&] { return end.test_drained(where); });
           })
      .def(
          "held", [](PipeHandle& self, bool of_sender) { return self.end(of_sender, python_call_site()).held(); },
          "of_sender"_a);
  module.def(
      "make_pipe",
      [](const std::shared_ptr<RankHandle>& rank, const std::optional<ArraySpec>& source,
         const std::optional<ArraySpec>& target, const std::vector<ArrayHandle>& from,
         const std::vector<ArrayHandle>& to, const std::string& schedule, const std::string& name) {
        const CallSite where = python_call_site();
        World& world = rank->world();
        const PipeOptions options{
            .from = buffers_of(from), .to = buffers_of(to), .schedule = schedule_named(schedule), .name = name};
        auto handle = std::make_shared<PipeHandle>(
            rank, without_gil([&] { return Pipe(world, source, target, options, where); }), from, to);
        rank->add(handle);
        return handle;
      },
      "world"_a, "source"_a.none(), "target"_a.none(), "from_"_a, "to"_a, "schedule"_a, "name"_a);

  module.def(
      "make_redistribution",
      [](const std::vector<std::pair<ArrayHandle, ArrayHandle>>& pairs, const std::string& schedule, bool snapshot,
         const std::optional<std::array<Indices, 3>>& part, const std::optional<TransferPlan>& given) {
        std::vector<ArrayHandle> arrays;
        for (const auto& [source, target] : pairs) arrays.insert(arrays.end(), {source, target});
        const ExchangeOptions options = options_of(schedule, snapshot);
        RedistributionOptions plan;
        if (part) plan.part = SubArray{(*part)[0], (*part)[1], (*part)[2]};
        return moving(std::move(arrays), [&](const std::vector<ArrayRef>& refs, CallSite where) {
          std::vector<ArrayPair> moved;
          for (std::size_t i = 0; i < refs.size(); i += 2) moved.push_back({refs[i], refs[i + 1]});
          return given ? Redistribution(moved, *given, options, where) : Redistribution(moved, plan, options, where);
        });
      },
      "pairs"_a, "schedule"_a, "snapshot"_a, "part"_a = nb::none(), "plan"_a = nb::none());
  module.def(
      "make_adjoint",
      [](const ArrayHandle& source, const ArrayHandle& target, const std::string& schedule,
         const std::optional<TransferPlan>& plan) {
        const ExchangeOptions options{schedule_named(schedule)};
        return moving({source, target}, [&](const std::vector<ArrayRef>& refs, CallSite where) {
          return plan ? RedistributionAdjoint(refs[0], refs[1], *plan, options, where)
                      : RedistributionAdjoint(refs[0], refs[1], options, where);
        });
      },
      "source"_a, "target"_a, "schedule"_a, "plan"_a = nb::none());
  module.def(
      "make_halo",
      [](const std::vector<std::pair<ArrayHandle, HaloNumbers>>& fields, bool adjoint, const std::string& combine,
         const std::string& schedule, bool snapshot) {
        std::vector<ArrayHandle> arrays;
        std::vector<HaloOptions> halos;
        for (const auto& [array, halo] : fields) {
          arrays.push_back(array);
          halos.push_back(halo_options_of(halo));
        }
        const HaloOperation operation = operation_of(adjoint, combine);
        const ExchangeOptions options = options_of(schedule, snapshot);
        return moving(std::move(arrays), [&](const std::vector<ArrayRef>& refs, CallSite where) {
          std::vector<HaloField> moved;
          for (std::size_t i = 0; i < refs.size(); ++i) moved.push_back({refs[i], halos[i]});
          return HaloExchange(moved, operation, options, where);
        });
      },
      "fields"_a, "adjoint"_a, "combine"_a, "schedule"_a, "snapshot"_a,
      "An adjoint combines ghosts with their owners' cells; they become the element that changes nothing.");
  module.def(
      "make_planned_halo",
      [](const std::vector<ArrayHandle>& arrays, const TransferPlan& plan, const std::string& schedule, bool snapshot) {
        const ExchangeOptions options = options_of(schedule, snapshot);
        return moving(arrays, [&](const std::vector<ArrayRef>& refs, CallSite where) {
          return HaloExchange(refs, plan, options, where);
        });
      },
      "arrays"_a, "plan"_a, "schedule"_a, "snapshot"_a);
  module.def(
      "make_interfaces",
      [](const std::vector<ArrayHandle>& arrays, const std::string& schedule, bool snapshot) {
        const ExchangeOptions options = options_of(schedule, snapshot);
        return moving(arrays, [&](const std::vector<ArrayRef>& refs, CallSite where) {
          return InterfaceExchange(refs, options, where);
        });
      },
      "arrays"_a, "schedule"_a, "snapshot"_a);
  using TiledHandles = std::vector<std::pair<std::vector<ArrayHandle>, std::vector<int>>>;
  using VectorNumbers = std::vector<std::vector<std::pair<int, int>>>;
  const auto all_of = [](const TiledHandles& fields) {
    std::vector<ArrayHandle> arrays;
    for (const auto& [tiles, dims] : fields) arrays.insert(arrays.end(), tiles.begin(), tiles.end());
    return arrays;
  };
  const auto tiled_of = [](const TiledHandles& fields, const std::vector<ArrayRef>& refs) {
    std::vector<TiledArray> tiled;
    auto next = refs.begin();
    for (const auto& [tiles, dims] : fields) {
      tiled.push_back({{next, next + std::ptrdiff_t(tiles.size())}, dims});
      next += std::ptrdiff_t(tiles.size());
    }
    return tiled;
  };
  const auto vectors_of = [](const VectorNumbers& vectors) {
    std::vector<std::vector<VectorField>> out;
    for (const auto& vector : vectors) {
      out.emplace_back();
      for (const auto& [field, along] : vector) out.back().push_back({.field = field, .along = along});
    }
    return out;
  };
  module.def(
      "make_tiled_halo",
      [=](const Tiling& tiling, const TiledHandles& fields, const VectorNumbers& vectors, const HaloNumbers& numbers,
          bool adjoint, const std::string& combine, const std::string& schedule, bool snapshot) {
        TiledHaloOptions halo;
        static_cast<HaloOptions&>(halo) = halo_options_of(numbers);
        halo.vectors = vectors_of(vectors);
        const HaloOperation operation = operation_of(adjoint, combine);
        const ExchangeOptions options = options_of(schedule, snapshot);
        return moving(all_of(fields), [&](const std::vector<ArrayRef>& refs, CallSite where) {
          return HaloExchange(tiling, tiled_of(fields, refs), halo, operation, options, where);
        });
      },
      "tiling"_a, "fields"_a, "vectors"_a, "halo"_a, "adjoint"_a, "combine"_a, "schedule"_a, "snapshot"_a);
  module.def(
      "make_tiled_interfaces",
      [=](const Tiling& tiling, const TiledHandles& fields, const VectorNumbers& vectors, const std::string& schedule,
          bool snapshot) {
        const ExchangeOptions options = options_of(schedule, snapshot);
        return moving(all_of(fields), [&](const std::vector<ArrayRef>& refs, CallSite where) {
          return InterfaceExchange(tiling, tiled_of(fields, refs), vectors_of(vectors), options, where);
        });
      },
      "tiling"_a, "fields"_a, "vectors"_a, "schedule"_a, "snapshot"_a,
      "Interfaces on an edge of two tiles get the values of the tile whose low side it is.");
  module.def(
      "check_halo",
      [](const std::shared_ptr<RankHandle>& rank, const Tiling& tiling, const std::vector<Distribution>& tiles,
         const std::vector<int>& tile_dims) {
        World& world = rank->world();
        const CallSite where = python_call_site();
        const HaloCheck found = without_gil([&] { return check_halo(world, tiling, tiles, tile_dims, where); });
        return std::tuple(found.ghosts, found.untouched, found.wrong, found.first_wrong);
      },
      "world"_a, "tiling"_a, "distributions"_a, "tile_dims"_a,
      "Ghosts that were compared, ghosts without an owner, wrong cells, and where the first of these is.");
}

}  // namespace tranship::python

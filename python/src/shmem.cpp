#include "shmem.hpp"

#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/peer_views.hpp>
#include <tranship/fabric/seam/heap_place.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/face/shmem/collectives.hpp>
#include <tranship/face/shmem/numbers.hpp>
#include <tranship/face/shmem/views.hpp>

#include "bindings.hpp"
#include "interpreter.hpp"
#include "one_sided.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

std::shared_ptr<Shmem> Shmem::begin(const std::shared_ptr<RankHandle>& rank) {
  if (!rank->is_of_this_thread())
    throw_error(ErrorCode::invalid_use, "rank {} calls init() in another thread than its own", rank->world().rank());
  const CallSite where = python_call_site();
  const std::shared_ptr<Shmem> shmem = without_gil([&] { return std::shared_ptr<Shmem>(new Shmem(rank, where)); });
  rank->add(shmem);
  shmem->make_current();
  return shmem;
}

namespace {

/// The memory that a Python object shows while this lives. Throws `invalid_use` when it shows none.
class Shown {
 public:
  Shown(nb::handle object, const char* what) : object_(object), what_(what), buffer_(object, Access::read_only) {
    if (!buffer_.view())
      throw_error(ErrorCode::invalid_use, "{}: a {} shows no elements of a number type", what, type_name());
  }
  nb::handle object() const { return object_; }
  const StridedView& view() const { return *buffer_.view(); }
  const StridedView& writable() const {
    if (buffer_.is_read_only())
      throw_error(ErrorCode::invalid_use, "{}: a {} cannot be written: it is read-only", what_, type_name());
    return *buffer_.view();
  }

 private:
  std::string type_name() const { return nb::str(object_.type().attr("__name__")).c_str(); }

  nb::handle object_;
  const char* what_;
  BufferView buffer_;
};

/// The program's own memory, which is symmetric while this lives.
struct Registration {
  std::shared_ptr<RankHandle> rank;
  nb::object owner;
  RegisteredMemory memory;
  StridedView view;
};

}  // namespace

void bind_shmem(nb::module_& module) {
  nb::class_<Registration>(module, "Registration").def_prop_ro("__array_interface__", [](const Registration& self) {
    return array_interface(self.view, Access::writable);
  });
  nb::class_<Shmem>(module, "Shmem")
      .def(
          "put",
          [](Shmem& self, nb::handle target, nb::handle source, Rank peer, bool blocking) {
            const Shown first(target, "put"), second(source, "put");
            const bool is_turned = self.is_turned(first.view().data, second.view().data);
            const Shown &to = is_turned ? second : first, &from = is_turned ? first : second;
            const MatchedViews pair = matched(to.writable(), from.view());
            put_view(self.rank(), pair.target, pair.source, peer, blocking, from.object());
          },
          "target"_a, "source"_a, "peer"_a, "blocking"_a)
      .def(
          "get",
          [](Shmem& self, nb::handle target, nb::handle source, Rank peer, bool blocking) {
            const Shown to(target, "get"), from(source, "get");
            const MatchedViews pair = matched(to.writable(), from.view());
            get_view(self.rank(), pair.target, pair.source, peer, blocking, target);
          },
          "target"_a, "source"_a, "peer"_a, "blocking"_a)
      .def(
          "put_signal",
          [](Shmem& self, nb::handle target, nb::handle source, nb::handle signal, const nb::int_& value, int op,
             Rank peer, bool blocking) {
            const Shown to(target, "put_signal"), from(source, "put_signal");
            const Shown word(signal, "the signal of a put_signal");
            const MatchedViews pair = matched(to.writable(), from.view());
            put_signal_view(self.rank(), pair.target, pair.source, {word.writable(), value, shmem_signal_op(op)}, peer,
                            blocking, source);
          },
          "target"_a, "source"_a, "signal"_a, "value"_a, "op"_a, "peer"_a, "blocking"_a)
      .def(
          "signal",
          [](Shmem& self, nb::handle signal, const nb::int_& value, int op, Rank peer) {
            const Shown word(signal, "signal_op");
            signal_view(self.rank(), {word.writable(), value, shmem_signal_op(op)}, peer);
          },
          "signal"_a, "value"_a, "op"_a, "peer"_a)
      .def(
          "wait_until",
          [](Shmem& self, nb::handle variable, int comparison, const nb::int_& value) {
            const Shown word(variable, "wait_until");
            return wait_for_view(self.rank(), word.view(), shmem_comparison(comparison), value);
          },
          "variable"_a, "comparison"_a, "value"_a)
      .def(
          "test",
          [](Shmem& self, nb::handle variable, int comparison, const nb::int_& value) {
            const Shown word(variable, "test");
            return test_view(self.rank(), word.view(), shmem_comparison(comparison), value);
          },
          "variable"_a, "comparison"_a, "value"_a)
      .def(
          "several",
          [](Shmem& self, const std::string& what, nb::handle variables, int comparison,
             const std::vector<nb::int_>& values, const std::vector<int>& skip) {
            const Shown words(variables, what.c_str());
            return several(self.rank(), what, words.view(), shmem_comparison(comparison), values, skip);
          },
          "what"_a, "variables"_a, "comparison"_a, "values"_a, "skip"_a,
          "Places of variables that compare so with one value, or each with its own.")
      .def(
          "atomic",
          [](Shmem& self, nb::handle at, const std::string& op, const nb::object& value, const nb::object& compare,
             Rank peer) {
            const Shown word(at, op.c_str());
            return update_view(self.rank(), op == "fetch" ? word.view() : word.writable(), op, value, compare, peer);
          },
          "at"_a, "op"_a, "value"_a, "compare"_a, "peer"_a)
      .def(
          "is_symmetric", [](Shmem& self, std::uintptr_t at) { return self.is_symmetric(reinterpret_cast<void*>(at)); },
          "address"_a)
      .def(
          "peer_view",
          [](Shmem& self, nb::handle array, Rank peer) {
            const Shown own(array, "get_peer_array");
            return array_interface(at_peer(self.context(), own.view(), peer, python_call_site()), Access::writable);
          },
          "array"_a, "peer"_a, "NumPy's array interface of the elements at a peer whose memory can be loaded.")
      .def(
          "register_memory",
          [](Shmem& self, const nb::object& array) {
            const Shown own(array, "register_external_array");
            const SymmetricSpan span = span_of(own.writable(), "register_external_array");
            const CallSite where = python_call_site();
            auto* const first = static_cast<std::byte*>(span.local);
            const auto bytes = std::size_t(span.count * size_bytes(span.type));
            RegisteredMemory memory =
                without_gil([&] { return self.world().register_memory(std::span(first, bytes), where); });
            StridedView view = own.view();
            view.data = bytes > 0 ? memory.symmetric(first, Index(bytes)).local() : nullptr;
            return Registration{self.rank_handle(), array, std::move(memory), std::move(view)};
          },
          "array"_a)
      .def(
          "collective",
          [](Shmem& self, int kind, int team, nb::handle target, nb::handle source, const std::string& op, int root) {
            const auto which = static_cast<ShmemCollective>(kind);
            const char* const name = shmem_collective_names[kind];
            const Shown to(target, name), from(source, name);
            const CallSite where = python_call_site();
            Team& members = self.team(team);
            const Reduction reduction = reduces(which) ? shmem_reduction(op) : Reduction::sum;
            const StridedView &all = to.writable(), &own = from.view();
            without_gil([&] { run_collective(which, members, all, own, reduction, root, where); });
          },
          "kind"_a, "team"_a, "target"_a, "source"_a, "op"_a, "root"_a)
      .def(
          "barrier",
          [](Shmem& self, int team) {
            const CallSite where = python_call_site();
            Team& members = self.team(team);
            without_gil([&] { members.barrier(where); });
            self.rank().release();
          },
          "team"_a)
      .def(
          "sync",
          [](Shmem& self, int team) {
            const CallSite where = python_call_site();
            Team& members = self.team(team);
            without_gil([&] { members.sync(where); });
          },
          "team"_a)
      .def(
          "team_rank", [](Shmem& self, int team) { return self.team(team).rank(); }, "team"_a)
      .def(
          "team_size", [](Shmem& self, int team) { return self.team(team).size(); }, "team"_a)
      .def(
          "world_rank", [](Shmem& self, int team, int member) { return self.team(team).world_rank(member); }, "team"_a,
          "member"_a)
      .def(
          "translate",
          [](Shmem& self, int team, int member, int other) {
            return self.team(team).translate(member, self.team(other));
          },
          "team"_a, "member"_a, "other"_a)
      .def(
          "split_strided",
          [](Shmem& self, int team, int first, int stride, int count) {
            const CallSite where = python_call_site();
            Team& parent = self.team(team);
            return self.add(without_gil(
                [&] { return parent.split_strided({.first = first, .stride = stride, .count = count}, where); }));
          },
          "team"_a, "first"_a, "stride"_a, "count"_a)
      .def(
          "split_2d",
          [](Shmem& self, int team, int x_size) {
            const CallSite where = python_call_site();
            Team& parent = self.team(team);
            Team::Split2d split = without_gil([&] { return parent.split_2d(x_size, where); });
            const int x = self.add(std::move(split.x));
            return std::pair(x, self.add(std::move(split.y)));
          },
          "team"_a, "x_size"_a)
      .def("destroy", &Shmem::remove, "team"_a)
      .def_prop_ro("is_over", [](const Shmem& self) { return self.is_over(); })
      .def("leave", &Shmem::leave);
  module.def("begin_shmem", &Shmem::begin, "world"_a, "Collective.");
  module.def("compiled_functions", &compiled_functions);
  add_compiled_names(module);
  module.attr("collective_names") = names_of(shmem_collective_names);
  module.attr("reduction_names") = names_of(shmem_reduction_names);
  module.def(
      "element_number", [](const std::string& kind) { return int(element_type_of_numpy(kind).value()); }, "kind"_a,
      "The number of an element type in compiled code.");
}

}  // namespace tranship::python

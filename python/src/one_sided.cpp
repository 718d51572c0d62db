// Symmetric memory and one-sided transfers.
#include "one_sided.hpp"

#include <algorithm>
#include <complex>

#include <nanobind/nanobind.h>

#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/memory_use.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/typed_words.hpp>
#include <tranship/face/shmem/views.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "rank_handle.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

/// Elements in the symmetric heap, at the same place on every rank. Slices share the block.
class SymmetricView {
 public:
  /// The last `inner_dims` dimensions hold the inside of each element, for elements that are moved as bytes.
  SymmetricView(std::shared_ptr<RankHandle> rank, std::shared_ptr<void> memory, StridedView view, int inner_dims)
      : rank_(std::move(rank)), memory_(std::move(memory)), view_(std::move(view)), inner_dims_(inner_dims) {}

  const std::shared_ptr<RankHandle>& rank() const noexcept { return rank_; }
  const StridedView& view() const noexcept { return view_; }
  /// Returns the view for an operation that computes with elements. Throws `invalid_use` for elements moved as bytes.
  const StridedView& numbers(const char* what) const {
    if (inner_dims_ > 0) throw_error(ErrorCode::invalid_use, "{} cannot take elements that are moved as bytes", what);
    return view_;
  }

  SymmetricView part(Index offset_elements, const Indices& extents, const Indices& strides) const {
    StridedView view = view_;
    view.data = static_cast<std::byte*>(view.data) + offset_elements * size_bytes(view.type);
    view.extents = extents;
    view.strides = strides;
    return {rank_, memory_, std::move(view), inner_dims_};
  }

  /// Returns the elements that an index, a slice or a tuple of these selects, by NumPy's rules; a single element is a
  /// slice of length 1. Returns nothing for other keys and for indices out of range.
  std::optional<SymmetricView> part_of(PyObject* key) const {
    const int dims = view_.extents.size() - inner_dims_;
    const bool are_many = PyTuple_Check(key) != 0;
    const Py_ssize_t count = are_many ? PyTuple_Size(key) : 1;
    if (count > dims) return std::nullopt;
    Index offset = 0;
    Indices extents, strides;
    for (int d = 0; d < dims; ++d) {
      const Index extent = view_.extents[d], stride = view_.strides[d];
      if (d >= count) {
        extents.push_back(extent);
        strides.push_back(stride);
        continue;
      }
      PyObject* const one = are_many ? PyTuple_GetItem(key, d) : key;
      if (PySlice_Check(one) != 0) {
        Py_ssize_t start = 0, stop = 0, step = 0;
        if (PySlice_Unpack(one, &start, &stop, &step) < 0) throw nb::python_error();
        const Py_ssize_t length = PySlice_AdjustIndices(extent, &start, &stop, step);
        offset += length > 0 ? start * stride : 0;
        extents.push_back(length);
        strides.push_back(step * stride);
        continue;
      }
      if (PyLong_Check(one) == 0 || PyBool_Check(one) != 0) return std::nullopt;
      Index at = PyLong_AsSsize_t(one);
      if (at == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return std::nullopt;
      }
      if (at < 0) at += extent;
      if (at < 0 || at >= extent) return std::nullopt;
      offset += at * stride;
    }
    if (extents.size() == 0 && dims > 0) {
      extents.push_back(1);
      strides.push_back(1);
    }
    for (int d = dims; d < view_.extents.size(); ++d) {
      extents.push_back(view_.extents[d]);
      strides.push_back(view_.strides[d]);
    }
    return part(checked_product(extents) > 0 ? offset : 0, extents, strides);
  }

 private:
  std::shared_ptr<RankHandle> rank_;
  std::shared_ptr<void> memory_;
  StridedView view_;
  int inner_dims_;
};
using SymmetricHandle = std::shared_ptr<SymmetricView>;

/// Calls `f(Symmetric<T>)` for the elements of an integer type. Throws `invalid_use` for other types.
template <class F>
decltype(auto) with_words(const StridedView& view, const char* what, F&& f) {
  return with_word<WordTypes::integers>(view.type, what, [&]<class T>(T) {
    return f(Symmetric<T>::at(static_cast<T*>(view.data), span_of(view, what).count));
  });
}
/// Converts a Python number to a word of type T.
template <class T>
T word_of(const nb::object& value) {
  T word{};
  if (!nb::try_cast<T>(value, word, !std::is_integral_v<T>))
    throw Error(ErrorCode::invalid_use, std::string(nb::str(value).c_str()) + " does not fit in an element of " +
                                            std::string(name_of(element_type_of<T>)));
  return word;
}

Reduction team_reduction(const std::string& name) {
  for (int i = 0; i <= int(Reduction::bit_xor); ++i)
    if (name == name_of(static_cast<Reduction>(i)) || (name == "min" && i == int(Reduction::minimum)) ||
        (name == "max" && i == int(Reduction::maximum)))
      return static_cast<Reduction>(i);
  throw Error(ErrorCode::invalid_use,
              "reduction '" + name + "': needs sum, product, min, max, bit_and, bit_or or bit_xor");
}

/// Calls f(bytes) for each contiguous stretch of elements, which the last dimensions form as far as they are dense.
template <class F>
void for_each_row(const std::byte* first, std::size_t width, std::span<const Index> extents,
                  std::span<const Index> strides_bytes, F&& f) {
  while (!extents.empty() && strides_bytes.back() == Index(width)) {
    width *= std::size_t(extents.back());
    extents = extents.first(extents.size() - 1);
    strides_bytes = strides_bytes.first(strides_bytes.size() - 1);
  }
  if (extents.empty()) return f(std::span(first, width));
  for (Index i = 0; i < extents[0]; ++i)
    for_each_row(first + i * strides_bytes[0], width, extents.subspan(1), strides_bytes.subspan(1), f);
}

/// Returns true when a transfer of the view's elements neither waits nor takes long.
bool is_brief(const Context& rma, const StridedView& view, Rank peer) {
  return rma.completes_at_once(peer) && checked_product(view.extents) <= brief_bytes / size_bytes(view.type);
}

/// Returns the elements of a signal, of which operations use the first one.
Symmetric<std::uint64_t> signal_word(const StridedView& view) {
  if (view.type != ElementType::u64 && view.type != ElementType::i64)
    throw Error(ErrorCode::invalid_use,
                "a signal is one integer of 8 bytes ('u8' or 'i8'), not of type " + std::string(name_of(view.type)));
  return Symmetric<std::uint64_t>::at(static_cast<std::uint64_t*>(view.data), checked_product(view.extents));
}
/// Converts a signal's value to the bits of the word, also a negative value of a signed word.
std::uint64_t signal_value(const SignalArgs& signal) {
  if (signal.word.type == ElementType::i64) return std::uint64_t(word_of<std::int64_t>(signal.value));
  return word_of<std::uint64_t>(signal.value);
}

}  // namespace

Comparison comparison_named(const std::string& name) {
  if (name == "==") return Comparison::equal;
  if (name == "!=") return Comparison::not_equal;
  if (name == ">") return Comparison::greater;
  if (name == ">=") return Comparison::greater_equal;
  if (name == "<") return Comparison::less;
  if (name == "<=") return Comparison::less_equal;
  throw Error(ErrorCode::invalid_use, "comparison '" + name + "': needs one of == != > >= < <=");
}
SignalOp signal_op_named(const std::string& name) {
  if (name == "set") return SignalOp::set;
  if (name == "add") return SignalOp::add;
  throw Error(ErrorCode::invalid_use, "signal operation '" + name + "': needs 'set' or 'add'");
}

void put_view(RankHandle& rank, const StridedView& target, const StridedView& source, Rank peer, bool blocking,
              nb::handle owner) {
  Context& rma = rank.world().context();
  if (!blocking && !rma.completes_at_once(peer)) rank.hold(nb::borrow(owner));
  const CallSite where = python_call_site();
  without_gil_unless(is_brief(rma, target, peer), [&] {
    blocking ? rma.put(target, source, peer, where) : rma.put_nbi(target, source, peer, where);
  });
}
void get_view(RankHandle& rank, const StridedView& target, const StridedView& source, Rank peer, bool blocking,
              nb::handle owner) {
  Context& rma = rank.world().context();
  if (!blocking && !rma.completes_at_once(peer)) rank.hold(nb::borrow(owner));
  const CallSite where = python_call_site();
  without_gil_unless(is_brief(rma, source, peer), [&] {
    blocking ? rma.get(target, source, peer, where) : rma.get_nbi(target, source, peer, where);
  });
}
void put_signal_view(RankHandle& rank, const StridedView& target, const StridedView& source, const SignalArgs& signal,
                     Rank peer, bool blocking, nb::handle owner) {
  Context& rma = rank.world().context();
  if (!blocking && !rma.completes_at_once(peer)) rank.hold(nb::borrow(owner));
  const CallSite where = python_call_site();
  const auto word = signal_word(signal.word);
  const std::uint64_t value = signal_value(signal);
  without_gil_unless(is_brief(rma, target, peer), [&] {
    blocking ? rma.put_signal(target, source, word, value, signal.op, peer, where)
             : rma.put_signal_nbi(target, source, word, value, signal.op, peer, where);
  });
}
void signal_view(RankHandle& rank, const SignalArgs& signal, Rank peer) {
  Context& rma = rank.world().context();
  const CallSite where = python_call_site();
  const auto word = signal_word(signal.word);
  const std::uint64_t value = signal_value(signal);
  without_gil_unless(rma.completes_at_once(peer), [&] { rma.signal(word, value, signal.op, peer, where); });
}

nb::object wait_for_view(RankHandle& rank, const StridedView& variable, Comparison comparison, const nb::int_& value) {
  Context& rma = rank.world().context();
  const CallSite where = python_call_site();
  return with_words(variable, "wait_until", [&]<class T>(Symmetric<T> word) -> nb::object {
    const T wanted = word_of<T>(value);
    const bool is_there = rma.completes_at_once() && rma.test(word, comparison, wanted, where);
    const T seen =
        without_gil_unless(is_there, [&] { return rma.wait_until(word, comparison, wanted, WaitNote::anyone, where); });
    return nb::int_(seen);
  });
}
bool test_view(RankHandle& rank, const StridedView& variable, Comparison comparison, const nb::int_& value) {
  Context& rma = rank.world().context();
  const CallSite where = python_call_site();
  return with_words(variable, "test", [&]<class T>(Symmetric<T> word) {
    const T wanted = word_of<T>(value);
    return without_gil_unless(rma.completes_at_once(), [&] { return rma.test(word, comparison, wanted, where); });
  });
}
std::vector<Index> several(RankHandle& rank, const std::string& what, const StridedView& variables,
                           Comparison comparison, const std::vector<nb::int_>& values, const std::vector<int>& skip) {
  Context& rma = rank.world().context();
  const CallSite where = python_call_site();
  const auto known = std::find(std::begin(several_names), std::end(several_names), what) - std::begin(several_names);
  return with_words(variables, what.c_str(), [&]<class T>(Symmetric<T> words) {
    std::vector<T> wanted;
    for (const nb::int_& value : values) wanted.push_back(word_of<T>(value));
    std::vector<Index> places(static_cast<std::size_t>(words.size()));
    const Index count = without_gil([&] {
      return look_at_several<T>(rma, static_cast<Several>(known), words, places, comparison, wanted, skip, where);
    });
    places.resize(static_cast<std::size_t>(count));
    return places;
  });
}
nb::object update_view(RankHandle& rank, const StridedView& at, const std::string& op, const nb::object& value,
                       const nb::object& compare, Rank peer) {
  Context& rma = rank.world().context();
  const CallSite where = python_call_site();
  const AtomicCall call = atomic_call_named(op);
  const AtomicForm& form = form_of(call);
  return with_word_of(call, at.type, [&]<class T>(T) -> nb::object {
    const auto word = Symmetric<T>::at(static_cast<T*>(at.data), checked_product(at.extents));
    const T operand = form.takes >= AtomicForm::Takes::value ? word_of<T>(value) : T{};
    const T expected = form.takes == AtomicForm::Takes::exchange ? word_of<T>(compare) : T{};
    const T before = without_gil_unless(rma.completes_at_once(),
                                        [&] { return run_atomic(rma, call, word, operand, expected, peer, where); });
    return form.fetches ? nb::cast(before) : nb::none();
  });
}

void bind_one_sided(nb::module_& module) {
  nb::class_<SymmetricView>(module, "SymmetricView")
      .def_prop_ro("__array_interface__",
                   [](const SymmetricView& self) { return array_interface(self.view(), Access::writable); })
      .def_prop_ro("world", [](const SymmetricView& self) { return self.rank(); })
      .def("part", &SymmetricView::part, "offset_elements"_a, "extents"_a, "strides"_a)
      .def(
          "part_of", [](const SymmetricView& self, nb::handle key) { return self.part_of(key.ptr()); }, "key"_a.none());

  module.def(
      "allocate_symmetric",
      [](const std::shared_ptr<RankHandle>& rank, const Indices& extents, const std::string& type, int inner_dims) {
        World& world = rank->world();
        const ElementType element = element_type_of_numpy(type).value();
        const Index count = checked_product(extents);
        const CallSite where = python_call_site();
        std::shared_ptr<void> memory = without_gil([&] { return world.allocate(element, count, where); });
        StridedView view{
            .data = memory.get(), .type = element, .extents = extents, .strides = row_major_strides(extents)};
        return std::make_shared<SymmetricView>(rank, std::move(memory), std::move(view), inner_dims);
      },
      "world"_a, "extents"_a, "type"_a, "inner_dims"_a);

  module.def(
      "put",
      [](const SymmetricHandle& target, std::uintptr_t data, const std::string& type, const Indices& extents,
         const Indices& strides, Rank peer, bool blocking, const std::optional<SymmetricHandle>& signal,
         const std::optional<nb::int_>& value, const std::string& op, const nb::object& owner) {
        const StridedView source = view_at(data, type, extents, strides);
        if (!signal) return put_view(*target->rank(), target->view(), source, peer, blocking, owner);
        const SignalArgs sent{(*signal)->numbers("signal"), value.value_or(nb::int_(1)), signal_op_named(op)};
        put_signal_view(*target->rank(), target->view(), source, sent, peer, blocking, owner);
      },
      "target"_a, "data"_a, "type"_a, "extents"_a, "strides"_a, "peer"_a, "blocking"_a, "signal"_a, "value"_a, "op"_a,
      "owner"_a);
  module.def(
      "put_buffer",
      [](const SymmetricHandle& target, nb::handle source, Rank peer, bool blocking) {
        const BufferView from(source, Access::read_only);
        const StridedView& to = target->view();
        if (!from.view() || from.view()->type != to.type || !(from.view()->extents == to.extents)) return false;
        put_view(*target->rank(), to, *from.view(), peer, blocking, source);
        return true;
      },
      "target"_a, "source"_a.none(), "peer"_a, "blocking"_a,
      "Puts what shows elements of the same type and extents by the buffer protocol; False for anything else.");
  module.def(
      "get_buffer",
      [](const SymmetricHandle& source, nb::handle target, Rank peer, bool blocking) {
        const BufferView to(target, Access::writable);
        const StridedView& from = source->view();
        if (!to.view() || to.view()->type != from.type || !(to.view()->extents == from.extents)) return false;
        get_view(*source->rank(), *to.view(), from, peer, blocking, target);
        return true;
      },
      "source"_a, "target"_a, "peer"_a, "blocking"_a);
  module.def(
      "get",
      [](const SymmetricHandle& source, std::uintptr_t data, const std::string& type, const Indices& extents,
         const Indices& strides, Rank peer, bool blocking, const nb::object& owner) {
        const StridedView target = view_at(data, type, extents, strides);
        get_view(*source->rank(), target, source->view(), peer, blocking, owner);
      },
      "source"_a, "data"_a, "type"_a, "extents"_a, "strides"_a, "peer"_a, "blocking"_a, "owner"_a);
  module.def(
      "signal",
      [](const SymmetricHandle& signal, const nb::int_& value, const std::string& op, Rank peer) {
        signal_view(*signal->rank(), {signal->numbers("signal"), value, signal_op_named(op)}, peer);
      },
      "signal"_a, "value"_a, "op"_a, "peer"_a);
  module.def(
      "wait_until",
      [](const SymmetricHandle& variable, const std::string& comparison, const nb::int_& value) {
        return wait_for_view(*variable->rank(), variable->numbers("wait_until"), comparison_named(comparison), value);
      },
      "variable"_a, "comparison"_a, "value"_a);
  module.def(
      "test",
      [](const SymmetricHandle& variable, const std::string& comparison, const nb::int_& value) {
        return test_view(*variable->rank(), variable->numbers("test"), comparison_named(comparison), value);
      },
      "variable"_a, "comparison"_a, "value"_a);
  module.def(
      "atomic",
      [](const SymmetricHandle& at, const std::string& op, const nb::object& value, const nb::object& compare,
         Rank peer) { return update_view(*at->rank(), at->numbers(op.c_str()), op, value, compare, peer); },
      "at"_a, "op"_a, "value"_a, "compare"_a, "peer"_a);
  module.def(
      "collective",
      [](const std::string& name, const SymmetricHandle& target, const SymmetricHandle& source,
         const std::string& reduction, int root) {
        const CallSite where = python_call_site();
        const SymmetricSpan to = span_of(target->view(), name), from = span_of(source->view(), name);
        const Reduction op = team_reduction(reduction);
        Team& everyone = target->rank()->world().team();
        without_gil([&] {
          if (name == "all_reduce") return all_reduce(everyone, to, from, op, where);
          if (name == "reduce_scatter") return reduce_scatter(everyone, to, from, op, where);
          if (name == "all_gather") return all_gather(everyone, to, from, where);
          if (name == "all_to_all") return all_to_all(everyone, to, from, where);
          return broadcast(everyone, to, from, root, where);
        });
      },
      "name"_a, "target"_a, "source"_a, "reduction"_a = "sum", "root"_a = 0, "Collective over the world.");
  module.def(
      "touches",
      [](const std::shared_ptr<RankHandle>& rank, std::uintptr_t data, std::size_t width,
         const std::vector<Index>& extents, const std::vector<Index>& strides_bytes, bool stores) {
        Context& rma = rank->world().context();
        if (!detail::MemoryUse::is_watched(rma)) return;
        const CallSite where = python_call_site();
        for_each_row(
            reinterpret_cast<const std::byte*>(data), width, extents, strides_bytes,
            [&](std::span<const std::byte> bytes) { stores ? rma.writes(bytes, where) : rma.reads(bytes, where); });
      },
      "world"_a, "data"_a, "width"_a, "extents"_a, "strides_bytes"_a, "stores"_a);
  module.def(
      "acquires",
      [](const SymmetricHandle& variable) {
        Context& rma = variable->rank()->world().context();
        with_words(variable->numbers("acquires"), "acquires", [&](auto word) { rma.acquires(word); });
      },
      "variable"_a);
  module.def("fence", [](const std::shared_ptr<RankHandle>& rank) {
    const CallSite where = python_call_site();
    Context& rma = rank->world().context();
    without_gil([&] { rma.fence(where); });
  });
  module.def("quiet", [](const std::shared_ptr<RankHandle>& rank) {
    const CallSite where = python_call_site();
    Context& rma = rank->world().context();
    without_gil([&] { rma.quiet(where); });
    rank->release();
  });
}

}  // namespace tranship::python

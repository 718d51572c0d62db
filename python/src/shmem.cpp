#include "shmem.hpp"

#include <algorithm>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/registered_memory.hpp>

#include "bindings.hpp"
#include "interpreter.hpp"
#include "one_sided.hpp"
#include "views.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

[[gnu::tls_model("initial-exec")]] constinit thread_local Shmem* Shmem::current_ = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local Context* Shmem::direct_ = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local const detail::DirectTransfers* Shmem::direct_transfers_ =
    nullptr;

namespace {
// As NVSHMEM numbers them.
constexpr int team_invalid = -1, teams_of_all = 6;
}  // namespace

void Shmem::end_in_children() {
  pthread_atfork(nullptr, nullptr, &make_none_current);
}

void Shmem::make_current(Context* direct) noexcept {
  current_ = this;
  direct_ = direct;
  direct_transfers_ = direct != nullptr ? &direct->direct_transfers() : nullptr;
}
void Shmem::make_none_current() noexcept {
  current_ = nullptr;
  direct_ = nullptr;
  direct_transfers_ = nullptr;
}
std::ptrdiff_t Shmem::direct_from_thread_pointer() noexcept {
  return reinterpret_cast<const std::byte*>(&direct_transfers_) -
         static_cast<const std::byte*>(__builtin_thread_pointer());
}

std::shared_ptr<Shmem> Shmem::begin(const std::shared_ptr<RankHandle>& rank) {
  if (!rank->is_of_this_thread())
    throw_error(ErrorCode::invalid_use, "rank {} calls init() in another thread than its own", rank->world().rank());
  const std::shared_ptr<Shmem> shmem(new Shmem(rank));
  const CallSite where = python_call_site();
  without_gil([&] {
    World& world = rank->world();
    Team& all = world.team();
    const int on_node = world.node_team().size();
    const std::vector<int> sizes = world.all_gather(on_node, where);
    const bool are_alike = std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == on_node; });
    // Ranks of the same place on their machines; each rank is a device of its own.
    std::optional<Team> same_place;
    if (are_alike) same_place.emplace(all.split_2d(on_node, where).y);
    Team alone = all.split_2d(1, where).x;
    shmem->teams_ = {all, world.shared_team(), world.node_team(), same_place, alone, all};
  });
  rank->add(shmem);
  Context& context = shmem->context();
  shmem->make_current(context.completes_at_once() ? &context : nullptr);
  return shmem;
}

Shmem::~Shmem() {
  leave();
}
void Shmem::leave() noexcept {
  teams_.clear();
  if (current_ == this) make_none_current();
}

Shmem& Shmem::of_this_thread() {
  if (current_ == nullptr)
    throw_error(ErrorCode::invalid_use,
                "this thread is no rank that has called init(): symmetric memory is used by the thread of its rank");
  return *current_;
}

bool Shmem::is_turned(const void* target, const void* source) const {
  return is_symmetric(source) && !is_symmetric(target) && !is_in_any_heap(target);
}
bool Shmem::is_in_any_heap(const void* address) const {
  const HeapPlace& place = world().heap().place();
  for (Rank rank = 0; rank < world().size(); ++rank)
    if (const std::byte* heap = place.mapped.of(rank))
      if (static_cast<std::size_t>(static_cast<const std::byte*>(address) - heap) < place.size_bytes) return true;
  return false;
}
bool Shmem::is_symmetric(const void* address) const {
  const HeapPlace& place = world().heap().place();
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - place.own) < place.size_bytes;
}

Team& Shmem::team(int number) {
  if (number < 0 || number >= int(teams_.size()) || !teams_[std::size_t(number)])
    throw_error(ErrorCode::invalid_use, "no team {} (rank {})", number, world().rank());
  return *teams_[std::size_t(number)];
}
int Shmem::add(std::optional<Team> team) {
  if (!team) return team_invalid;
  const auto free = std::find(teams_.begin() + teams_of_all, teams_.end(), std::nullopt);
  if (free != teams_.end()) {
    *free = std::move(team);
    return int(free - teams_.begin());
  }
  teams_.push_back(std::move(team));
  return int(teams_.size()) - 1;
}
void Shmem::remove(int number) {
  team(number);
  if (number < teams_of_all)
    throw_error(ErrorCode::invalid_use, "team {} is one that everybody has (rank {})", number, world().rank());
  teams_[std::size_t(number)].reset();
}

namespace {

/// What a Python object shows of its memory, for as long as this lives. Throws `invalid_use` where it shows none.
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
      throw_error(ErrorCode::invalid_use, "{}: a {} that is written is read-only", what_, type_name());
    return *buffer_.view();
  }

 private:
  std::string type_name() const { return nb::str(object_.type().attr("__name__")).c_str(); }

  nb::handle object_;
  const char* what_;
  BufferView buffer_;
};

std::string text_of(const Indices& extents) {
  std::string text = "[";
  for (int d = 0; d < extents.size(); ++d) text += (d ? ", " : "") + std::to_string(extents[d]);
  return text + "]";
}
/// The stride of elements that follow each other in one direction; nothing where they do not.
std::optional<Index> flat_stride(const StridedView& view) {
  if (view.extents.size() == 1) return view.strides[0];
  return view.strides == row_major_strides(view.extents) ? std::optional<Index>(1) : std::nullopt;
}

}  // namespace

MatchedViews matched(const StridedView& target, const StridedView& source) {
  if (target.type != source.type)
    throw_error(ErrorCode::invalid_use, "elements of {} to elements of {}", name_of(source.type), name_of(target.type));
  if (target.extents == source.extents) return {target, source};
  const std::optional<Index> to = flat_stride(target), from = flat_stride(source);
  if (!to || !from)
    throw_error(ErrorCode::invalid_use, "extents {} to {}: they must be equal where elements do not lie in one row",
                text_of(source.extents), text_of(target.extents));
  const Index count = std::min(checked_product(target.extents), checked_product(source.extents));
  const auto flat = [&](const StridedView& view, Index stride) {
    return StridedView{.data = view.data, .type = view.type, .extents = {count}, .strides = {stride}};
  };
  return {flat(target, *to), flat(source, *from)};
}

StridedView at_peer(Context& rma, StridedView view, Rank peer, CallSite where) {
  // The whole of a view that begins and ends elsewhere: from its lowest byte to its highest.
  std::int64_t first = 0, last = 0;
  const int width = size_bytes(view.type);
  for (int d = 0; d < view.extents.size(); ++d) {
    const Index reach = (view.extents[d] - 1) * view.strides[d] * width;
    (reach < 0 ? first : last) += reach;
  }
  const bool is_empty = checked_product(view.extents) == 0;
  auto* const lowest = static_cast<std::byte*>(view.data) + first;
  const std::span<std::byte> there =
      rma.peer_array(Symmetric<std::byte>::at(lowest, is_empty ? 0 : last - first + width), peer, where);
  if (!is_empty) view.data = there.data() - first;
  return view;
}

MulticastView at_members(Context& rma, const Team& team, const StridedView& view, CallSite where) {
  MulticastView there{.first = at_peer(rma, view, team.world_rank(0), where), .members = team.size()};
  const auto* before = static_cast<const std::byte*>(there.first.data);
  for (int member = 1; member < team.size(); ++member) {
    const auto* data = static_cast<const std::byte*>(at_peer(rma, view, team.world_rank(member), where).data);
    if (member == 1) there.stride_bytes = data - before;
    if (data - before != there.stride_bytes)
      throw_error(ErrorCode::unsupported,
                  "a compiled multicast array needs heaps at equal steps: those of members {} and {} lie {} apart, "
                  "those of members 0 and 1 {}",
                  member - 1, member, amount(data - before, "byte"), amount(there.stride_bytes, "byte"));
    before = data;
  }
  return there;
}

namespace {

SymmetricSpan first_of(const SymmetricSpan& span, Index count) {
  return {span.local, span.type, count};
}

constexpr const char* collective_names[] = {"reduce", "reducescatter", "fcollect", "broadcast", "alltoall"};
// In the order of Reduction.
constexpr const char* reduction_names[] = {"sum", "prod", "min", "max", "and", "or", "xor"};

}  // namespace

void run_collective(CollectiveKind kind, Team& team, const StridedView& target_view, const StridedView& source_view,
                    Reduction reduction, int root, CallSite where) {
  const char* const name = collective_names[int(kind)];
  const SymmetricSpan target = span_of(target_view, name), source = span_of(source_view, name);
  const Index n = team.size(), smaller = std::min(target.count, source.count);
  const auto require = [&](const char* what, Index needed, Index size) {
    if (size < needed)
      throw_error(ErrorCode::invalid_use, "{}: the {} needs {}, has {} (rank {})", name, what,
                  amount(needed, "element"), size, team.world().rank());
  };
  switch (kind) {
    case CollectiveKind::reduce:
      return all_reduce(team, first_of(target, smaller), first_of(source, smaller), reduction, where);
    case CollectiveKind::broadcast:
      return broadcast(team, first_of(target, smaller), first_of(source, smaller), root, where);
    case CollectiveKind::reducescatter: {
      const Index whole = checked_multiply(n, target.count);
      require("source", whole, source.count);
      return reduce_scatter(team, target, first_of(source, whole), reduction, where);
    }
    case CollectiveKind::fcollect: {
      const Index whole = checked_multiply(n, source.count);
      require("target", whole, target.count);
      return all_gather(team, first_of(target, whole), source, where);
    }
    case CollectiveKind::alltoall:
      break;
  }
  if (smaller % n != 0)
    throw_error(ErrorCode::invalid_use, "{}: {} in {} of one size (rank {})", name, amount(smaller, "element"),
                amount(n, "part"), team.world().rank());
  return all_to_all(team, first_of(target, smaller), first_of(source, smaller), where);
}

SignalOp shmem_signal_op(int number) {
  if (number == 9) return SignalOp::set;
  if (number == 10) return SignalOp::add;
  throw_error(ErrorCode::invalid_use, "signal operation {}: needs SIGNAL_SET (9) or SIGNAL_ADD (10)", number);
}
Comparison shmem_comparison(int number) {
  constexpr Comparison comparisons[] = {Comparison::equal,      Comparison::not_equal, Comparison::greater,
                                        Comparison::less_equal, Comparison::less,      Comparison::greater_equal};
  if (number < 0 || number >= int(std::size(comparisons)))
    throw_error(ErrorCode::invalid_use, "comparison {}: needs CMP_EQ (0) to CMP_GE (5)", number);
  return comparisons[number];
}

namespace {

Reduction nvshmem_reduction(const std::string& name) {
  for (std::size_t i = 0; i < std::size(reduction_names); ++i)
    if (name == reduction_names[i]) return static_cast<Reduction>(i);
  throw_error(ErrorCode::invalid_use, "reduction '{}': needs one of sum, prod, min, max, and, or, xor", name);
}

/// Memory of the program's own that is symmetric while this lives.
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
            const char* const name = collective_names[kind];
            const Shown to(target, name), from(source, name);
            const CallSite where = python_call_site();
            Team& members = self.team(team);
            const bool reduces = kind <= int(CollectiveKind::reducescatter);
            const Reduction reduction = reduces ? nvshmem_reduction(op) : Reduction::sum;
            const StridedView &all = to.writable(), &own = from.view();
            without_gil(
                [&] { run_collective(static_cast<CollectiveKind>(kind), members, all, own, reduction, root, where); });
          },
          "kind"_a, "team"_a, "target"_a, "source"_a, "op"_a, "root"_a)
      .def(
          "barrier",
          [](Shmem& self, int team) {
            const CallSite where = python_call_site();
            Team& members = self.team(team);
            without_gil([&] { members.barrier(where); });
            self.rank().let_go();
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
  module.attr("collective_names") = names_of(collective_names);
  module.attr("reduction_names") = names_of(reduction_names);
  module.def(
      "element_number", [](const std::string& kind) { return int(element_type_of_numpy(kind).value()); }, "kind"_a,
      "What compiled code calls an element type.");
}

}  // namespace tranship::python

// Halos with MPI: a typed message per neighbour, packed and fused per rank, a neighbourhood collective, and loops over
// a shared window. All fields of a border go together.
#include <map>
#include <vector>

#include <contest/loops.hpp>
#include <contest/methods.hpp>

#include "mpi_methods.hpp"
#include "mpi_window.hpp"

namespace contest {
namespace {

/// A box of all fields, which lie one after the other.
MPI_Datatype type_of(const Work& work, const Field& field, const Box& box) {
  int extents[4] = {work.fields}, sub_extents[4] = {work.fields}, starts[4] = {0};
  for (int d = 0; d < 3; ++d) {
    extents[d + 1] = int(field.stored[d]);
    sub_extents[d + 1] = int(box.extents[d]);
    starts[d + 1] = int(box.low[d]);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(4, extents, sub_extents, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

/// The types of the boxes that each border gives and takes.
struct Types {
  Types(const Work& work, const Field& field, const std::vector<Border>& borders) {
    for (const Border& border : borders) {
      gives.push_back(type_of(work, field, border.gives));
      takes.push_back(type_of(work, field, border.takes));
    }
  }
  ~Types() {
    for (auto* list : {&gives, &takes})
      for (MPI_Datatype& type : *list) MPI_Type_free(&type);
  }
  std::vector<MPI_Datatype> gives, takes;
};

/// Methods that work on the same plain memory share it.
class PlainMethod : public HaloMethod {
 public:
  PlainMethod(const Work& work, int rank, std::shared_ptr<Memory> fields)
      : HaloMethod(work, rank), memory_(std::move(fields)) {
    use(memory_->get());
  }

 protected:
  double* all() const { return memory_->get(); }

 private:
  std::shared_ptr<Memory> memory_;
};

class TypedMessages final : public PlainMethod {
 public:
  TypedMessages(const Work& work, int rank, std::shared_ptr<Memory> fields)
      : PlainMethod(work, rank, std::move(fields)), types_(work, field_, borders_) {}
  std::string name() const override { return "types Isend/Irecv"; }
  void run() override {
    const int count = int(borders_.size());
    std::vector<MPI_Request> requests(2 * borders_.size());
    // A message is tagged with its sender's border.
    for (int b = 0; b < count; ++b)
      MPI_Irecv(all(), 1, types_.takes[b], borders_[b].neighbour, count - 1 - b, MPI_COMM_WORLD, &requests[b]);
    for (int b = 0; b < count; ++b)
      MPI_Isend(all(), 1, types_.gives[b], borders_[b].neighbour, b, MPI_COMM_WORLD, &requests[count + b]);
    MPI_Waitall(2 * count, requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  Types types_;
};

class NeighbourCollective final : public PlainMethod {
 public:
  NeighbourCollective(const Work& work, int rank, std::shared_ptr<Memory> fields)
      : PlainMethod(work, rank, std::move(fields)), types_(work, field_, borders_) {
    // Edges between the same two ranks match in order: both sides list them by the sender's border.
    std::vector<int> sources, targets;
    for (std::size_t b = 0; b < borders_.size(); ++b) {
      targets.push_back(borders_[b].neighbour);
      sources.push_back(borders_[borders_.size() - 1 - b].neighbour);
      takes_.push_back(types_.takes[borders_.size() - 1 - b]);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, int(sources.size()), sources.data(), MPI_UNWEIGHTED,
                                   int(targets.size()), targets.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
    ones_.assign(borders_.size(), 1);
    zeros_.assign(borders_.size(), 0);
  }
  ~NeighbourCollective() override { MPI_Comm_free(&graph_); }
  std::string name() const override { return "Neighbor_alltoallw"; }
  void run() override {
    MPI_Neighbor_alltoallw(all(), ones_.data(), zeros_.data(), types_.gives.data(), all(), ones_.data(), zeros_.data(),
                           takes_.data(), graph_);
  }

 private:
  Types types_;
  std::vector<MPI_Datatype> takes_;
  std::vector<int> ones_;
  std::vector<MPI_Aint> zeros_;
  MPI_Comm graph_ = MPI_COMM_NULL;
};

class PackedMessages final : public PlainMethod {
 public:
  PackedMessages(const Work& work, int rank, std::shared_ptr<Memory> fields)
      : PlainMethod(work, rank, std::move(fields)) {
    std::map<int, std::int64_t> cells;
    for (const Border& border : borders_)
      if (border.neighbour != rank) cells[border.neighbour] += border.gives.cells() * work.fields;
    for (const auto& [neighbour, count] : cells)
      messages_.push_back({neighbour, int(count), memory(count), memory(count)});
  }
  std::string name() const override { return "packed Isend/Irecv"; }
  void run() override {
    std::vector<MPI_Request> requests(2 * messages_.size());
    std::size_t request = 0;
    for (Message& m : messages_)
      MPI_Irecv(m.incoming.get(), m.count, MPI_DOUBLE, m.neighbour, 0, MPI_COMM_WORLD, &requests[request++]);
    for (Message& m : messages_) {
      double* at = m.outgoing.get();
      for (const Border& border : borders_)
        if (border.neighbour == m.neighbour)
          for (const double* field : fields_) at = pack_box(field_, field, border.gives, at);
      MPI_Isend(m.outgoing.get(), m.count, MPI_DOUBLE, m.neighbour, 0, MPI_COMM_WORLD, &requests[request++]);
    }
    // Cells that stay on this rank are copied directly while messages travel.
    for (std::size_t b = 0; b < borders_.size(); ++b)
      if (borders_[b].neighbour == rank_)
        for (double* field : fields_)
          copy_box(field_, field, borders_[borders_.size() - 1 - b].gives, field, borders_[b].takes);
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (const Message& m : messages_) {
      const double* at = m.incoming.get();
      // In the order of the sender's borders.
      for (std::size_t b = borders_.size(); b-- > 0;)
        if (borders_[b].neighbour == m.neighbour)
          for (double* field : fields_) at = unpack_box(field_, at, field, borders_[b].takes);
    }
  }

 private:
  struct Message {
    int neighbour;
    int count;
    Memory outgoing, incoming;
  };
  std::vector<Message> messages_;
};

class WindowLoops final : public HaloMethod {
 public:
  WindowLoops(const Work& work, int rank) : HaloMethod(work, rank), window_(elements()) {
    use(window_.of(rank));
    for (std::size_t b = 0; b < borders_.size(); ++b) {
      // My box is filled with what the neighbour gives in the opposite direction.
      gives_.push_back(borders_of(work, borders_[b].neighbour)[borders_.size() - 1 - b].gives);
      bases_.push_back(window_.of(borders_[b].neighbour));
    }
  }
  std::string name() const override { return "window"; }
  void run() override {
    window_.wait_for_all();  // every source is written
    for (int k = 0; k < work_.fields; ++k)
      for (std::size_t b = 0; b < borders_.size(); ++b)
        copy_box(field_, bases_[b] + k * field_.size, gives_[b], fields_[k], borders_[b].takes);
    window_.wait_for_all();  // every source has been read
  }

 private:
  SharedWindow window_;
  std::vector<Box> gives_;
  std::vector<const double*> bases_;
};

}  // namespace

Methods mpi_halo_methods(const Work& work, int rank) {
  Methods methods;
  const auto fields = std::make_shared<Memory>(memory(field_of(work, rank).size * work.fields));
  methods.push_back(std::make_unique<TypedMessages>(work, rank, fields));
  methods.push_back(std::make_unique<PackedMessages>(work, rank, fields));
  methods.push_back(std::make_unique<NeighbourCollective>(work, rank, fields));
  methods.push_back(std::make_unique<WindowLoops>(work, rank));
  return methods;
}

}  // namespace contest

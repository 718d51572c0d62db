#include <utility>

#include <contest/coherence.hpp>

namespace contest {
namespace {

/// The array is used in sixteenths. A cell holds its number plus what was added to or written into its piece.
constexpr int piece_count = 16;

struct Pieces {
  int first = 0;
  int count = piece_count;
};
constexpr Pieces all = {}, one_piece = {0, 1}, first_half = {0, 8}, second_half = {8, 8};

class CoherenceMethod final : public Method {
 public:
  CoherenceMethod(const Work& work, std::string name, std::unique_ptr<TwoMemories> array)
      : sequence_(work.sequence),
        piece_cells_(work.axes[0].extent / piece_count),
        name_(std::move(name)),
        array_(std::move(array)) {
    // Both memories have held it before the first operation.
    write(Place::host, all);
    read(Place::device);
    run();
  }

  std::string name() const override { return name_; }
  void write(double) override {}
  void spoil() override {}
  double read() override { return sum_; }
  std::int64_t count_wrong(double) override { return wrong_; }
  std::int64_t moved_bytes() override { return moved_bytes_; }

  void run() override {
    const std::int64_t before = array_->moved_bytes();
    switch (sequence_) {
      case Sequence::write_and_read:
        write(Place::host, all);
        read(Place::device);
        break;
      case Sequence::overwrite:
        write(Place::host, all);
        write(Place::device, all);
        read(Place::host);
        break;
      case Sequence::write_a_part:
        write(Place::host, one_piece);
        read(Place::device);
        break;
      case Sequence::read_by_turns:
        read(Place::host);
        read(Place::device);
        break;
      case Sequence::add_on_both:
        write(Place::host, all);
        add(Place::device);
        add(Place::host);
        read(Place::host);
        break;
      case Sequence::write_halves:
        write(Place::host, first_half);
        write(Place::device, second_half);
        read(Place::host);
        read(Place::device);
        break;
    }
    moved_bytes_ = array_->moved_bytes() - before;
  }

 private:
  Cells cells_of(Pieces pieces) const { return {pieces.first * piece_cells_, pieces.count * piece_cells_}; }

  void write(Place place, Pieces pieces) {
    const Cells cells = cells_of(pieces);
    const double value = ++written_;
    double* data = array_->begin(place, Use::write, cells);
    for (std::int64_t i = cells.first; i < cells.first + cells.count; ++i) data[i] = double(i) + value;
    array_->end(place, Use::write);
    for (int p = pieces.first; p < pieces.first + pieces.count; ++p) values_[p] = value;
  }

  void add(Place place) {
    const Cells cells = cells_of(all);
    double* data = array_->begin(place, Use::add, cells);
    for (std::int64_t i = 0; i < cells.count; ++i) data[i] += 1;
    array_->end(place, Use::add);
    for (double& value : values_) value += 1;
  }

  void read(Place place) {
    const Cells cells = cells_of(all);
    const double* data = array_->begin(place, Use::read, cells);
    sum_ = sum(data, cells.count);
    array_->end(place, Use::read);
    // Whole numbers below 2^53: exact in any order.
    double expected = double(cells.count) * double(cells.count - 1) / 2;
    for (const double value : values_) expected += value * double(piece_cells_);
    wrong_ += sum_ != expected;
  }

  const Sequence sequence_;
  const std::int64_t piece_cells_;
  const std::string name_;
  const std::unique_ptr<TwoMemories> array_;
  double values_[piece_count] = {};
  double written_ = 0, sum_ = 0;
  std::int64_t wrong_ = 0, moved_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Method> coherence_method(const Work& work, std::string name, std::unique_ptr<TwoMemories> array) {
  return std::make_unique<CoherenceMethod>(work, std::move(name), std::move(array));
}

}  // namespace contest

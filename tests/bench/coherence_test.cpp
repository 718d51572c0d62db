// The sequences are run on two plain arrays, by somebody who copies all there is to copy and by one who forgets to.
#include <iterator>
#include <memory>
#include <vector>

#include <contest/coherence.hpp>
#include <gtest/gtest.h>

namespace contest {
namespace {

constexpr Sequence sequences[] = {Sequence::write_and_read, Sequence::overwrite,   Sequence::write_a_part,
                                  Sequence::read_by_turns,  Sequence::add_on_both, Sequence::write_halves};
constexpr std::int64_t cells = 64, bytes = cells * 8;

class Whole final : public TwoMemories {
 public:
  explicit Whole(int copies_max) : copies_left_(copies_max) {}
  double* begin(Place place, Use, Cells) override {
    auto& here = data_[place == Place::host ? 0 : 1];
    if (last_ != place && copies_left_-- > 0) {
      here = data_[place == Place::host ? 1 : 0];
      moved_bytes_ += bytes;
    }
    last_ = place;
    return here.data();
  }
  void end(Place, Use) override {}
  std::int64_t moved_bytes() override { return moved_bytes_; }

 private:
  std::vector<double> data_[2] = {std::vector<double>(cells), std::vector<double>(cells)};
  Place last_ = Place::host;
  int copies_left_;
  std::int64_t moved_bytes_ = 0;
};

std::unique_ptr<Method> method_for(Sequence sequence, int copies_max) {
  Work work;
  work.task = Task::coherence;
  work.axes[0].extent = cells;
  work.sequence = sequence;
  return coherence_method(work, "whole", std::make_unique<Whole>(copies_max));
}

TEST(Coherence, WhoCopiesIsRightAndIsCounted) {
  // How often an operation goes from one memory to the other.
  const std::int64_t turns[] = {2, 2, 2, 2, 2, 4};
  for (std::size_t i = 0; i < std::size(sequences); ++i) {
    const auto method = method_for(sequences[i], 1'000'000);
    for (int op = 0; op < 3; ++op) method->run();
    EXPECT_EQ(method->count_wrong(0), 0) << i;
    EXPECT_EQ(method->moved_bytes(), turns[i] * bytes) << i;
  }
}

TEST(Coherence, WhoForgetsIsWrong) {
  // The first copy is what every method makes before its first operation; reading alone needs no other.
  for (const Sequence sequence : sequences) {
    const auto method = method_for(sequence, 1);
    for (int op = 0; op < 3; ++op) method->run();
    EXPECT_EQ(method->count_wrong(0) > 0, sequence != Sequence::read_by_turns);
    EXPECT_EQ(method->moved_bytes(), 0);
  }
}

}  // namespace
}  // namespace contest

// Private: HeapPlace: where the symmetric heaps of all ranks lie in the address space of one rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/lanes/heap_table.hpp>

namespace tranship {

/// One address per rank, or nullptr for a rank without an address. Copies share the table. All ranks of a process that
/// see the same heaps may share one, too, since a table costs 8 bytes for each rank of the world.
class HeapAddresses {
 public:
  using Address = unsigned char*;

  HeapAddresses() = default;  ///< no rank has an address
  explicit HeapAddresses(std::vector<Address> of_ranks)
      : has_all_(std::find(of_ranks.begin(), of_ranks.end(), nullptr) == of_ranks.end()),
        spacing_bytes_(spacing_of(of_ranks)),
        of_ranks_(std::make_shared<const std::vector<Address>>(std::move(of_ranks))) {}

  /// Returns true if each of the count() ranks has an address.
  bool has_all() const noexcept { return has_all_; }
  /// Returns the distance between the addresses of successive ranks if all have one and it is constant; else 0.
  std::ptrdiff_t spacing_bytes() const noexcept { return spacing_bytes_; }
  bool is_empty() const noexcept { return !of_ranks_; }
  int count() const noexcept { return of_ranks_ ? static_cast<int>(of_ranks_->size()) : 0; }
  const Address* data() const noexcept { return of_ranks_ ? of_ranks_->data() : nullptr; }
  std::byte* of(Rank rank) const noexcept {
    const bool is_listed = rank >= 0 && rank < count();
    return is_listed ? reinterpret_cast<std::byte*>((*of_ranks_)[static_cast<std::size_t>(rank)]) : nullptr;
  }

  /// Returns the addresses of some ranks, in the order of `members`, each moved on by `offset_bytes`.
  HeapAddresses of_members(const Members& members, std::size_t offset_bytes) const {
    if (is_empty()) return {};
    std::vector<Address> out;
    for (int member = 0; member < members.count; ++member) {
      const auto heap = reinterpret_cast<Address>(of(members.rank_of(member)));
      out.push_back(heap ? heap + offset_bytes : nullptr);
    }
    return HeapAddresses(std::move(out));
  }

 private:
  static std::ptrdiff_t spacing_of(const std::vector<Address>& of_ranks) noexcept {
    if (of_ranks.size() < 2) return 0;
    const auto integer = [&](std::size_t rank) { return reinterpret_cast<std::intptr_t>(of_ranks[rank]); };
    const std::intptr_t spacing = integer(1) - integer(0);
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
      if (!of_ranks[rank] || integer(rank) != integer(0) + static_cast<std::intptr_t>(rank) * spacing) return 0;
    return spacing;
  }

  bool has_all_ = true;
  std::ptrdiff_t spacing_bytes_ = 0;
  std::shared_ptr<const std::vector<Address>> of_ranks_;
};

struct HeapPlace {
  std::byte* own = nullptr;    ///< reserved for each rank
  std::size_t size_bytes = 0;  ///< reserved for each rank
  /// The heaps that are mapped here, including this rank's.
  HeapAddresses mapped;
  /// The mapped heaps that this rank may load and store. If its own heap is not among them, it may still load and store
  /// it, but transfers to it go through the transport.
  HeapAddresses direct;
  /// A power of two. The heaps of all ranks have the same distance from a multiple of it, so that an offset aligned to
  /// it, or to less, in one heap is so aligned in all.
  std::size_t alignment_bytes = 64;
  bool is_zeroed = true;  ///< memory that was never obtained reads as zeros

  bool is_direct(Rank peer) const noexcept { return direct.of(peer) != nullptr; }
  /// Returns the table of direct heaps for a world of `ranks` ranks. Valid while a copy of `direct` lives.
  HeapTable table(int ranks) const noexcept {
    return {.own = reinterpret_cast<unsigned char*>(own),
            .size_bytes = size_bytes,
            .direct = direct.data(),
            .count = direct.count(),
            .is_complete = direct.count() == ranks && direct.has_all(),
            .spacing_bytes = direct.spacing_bytes(),
            .first = direct.spacing_bytes() != 0 ? direct.data()[0] : nullptr};
  }
};

}  // namespace tranship

#include "tranship/run/exchange_notices.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/base/pages.hpp>

namespace tranship {

std::size_t Notices::signals_at() const noexcept {
  return round_up(entries_at() + entries_.size() * sizeof(Entry), sizeof(Line));
}

void Notices::add(const Entry& entry, bool is_messaged, Index inbox_bytes) {
  entries_.push_back(entry);
  is_messaged_.push_back(is_messaged);
  if (!is_messaged) return;
  entries_.back().signal = std::uint64_t(messaged_++) * 2 * sizeof(Line);
  entries_.back().inbox = std::uint64_t(inbox_lines_) * sizeof(Line);
  inbox_lines_ = checked_add(inbox_lines_, lines_of(inbox_bytes));
}

void Notices::publish(World& world, std::span<const ArrayCard> cards, const Largest& largest, CallSite where) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!is_messaged_[i]) continue;
    entries_[i].signal += signals_at();
    entries_[i].inbox += inboxes_at();
  }
  context_ = &world.context();
  entries_max_ = largest.entries;
  const std::size_t own_bytes = std::max(size_bytes(), read_bytes());
  block_ = world.allocate_uneven(std::max(largest.size_bytes, read_bytes()), own_bytes, where);
  const Header header{.entries = entries()};
  std::memcpy(block_.local(), &header, sizeof header);
  std::memcpy(block_.local() + sizeof header, cards.data(), cards.size_bytes());
  std::copy(entries_.begin(), entries_.end(), own_entries());
  context_->writes(block_.slice(0, Index(signals_at())), where);
  world.sync(where);
}

Notices::Found Notices::find(Rank peer) const {
  std::vector<std::byte> read(read_bytes());
  context_->get(std::span(read), block_.slice(0, Index(read.size())), peer);
  Header header;
  std::memcpy(&header, read.data(), sizeof header);
  Found out;
  out.cards.resize(cards_);
  std::memcpy(out.cards.data(), read.data() + sizeof header, cards_ * sizeof(ArrayCard));
  const Rank me = context_->world().rank();
  Index begin = 0, end = header.entries;
  while (begin < end) {
    const Index middle = begin + (end - begin) / 2;
    Entry entry;
    if (header.entries <= read_whole_max)
      std::memcpy(&entry, read.data() + entries_at() + std::size_t(middle) * sizeof entry, sizeof entry);
    else
      entry = entry_of(peer, middle);
    if (entry.peer == me) {
      out.entry = entry;
      break;
    }
    (entry.peer < me ? begin : end) = entry.peer < me ? middle + 1 : middle;
  }
  return out;
}

Notices::Entry Notices::entry_of(Rank peer, Index number) const {
  Entry entry;
  context_->get(std::span(&entry, 1), entry_at(number, 1), peer);
  return entry;
}

const Notices::Entry& Notices::entry(Rank peer) const {
  return *std::lower_bound(entries_.begin(), entries_.end(), peer,
                           [](const Entry& entry, Rank rank) { return entry.peer < rank; });
}

}  // namespace tranship

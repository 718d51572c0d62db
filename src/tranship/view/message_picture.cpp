#include "tranship/view/message_picture.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/enum_names.hpp>
#include <tranship/view/svg.hpp>

namespace tranship {
namespace {

constexpr double margin_px = 24;

std::string kind_in_words(PlanKind kind) {
  std::string out = name_of(kind);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

struct Alone {
  Index kept_bytes = 0;
  Index filled_bytes = 0;
};

/// Says in words what a rank does without a peer; empty if that is nothing.
std::string alone_in_words(const Alone& alone) {
  std::string out;
  if (alone.kept_bytes > 0) out += fmt::format(", keeps {}", human_bytes(alone.kept_bytes));
  if (alone.filled_bytes > 0) out += fmt::format(", fills {} beyond edges", human_bytes(alone.filled_bytes));
  return out;
}

// --- One rank -------------------------------------------------------------------------------------------------------

constexpr std::size_t peers_shown_max = 24;
constexpr double row_px = 24, bar_px_max = 220, name_px = 92, amount_px = 84;

/// The peers with the most bytes, sorted by rank, and the sum of the others.
struct ShownPeers {
  std::vector<PeerAmount> peers;
  PeerAmount others;
  Index others_count = 0;
};

ShownPeers shown_peers(const PlanSummary& plan) {
  ShownPeers out{.peers = plan.peers};
  if (out.peers.size() <= peers_shown_max) return out;
  std::stable_sort(out.peers.begin(), out.peers.end(), [](const PeerAmount& a, const PeerAmount& b) {
    return std::max(a.received.bytes, a.sent.bytes) > std::max(b.received.bytes, b.sent.bytes);
  });
  for (std::size_t i = peers_shown_max; i < out.peers.size(); ++i) {
    out.others.received.bytes = checked_add(out.others.received.bytes, out.peers[i].received.bytes);
    out.others.sent.bytes = checked_add(out.others.sent.bytes, out.peers[i].sent.bytes);
    ++out.others_count;
  }
  out.peers.resize(peers_shown_max);
  std::sort(out.peers.begin(), out.peers.end(),
            [](const PeerAmount& a, const PeerAmount& b) { return a.peer < b.peer; });
  return out;
}

class RankPicture {
 public:
  explicit RankPicture(const PlanSummary& plan) : plan_(plan), shown_(shown_peers(plan)) {
    for (const PeerAmount& peer : shown_.peers)
      bytes_max_ = std::max({bytes_max_, peer.received.bytes, peer.sent.bytes});
  }

  std::string draw() {
    constexpr double middle = margin_px + amount_px + bar_px_max + name_px / 2;
    constexpr double width = 2 * middle;
    double y = 96;
    if (shown_.peers.empty()) {
      const bool has_messages = plan_.messages_received > 0 || plan_.messages_sent > 0;
      page_.text(margin_px, y, "caption",
                 has_messages ? fmt::format("more than {} transfers: too many to list", grouped(transfers_listed_max))
                              : "no messages");
      y += row_px;
    } else {
      page_.text(middle - name_px / 2, y - 14, "axis end", "receives");
      page_.text(middle, y - 14, "axis middle", "peer");
      page_.text(middle + name_px / 2, y - 14, "axis", "sends");
    }
    for (const PeerAmount& peer : shown_.peers) {
      const Color color = color_of(peer.peer);
      bar(middle - name_px / 2, -1, y, peer.received.bytes, color);
      bar(middle + name_px / 2, 1, y, peer.sent.bytes, color);
      page_.text(middle, y + row_px / 2 + 4, "legend middle", fmt::format("rank {}", peer.peer));
      y += row_px;
    }
    if (shown_.others_count > 0) {
      amount(middle - name_px / 2 - 6, y, "tick-label end", shown_.others.received.bytes);
      page_.text(middle, y + row_px / 2 + 4, "tick-label middle", fmt::format("{} more", grouped(shown_.others_count)));
      amount(middle + name_px / 2 + 6, y, "tick-label", shown_.others.sent.bytes);
      y += row_px;
    }
    const std::string title = fmt::format("{}, rank {}", kind_in_words(plan_.kind), plan_.rank);
    const std::string caption =
        fmt::format("receives {} in {}, sends {} in {}{}", human_bytes(plan_.received.bytes),
                    counted(plan_.messages_received, "message"), human_bytes(plan_.sent.bytes),
                    counted(plan_.messages_sent, "message"), alone_in_words({plan_.local.bytes, plan_.filled.bytes}));
    return page_.document({.width = width, .height = y + 16, .title = title, .caption = caption});
  }

 private:
  void bar(double from, int side, double y, Index bytes, const Color& color) {
    if (bytes == 0) return;
    const double length = std::max(2.0, bar_px_max * double(bytes) / double(bytes_max_));
    page_.add("<rect class=\"message\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
              side < 0 ? from - length : from, y + 3, length, row_px - 6, hex(color));
    amount(from + side * (length + 6), y, side < 0 ? "tick-label end" : "tick-label", bytes);
  }
  void amount(double x, double y, std::string_view style, Index bytes) {
    page_.text(x, y + row_px / 2 + 4, style, human_bytes(bytes));
  }

  const PlanSummary& plan_;
  ShownPeers shown_;
  Index bytes_max_ = 1;
  SvgPage page_;
};

// --- All ranks ------------------------------------------------------------------------------------------------------

constexpr Index squares_max = 32;  // along each side
constexpr double matrix_px_max = 480, square_px_max = 64;

/// Returns a shade from white to dark blue; the lightest shade still differs from an empty square.
Color shade_of(Index bytes, Index bytes_max) {
  // Uses the square root: sizes of messages differ by orders of magnitude, as do the faces and corners of halos.
  const double depth = std::sqrt(double(bytes) / double(bytes_max));
  const auto mix = [&](int light, int dark) { return int(std::lround(light + (dark - light) * depth)); };
  return {mix(222, 0), mix(236, 68), mix(247, 136)};
}

class MatrixPicture {
 public:
  explicit MatrixPicture(std::span<const PlanSummary> plans) : kind_(plans.front().kind) {
    list_ranks(plans);
    per_square_ = ceil_divide(Index(ranks_.size()), squares_max);
    squares_ = ceil_divide(Index(ranks_.size()), per_square_);
    side_px_ = std::clamp(matrix_px_max / double(squares_), 1.0, square_px_max);
    sum_up(plans);
  }

  std::string draw() {
    const double label_px = 16 + 7 * double(label_of(squares_ - 1).size());
    const double left = margin_px + 28 + label_px, top = 128;
    const double side = double(squares_) * side_px_;
    page_.text(left + side / 2, top - 36, "axis middle", "to rank");
    page_.add("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" class=\"axis middle\">from rank</text>\n",
              margin_px + 12, top + side / 2);
    for (Index i = 0; i < squares_; ++i) {
      const double at = (double(i) + 0.5) * side_px_;
      if (i % label_step(label_px) == 0) page_.text(left + at, top - 10, "tick-label middle", label_of(i));
      if (i % label_step(16) == 0) page_.text(left - 8, top + at + 4, "tick-label end", label_of(i));
    }
    for (Index row = 0; row < squares_; ++row)
      for (Index column = 0; column < squares_; ++column)
        square(left + double(column) * side_px_, top + double(row) * side_px_, row, column);
    const double legend_end = legend(left + side + 28, top);
    return page_.document({.width = std::max(left + side + margin_px, legend_width_),
                           .height = std::max(top + side + margin_px, legend_end + 16),
                           .title = fmt::format("{}, {}", kind_in_words(kind_), counted(Index(ranks_.size()), "rank")),
                           .caption = caption()});
  }

 private:
  struct Square {
    Index sent = 0;
    Index kept = 0;
  };

  void list_ranks(std::span<const PlanSummary> plans) {
    for (const PlanSummary& plan : plans) {
      if (plan.kind != kind_)
        throw_error(ErrorCode::invalid_use, "plans of one exchange are needed: that of rank {} is of {}, not of {}",
                    plan.rank, with_article(kind_in_words(plan.kind)), with_article(kind_in_words(kind_)));
      ranks_.push_back(plan.rank);
      given_.push_back(plan.rank);
      for (const PeerAmount& peer : plan.peers) ranks_.push_back(peer.peer);
      // A plan with too many transfers lists no peers.
      if (plan.peers.empty() && (plan.messages_received > 0 || plan.messages_sent > 0)) is_complete_ = false;
    }
    std::sort(given_.begin(), given_.end());
    const auto twice = std::adjacent_find(given_.begin(), given_.end());
    if (twice != given_.end())
      throw_error(ErrorCode::invalid_use, "plans of one exchange are needed: two of {} are of rank {}", given_.size(),
                  *twice);
    std::sort(ranks_.begin(), ranks_.end());
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  }

  void sum_up(std::span<const PlanSummary> plans) {
    matrix_.resize(std::size_t(squares_ * squares_));
    for (const PlanSummary& plan : plans) {
      Square& own = at(plan.rank, plan.rank);
      own.kept = checked_add(own.kept, plan.local.bytes);
      kept_ = checked_add(kept_, plan.local.bytes);
      filled_ = checked_add(filled_, plan.filled.bytes);
      for (const PeerAmount& peer : plan.peers) {
        add(plan.rank, peer.peer, peer.sent.bytes);
        if (!std::binary_search(given_.begin(), given_.end(), peer.peer))
          add(peer.peer, plan.rank, peer.received.bytes);
      }
    }
    for (const Square& square : matrix_) most_ = std::max(most_, square.sent);
  }
  void add(Rank from, Rank to, Index bytes) {
    if (bytes == 0) return;
    Square& square = at(from, to);
    square.sent = checked_add(square.sent, bytes);
    moved_ = checked_add(moved_, bytes);
    ++messages_;
  }
  Index index_of(Rank rank) const {
    return Index(std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin()) / per_square_;
  }
  Square& at(Rank from, Rank to) { return matrix_[std::size_t(index_of(from) * squares_ + index_of(to))]; }

  /// Returns the rank of a square, or the first and the last of several.
  std::string label_of(Index i) const {
    const Rank first = ranks_[std::size_t(i * per_square_)];
    const Rank last = ranks_[std::size_t(std::min(Index(ranks_.size()), (i + 1) * per_square_) - 1)];
    return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  /// Returns the number of squares from one label to the next that has room.
  Index label_step(double room_px) const { return std::max<Index>(1, Index(std::ceil(room_px / side_px_))); }

  void square(double x, double y, Index row, Index column) {
    const Square& what = matrix_[std::size_t(row * squares_ + column)];
    const bool is_kept = what.sent == 0 && what.kept > 0;
    const Color color = what.sent > 0 ? shade_of(what.sent, most_)
                        : is_kept     ? Color{226, 226, 226}
                                      : Color{250, 250, 250};
    page_.add(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
        "stroke=\"#ffffff\">",
        what.sent > 0 ? "message"
        : is_kept     ? "kept"
                      : "none",
        x, y, side_px_, side_px_, hex(color));
    if (what.sent > 0)
      page_.add("<title>{} to {}: {}</title>", label_of(row), label_of(column), human_bytes(what.sent));
    page_.add("</rect>\n");
    const Index bytes = is_kept ? what.kept : what.sent;
    const std::string amount = bytes > 0 ? human_bytes(bytes) : "";
    const double size = std::min(13.0, side_px_ * 1.5 / double(std::max<std::size_t>(amount.size(), 1)));
    if (amount.empty() || size < 7.5) return;
    page_.add("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"middle\" font-size=\"{:.1f}\" style=\"fill:{}\">{}</text>\n",
              x + side_px_ / 2, y + side_px_ / 2 + size * 0.35, size,
              is_kept           ? "#777777"
              : is_light(color) ? "#1a1a1a"
                                : "#ffffff",
              amount);
  }

  /// Returns the y coordinate of its end.
  double legend(double x, double y) {
    const auto row = [&](const Color& color, const std::string& what) {
      page_.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" rx=\"2\" fill=\"{}\"/>\n", x, y,
                hex(color));
      page_.text(x + 22, y + 11, "legend", what);
      legend_width_ = std::max(legend_width_, x + 22 + 7.2 * double(what.size()) + 16);
      y += 20;
    };
    if (most_ > 0) {
      row(shade_of(most_, most_), human_bytes(most_));
      if (most_ >= 4) row(shade_of(most_ / 4, most_), human_bytes(most_ / 4));
      if (most_ >= 100) row(shade_of(most_ / 100, most_), human_bytes(most_ / 100));
    }
    if (kept_ > 0) row({226, 226, 226}, "kept by the rank");
    return y;
  }

  std::string caption() const {
    if (!is_complete_)
      return fmt::format("some ranks have more than {} transfers, which are not listed", grouped(transfers_listed_max));
    std::string out = fmt::format("{} in {}", human_bytes(moved_), counted(messages_, "message"));
    out += alone_in_words({kept_, filled_});
    if (per_square_ > 1) out += fmt::format("; a square is {} by {}", per_square_, amount(per_square_, "rank"));
    return out;
  }

  PlanKind kind_;
  std::vector<Rank> ranks_, given_;
  Index per_square_ = 1, squares_ = 1;
  double side_px_ = 1;
  std::vector<Square> matrix_;
  Index most_ = 0, moved_ = 0, kept_ = 0, filled_ = 0, messages_ = 0;
  bool is_complete_ = true;
  double legend_width_ = 0;
  SvgPage page_;
};

}  // namespace

std::string messages_svg(const PlanSummary& plan) {
  return RankPicture(plan).draw();
}

std::string messages_svg(std::span<const PlanSummary> plans) {
  if (plans.empty()) throw_error(ErrorCode::invalid_use, "there is no plan to draw: 1 or more are needed");
  return MatrixPicture(plans).draw();
}

}  // namespace tranship

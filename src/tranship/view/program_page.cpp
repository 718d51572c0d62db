#include "tranship/view/program_page.hpp"

#include <algorithm>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/view/picture.hpp>
#include <tranship/view/program_text.hpp>
#include <tranship/view/svg.hpp>

namespace tranship {
namespace {

constexpr double column_width = 104, box_width = 80, box_height = 24, lane_height = 36, rank_gap = 16, top = 12;
constexpr double labels_width = 150;

// The kind of work that a step does; it decides the step's colour.
enum class Family : std::uint8_t { meet, signal, wait, copy, reduce, packets, multicast, loop };
constexpr const char* family_names[] = {"meet", "signal", "wait", "copy", "reduce", "packets", "switch", "loop"};

Family family_of(const Step& step) {
  const StepShape& shape = shape_of(step.kind);
  if (step.kind == StepKind::pipeline) return Family::loop;
  if (waits(step.kind) || step.kind == StepKind::acquire) return Family::wait;
  if (!shape.moves()) return signals(step.kind) || step.kind == StepKind::release ? Family::signal : Family::meet;
  if (shape.channel == StepChannel::switched) return Family::multicast;
  if (shape.pairing == Pairing::all && shape.sources.size() > 1) return Family::reduce;
  const auto has_packets = [](std::string_view letters) { return letters.find_first_of("PpQ") != letters.npos; };
  return has_packets(shape.sources) || has_packets(shape.targets) ? Family::packets : Family::copy;
}

constexpr std::string_view style = R"(
body{margin:0;height:100vh;display:flex;flex-direction:column;font:14px Helvetica,Arial,'DejaVu Sans',sans-serif;color:#222;background:#fff}
header{padding:14px 20px 10px;border-bottom:1px solid #ddd}
h1{font:600 17px ui-monospace,Menlo,'DejaVu Sans Mono',monospace;margin:0 0 4px}
header p{margin:2px 0;color:#555}
.keys{display:flex;flex-wrap:wrap;gap:4px 16px;margin-top:8px;font-size:12px;align-items:center}
.keys i{display:inline-block;width:14px;height:12px;border-radius:3px;margin-right:5px;vertical-align:-1px}
.keys label{cursor:pointer}
main{display:flex;align-items:flex-start;overflow:auto;flex:1;min-height:0}
main svg{display:block;flex:none}
.labels{position:sticky;left:0;z-index:1;background:#fff;border-right:1px solid #ddd}
.labels text{font-size:12px;fill:#333}.labels .rank{font-weight:600}
.lane{fill:#f6f7f9}
.step{cursor:default}
.step rect{stroke:#0003}
.step text{font:11px ui-monospace,Menlo,'DejaVu Sans Mono',monospace;text-anchor:middle;pointer-events:none;fill:#111}
.meet rect{fill:#d5d8dd}.signal rect{fill:#f2b84b}.wait rect{fill:#f7e58b}.copy rect{fill:#8cc8ee}
.reduce rect{fill:#63c2a2}.packets rect{fill:#dba9c9}.switch rect{fill:#c9a97a}.loop rect{fill:#fff;stroke:#555}
.inner rect{stroke:#555;stroke-dasharray:3 2}
.stuck rect,.never rect{stroke:#c00;stroke-width:2.5;stroke-dasharray:4 3}.never{opacity:.45}
.arrow{fill:none;stroke-width:1.3;opacity:.55;pointer-events:none}
.arrow.a-signal{stroke:#c07800}.arrow.a-release{stroke:#7a6a00}.arrow.a-packets{stroke:#a8407f}
.arrow.a-data{stroke:#1769aa;stroke-dasharray:5 3}
.hide-signal .a-signal,.hide-release .a-release,.hide-packets .a-packets,.hide-data .a-data{visibility:hidden}
.focus .arrow{opacity:.08}.focus .arrow.on{opacity:1;stroke-width:2.4;visibility:visible}
.focus .step{opacity:.45}.focus .step.on{opacity:1}
.step.on rect{stroke:#000;stroke-width:2}
footer{flex:none;height:84px;overflow:auto;padding:8px 20px;border-top:1px solid #ddd;
background:#fafafa;white-space:pre-wrap;font:12px ui-monospace,Menlo,'DejaVu Sans Mono',monospace;box-sizing:border-box}
)";

// The script contains no text of the program: it shows attributes of elements.
constexpr std::string_view script = R"(
'use strict';
window.addEventListener('error', e => { document.body.dataset.error = e.message; });
const main = document.querySelector('main'), details = document.querySelector('footer');
const idle = details.textContent, arrowsOf = new Map();
for (const arrow of document.querySelectorAll('.arrow'))
  for (const end of [arrow.dataset.f, arrow.dataset.t]) {
    if (!arrowsOf.has(end)) arrowsOf.set(end, []);
    arrowsOf.get(end).push(arrow);
  }
let lit = [], pinned = null;
function show(step) {
  for (const one of lit) one.classList.remove('on');
  lit = [];
  main.classList.toggle('focus', step !== null);
  details.textContent = step === null ? idle : step.dataset.d;
  if (step === null) return;
  lit.push(step);
  for (const arrow of arrowsOf.get(step.id.slice(1)) || []) {
    lit.push(arrow);
    for (const end of [arrow.dataset.f, arrow.dataset.t]) lit.push(document.getElementById('s' + end));
  }
  for (const one of lit) one.classList.add('on');
}
const stepAt = e => e.target.closest ? e.target.closest('.step') : null;
main.addEventListener('mouseover', e => { if (pinned === null) show(stepAt(e)); });
main.addEventListener('mouseleave', () => { if (pinned === null) show(null); });
main.addEventListener('click', e => { pinned = stepAt(e); show(pinned); });
for (const box of document.querySelectorAll('input'))
  box.addEventListener('change', () => main.classList.toggle('hide-' + box.value, !box.checked));
document.body.dataset.ready = ['.lane', '.step', '.arrow'].map(x => document.querySelectorAll(x).length).join(' ');
)";

class Page {
 public:
  Page(const Program& program, const ProgramPageOptions& options)
      : program_(program), options_(options), arrows_(program) {}

  std::string text() {
    place_steps();
    draw_lanes();
    draw_steps();
    draw_arrows();
    const std::string title = fmt::format("{} ({})", xml(program_.name), xml(program_.collective));
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" "
        "content=\"{}\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
        picture_mark, title, style);
    out += fmt::format("<header>\n<h1>{}</h1>\n<p>{}</p>\n", title, xml(facts()));
    if (const std::string limits = limits_text(); !limits.empty()) out += fmt::format("<p>{}</p>\n", xml(limits));
    out += keys();
    out += fmt::format("</header>\n<main{}>\n", hides_data() ? " class=\"hide-data\"" : "");
    out += fmt::format("<svg class=\"labels\" width=\"{:.0f}\" height=\"{:.0f}\">\n{}</svg>\n", labels_width, height_,
                       labels_);
    out += fmt::format(
        "<svg width=\"{:.0f}\" height=\"{:.0f}\">\n<defs>{}</defs>\n{}{}{}</svg>\n</main>\n<footer>Point at a step: "
        "what it does, and what it pairs with. Click to keep it.</footer>\n",
        width_, height_, markers(), lanes_, steps_, lines_);
    return out + fmt::format("<script>{}</script>\n</body>\n</html>\n", script);
  }

 private:
  struct Spot {
    double x = 0, y = 0;
    bool is_shown = false;
    bool has_run = true;
  };
  const std::vector<StepPlace>& steps() const { return arrows_.steps(); }

  /// Places each step behind its predecessor and behind all steps that it needs; steps that never run come last.
  std::vector<double> columns_of_steps() const {
    const Replay played =
        replay(program_, step_by_step(), {.iterations_max = 1, .arrows = ReplayOptions::Arrows::find});
    std::vector<StepArrow> arrows = played.arrows;
    std::stable_sort(arrows.begin(), arrows.end(), [](const StepArrow& a, const StepArrow& b) { return a.to < b.to; });
    std::vector<std::size_t> lane_of(steps().size());
    std::size_t lanes = 0;
    for (std::size_t i = 0; i < steps().size(); ++i) {
      if (i > 0 && (steps()[i].rank != steps()[i - 1].rank || steps()[i].block != steps()[i - 1].block)) ++lanes;
      lane_of[i] = lanes;
    }
    std::vector<double> next(lanes + 1, 0), columns(steps().size(), -1);
    for (const StepEvent& event : played.events) {
      if (event.step < 0) continue;
      const auto step = static_cast<std::size_t>(event.step);
      double& free = next[lane_of[step]];
      if (steps()[step].inner == 0) columns[step - 1] = free++;  // the box of the loop
      if (event.cause >= 0 && played.events[static_cast<std::size_t>(event.cause)].step >= 0)
        free = std::max(
            free, columns[static_cast<std::size_t>(played.events[static_cast<std::size_t>(event.cause)].step)] + 1);
      for (auto at = std::lower_bound(arrows.begin(), arrows.end(), event.step,
                                      [](const StepArrow&arrow, std::int32_t to) { return arrow.to < to; });
           at != arrows.end() && at->to == event.step; ++at)
        free = std::max(free, columns[static_cast<std::size_t>(at->from)] + 1);
      columns[step] = free++;
    }
    return columns;
  }

  void place_steps() {
    const std::vector<double> columns = columns_of_steps();
    spots_.resize(steps().size());
    std::size_t at = 0;
    double y = top, columns_max = 0;
    Index shown = 0;
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      std::size_t end = at;
      while (end < steps().size() && static_cast<std::size_t>(steps()[end].rank) == rank) ++end;
      if (options_.rank && Rank(rank) != *options_.rank) {
        at = end;
        lanes_y_.emplace_back();
        continue;
      }
      if (shown > 0 && shown + Index(end - at) > options_.steps_max) break;
      shown += static_cast<Index>(end - at);
      lanes_y_.emplace_back();
      for (std::size_t block = 0; block < program_.ranks[rank].blocks.size(); ++block) {
        double next = 0;
        for (; at < end && static_cast<std::size_t>(steps()[at].block) == block; ++at) {
          Spot& spot = spots_[at];
          spot.is_shown = true;
          spot.has_run = columns[at] >= 0;
          if (spot.has_run) next = columns[at];
          spot.x = next * column_width + 8;
          spot.y = y + (lane_height - box_height) / 2;
          columns_max = std::max(columns_max, ++next);
        }
        lanes_y_.back().push_back(y);
        y += lane_height;
      }
      y += rank_gap;
    }
    width_ = columns_max * column_width + 24;
    height_ = y;
  }

  void draw_lanes() {
    for (std::size_t rank = 0; rank < lanes_y_.size(); ++rank)
      for (std::size_t block = 0; block < lanes_y_[rank].size(); ++block) {
        const double y = lanes_y_[rank][block], middle = y + lane_height / 2 + 4;
        lanes_ += fmt::format("<rect class=\"lane\" x=\"0\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", y + 1,
                              width_, lane_height - 2);
        if (block == 0)
          labels_ += fmt::format("<text class=\"rank\" x=\"14\" y=\"{:.0f}\">rank {}</text>\n", middle, rank);
        labels_ += fmt::format("<text x=\"84\" y=\"{:.0f}\">block {}</text>\n", middle, block);
      }
  }

  void draw_steps() {
    const auto& stuck = arrows_.stuck();
    for (std::size_t i = 0; i < steps().size(); ++i) {
      if (!spots_[i].is_shown) continue;
      const StepPlace& place = steps()[i];
      const std::string_view word = shape_of(place.what->kind).word;
      const bool is_stuck = std::binary_search(stuck.begin(), stuck.end(), static_cast<std::int32_t>(i));
      std::string details = xml(fmt::format("{}: {}", place_text(place), word));
      if (place.what->line >= 0) details += xml(fmt::format(" (line {})", place.what->line));
      if (const std::string what = step_text(program_, place); !what.empty()) details += "&#10;" + xml(what);
      if (const std::string pairs = arrows_.text(static_cast<std::int32_t>(i)); !pairs.empty())
        details += "&#10;" + xml(pairs);
      steps_ += fmt::format(
          "<g class=\"step {}{}{}{}\" id=\"s{}\" data-d=\"{}\"><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
          "height=\"{:.0f}\" rx=\"4\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text></g>\n",
          family_names[static_cast<std::size_t>(family_of(*place.what))], place.inner >= 0 ? " inner" : "",
          is_stuck ? " stuck" : "", spots_[i].has_run || is_stuck ? "" : " never", i, details, spots_[i].x, spots_[i].y,
          box_width, box_height, spots_[i].x + box_width / 2, spots_[i].y + box_height / 2 + 4, xml(word));
    }
  }

  void draw_arrows() {
    for (const StepArrow& arrow : arrows_.all()) {
      const Spot &from = spots_[static_cast<std::size_t>(arrow.from)], &to = spots_[static_cast<std::size_t>(arrow.to)];
      if (options_.rank && !from.is_shown && !to.is_shown) continue;  // between other ranks only
      if (!from.is_shown || !to.is_shown || drawn_ >= options_.arrows_max) {
        ++left_out_;
        continue;
      }
      ++drawn_;
      drawn_data_ += arrow.kind == StepArrow::Kind::data ? 1 : 0;
      const double x1 = from.x + box_width, y1 = from.y + box_height / 2, x2 = to.x, y2 = to.y + box_height / 2;
      const double bend = std::max(18.0, (x2 - x1) * 0.4);
      lines_ += fmt::format(
          "<path class=\"arrow a-{0}\" data-f=\"{1}\" data-t=\"{2}\" marker-end=\"url(#m-{0})\" d=\"M{3:.0f} {4:.0f}C"
          "{5:.0f} {4:.0f} {6:.0f} {7:.0f} {8:.0f} {7:.0f}\"/>\n",
          name_of(arrow.kind), arrow.from, arrow.to, x1, y1, x1 + bend, x2 - bend, y2, x2 - 1);
    }
  }

  /// Many readers of many writers would cover everything else. Pointing at a step still shows its own arrows.
  bool hides_data() const { return drawn_data_ > 300; }

  static std::string markers() {
    std::string out;
    for (const auto& [kind, color] : {std::pair("signal", "#c07800"), std::pair("release", "#7a6a00"),
                                      std::pair("packets", "#a8407f"), std::pair("data", "#1769aa")})
      out += fmt::format(
          "<marker id=\"m-{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" "
          "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{}\"/></marker>",
          kind, color);
    return out;
  }

  std::string facts() const {
    std::string out = fmt::format("{}; protocol {}, {}", sizes_text(program_), program_.protocol,
                                  program_.in_place ? "in place" : "out of place");
    if (!arrows_.stuck().empty())
      out += fmt::format("; {} of the blocks never end", grouped(static_cast<Index>(arrows_.stuck().size())));
    return out;
  }
  std::string limits_text() const {
    std::string out;
    if (options_.rank)
      out += fmt::format("Rank {} of {} is shown. ", *options_.rank, program_.ranks.size());
    else if (lanes_y_.size() < program_.ranks.size())
      out += fmt::format("Ranks 0 to {} of {} are shown. ", lanes_y_.size() - 1, program_.ranks.size());
    const Index left_out = left_out_ + arrows_.dropped();
    if (left_out > 0)
      out += fmt::format("{} not drawn.", left_out == 1 ? "1 arrow is" : grouped(left_out) + " arrows are");
    return out;
  }
  std::string keys() const {
    static constexpr std::pair<const char*, const char*> colors[] = {
        {"meet", "#d5d8dd"},   {"signal", "#f2b84b"},  {"wait", "#f7e58b"},   {"copy", "#8cc8ee"},
        {"reduce", "#63c2a2"}, {"packets", "#dba9c9"}, {"switch", "#c9a97a"}, {"loop", "#fff;border:1px solid #555"}};
    std::string out = "<div class=\"keys\">";
    for (const auto& [name, color] : colors)
      out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", color, name);
    out += "<span>arrows:</span>";
    for (const char* kind : {"signal", "packets", "data", "release"})
      out += fmt::format("<label><input type=\"checkbox\" value=\"{0}\"{1}> {0}</label>", kind,
                         std::string_view(kind) == "data" && hides_data() ? "" : " checked");
    return out + "</div>\n";
  }

  const Program& program_;
  const ProgramPageOptions& options_;
  StepArrows arrows_;
  std::vector<Spot> spots_;
  std::vector<std::vector<double>> lanes_y_;  ///< by rank and block
  double width_ = 0, height_ = 0;
  std::string labels_, lanes_, steps_, lines_;
  Index drawn_ = 0, drawn_data_ = 0, left_out_ = 0;
};

}  // namespace

std::string program_page(const Program& program, const ProgramPageOptions& options) {
  if (options.rank && (*options.rank < 0 || std::size_t(*options.rank) >= program.ranks.size()))
    throw_error(ErrorCode::invalid_use, "there is no rank {}; the program has {}", *options.rank, program.ranks.size());
  return Page(program, options).text();
}

}  // namespace tranship

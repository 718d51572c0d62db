// `tranship layout`: shows who owns what, as a picture and a table of the ranks. Slices are printed by family, so no
// layout is too large to print.

#include <algorithm>
#include <filesystem>
#include <memory>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/picture_file.hpp>
#include <tranship/file/format/formats.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/reshard_tensors.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/view/picture.hpp>

namespace tranship::cli {
namespace {

constexpr Index rows_shown_max = 24;
// Each is an object of a few hundred bytes, so a longer list is of no use.
constexpr Index json_ranks_max = Index(1) << 20;

struct LayoutOptions {
  std::string what;
  std::string picture;
  std::optional<Rank> rank;
  bool json = false;
  bool force = false;
};

struct Subject {
  ArraySpec spec;
  std::optional<std::string> path;
  std::string descr;
};

bool is_path(const std::string& what) {
  std::error_code ignored;
  if (std::filesystem::exists(what, ignored)) return true;
  return what.find('[') == std::string::npos &&
         (format_of_target(what).kind == StagedKind::file || what.find('/') != std::string::npos);
}

Subject subject_of(const std::string& what) {
  if (what.starts_with('@') || !is_path(what)) return {.spec = layout_argument("LAYOUT", what)};
  StoredArray stored = inspect(what).value();
  return {.spec = std::move(stored.spec), .path = what, .descr = std::move(stored.descr)};
}

std::vector<Rank> ranks_to_show(const Grid& grid, const std::optional<Rank>& only, Index count_max) {
  if (only) return {*only};
  std::vector<Rank> out;
  for (Index ordinal = 0; ordinal < std::min(grid.size(), count_max); ++ordinal) out.push_back(grid.rank_at(ordinal));
  return out;
}

struct Cells {
  Index owned = 1;
  Index stored = 1;
};
Cells cells_of(const Distribution& d, Rank rank) {
  Cells out{.stored = checked_product(d.local_extents(rank))};
  const Place place = *d.grid().place_of(rank);
  for (int k = 0; k < d.dims(); ++k) {
    if (d.is_indexed() && k < d.indexed_dims()) continue;
    out.owned *= d.is_indexed() ? d.extents()[k] : d.axis(k).owned_count(place.coordinates[k]);
  }
  if (d.is_indexed()) out.owned *= static_cast<Index>(d.indexed_part(*d.grid().ordinal_of(rank)).owned.size());
  return out;
}

// Returns "0:7 14:21 .. 511:517", as NumPy writes slices. The last slice is always shown, even if others are left out.
std::string slices_text(const std::vector<SliceFamily>& families) {
  constexpr Index listed_max = 3;
  Index count = 0;
  for (const SliceFamily& family : families) count += family.count;
  if (count == 0) return "-";
  std::string out;
  Index number = 0;
  for (const SliceFamily& family : families) {
    for (Index k = 0; k < family.count && number + k < listed_max; ++k) {
      if (count > listed_max && number + k == listed_max - 1) break;
      const Index start = family.start + k * family.period;
      out += fmt::format("{}{}:{}", out.empty() ? "" : " ", start, start + family.length);
    }
    number += family.count;
  }
  if (count > listed_max) {
    const SliceFamily& last = families.back();
    const Index start = last.start + (last.count - 1) * last.period;
    out += fmt::format(" .. {}:{}", start, start + last.length);
  }
  return out;
}

std::string coordinates_text(const Grid& grid, const Place& place) {
  std::string out = fmt::format("{}", join_text(place.coordinates, ","));
  if (grid.replicas() > 1) out += fmt::format(" copy {}", place.replica);
  return out;
}

std::string ranks_text(const ArraySpec& spec, const std::optional<Rank>& only) {
  const Distribution& d = spec.distribution;
  std::vector<TextTable::Column> columns = {{"rank", Align::right}, {"place"}};
  if (!d.is_indexed())
    for (int k = 0; k < d.dims(); ++k) columns.push_back({fmt::format("dimension {}", k)});
  for (const char* heading : {"owned", "stored", "memory"}) columns.push_back({heading, Align::right});

  TextTable table(std::move(columns));
  for (const Rank rank : ranks_to_show(d.grid(), only, rows_shown_max)) {
    const Place place = *d.grid().place_of(rank);
    std::vector<std::string> row = {fmt::format("{}", rank), coordinates_text(d.grid(), place)};
    if (!d.is_indexed())
      for (int k = 0; k < d.dims(); ++k) row.push_back(slices_text(d.axis(k).slices(place.coordinates[k])));
    const Cells cells = cells_of(d, rank);
    row.push_back(grouped(cells.owned));
    row.push_back(grouped(cells.stored));
    row.push_back(human_bytes(checked_multiply(cells.stored, size_bytes(spec.type))));
    table.add(std::move(row));
  }
  std::string out = table.text();
  if (!only && d.grid().size() > rows_shown_max)
    out += fmt::format("  and {}; --rank R shows one, --json all\n",
                       counted(d.grid().size() - rows_shown_max, "more rank"));
  return out;
}

Json families_json(const std::vector<SliceFamily>& families) {
  Json out = Json::array();
  for (const SliceFamily& family : families)
    out.push_back({{"start", family.start},
                   {"length", family.length},
                   {"period", family.period},
                   {"count", family.count},
                   {"left", family.left},
                   {"right", family.right}});
  return out;
}

Json rank_json(const ArraySpec& spec, Rank rank) {
  const Distribution& d = spec.distribution;
  const Place place = *d.grid().place_of(rank);
  const Storage storage = d.storage(rank);
  const Cells cells = cells_of(d, rank);
  Json out = {{"rank", rank},
              {"coordinates", json_of(place.coordinates)},
              {"replica", place.replica},
              {"owned_cells", cells.owned},
              {"stored_cells", cells.stored},
              {"local_extents", json_of(storage.extents)},
              {"strides_elements", json_of(storage.strides)},
              {"offset_elements", storage.offset},
              {"slice_count", d.slice_count(rank)}};
  if (!d.is_indexed()) {
    out["slices"] = Json::array();
    for (int k = 0; k < d.dims(); ++k) out["slices"].push_back(families_json(d.axis(k).slices(place.coordinates[k])));
  }
  return out;
}

std::string json_text(const Subject& subject, const LayoutOptions& options) {
  const Distribution& d = subject.spec.distribution;
  if (!options.rank && d.grid().size() > json_ranks_max)
    throw_error(ErrorCode::unsupported, "{} are too many to list, {} are not: name one with --rank",
                amount(d.grid().size(), "rank"), json_ranks_max);
  Json out = {{"layout", json_of(subject.spec)},       {"text", to_text(subject.spec)},
              {"cells", checked_product(d.extents())}, {"element_bytes", size_bytes(subject.spec.type)},
              {"rank_count", d.grid().size()},         {"ranks", Json::array()}};
  if (subject.path) {
    out["path"] = *subject.path;
    out["descr"] = subject.descr;
  }
  if (!options.picture.empty()) out["picture"] = options.picture;
  for (const Rank rank : ranks_to_show(d.grid(), options.rank, json_ranks_max))
    out["ranks"].push_back(rank_json(subject.spec, rank));
  return document_text(out);
}

std::string plain_text(const Subject& subject, const LayoutOptions& options) {
  const ArraySpec& spec = subject.spec;
  const Index cells = checked_product(spec.distribution.extents());
  std::string out;
  if (subject.path) out += fmt::format("{}: elements {}\n", printable(*subject.path), printable(subject.descr));
  if (options.rank || spec.distribution.is_indexed() || spec.distribution.grid().size() == 1) {
    out += to_text(spec) + "\n";
  } else {
    PictureOptions picture;
    if (colors_wanted()) picture.colors = PictureColors::ansi;
    out += picture_text(spec, picture);
  }
  out += fmt::format("\n{}, {} on {}\n\n", counted(cells, "cell"),
                     human_bytes(checked_multiply(cells, size_bytes(spec.type))),
                     counted(spec.distribution.grid().size(), "rank"));
  return out + ranks_text(spec, options.rank);
}

void print_tensors(const LayoutOptions& options) {
  if (options.rank || !options.picture.empty())
    throw UsageError{"--rank and -o apply to one layout, not to the layouts of tensors"};
  const std::vector<TensorDescription> tensors = inspect_tensors(options.what).value();
  if (options.json) {
    Json out = {{"path", options.what}, {"tensors", Json::array()}};
    for (const TensorDescription& tensor : tensors)
      out["tensors"].push_back({{"name", tensor.name},
                                {"dtype", tensor.dtype},
                                {"shape", tensor.shape},
                                {"layout", json_of(tensor.spec)},
                                {"text", to_text(tensor.spec)}});
    return print_document(out);
  }
  TextTable table({{"tensor"}, {"dtype"}, {"shape"}, {"layout"}});
  for (const TensorDescription& tensor : tensors)
    table.add({printable(tensor.name), tensor.dtype, fmt::format("[{}]", join_text(tensor.shape, ", ")),
               to_text(tensor.spec)});
  print(fmt::format("{}: {}\n\n{}", printable(options.what), counted(static_cast<Index>(tensors.size()), "tensor"),
                    table.text()));
}

void show(const LayoutOptions& options) {
  if (names_tensors(options.what)) return print_tensors(options);
  const Subject subject = subject_of(options.what);
  if (options.rank) require_rank(*options.rank, subject.spec.distribution, subject.spec.distribution);
  const std::string text = options.json ? json_text(subject, options) : plain_text(subject, options);
  if (!options.picture.empty()) {
    if (subject.path) check_not_source(options.picture, *subject.path);
    write_picture(options.picture, picture_svg(subject.spec, {.rank = options.rank}),
                  options.force ? Replace::any_file : Replace::own_files);
  }
  print_beside_file(options.picture, text);
}

}  // namespace

void add_layout(CommandLine& line) {
  Command command = line.add("layout", "Who owns what: a picture, and what each rank holds");
  command.footer(R"help(Examples:
  tranship layout "f64[517,389] @ 2x3 : cyclic(64), cyclic(64)"
  tranship layout "f32[100] @ 4 : block+overlap(2,2,toroidal)" --rank 0
  tranship layout elevation.npy
  tranship layout tiles/ -o tiles.svg)help");
  auto options = std::make_shared<LayoutOptions>();
  command
      .positional("LAYOUT", options->what,
                  "A layout text, @FILE.json, a .npy file, FILE.npz:MEMBER, a directory or safetensors")
      .required();
  command.option("-o,--output", options->picture, "Also draw an SVG").value_name("FILE.svg");
  command.flag("--force", options->force, "Let the SVG replace any file, not only one that tranship drew");
  command.option("--rank", options->rank, "Only this rank; the SVG hatches its overlap").value_name("R").not_negative();
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { show(*options); });
}

}  // namespace tranship::cli

// `tranship demo`: reshards a raster in files, from rows to overlapping tiles and back; then live ranks smooth and
// shade it together. Everything that the demo reports was measured or compared in that run.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/picture_file.hpp>
#include <tranship/cli/relief.hpp>
#include <tranship/cli/report_text.hpp>
#include <tranship/file/io/atomic_write.hpp>
#include <tranship/file/io/target_path.hpp>
#include <tranship/file/store/replaceable.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/tranship.hpp>
#include <tranship/view/picture.hpp>

namespace tranship::cli {
namespace {

constexpr int live_ranks = 4;
constexpr int smoothing_steps = 20;
constexpr int relief_columns = 72;

struct DemoOptions {
  std::string data;
  std::string title;
  std::string folder = "tranship-demo";
  bool force = false;
};

/// The files of one folder. Existing files with their names are replaced if the demo's mark says that they are its own.
class DemoFolder {
 public:
  explicit DemoFolder(const std::string& path) : path_(path) {}

  std::string hills() const { return path_ + "/hills.npy"; }
  std::string bands() const { return path_ + "/rows"; }
  std::string tiles() const { return path_ + "/tiles"; }
  std::string back() const { return path_ + "/back.npy"; }
  std::string picture() const { return path_ + "/tiles.svg"; }

  /// Makes the folder. Throws `invalid_use`, naming the file, if it holds something that is not the demo's, or that may
  /// never be replaced.
  void prepare(Replace replace) const {
    namespace fs = std::filesystem;
    std::error_code failure;
    const std::string mark = path_ + "/.tranship-demo";
    if (replace == Replace::own_files && !fs::exists(mark, failure))
      for (const std::string& name : {hills(), bands(), tiles(), back(), picture()})
        if (fs::exists(fs::symlink_status(name, failure)))
          throw_error(ErrorCode::invalid_use,
                      "'{}' exists, and no earlier demo wrote it: choose another --dir, or --force to replace it",
                      name);
    for (const std::string& name : {bands(), tiles()}) check_replaceable_directory(name);
    check_replaceable_npy(back());
    for (const std::string& name : {hills(), picture()}) file_may_be_replaced(name);
    fs::create_directories(path_, failure);
    if (failure) throw_error(ErrorCode::io, "cannot create '{}': {}", path_, failure.message());
    AtomicFile::create(mark, 0).value().commit().value();
  }

 private:
  std::string path_;
};

/// A closed output does not end the demo, which makes files between its messages.
void say(std::string_view text) {
  try {
    print(text);
  } catch (const OutputClosed&) {
  }
}

void print_heading(std::string_view heading) {
  say(fmt::format("\n{}\n\n", heading));
}

// 1. In files.

void reshard_step(const std::string& source, const std::string& target, const std::string& to) {
  say(fmt::format("  $ tranship reshard {} {} --verify \\\n      --to \"{}\"\n", printable(source), printable(target),
                  to));
  const ReshardReport report = reshard(
      {.source = source, .target = target, .from = std::nullopt, .to = parse_layout(to), .verify = Verify::yes});
  say(fmt::format("  {}\n\n", report_text(target, report)));
}

// Compares the elements of two arrays byte by byte; the headers may differ in their padding.
void require_same_elements(const NpyFile& a, const NpyFile& b) {
  auto elements = [](const NpyFile& file) { return file.file.bytes().subspan(std::size_t(file.header.header_bytes)); };
  const auto x = elements(a), y = elements(b);
  const bool are_same = a.header.descr == b.header.descr && a.header.order == b.header.order &&
                        a.header.extents == b.header.extents && std::equal(x.begin(), x.end(), y.begin(), y.end());
  a.file.check();
  b.file.check();
  if (!are_same) throw_error(ErrorCode::internal, "the redistributed data differ from the original data");
}

ArraySpec move_files(const NpyFile& data, const std::string& source, const DemoFolder& folder) {
  const NpyHeader& header = data.header;
  const Index rows = header.extents[0], columns = header.extents[1];
  const Index tile = std::max<Index>(1, std::min(rows, columns) / 8);
  const std::string array = fmt::format("{}[{},{}]", name_of(header.type), rows, columns);
  const std::string bands = folder.bands(), tiles = folder.tiles(), back = folder.back();
  const std::string tiles_layout =
      fmt::format("{} @ 2x3 : cyclic({})+overlap(1,1), cyclic({})+overlap(1,1)", array, tile, tile);
  const char* order = header.order == NpyOrder::fortran ? " | order(1,0)" : "";

  print_heading("In files: rows, then tiles that overlap, then one file again");
  reshard_step(source, bands, array + " @ 4x1 : block, whole");
  reshard_step(bands, tiles, tiles_layout);
  reshard_step(tiles, back, array + " @ 1x1 : whole, whole" + order);
  require_same_elements(data, open_npy(back).value());
  say(fmt::format("  {} is back: all {} bytes of its elements are those of {}\n", printable(back),
                  grouped(header.data_bytes()), printable(source)));
  return parse_layout(tiles_layout);
}

void show_layout(const ArraySpec& tiles, const DemoFolder& folder) {
  print_heading("Who owns what among the tiles");
  PictureOptions options{.max_columns = relief_columns};
  if (colors_wanted()) options.colors = PictureColors::ansi;
  say(picture_text(tiles, options));
  const std::string picture = folder.picture();
  write_picture(picture, picture_svg(tiles), Replace::any_file);
  say(fmt::format("\n  drawn in {}\n", printable(picture)));
}

// 2. Live.

struct Timing {
  std::int64_t redistribution_ns = 0;
  std::int64_t smoothing_ns = 0;
};

// Computes the output of a rank from its tile, which stores one more cell on every side: a neighbour's cell inside the
// array, a copy at its edge.
template <class F>
void map_tile(const Array<float>& tile, const Array<float>& out, F&& f) {
  for (Index y = 0; y < out.extents()[0]; ++y)
    for (Index x = 0; x < out.extents()[1]; ++x)
      out(y, x) = f(Star{.centre = tile(y + 1, x + 1),
                         .north = tile(y, x + 1),
                         .south = tile(y + 2, x + 1),
                         .west = tile(y + 1, x),
                         .east = tile(y + 1, x + 2)});
}

Raster shade_together(const Raster& raster, const Distribution& bands, const Distribution& overlapping,
                      Timing& timing) {
  Raster out{raster.extents, std::vector<float>(raster.heights.size())};
  launch(live_ranks, [&](World& world) {
    const Partition whole_dimension = whole(), blocks = block();
    Array<float> band(world, bands);
    Array<float> tile(world, overlapping);
    Array<float> inner(world, distribution(raster.extents, grid(2, 2), {blocks, blocks}));
    Array<float> picture(world, distribution(raster.extents, grid(1, 1), {whole_dimension, whole_dimension}),
                         world.rank() == 0 ? out.heights.data() : nullptr);
    Redistribution turn(band, tile);
    HaloExchange halo({tile}, {.stencil = {.kind = StencilKind::star}});
    Redistribution gather(inner, picture);

    band.fill_owned([&](const Indices& cell) { return raster.at(cell[0], cell[1]); });
    world.barrier();
    const std::int64_t began_ns = now_ns();
    turn();
    world.barrier();
    const std::int64_t turned_ns = now_ns();
    for (int step = 0; step < smoothing_steps; ++step) {
      halo();
      map_tile(tile, inner, smoothed);
      for (Index y = 0; y < inner.extents()[0]; ++y)
        for (Index x = 0; x < inner.extents()[1]; ++x) tile(y + 1, x + 1) = inner(y, x);
    }
    world.barrier();
    if (world.rank() == 0) timing = {.redistribution_ns = turned_ns - began_ns, .smoothing_ns = now_ns() - turned_ns};
    halo();
    map_tile(tile, inner, lit);
    gather();
  });
  return out;
}

void run_live(const Raster& raster) {
  const Distribution bands = distribution(raster.extents, grid(live_ranks, 1), {block(), whole()});
  const Partition overlapping = block().with_overlap(1, 1, EdgePolicy::replicate);
  const Distribution tiles = distribution(raster.extents, grid(2, 2), {overlapping, overlapping});
  const ArraySpec from{ElementType::f32, bands}, to{ElementType::f32, tiles};
  const WorldSummary turn = summarise_redistribution(from, to);
  const WorldSummary halo = summarise_halo({&to, 1}, {.stencil = {.kind = StencilKind::star}});

  print_heading(fmt::format("Live: {}, threads of this process", amount(live_ranks, "rank")));
  Timing timing;
  const Raster together = shade_together(raster, bands, tiles, timing);
  say(fmt::format("  {}\n    to {}\n    {} between ranks, {}, in {}\n\n", to_text(from), to_text(to),
                  counted(turn.messages, "message"), human_bytes(turn.moved.bytes),
                  human_duration(timing.redistribution_ns)));
  say(fmt::format("  {} of smoothing, each after a halo exchange: {}, {} a step, all in {}\n",
                  counted(smoothing_steps, "step"), counted(halo.messages, "message"), human_bytes(halo.moved.bytes),
                  human_duration(timing.smoothing_ns)));

  const Raster alone = shaded_alone(raster, smoothing_steps);
  if (std::memcmp(together.heights.data(), alone.heights.data(), alone.heights.size() * sizeof(float)) != 0)
    throw_error(ErrorCode::internal, "{} computed a result that differs from that of one rank",
                amount(live_ranks, "rank"));
  say(fmt::format("  then its relief in light from the north-west: all {} cells equal what one rank alone computes\n\n",
                  grouped(static_cast<Index>(alone.heights.size()))));
  say(relief_text(together, relief_columns, 2));
}

void run(const DemoOptions& options) {
  const DemoFolder folder(options.folder);
  const Replace replace = options.force ? Replace::any_file : Replace::own_files;
  std::string source = options.data;
  std::string title = options.title;
  if (source.empty()) {
    source = folder.hills();
    title = "made-up hills, for want of --data";
    folder.prepare(replace);
    write_hills(source, {344, 403});
  }
  const NpyFile data = open_npy(source).value();
  const Raster raster = read_raster(data);
  data.file.check();
  folder.prepare(replace);
  const auto [low, high] = std::minmax_element(raster.heights.begin(), raster.heights.end());
  say(fmt::format("{}: {}[{}], {}, values {} to {}\n", printable(source), name_of(data.header.type),
                  join_text(data.header.extents, ","), human_bytes(data.header.data_bytes()), *low, *high));
  if (!title.empty()) say(fmt::format("{}\n", printable(title)));

  const ArraySpec tiles = move_files(data, source, folder);
  show_layout(tiles, folder);
  run_live(raster);
}

}  // namespace

void add_demo(CommandLine& line) {
  Command command = line.add("demo", "The main job on a raster: there and back in files, and live on 4 ranks");
  command.footer(R"help(DIR gets the directories of parts 'rows' and 'tiles', 'back.npy' and 'tiles.svg', and a mark,
'.tranship-demo', by which a later demo knows that it may replace them.

Example:
  tranship demo --data elevation.npy --dir build/demo)help");
  auto options = std::make_shared<DemoOptions>();
  command.option("--data", options->data, "A .npy file of 2 dimensions; made-up hills by default")
      .value_name("FILE.npy");
  command.flag("--force", options->force, "Replace what other programs have written under the demo's names in DIR");
  command.option("--title", options->title, "What the data is: the demo then says it").value_name("TEXT").last_counts();
  command.option("--dir", options->folder, "Where to put files").value_name("DIR").shows_default().last_counts();
  command.runs([options] { run(*options); });
}

}  // namespace tranship::cli

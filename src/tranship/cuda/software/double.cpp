// Software cards as a double of the driver, by the name "software", and the twins of the back-end's kernels.
#include <string>

#include <tranship/base/error.hpp>
#include <tranship/cuda/kernels.hpp>
#include <tranship/cuda/software/lane.hpp>
#include <tranship/cuda/software/software_card.hpp>

namespace tranship::cuda::software {
namespace {

struct alignas(16) TileRoom {
  unsigned char bytes[packing::room_bytes];
};

void register_twins() {
  const auto add = [](KernelTwin twin) { register_kernel(twin); };
  // A lane is also how its kernel accesses memory.
  add(twin_of<MoveArgs>(
      "tranship_move_lean",
      [](const auto& lane, const MoveArgs& args) { move_body<packing::lean_vectors>(lane, lane, args); },
      packing::pack_lanes));
  add(twin_of<MoveArgs>(
      "tranship_move_deep",
      [](const auto& lane, const MoveArgs& args) { move_body<packing::lane_vectors_max>(lane, lane, args); },
      packing::pack_lanes));
  add(twin_of<MoveArgs>(
      "tranship_move_tiled",
      [](const auto& lane, const MoveArgs& args) {
        move_tiled_body(lane, lane, args, lane.template shared<TileRoom>().bytes);
      },
      packing::pack_lanes, sizeof(TileRoom)));
  add(twin_of<FillArgs>(
      "tranship_fill", [](const auto& lane, const FillArgs& args) { fill_body(lane, lane, args); },
      packing::pack_lanes));
#define TRANSHIP_MAP_TWIN(name)                                                                                        \
  add(twin_of<MapArgs>(                                                                                                \
      "tranship_map_" #name, [](const auto& lane, const MapArgs& args) { map_body<numbers::name>(lane, lane, args); }, \
      packing::pack_lanes));
  TRANSHIP_CARD_NUMBERS(TRANSHIP_MAP_TWIN)
#undef TRANSHIP_MAP_TWIN
}

std::string fill(DriverCalls& calls, std::string_view setting) {
  try {
    AllCalls all;
    fill_calls(all, software_cards(setting));
    calls = all;
    return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_text) throw;
    return error.what();
  }
}

const bool is_registered = [] {
  register_twins();
  register_double({.name = "software", .fill = fill});
  return true;
}();

}  // namespace
}  // namespace tranship::cuda::software

/// A program that links tranship::cuda asks for this name and gets the registration with it.
extern "C" const bool* tranship_cuda_software() {
  return &tranship::cuda::software::is_registered;
}

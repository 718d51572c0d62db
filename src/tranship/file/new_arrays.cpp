#include <filesystem>

#include <tranship/base/fail.hpp>
#include <tranship/file/new_arrays.hpp>
#include <tranship/file/raw.hpp>
#include <tranship/file/replaceable.hpp>
#include <tranship/file/target_path.hpp>

namespace tranship {
namespace {

/// The name that a file has in the end, links aside.
std::string last_name(const std::string& target) {
  return std::filesystem::path(resolved_target(target)).filename().string();
}

NpyHeader npy_header(const ArraySpec& spec, const std::string& descr, Rank rank) {
  const NpyElement element = parse_npy_descr(descr).value();
  NpyHeader out{.type = element.type,
                .byte_order = element.byte_order,
                .order = stored_order(spec),
                .extents = spec.distribution.local_extents(rank),
                .descr = descr};
  out.header_bytes = static_cast<Index>(format_npy_header(out).size());
  return out;
}

}  // namespace

Result<NewArrays> new_array(const std::string& target, const ArraySpec& spec, const std::string& descr) {
  return attempt([&] {
    const Manifest manifest = make_manifest(spec, descr);
    const bool bare = names_raw_file(target), single = bare || target.ends_with(".npy");
    const Grid& grid = spec.distribution.grid();
    if (single && grid.size() != 1)
      throw_error(ErrorCode::invalid_use, "'{}' is to be a file of 1 part, the layout has {}: name a directory", target,
                  grid.size());
    if (bare)
      check_replaceable_raw(target);
    else if (single)
      check_replaceable_npy(target);
    else
      check_replaceable_directory(target);

    NewArrays out{.kind = single ? StagedKind::file : StagedKind::directory, .files = {}, .arrays = {}};
    StoredParts& array = out.arrays.emplace_back(StoredParts{spec, descr, nullptr, {}, {}});
    for (Index i = 0; i < grid.size(); ++i) {
      const NpyHeader header = npy_header(spec, descr, grid.rank_at(i));
      std::string head = bare ? "" : format_npy_header(header);
      array.parts.push_back({i, static_cast<Index>(head.size()), header.order, header.extents});
      const Index size = checked_add(array.parts.back().offset_bytes, array.part_bytes(i));
      out.files.push_back({single ? last_name(target) : manifest.files[i], std::move(head), size});
    }
    return out;
  });
}

}  // namespace tranship

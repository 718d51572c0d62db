#include <tranship/base/fail.hpp>
#include <tranship/file/raw.hpp>

namespace tranship {

bool names_raw_file(const std::string& path) {
  return path.ends_with(".bin") || path.ends_with(".raw");
}

Result<StoredParts> open_raw(const std::string& path, const ArraySpec& layout, const RawForm& form) {
  return attempt([&] {
    if (form.skip_bytes < 0) throw_error(ErrorCode::invalid_use, "cannot skip {} bytes", form.skip_bytes);
    const Grid& grid = layout.distribution.grid();
    if (grid.size() != 1)
      throw_error(ErrorCode::mismatch, "'{}' is a file of 1 part, the layout has {}", path, grid.size());
    const Indices extents = layout.distribution.local_extents(grid.rank_at(0));
    StoredParts out{.spec = layout,
                    .descr = make_npy_header(layout.type, extents).descr,
                    .files = std::make_shared<FileSet>(FileAccess::read_only),
                    .parts = {{0, form.skip_bytes, stored_order(layout), extents}},
                    .checksums = {std::nullopt}};
    const Index file = out.files->add(path).value(), size = out.files->size_bytes(file);
    const Index needed = checked_add(form.skip_bytes, out.part_bytes(0));
    if (size != needed)
      throw_error(ErrorCode::mismatch, "'{}' has {} bytes; {} elements {} of [{}]{} need {}", path, size,
                  checked_product(extents), name_of(layout.type), to_string(extents),
                  form.skip_bytes > 0 ? fmt::format(" after {} bytes", form.skip_bytes) : "", needed);
    return out;
  });
}

}  // namespace tranship

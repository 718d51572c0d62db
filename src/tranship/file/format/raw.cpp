#include "tranship/file/format/raw.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

Result<OpenArray> open_raw(const ArraySource& source) {
  return attempt([&] {
    const std::string& path = source.path;
    if (!source.layout)
      throw_error(ErrorCode::invalid_use, "'{}' is a raw file, which has no header: give its layout", path);
    const ArraySpec& layout = *source.layout;
    const RawForm form = source.raw.value_or(RawForm{});
    if (form.skip_bytes < 0) throw_error(ErrorCode::invalid_use, "cannot skip {}", amount(form.skip_bytes, "byte"));
    const Grid& grid = layout.distribution.grid();
    if (grid.size() != 1)
      throw_error(ErrorCode::mismatch, "'{}' is a file of 1 part, the layout has {}", path, grid.size());
    const Indices extents = layout.distribution.local_extents(grid.rank_at(0));
    const std::string descr = source.descr.empty() ? make_npy_header(layout.type, extents).descr : source.descr;
    StoredParts out{
        .spec = layout,
        .descr = descr,
        .files = std::make_shared<FileSet>(FileAccess::read_only),
        .parts = {{0, form.skip_bytes, stored_order(layout, parse_npy_descr(descr).value().count), extents}},
        .checksums = {std::nullopt}};
    const Index file = out.files->add(path).value(), size = out.files->size_bytes(file);
    const Index needed = checked_add(form.skip_bytes, out.part_bytes(0));
    if (size != needed)
      throw_error(ErrorCode::mismatch, "'{}' has {}; {} {} of [{}]{} need {}", path, amount(size, "byte"),
                  amount(checked_product(extents), "element"), name_of(layout.type), to_string(extents),
                  form.skip_bytes > 0 ? fmt::format(" after {}", amount(form.skip_bytes, "byte")) : "", needed);
    return OpenArray{std::move(out)};
  });
}

}  // namespace tranship

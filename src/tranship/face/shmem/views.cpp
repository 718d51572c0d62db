#include "tranship/face/shmem/views.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

std::string text_of(const Indices& extents) {
  std::string text = "[";
  for (int d = 0; d < extents.size(); ++d) text += (d ? ", " : "") + std::to_string(extents[d]);
  return text + "]";
}
/// Returns the stride of elements that form one row; nothing if they do not.
std::optional<Index> flat_stride(const StridedView& view) {
  if (view.extents.size() == 1) return view.strides[0];
  return view.strides == row_major_strides(view.extents) ? std::optional<Index>(1) : std::nullopt;
}

}  // namespace

MatchedViews matched(const StridedView& target, const StridedView& source) {
  if (target.type != source.type)
    throw_error(ErrorCode::invalid_use, "the source has elements {}, the target {}", name_of(source.type),
                name_of(target.type));
  if (target.extents == source.extents) return {target, source};
  const std::optional<Index> to = flat_stride(target), from = flat_stride(source);
  if (!to || !from)
    throw_error(ErrorCode::invalid_use,
                "the source has extents {}, the target {}: they must be equal where elements do not lie in one row",
                text_of(source.extents), text_of(target.extents));
  const Index count = std::min(checked_product(target.extents), checked_product(source.extents));
  const auto flat = [&](const StridedView& view, Index stride) {
    return StridedView{.data = view.data, .type = view.type, .extents = {count}, .strides = {stride}};
  };
  return {flat(target, *to), flat(source, *from)};
}

SymmetricSpan span_of(const StridedView& view, std::string_view what) {
  const Index count = checked_product(view.extents);
  if (count > 1 && view.strides != row_major_strides(view.extents))
    throw_error(ErrorCode::invalid_use, "{} takes elements that lie side by side", what);
  return {view.data, view.type, count};
}

}  // namespace tranship

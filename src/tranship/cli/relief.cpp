#include "tranship/cli/relief.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <tranship/base/fail.hpp>
#include <tranship/file/io/atomic_write.hpp>

namespace tranship::cli {
namespace {

// Four neighbours of such a height can still be added.
constexpr double height_max = 1e37;

template <class T>
void read_as(const StridedView& view, Raster& raster) {
  for_each_coordinate(raster.extents, [&](const Indices& at) {
    T value;
    const Index offset = at[0] * view.strides[0] + at[1] * view.strides[1];
    std::memcpy(&value, static_cast<const std::byte*>(view.data) + offset * Index(sizeof(T)), sizeof(T));
    // Not yet converted to float: a double may not fit in it.
    const double height = static_cast<double>(value);
    if (!(std::abs(height) <= height_max))
      throw_error(ErrorCode::unsupported, "the demo computes with values from {:g} to {:g}, element [{}] is {:g}",
                  -height_max, height_max, to_string(at), height);
    raster.at(at[0], at[1]) = static_cast<float>(value);
  });
}

Star star_at(const Raster& raster, Index y, Index x) {
  const Index last_y = raster.extents[0] - 1;
  const Index last_x = raster.extents[1] - 1;
  return {.centre = raster.at(y, x),
          .north = raster.at(std::max<Index>(y - 1, 0), x),
          .south = raster.at(std::min(y + 1, last_y), x),
          .west = raster.at(y, std::max<Index>(x - 1, 0)),
          .east = raster.at(y, std::min(x + 1, last_x))};
}

template <class F>
Raster mapped(const Raster& raster, F&& f) {
  Raster out{raster.extents, std::vector<float>(raster.heights.size())};
  for_each_coordinate(raster.extents,
                      [&](const Indices& at) { out.at(at[0], at[1]) = f(star_at(raster, at[0], at[1])); });
  return out;
}

}  // namespace

Raster read_raster(const NpyFile& file) {
  const NpyHeader& header = file.header;
  if (header.extents.size() != 2)
    throw_error(ErrorCode::unsupported, "the demo shows arrays of 2 dimensions, this one has {}",
                header.extents.size());
  if (header.byte_order == (std::endian::native == std::endian::little ? '>' : '<'))
    throw_error(ErrorCode::unsupported,
                "the demo computes with elements in the byte order of this machine, the array has {}", header.descr);
  Raster out{header.extents, std::vector<float>(static_cast<std::size_t>(checked_product(header.extents)))};
  if (out.heights.empty()) throw_error(ErrorCode::unsupported, "the demo needs cells, the array has 0");
  const StridedView view = file.view();
  switch (header.type) {
    case ElementType::i8:
      read_as<std::int8_t>(view, out);
      break;
    case ElementType::u8:
      read_as<std::uint8_t>(view, out);
      break;
    case ElementType::i16:
      read_as<std::int16_t>(view, out);
      break;
    case ElementType::u16:
      read_as<std::uint16_t>(view, out);
      break;
    case ElementType::i32:
      read_as<std::int32_t>(view, out);
      break;
    case ElementType::u32:
      read_as<std::uint32_t>(view, out);
      break;
    case ElementType::i64:
      read_as<std::int64_t>(view, out);
      break;
    case ElementType::u64:
      read_as<std::uint64_t>(view, out);
      break;
    case ElementType::f32:
      read_as<float>(view, out);
      break;
    case ElementType::f64:
      read_as<double>(view, out);
      break;
    default:
      throw_error(ErrorCode::unsupported, "the demo computes with integers, f32 and f64, the array has {}",
                  name_of(header.type));
  }
  return out;
}

void write_hills(const std::string& path, const Indices& extents) {
  const NpyHeader header = make_npy_header(ElementType::i16, extents);
  const std::string head = format_npy_header(header);
  AtomicFile file = AtomicFile::create(path, static_cast<Index>(head.size()) + header.data_bytes()).value();
  std::byte* to = file.bytes().data();
  std::memcpy(to, head.data(), head.size());
  to += head.size();
  for_each_coordinate(extents, [&](const Indices& at) {
    const double y = static_cast<double>(at[0]) / 40;
    const double x = static_cast<double>(at[1]) / 40;
    const double height = 500 + 150 * std::sin(x + 2 * std::sin(y / 3)) + 90 * std::cos(1.7 * y - x) +
                          30 * std::sin(4.1 * x) * std::cos(3.3 * y);
    const auto value = static_cast<std::int16_t>(std::lround(height));
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  });
  file.commit().value();
}

float smoothed(const Star& star) {
  return 0.5F * star.centre + 0.125F * ((star.north + star.south) + (star.west + star.east));
}

float lit(const Star& star) {
  return (star.east - star.west) + (star.south - star.north);
}

Raster shaded_alone(Raster raster, int steps) {
  for (int step = 0; step < steps; ++step) raster = mapped(raster, smoothed);
  return mapped(raster, lit);
}

std::string relief_text(const Raster& light, int columns, int indent) {
  constexpr std::string_view ramp = " .:-=+*#%@";
  // A character is twice as high as wide.
  const Index width = std::min<Index>(columns, light.extents[1]);
  const Index height = std::clamp<Index>(light.extents[0] * width / light.extents[1] / 2, 1, light.extents[0]);
  std::vector<float> means;
  for_each_coordinate({height, width}, [&](const Indices& at) {
    double sum = 0;
    Index cells = 0;
    for (Index y = at[0] * light.extents[0] / height; y < (at[0] + 1) * light.extents[0] / height; ++y)
      for (Index x = at[1] * light.extents[1] / width; x < (at[1] + 1) * light.extents[1] / width; ++x, ++cells)
        sum += light.at(y, x);
    means.push_back(static_cast<float>(sum / static_cast<double>(cells)));
  });
  // The steepest twentieth at either end gets the outermost shade, because a single cliff would leave the rest grey.
  std::vector<float> sorted = means;
  std::sort(sorted.begin(), sorted.end());
  const double dark = sorted[sorted.size() / 20];
  const double bright = sorted[sorted.size() - 1 - sorted.size() / 20];
  const double range = bright > dark ? bright - dark : 1;
  std::string out;
  for (Index row = 0; row < height; ++row) {
    out.append(static_cast<std::size_t>(indent), ' ');
    for (Index column = 0; column < width; ++column) {
      const double place = (means[static_cast<std::size_t>(row * width + column)] - dark) / range;
      const auto shades = static_cast<double>(ramp.size());
      out += ramp[static_cast<std::size_t>(std::clamp(place * shades, 0.0, shades - 1))];
    }
    out += '\n';
  }
  return out;
}

}  // namespace tranship::cli

#include "tranship/file/format/formats.hpp"

#include <array>
#include <filesystem>

#include <tranship/base/fail.hpp>
#include <tranship/file/format/byte_order.hpp>
#include <tranship/file/format/npz.hpp>
#include <tranship/file/format/raw.hpp>
#include <tranship/file/format/zip_frame.hpp>
#include <tranship/file/store/replaceable.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

std::string same_text(const std::string& text) {
  return text;
}
bool is_never(const std::string&) {
  return false;
}
bool is_always(const std::string&) {
  return true;
}
void nothing_to_unpack(const ArraySource&, const std::string&, StoredParts&) {}

Result<StoredArray> described(const std::string& path, const NpyHeader& header) {
  const Result<ArraySpec> spec = attempt([&] { return whole_layout(header); });
  if (!spec) return make_error(spec.error().code(), "'{}': {}", path, spec.error().message());
  return StoredArray{spec.value(), header.descr};
}

NewFile npy_file(const std::string&, const NpyHeader& header, Index elements_bytes) {
  NewFile out{.name = {}, .head = format_npy_header(header)};
  out.size_bytes = checked_add(static_cast<Index>(out.head.size()), elements_bytes);
  return out;
}

constexpr Format directory_format{
    .endings = {},
    .is_source = posix::is_directory,
    .is_target = is_always,
    .file_of = same_text,
    .inspect = [](const std::string& path) -> Result<StoredArray> {
      std::error_code failure;
      if (!fs::exists(path + "/" + manifest_name, failure) && !failure) return lacks_manifest(path);
      Result<Manifest> manifest = read_manifest(path);
      if (!manifest) return manifest.error();
      return StoredArray{std::move(manifest.value().spec), std::move(manifest.value().descr)};
    },
    .open = [](const ArraySource& source) -> Result<OpenArray> {
      return attempt([&] { return OpenArray{open_parts(source.path, source.layout).value()}; });
    },
    .unpack = nothing_to_unpack,
    .kind = StagedKind::directory,
    .check_replaceable = check_replaceable_directory,
    .descr = same_text,
    .file = npy_file,
};

constexpr std::string_view npy_endings[] = {".npy"};
constexpr Format npy_format{
    .endings = npy_endings,
    .is_source = is_always,
    .is_target = [](const std::string& path) { return path.ends_with(npy_endings[0]); },
    .file_of = same_text,
    .inspect = [](const std::string& path) -> Result<StoredArray> {
      const Result<NpyFile> file = open_npy(path);
      if (!file) return file.error();
      return described(path, file.value().header);
    },
    .open = directory_format.open,
    .unpack = nothing_to_unpack,
    .kind = StagedKind::file,
    .check_replaceable = check_replaceable_npy,
    .descr = same_text,
    .file = npy_file,
};

NpzName member_of(const ArraySource& source) {
  return npz_name_of(source.path).value_or(NpzName{source.path, std::nullopt});
}

NewFile npz_file(const std::string& target, const NpyHeader& header, Index elements_bytes) {
  NewFile out = npy_file(target, header, elements_bytes);
  // NumPy gives elements this alignment behind its own header; they may then be mapped.
  constexpr Index alignment = 64;
  ZipFrame frame = zip_frame(npz_member_name(npz_name_of(target).value()), out.size_bytes, alignment);
  const auto begin = static_cast<Index>(frame.head.size());
  out.head.insert(0, frame.head);
  out.tail = std::move(frame.tail);
  out.inner = NewFile::InnerChecksum{begin, std::move(frame.crc_places)};
  out.size_bytes = checked_add(out.size_bytes, begin + static_cast<Index>(out.tail.size()));
  return out;
}

constexpr std::string_view npz_endings[] = {".npz"};
constexpr Format npz_format{
    .endings = npz_endings,
    .is_source = [](const std::string& path) { return npz_name_of(path).has_value(); },
    .is_target = [](const std::string& path) { return npz_name_of(path).has_value(); },
    .file_of = [](const std::string& path) { return npz_name_of(path).value().archive; },
    .inspect = [](const std::string& path) -> Result<StoredArray> {
      const Result<NpyHeader> header = read_npz_header(npz_name_of(path).value());
      if (!header) return header.error();
      return described(path, header.value());
    },
    .open = [](const ArraySource& source) { return open_npz(member_of(source), source.layout); },
    .unpack = [](const ArraySource& source, const std::string& folder,
                 StoredParts& array) { unpack_npz(member_of(source), folder, array); },
    .kind = StagedKind::file,
    .check_replaceable = check_replaceable_npz,
    .descr = same_text,
    .file = npz_file,
};

constexpr std::string_view raw_endings[] = {".bin", ".raw"};
constexpr Format raw_format{
    .endings = raw_endings,
    .is_source = is_never,
    .is_target =
        [](const std::string& path) { return path.ends_with(raw_endings[0]) || path.ends_with(raw_endings[1]); },
    .file_of = same_text,
    .inspect = [](const std::string& path) -> Result<StoredArray> {
      return make_error(ErrorCode::invalid_use, "'{}' is a raw file, which has no header: give its layout", path);
    },
    .open = [](const ArraySource& source) { return open_raw(source); },
    .unpack = nothing_to_unpack,
    .kind = StagedKind::file,
    .check_replaceable = check_replaceable_raw,
    // A file of bare elements does not state its byte order.
    .descr = [](const std::string& descr) { return native_descr(descr); },
    .file = [](const std::string&, const NpyHeader&,
               Index elements_bytes) { return NewFile{.name = {}, .head = {}, .size_bytes = elements_bytes}; },
};

// The first format that accepts a path has it.
constexpr const Format* formats[] = {&npz_format, &raw_format, &directory_format, &npy_format};
constexpr const Format* target_formats[] = {&npz_format, &raw_format, &npy_format, &directory_format};

}  // namespace

const Format& format_of(const ArraySource& source) {
  if (source.raw) return raw_format;
  for (const Format* format : formats)
    if (format->is_source(source.path)) return *format;
  return npy_format;
}

const Format& format_of_target(const std::string& target) {
  for (const Format* format : target_formats)
    if (format->is_target(target)) return *format;
  return directory_format;
}

std::string written_endings() {
  std::vector<std::string_view> all;
  for (const Format* format : {&npy_format, &npz_format, &raw_format})
    all.insert(all.end(), format->endings.begin(), format->endings.end());
  const std::string_view last = all.back();
  all.pop_back();
  return fmt::format("{} or {}", join_text(all, ", "), last);
}

}  // namespace tranship

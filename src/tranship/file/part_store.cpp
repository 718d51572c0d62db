#include <algorithm>
#include <cstring>
#include <filesystem>

#include <tranship/base/fail.hpp>
#include <tranship/file/part_store.hpp>
#include <tranship/file/posix.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

bool is_directory(const std::string& path) {
  std::error_code failure;
  const bool out = fs::is_directory(path, failure);
  return out && !failure;
}

bool exists(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is found when it is opened
  return fs::exists(path, ignored);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    out.push_back(entry->path().filename().string());
  if (failure) throw posix::io_error("list", directory, failure.value());
  return out;
}

NpyElement element_of(const NpyHeader& header) {
  return {header.type, header.byte_order};
}

/// Without a manifest only the number of files says whether the layout means all of them.
void check_count(const std::string& directory, Index parts) {
  Index found = 0;
  for (const std::string& name : names_in(directory)) found += name.starts_with("part-") && name.ends_with(".npy");
  if (found != parts)
    throw_error(ErrorCode::mismatch, "'{}' holds {} files part-*.npy, the layout has {} parts", directory, found,
                parts);
}

StoredPart open_part(const std::string& path, const ArraySpec& spec, Rank rank) {
  StoredPart out{path, open_npy(path).value()};
  const NpyHeader& header = out.file.header;
  if (header.type != spec.type)
    throw_error(ErrorCode::mismatch, "'{}': the part has elements {}, the layout {}", path, name_of(header.type),
                name_of(spec.type));
  const Indices needed = spec.distribution.local_extents(rank);
  if (!(header.extents == needed))
    throw_error(ErrorCode::mismatch, "'{}': the part has extents [{}], the layout gives rank {} [{}]", path,
                to_string(header.extents), rank, to_string(needed));
  return out;
}

StoredParts open_file(const std::string& path, const std::optional<ArraySpec>& layout) {
  if (layout && layout->distribution.grid().size() != 1)
    throw_error(ErrorCode::mismatch, "'{}' is a file of 1 part, the layout has {}", path,
                layout->distribution.grid().size());
  NpyFile file = open_npy(path).value();
  std::string descr = file.header.descr;
  if (!layout) {
    const Result<ArraySpec> whole = attempt([&] { return whole_layout(file.header); });
    if (!whole) throw make_error(whole.error().code(), "'{}': {}", path, whole.error().message());
    StoredParts out{whole.value(), std::move(descr), {}};
    out.parts.push_back({path, std::move(file)});
    return out;
  }
  StoredParts out{*layout, std::move(descr), {}};
  out.parts.push_back(open_part(path, *layout, layout->distribution.grid().rank_at(0)));
  return out;
}

StoredParts open_directory(const std::string& path, const std::optional<ArraySpec>& layout) {
  const bool has_manifest = exists(path + "/" + manifest_name);
  if (!has_manifest && !layout)
    throw_error(ErrorCode::bad_file, "directory '{}' holds no '{}': the layout of its parts must be given", path,
                manifest_name);
  const Manifest manifest = has_manifest ? read_manifest(path).value() : make_manifest(*layout, "");
  if (has_manifest && layout) {
    check_fits(manifest.spec, *layout);
    if (!(manifest.spec == *layout))
      throw_error(ErrorCode::mismatch, "'{}' has the layout {}, given is {}", path, to_text(manifest.spec),
                  to_text(*layout));
  }
  const Grid& grid = manifest.spec.distribution.grid();
  if (!has_manifest) check_count(path, grid.size());

  StoredParts out{manifest.spec, manifest.descr, {}};
  for (Index i = 0; i < grid.size(); ++i) {
    StoredPart part = open_part(path + "/" + manifest.files[i], manifest.spec, grid.rank_at(i));
    if (out.descr.empty()) out.descr = part.file.header.descr;
    if (!(element_of(part.file.header) == parse_npy_descr(out.descr).value()))
      throw_error(ErrorCode::mismatch, "'{}': the part has elements '{}', the array '{}'", part.path,
                  part.file.header.descr, out.descr);
    out.parts.push_back(std::move(part));
  }
  return out;
}

void check_replaceable_file(const std::string& target) {
  if (!exists(target)) return;
  if (is_directory(target))
    throw_error(ErrorCode::invalid_use, "'{}' exists and is a directory, not a .npy file", target);
  static constexpr std::string_view magic = "\x93NUMPY";
  const MappedFile old = MappedFile::open(target).value();
  if (old.bytes().size() < magic.size() || std::memcmp(old.bytes().data(), magic.data(), magic.size()) != 0)
    throw_error(ErrorCode::invalid_use, "'{}' exists and is not a .npy file: it is not replaced", target);
}

/// Whatever lies in a replaced directory is gone: there must be nothing but what its manifest names.
void check_replaceable_directory(const std::string& target) {
  if (!exists(target)) return;
  if (!is_directory(target)) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a directory", target);
  if (!exists(target + "/" + manifest_name))
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and holds no '{}': it is not replaced", target,
                manifest_name);
  const Result<Manifest> manifest = read_manifest(target);
  if (!manifest)
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: {}", target,
                manifest.error().message());
  std::vector<std::string> known = manifest.value().files;
  known.push_back(manifest_name);
  std::sort(known.begin(), known.end());
  for (const std::string& name : names_in(target))
    if (!std::binary_search(known.begin(), known.end(), name))
      throw_error(ErrorCode::invalid_use, "directory '{}' exists and is not replaced: its manifest does not name '{}'",
                  target, name);
}

}  // namespace

ArraySpec whole_layout(const NpyHeader& header) {
  const int dims = header.extents.size();
  if (dims == 0) throw_error(ErrorCode::unsupported, "the array has 0 dimensions, a layout has 1 to {}", dims_max);
  MemoryLayout memory;
  if (header.order == NpyOrder::fortran)
    for (int d = dims - 1; d >= 0; --d) memory.order.push_back(d);
  return {header.type, Distribution(header.extents, Grid(Indices::filled(dims, 1)),
                                    std::vector<Partition>(static_cast<std::size_t>(dims), whole()), memory)};
}

void check_fits(const ArraySpec& array, const ArraySpec& layout) {
  if (array.type != layout.type)
    throw_error(ErrorCode::mismatch, "the array has elements {}, the layout {}", name_of(array.type),
                name_of(layout.type));
  if (!(array.distribution.extents() == layout.distribution.extents()))
    throw_error(ErrorCode::mismatch, "the array has extents [{}], the layout [{}]",
                to_string(array.distribution.extents()), to_string(layout.distribution.extents()));
}

Result<StoredParts> open_parts(const std::string& path, const std::optional<ArraySpec>& layout) {
  return attempt([&] {
    if (layout) stored_order(*layout);
    return is_directory(path) ? open_directory(path, layout) : open_file(path, layout);
  });
}

Result<NewParts> NewParts::create(const std::string& target, const ArraySpec& spec, const std::string& descr) {
  return attempt([&] {
    NewParts out(make_manifest(spec, descr));
    if (target.ends_with(".npy")) {
      if (const Index parts = spec.distribution.grid().size(); parts != 1)
        throw_error(ErrorCode::invalid_use, "'{}' is to be a file of 1 part, the layout has {}: name a directory",
                    target, parts);
      check_replaceable_file(target);
      const NpyHeader header = out.header_of(0);
      out.file_.emplace(AtomicFile::create(target, checked_add(header.header_bytes, header.data_bytes())).value());
    } else {
      check_replaceable_directory(target);
      out.directory_.emplace(AtomicDirectory::create(target, manifest_name).value());
      const std::string text = format_manifest(out.manifest_);
      const MappedFile file = out.directory_->create_file(manifest_name, static_cast<Index>(text.size())).value();
      std::memcpy(file.writable_bytes().data(), text.data(), text.size());
    }
    return out;
  });
}

NpyHeader NewParts::header_of(Index ordinal) const {
  const ArraySpec& spec = manifest_.spec;
  const NpyElement element = parse_npy_descr(manifest_.descr).value();
  NpyHeader out{.type = element.type,
                .byte_order = element.byte_order,
                .order = stored_order(spec),
                .extents = spec.distribution.local_extents(spec.distribution.grid().rank_at(ordinal)),
                .descr = manifest_.descr};
  out.header_bytes = static_cast<Index>(format_npy_header(out).size());
  return out;
}

Result<StridedView> NewParts::add_part(Index ordinal) {
  return attempt([&] {
    const NpyHeader header = header_of(ordinal);
    if (directory_)
      part_ = directory_->create_file(manifest_.files[ordinal], checked_add(header.header_bytes, header.data_bytes()))
                  .value();
    const std::span<std::byte> bytes = directory_ ? part_.writable_bytes() : file_->bytes();
    std::memcpy(bytes.data(), format_npy_header(header).data(), static_cast<std::size_t>(header.header_bytes));
    return npy_view(header, bytes.data() + header.header_bytes);
  });
}

const std::string& NewParts::partial() const noexcept {
  return directory_ ? directory_->partial() : file_->partial();
}

Result<void> NewParts::commit() {
  part_ = MappedFile();
  return directory_ ? directory_->commit() : file_->commit();
}

}  // namespace tranship

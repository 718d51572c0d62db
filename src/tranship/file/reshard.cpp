#include <algorithm>
#include <filesystem>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/block_run.hpp>
#include <tranship/file/checksum.hpp>
#include <tranship/file/ledger.hpp>
#include <tranship/file/new_parts.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/verify.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

// Long stretches go to the disk while others are assembled, which takes a tenth off the whole; short ones are better
// collected by the system.
constexpr Index early_sync_bytes = Index(256) << 10;

fs::path resolved(const std::string& path) {
  std::error_code failure;
  fs::path absolute = fs::absolute(path, failure);
  if (!failure) absolute = fs::weakly_canonical(absolute, failure);
  if (failure) throw posix::io_error("find", path, failure.value());
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool lies_in(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// Replacing a directory removes all that is in it, so neither side may lie in the other.
void check_apart(const std::string& source, const std::string& target) {
  const fs::path from = resolved(source), to = resolved(target);
  if (from == to) throw_error(ErrorCode::invalid_use, "the target '{}' is the source '{}'", target, source);
  if (lies_in(to, from)) throw_error(ErrorCode::invalid_use, "the target '{}' lies in the source '{}'", target, source);
  if (lies_in(from, to))
    throw_error(ErrorCode::invalid_use, "the source '{}' lies in the target '{}', which would be replaced", source,
                target);
}

/// Links must not lead round check_apart: a target that is a file of the source by another name, or a file of the
/// source that is a link to one in the target.
void check_links(const StoredParts& source, const std::string& target) {
  std::error_code failure;
  if (!fs::exists(target, failure)) return;
  const fs::path to = resolved(target);
  for (Index i = 0; i < source.files->count(); ++i) {
    const std::string& path = source.files->path(i);
    if (fs::equivalent(path, to, failure))
      throw_error(ErrorCode::invalid_use, "the target '{}' is '{}' of the source by another name", target, path);
    if (lies_in(resolved(path), to))
      throw_error(ErrorCode::invalid_use, "'{}' of the source lies in the target '{}', which would be replaced", path,
                  target);
  }
}

/// FNV-1a of a text.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t out = 0xcbf29ce484222325u;
  for (const unsigned char c : text) out = (out ^ c) * 0x100000001b3u;
  return out;
}

/// A number that two runs share when one may go on with the work of the other: the same source in the same state, the
/// same target, cut into the same blocks.
std::uint64_t work_of(const StoredParts& source, const NewParts& target, Index memory_bytes) {
  std::string text = fmt::format("1 {} {} {} {} {}\n", target.staging().target(), fingerprint_of(source.spec),
                                 fingerprint_of(target.parts().spec), source.descr, memory_bytes);
  for (Index i = 0; i < source.files->count(); ++i) {
    const FileState& state = source.files->state(i);
    text += fmt::format("{} {} {} {} {} {}\n", source.files->path(i), state.size_bytes, state.modified_ns, state.device,
                        state.inode, source.checksums[i].value_or(0));
  }
  return std::max<std::uint64_t>(1, hash_of(text));
}

/// One call of reshard, from where source and target are known.
class Work {
 public:
  Work(const ReshardOptions& options, const StoredParts& source, NewParts& target)
      : options_(options),
        source_(source),
        target_(target),
        jobs_{{{&source, &target.parts()}}},
        ledger_(jobs_, options.memory_bytes, sync_interval_bytes(options)) {
    for (Index i = 0; i < static_cast<Index>(target.parts().parts.size()); ++i)
      bytes_total_ = checked_add(bytes_total_, target.parts().part_bytes(i));
  }

  void run() {
    begin();
    report();
    try {
      assemble();
      ledger_.finish();
      target_.write_manifest(checksums());
      report();
      if (options_.verify == Verify::yes) {
        const StoredParts written = open_parts(target_.staging().path(), options_.to).value();
        const auto watch = [&] { report(); };
        verify_parts(source_, written,
                     {.memory_bytes = options_.memory_bytes, .threads = options_.threads, .watch = watch});
      }
      source_.files->check_unchanged();
    } catch (const Error& error) {
      throw kept_or_not(error);
    }
    target_.commit();
  }

  Ledger::Totals totals() const { return ledger_.totals(); }

  std::vector<std::uint32_t> checksums() const {
    std::vector<std::uint32_t> out;
    for (Index i = 0; i < static_cast<Index>(target_.parts().parts.size()); ++i)
      out.push_back(target_.header_contribution(i) ^ ledger_.contribution(0, i));
    return out;
  }

 private:
  static Index sync_interval_bytes(const ReshardOptions& options) {
    // Often enough that little is lost, seldom enough that the disk is not made to wait.
    return options.sync_interval_bytes > 0 ? options.sync_interval_bytes
                                           : std::max(options.memory_bytes, Index(1) << 28);
  }

  void begin() {
    const std::uint64_t work = work_of(source_, target_, options_.memory_bytes);
    const JournalContents before = read_journal(target_.staging().journal());
    if (before.subject.work == work && target_.resume(before.subject) && ledger_.take_over(before.finished)) {
      ledger_.keep_journal(Journal::resume(target_.staging().journal(), before));
      return;
    }
    target_.begin();
    ledger_.keep_journal(
        Journal::begin(target_.staging().journal(),
                       {.work = work, .name = target_.staging().name(), .inode = target_.staging().inode()}));
  }

  void assemble() {
    const Index width = size_bytes(source_.spec.type);
    const auto write = [&](const Block& block) {
      const StoredParts& target = target_.parts();
      const StoredPart& part = target.parts[block.at.part];
      PieceChecksum checksum;
      for_each_stretch(part, width, block.box, [&](Index offset, Index in_block, Index bytes) {
        const auto piece = block.bytes.subspan(static_cast<std::size_t>(in_block), static_cast<std::size_t>(bytes));
        checksum.add(offset, piece);
        target.files->write(part.file, offset, piece);
        if (bytes >= early_sync_bytes) target.files->start_syncing(part.file, offset, bytes);
      });
      ledger_.add(block.at, static_cast<Index>(block.bytes.size()), block.bytes_from_source,
                  checksum.contribution(target.files->size_bytes(part.file)));
    };
    const auto skip = [&](const BlockAddress& at) { return ledger_.finished_before(at); };
    const auto watch = [&] { report(); };
    run_blocks(jobs_, {.memory_bytes = options_.memory_bytes,
                       .threads = options_.threads,
                       .skip = skip,
                       .sink = write,
                       .watch = watch});
  }

  void report() const {
    if (!options_.progress) return;
    const Ledger::Totals totals = ledger_.totals();
    (*options_.progress)({.bytes_done = totals.bytes,
                          .bytes_total = bytes_total_,
                          .parts_done = totals.parts,
                          .parts_total = static_cast<Index>(target_.parts().parts.size())});
  }

  /// After an error of the surroundings, such as a full disk or an interrupt, what was written is kept for a later run.
  Error kept_or_not(const Error& error) {
    if (error.code() != ErrorCode::io) return error;
    const Result<void> ignored = attempt([&] { ledger_.settle(); });
    (void)ignored;  // what was in the journal before is good as it is
    const Ledger::Totals totals = ledger_.totals();
    if (totals.bytes_journaled == 0) return error;
    target_.keep();
    return make_error(ErrorCode::io,
                      "{}; {} bytes of the new '{}' are kept in '{}': the same command goes on with them",
                      error.message(), totals.bytes_journaled, options_.target, target_.staging().folder());
  }

  const ReshardOptions& options_;
  const StoredParts& source_;
  NewParts& target_;
  std::vector<BlockJob> jobs_;
  Ledger ledger_;
  Index bytes_total_ = 0;
};

}  // namespace

ReshardReport reshard(const ReshardOptions& given) {
  const std::int64_t start_ns = now_ns();
  ReshardOptions options = given;
  if (options.memory_bytes < reshard_memory_min)
    throw_error(ErrorCode::invalid_use, "{} bytes of memory: at least {} are needed", options.memory_bytes,
                reshard_memory_min);
  options.threads = threads_within(options.memory_bytes, options.threads > 0 ? options.threads : default_threads());
  stored_order(options.to);
  check_apart(options.source, options.target);
  const StoredParts source = open_parts(options.source, options.from).value();
  check_fits(source.spec, options.to);
  check_links(source, options.target);
  if (options.verify == Verify::yes) check_checksums(source);

  NewParts target = NewParts::open(options.target, options.to, source.descr).value();
  Work work(options, source, target);
  work.run();

  const Ledger::Totals totals = work.totals();
  ReshardReport report{.from = source.spec,
                       .to = options.to,
                       .bytes_read = totals.bytes_from_source,
                       .bytes_written = totals.bytes,
                       .bytes_resumed = totals.bytes_resumed,
                       .parts_written = totals.parts,
                       .memory_bytes = options.memory_bytes,
                       .threads = options.threads,
                       .verified = options.verify};
  const std::vector<std::uint32_t> checksums = work.checksums();
  for (Index i = 0; i < report.parts_written; ++i) report.checksums.push_back({target.file_name(i), checksums[i]});
  report.duration_ns = now_ns() - start_ns;
  return report;
}

Result<StoredArray> inspect(const std::string& path) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    Result<Manifest> manifest = read_manifest(path);
    if (!manifest) return manifest.error();
    return StoredArray{std::move(manifest.value().spec), std::move(manifest.value().descr)};
  }
  const Result<NpyFile> file = open_npy(path);
  if (!file) return file.error();
  const NpyHeader& header = file.value().header;
  const Result<ArraySpec> spec = attempt([&] { return whole_layout(header); });
  if (!spec) return make_error(spec.error().code(), "'{}': {}", path, spec.error().message());
  return StoredArray{spec.value(), header.descr};
}

}  // namespace tranship

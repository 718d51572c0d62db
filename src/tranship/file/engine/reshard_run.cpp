#include "tranship/file/engine/reshard_run.hpp"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/file/engine/block_run.hpp>
#include <tranship/file/engine/run_plan.hpp>
#include <tranship/file/engine/verify.hpp>
#include <tranship/file/io/checksum.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

// Writing long stretches to the disk while others are assembled saves a tenth of the time. The system collects short
// ones better.
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

/// FNV-1a of a text.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t out = 0xcbf29ce484222325u;
  for (const unsigned char c : text) out = (out ^ c) * 0x100000001b3u;
  return out;
}

/// Returns a number that is equal for two runs when one may continue the work of the other: the same sources in the
/// same state, the same target, cut into the same blocks.
std::uint64_t work_of(const ReshardSources& sources, const NewParts& target, Index memory_bytes) {
  std::string text = fmt::format("5 {} {}\n", target.staging().target(), memory_bytes);
  for (std::size_t n = 0; n < sources.arrays.size(); ++n)
    text += fmt::format("{} {} {} {}\n", fingerprint_of(sources.arrays[n].spec), sources.arrays[n].descr,
                        sources.arrays[n].parts.front().offset_bytes, fingerprint_of(target.arrays()[n].spec));
  for (Index i = 0; i < static_cast<Index>(target.files().size()); ++i)
    text += fmt::format("{} {}\n", target.files()[i].name, target.checksum(i, 0));
  for (Index i = 0; i < sources.files.count(); ++i) {
    text += sources.files.path(i) + "\n";
    // A private file was made from another file for this run, and changes only with that file.
    if (sources.files.is_private(i)) continue;
    const FileState& state = sources.files.state(i);
    text += fmt::format("{} {} {} {} {} {}\n", state.size_bytes, state.modified_ns, state.changed_ns, state.device,
                        state.inode, sources.checksums[i] ? sources.checksums[i]->crc32 : 0);
  }
  // A source outside of files has no state to compare, so no other run gets this number.
  if (sources.files.count() == 0) text += fmt::format("{} {}\n", now_ns(), ::getpid());
  return std::max<std::uint64_t>(1, hash_of(text));
}

/// One run, once sources and target are known, until the target is in its place.
class Work {
 public:
  Work(const ReshardSources& sources, NewParts& target, const ReshardRunOptions& options, const ReshardFormat& format)
      : options_(options),
        sources_(sources),
        target_(target),
        format_(format),
        plan_(sources.arrays, target.arrays(), options.memory_bytes),
        progress_(plan_.plans(), plan_.targets().size(), sync_interval_bytes(options)) {
    for (const auto& plan : plan_.plans()) bytes_total_ = checked_add(bytes_total_, plan->job().wanted->bytes());
    for (const StoredParts& array : target.arrays()) parts_total_ += static_cast<Index>(array.parts.size());
  }

  void run() {
    begin();
    report();
    // These are pages of the page cache, which the system reclaims when it needs them; more of them help if the pieces
    // lie far apart.
    sources_.files.keep_mapped(std::max(options_.memory_bytes, Index(1) << 28));
    // With verification, the checksums were checked before.
    if (options_.verify == Verify::no) sources_.files.check_reads(sources_.checksums);
    try {
      assemble();
      sources_.files.finish_reads([this] { report(); });
      target_.fill_in(contributions());
      progress_.finish();
      target_.write_beside(format_.manifest(checksums()));
      report();
      if (options_.verify == Verify::yes) verify();
      sources_.files.check_unchanged();
      target_.commit();
    } catch (const Error& error) {
      throw kept_or_not(error);
    }
  }

  Progress::Totals totals() const { return progress_.totals(); }
  Index bytes_read() const { return bytes_read_; }

  std::vector<std::uint32_t> checksums() const {
    std::vector<std::uint32_t> out = contributions();
    for (Index i = 0; i < static_cast<Index>(out.size()); ++i) out[i] = target_.checksum(i, out[i]);
    return out;
  }

 private:
  /// Returns the contribution of the elements to the checksum of each file.
  std::vector<std::uint32_t> contributions() const {
    std::vector<std::uint32_t> out(target_.files().size());
    for (std::size_t n = 0; n < target_.arrays().size(); ++n)
      for (std::size_t i = 0; i < target_.arrays()[n].parts.size(); ++i)
        out[target_.arrays()[n].parts[i].file] ^= progress_.contribution(static_cast<Index>(n), static_cast<Index>(i));
    return out;
  }

  static Index sync_interval_bytes(const ReshardRunOptions& options) {
    // Often enough to lose little, seldom enough that syncs do not slow down the disk.
    return options.sync_interval_bytes > 0 ? options.sync_interval_bytes
                                           : std::max(options.memory_bytes, Index(1) << 28);
  }

  void begin() {
    const std::uint64_t work = work_of(sources_, target_, options_.memory_bytes);
    const JournalContents before = read_journal(target_.staging().journal());
    if (before.subject.work == work && target_.resume(before.subject) && resume_intermediate() &&
        progress_.take_over(before.finished)) {
      progress_.keep_journal(Journal::resume(target_.staging().journal(), before));
      return;
    }
    target_.begin();
    if (plan_.intermediate_bytes() > 0) plan_.use_intermediate(target_.begin_intermediate(plan_.intermediate_bytes()));
    target_.reserve_beside(format_.manifest(checksums()));  // with placeholder checksums, which have the final length
    progress_.keep_journal(
        Journal::begin(target_.staging().journal(),
                       {.work = work, .name = target_.staging().name(), .inode = target_.staging().inode()}));
  }

  bool resume_intermediate() {
    if (plan_.intermediate_bytes() == 0) return true;
    const std::shared_ptr<FileSet> file = target_.resume_intermediate(plan_.intermediate_bytes());
    if (file) plan_.use_intermediate(file);
    return file != nullptr;
  }

  void assemble() {
    assemble(plan_.intermediates(), static_cast<Index>(plan_.targets().size()));
    assemble(plan_.targets(), 0);
  }

  void assemble(std::span<const std::unique_ptr<const BlockPlan>> plans, Index first_job) {
    const auto write = [&](const FileBlock& block) {
      const StoredParts& target = *plan_.plans()[block.at.job]->job().wanted;
      const StoredPart& part = target.parts[block.at.part];
      PieceChecksum checksum;
      for_each_stretch(part, size_bytes(target.spec.type), block.box, [&](Index offset, Index in_block, Index bytes) {
        const auto piece = block.bytes.subspan(static_cast<std::size_t>(in_block), static_cast<std::size_t>(bytes));
        checksum.add(offset, piece);
        target.files->write(part.file, offset, piece);
        if (bytes >= early_sync_bytes) target.files->start_syncing(part.file, offset, bytes);
      });
      const bool is_target = block.at.job < static_cast<Index>(plan_.targets().size());
      progress_.add(block.at, static_cast<Index>(block.bytes.size()),
                    is_target ? checksum.contribution(target_.files()[part.file].tail_offset_bytes()) : 0);
    };
    const auto skip = [&](const BlockAddress& at) { return progress_.finished_before(at); };
    const auto watch = [&] { report(); };
    bytes_read_ += run_blocks(plans, {.memory_bytes = options_.memory_bytes,
                                      .threads = options_.threads,
                                      .first_job = first_job,
                                      .skip = skip,
                                      .sink = write,
                                      .watch = watch});
  }

  void verify() {
    const std::vector<StoredParts> written = format_.reopen(target_.staging().path());
    const auto watch = [&] { report(); };
    for (std::size_t n = 0; n < written.size(); ++n) {
      FileSet& files = *written[n].files;
      files.check_reads(written[n].checksums);
      verify_parts(sources_.arrays[n], written[n],
                   {.memory_bytes = options_.memory_bytes, .threads = options_.threads, .watch = watch});
      files.finish_reads(watch);
    }
  }

  void report() const {
    if (!options_.progress) return;
    const Progress::Totals totals = progress_.totals();
    options_.progress({.bytes_done = totals.bytes_moved,
                       .bytes_total = bytes_total_,
                       .parts_done = totals.parts,
                       .parts_total = parts_total_});
  }

  /// After an error from outside, such as a full disk or an interrupt, keeps the finished blocks for a later run.
  Error kept_or_not(const Error& error) {
    const bool is_in_place = target_.staging().folder().empty();
    if (error.code() != ErrorCode::io || is_in_place || options_.after_failure == AfterFailure::leave_nothing)
      return error;
    const Result<void> ignored = attempt([&] { progress_.settle(); });
    (void)ignored;  // the earlier entries of the journal remain valid
    const Progress::Totals totals = progress_.totals();
    if (totals.bytes_journaled == 0) return error;
    target_.keep();
    return make_error(ErrorCode::io,
                      "{}; {} that were moved for '{}' are kept in '{}': the same command goes on with them",
                      error.message(), amount(totals.bytes_journaled, "byte"), target_.staging().target(),
                      target_.staging().folder());
  }

  const ReshardRunOptions& options_;
  const ReshardSources& sources_;
  NewParts& target_;
  const ReshardFormat& format_;
  RunPlan plan_;
  Progress progress_;
  Index bytes_total_ = 0;  // including those of intermediates
  Index bytes_read_ = 0;
  Index parts_total_ = 0;
};

}  // namespace

Index default_memory_bytes(Index available_bytes) noexcept {
  // Halves, so that small changes of the free memory do not change the result: a run that continues another one must
  // have the same memory.
  Index out = Index(256) << 20;
  while (out > reshard_memory_min && out > available_bytes) out /= 2;
  return out;
}

ReshardRunOptions settled(ReshardRunOptions options) {
  const Index available = available_memory_bytes();
  if (options.memory_bytes == 0) {
    options.memory_bytes = default_memory_bytes(available);
  } else {
    if (options.memory_bytes < reshard_memory_min)
      throw_error(ErrorCode::invalid_use, "{} of memory: at least {} are needed", amount(options.memory_bytes, "byte"),
                  reshard_memory_min);
    if (options.memory_bytes > available)
      throw_error(ErrorCode::invalid_use, "{} of memory: {} are available here", amount(options.memory_bytes, "byte"),
                  available);
  }
  options.threads = threads_within(options.memory_bytes, options.threads > 0 ? options.threads : default_threads());
  return options;
}

void check_apart(const std::string& source, const std::string& target) {
  const fs::path from = resolved(source), to = resolved(target);
  if (from == to) throw_error(ErrorCode::invalid_use, "the target '{}' is the source '{}'", target, source);
  if (lies_in(to, from)) throw_error(ErrorCode::invalid_use, "the target '{}' lies in the source '{}'", target, source);
  if (lies_in(from, to))
    throw_error(ErrorCode::invalid_use, "the source '{}' lies in the target '{}', which would be replaced", source,
                target);
}

void check_links(const FileSet& source, const std::string& target) {
  std::error_code failure;
  if (!fs::exists(target, failure)) return;
  const fs::path to = resolved(target);
  for (Index i = 0; i < source.count(); ++i) {
    const std::string& path = source.path(i);
    if (fs::equivalent(path, to, failure))
      throw_error(ErrorCode::invalid_use, "the target '{}' is '{}' of the source by another name", target, path);
    if (lies_in(resolved(path), to))
      throw_error(ErrorCode::invalid_use, "'{}' of the source lies in the target '{}', which would be replaced", path,
                  target);
  }
}

ReshardOutcome run_reshard(const ReshardSources& sources, NewParts& target, const ReshardRunOptions& options,
                           const ReshardFormat& format) {
  Work work(sources, target, options, format);
  work.run();
  return {work.totals(), work.bytes_read(), work.checksums()};
}

}  // namespace tranship

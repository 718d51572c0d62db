#include "tranship/file/commit/progress.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

// So many small files are not left unsynced, whatever their bytes.
constexpr std::size_t pending_max = 4096;

/// Blocks that follow each other become one record.
std::vector<FinishedBlocks> joined(std::vector<FinishedBlocks> blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const FinishedBlocks& a, const FinishedBlocks& b) {
    return std::tie(a.job, a.part, a.first) < std::tie(b.job, b.part, b.first);
  });
  std::vector<FinishedBlocks> out;
  for (const FinishedBlocks& b : blocks) {
    if (!out.empty() && out.back().job == b.job && out.back().part == b.part &&
        out.back().first + out.back().count == b.first) {
      out.back().count += b.count;
      out.back().contribution ^= b.contribution;
    } else {
      out.push_back(b);
    }
  }
  return out;
}

using FileOf = std::pair<const FileSet*, Index>;

FileOf file_of(const BlockJob& job, Index part) {
  return {job.wanted->files.get(), job.wanted->parts[part].file};
}

}  // namespace

Progress::Progress(std::span<const BlockJob> jobs, Index memory_bytes, Index sync_interval_bytes)
    : jobs_(jobs), memory_bytes_(memory_bytes), sync_interval_bytes_(sync_interval_bytes) {
  for (const BlockJob& job : jobs) {
    auto& parts = parts_.emplace_back();
    for (Index i = 0; i < static_cast<Index>(job.wanted->parts.size()); ++i) {
      const Index blocks = block_count(job, i, memory_bytes);
      parts.push_back({blocks, blocks, 0, false, {}});
      totals_.parts += blocks == 0;
    }
  }
}

bool Progress::take_over(std::span<const FinishedBlocks> finished) {
  std::vector<std::vector<Part>> parts = parts_;
  Totals totals = totals_;
  for (const FinishedBlocks& f : finished) {
    if (f.job >= static_cast<Index>(parts.size()) || f.part >= static_cast<Index>(parts[f.job].size())) return false;
    Part& part = parts[f.job][f.part];
    if (f.count > part.blocks || f.first > part.blocks - f.count) return false;
    part.finished_before.resize(static_cast<std::size_t>(part.blocks));
    for (Index n = f.first; n < f.first + f.count; ++n) {
      if (part.finished_before[n]) return false;
      part.finished_before[n] = true;
      totals.bytes += block_bytes(jobs_[f.job], {f.job, f.part, n}, memory_bytes_);
    }
    part.blocks_left -= f.count;
    part.contribution ^= f.contribution;
    totals.parts += part.blocks_left == 0;
  }
  totals.bytes_journaled = totals.bytes_resumed = totals.bytes;
  parts_ = std::move(parts);
  totals_ = totals;
  return true;
}

bool Progress::finished_before(const BlockAddress& at) const {
  const auto& blocks = parts_[at.job][at.part].finished_before;  // does not change while blocks are assembled
  return !blocks.empty() && blocks[at.number];
}

void Progress::add(const BlockAddress& at, Index bytes, Index bytes_from_source, std::uint32_t contribution) {
  std::vector<Pending> due;
  {
    const std::lock_guard lock(mutex_);
    Part& part = parts_[at.job][at.part];
    part.contribution ^= contribution;
    part.written = true;
    totals_.parts += --part.blocks_left == 0;
    totals_.bytes += bytes;
    totals_.bytes_from_source += bytes_from_source;
    pending_.push_back({{at.job, at.part, at.number, 1, contribution}, bytes});
    pending_bytes_ += bytes;
    if (pending_bytes_ < sync_interval_bytes_ && pending_.size() < pending_max) return;
    due.swap(pending_);
    pending_bytes_ = 0;
  }
  sync_and_journal(due);
}

void Progress::settle() {
  std::vector<Pending> due;
  {
    const std::lock_guard lock(mutex_);
    due.swap(pending_);
    pending_bytes_ = 0;
  }
  sync_and_journal(due);
}

void Progress::finish() {
  settle();
  // One file may hold parts of many jobs, or none.
  std::set<FileOf> written;
  std::set<const FileSet*> sets;
  for (std::size_t job = 0; job < parts_.size(); ++job) {
    sets.insert(jobs_[job].wanted->files.get());
    for (std::size_t i = 0; i < parts_[job].size(); ++i)
      if (parts_[job][i].written) written.insert(file_of(jobs_[job], static_cast<Index>(i)));
  }
  for (const FileSet* set : sets)
    for (Index file = 0; file < set->count(); ++file)
      if (!written.contains({set, file})) set->sync(file);
}

void Progress::sync_and_journal(const std::vector<Pending>& pending) {
  const std::lock_guard one_at_a_time(journal_mutex_);
  std::set<FileOf> files;
  std::vector<FinishedBlocks> blocks;
  Index bytes = 0;
  for (const Pending& p : pending) {
    files.insert(file_of(jobs_[p.block.job], p.block.part));
    blocks.push_back(p.block);
    bytes += p.bytes;
  }
  for (const auto& [set, file] : files) set->sync(file);
  if (!journal_) return;
  journal_->append(joined(std::move(blocks)));
  const std::lock_guard lock(mutex_);
  totals_.bytes_journaled += bytes;
}

Progress::Totals Progress::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

std::uint32_t Progress::contribution(Index job, Index part) const {
  const std::lock_guard lock(mutex_);
  return parts_[job][part].contribution;
}

}  // namespace tranship

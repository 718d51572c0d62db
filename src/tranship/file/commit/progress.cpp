#include "tranship/file/commit/progress.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

// Limits how many small files stay unsynced, however few bytes they have.
constexpr std::size_t pending_max = std::size_t(1) << 16;

/// Joins consecutive blocks into one record.
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

FileOf file_of(const BlockPlan& plan, Index part) {
  const StoredParts& wanted = *plan.job().wanted;
  return {wanted.files.get(), wanted.parts[part].file};
}

void sync_all(const std::set<FileOf>& files) {
  std::map<const FileSet*, std::vector<Index>> by_set;
  for (const auto& [set, file] : files) by_set[set].push_back(file);
  for (const auto& [set, numbers] : by_set) set->sync(numbers);
}

}  // namespace

Progress::Progress(std::span<const std::unique_ptr<const BlockPlan>> plans, std::size_t targets,
                   Index sync_interval_bytes)
    : plans_(plans), targets_(static_cast<Index>(targets)), sync_interval_bytes_(sync_interval_bytes) {
  for (const auto& plan : plans) {
    auto& parts = parts_.emplace_back();
    for (Index i = 0; i < static_cast<Index>(plan->job().wanted->parts.size()); ++i) {
      const Index blocks = plan->block_count(i);
      parts.push_back({blocks, blocks, 0, false, {}});
      totals_.parts += blocks == 0 && is_target(static_cast<Index>(parts_.size()) - 1);
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
      const Index bytes = plans_[f.job]->block_bytes(f.part, n);
      totals.bytes_moved += bytes;
      if (is_target(f.job)) totals.bytes += bytes;
    }
    part.blocks_left -= f.count;
    part.contribution ^= f.contribution;
    totals.parts += part.blocks_left == 0 && is_target(f.job);
  }
  totals.bytes_journaled = totals.bytes_moved;
  totals.bytes_resumed = totals.bytes;
  parts_ = std::move(parts);
  totals_ = totals;
  return true;
}

bool Progress::finished_before(const BlockAddress& at) const {
  const auto& blocks = parts_[at.job][at.part].finished_before;  // constant while blocks are assembled
  return !blocks.empty() && blocks[at.number];
}

void Progress::add(const BlockAddress& at, Index bytes, std::uint32_t contribution) {
  std::vector<Pending> due;
  {
    const std::lock_guard lock(mutex_);
    Part& part = parts_[at.job][at.part];
    part.contribution ^= contribution;
    part.written = true;
    --part.blocks_left;
    totals_.bytes_moved += bytes;
    if (is_target(at.job)) {
      totals_.bytes += bytes;
      totals_.parts += part.blocks_left == 0;
    }
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
  // One file may hold parts of many jobs, or of no job.
  std::set<FileOf> written;
  std::set<const FileSet*> sets;
  for (std::size_t job = 0; job < parts_.size(); ++job) {
    sets.insert(plans_[job]->job().wanted->files.get());
    for (std::size_t i = 0; i < parts_[job].size(); ++i)
      if (parts_[job][i].written) written.insert(file_of(*plans_[job], static_cast<Index>(i)));
  }
  std::set<FileOf> others;
  for (const FileSet* set : sets)
    for (Index file = 0; file < set->count(); ++file)
      if (!written.contains({set, file})) others.insert({set, file});
  sync_all(others);
}

void Progress::sync_and_journal(const std::vector<Pending>& pending) {
  const std::lock_guard one_at_a_time(journal_mutex_);
  std::set<FileOf> files;
  std::vector<FinishedBlocks> blocks;
  Index bytes = 0;
  for (const Pending& p : pending) {
    files.insert(file_of(*plans_[p.block.job], p.block.part));
    blocks.push_back(p.block);
    bytes += p.bytes;
  }
  sync_all(files);
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

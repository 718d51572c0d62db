// Private: Staging, where a new file or directory is made beside its target, and how it takes the target's place.
//
//   .<name>.partial/lock          held by the one run that works here, and freed by its end, however it ends
//   .<name>.partial/journal       see journal.hpp
//   .<name>.partial/new-<random>  the new file, or the new directory
//   .<name>.partial/old           the old directory, where the file system cannot exchange two in one step
//
// The target is the old one or the new one at any moment; what a killed run leaves in the folder, the next run uses or
// removes. Where two directories cannot be exchanged (NFS), the old one moves to the folder and then the new one to its
// place: a run that is killed between the two leaves no target, and the next run puts the old one back first.
#pragma once

#include <cstdint>
#include <string>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {

enum class StagedKind : std::uint8_t { file, directory };

class Staging {
 public:
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&&) = delete;
  /// Removes what was made, unless it was committed or kept.
  ~Staging();

  /// Makes or takes over the folder beside `target` and locks it. `marker` names the file that makes a directory one of
  /// ours: one without it is never replaced. Fails with `invalid_use` where the target is of another kind, could not be
  /// replaced in the end or another run works on it, and where the folder's name leads elsewhere; and with `io`.
  static Result<Staging> open(const std::string& target, StagedKind kind, const std::string& marker);

  /// The target without symbolic links.
  const std::string& target() const noexcept { return target_; }
  const std::string& folder() const noexcept { return folder_; }
  StagedKind kind() const noexcept { return kind_; }
  std::string journal() const { return folder_ + "/journal"; }

  /// Removes what an earlier run has left, and begins the new file or directory under a name that nothing had before.
  /// Throws `io`.
  void begin();
  /// Goes on with what an earlier run began. False where there is nothing of this name and inode.
  bool resume(const std::string& name, std::uint64_t inode);
  /// After begin() or resume(): the new file or directory, its name in the folder, and its inode.
  std::string path() const { return folder_ + "/" + name_; }
  /// A file that is needed until the target is complete, and gone when it is in its place.
  std::string intermediate() const { return path() + "-intermediate"; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t inode() const;

  /// Leaves everything where it is when the object ends.
  void keep() noexcept { kept_ = true; }
  /// Puts it in the target's place in one step, and waits until that is on the disk; then removes the folder and what
  /// was replaced. All files must be synced. Throws `invalid_use` (a target that came up meanwhile, or
  /// is of another kind by now) and `io`.
  void commit();

 private:
  Staging(std::string target, StagedKind kind, std::string marker, posix::FileDescriptor lock);

  std::string set_aside() const { return folder_ + "/old"; }
  void put_back_what_was_set_aside();
  void put_in_place();
  void replace_in_two_steps();
  void remove() noexcept;

  std::string target_;
  std::string folder_;  // empty once it is gone or moved from
  StagedKind kind_;
  std::string marker_;
  std::string name_;
  posix::FileDescriptor lock_;
  bool replaces_ = false;  // something stood at the target when it was locked
  bool kept_ = false;
};

}  // namespace tranship

// Private: Staging, which makes a new file or directory beside its target and puts it in the target's place.
//
//   .<name>.partial/lock          held by the one run that works here; freed when it ends, however it ends
//   .<name>.partial/journal       see journal.hpp
//   .<name>.partial/new-<random>  the new file, or the new directory
//   .<name>.partial/old           the old directory, if the file system cannot exchange two in one step
//
// At any moment the target is the old one or the new one. The next run uses or removes what a killed run leaves in the
// folder. If two directories cannot be exchanged (NFS), the old one moves to the folder and then the new one to its
// place: a run that is killed between the two leaves no target, and the next run first puts the old one back.
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
  /// Removes the new file or directory, unless it was committed or kept.
  ~Staging();

  /// Makes or takes over the folder beside `target` and locks it. `marker` is the name of the file that marks a
  /// directory as tranship's; a directory without it is never replaced. Fails with `invalid_use` if the target is of
  /// another kind, could not be replaced in the end or is being written by another run, and if the folder's name leads
  /// elsewhere; and with `io`.
  static Result<Staging> open(const std::string& target, StagedKind kind, const std::string& marker);

  /// The target without symbolic links.
  const std::string& target() const noexcept { return target_; }
  const std::string& folder() const noexcept { return folder_; }
  StagedKind kind() const noexcept { return kind_; }
  std::string journal() const { return folder_ + "/journal"; }

  /// Removes what an earlier run has left, and begins the new file or directory under a name that was never used
  /// before. Throws `io`.
  void begin();
  /// Continues what an earlier run began. Returns false if nothing has this name and inode.
  bool resume(const std::string& name, std::uint64_t inode);
  /// After begin() or resume(): the path of the new file or directory, its name in the folder, and its inode.
  std::string path() const { return folder_ + "/" + name_; }
  /// A file that is needed until the target is complete. It is removed once the target is in its place.
  std::string intermediate() const { return path() + "-intermediate"; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t inode() const;

  /// Makes the destructor leave everything where it is.
  void keep() noexcept { kept_ = true; }
  /// Puts the new file or directory in the target's place in one step, waits until that is on the disk, and removes the
  /// folder and the replaced target. All files must be synced before. Throws `invalid_use` (a target has appeared
  /// meanwhile, or is of another kind by now) and `io`.
  void commit();

 private:
  Staging(std::string target, StagedKind kind, std::string marker, posix::FileDescriptor lock);

  std::string set_aside() const { return folder_ + "/old"; }
  void put_back_what_was_set_aside();
  void put_in_place();
  void replace_in_two_steps();
  void remove() noexcept;

  std::string target_;
  std::string folder_;  // empty once the folder is removed, or after a move
  StagedKind kind_;
  std::string marker_;
  std::string name_;
  posix::FileDescriptor lock_;
  bool replaces_ = false;  // a target existed when it was locked
  bool kept_ = false;
};

}  // namespace tranship

// device_nvrtc_headers SOURCES [FILE.cu ...] [--nvrtc LIBRARY] [--broken]: compiles all headers for kernels, and the
// files named, with NVRTC as a running program would, for the architectures that tranship supports. SOURCES is the
// folder that has tranship/. The program needs no card, and reports where there is no NVRTC. --broken also compiles a
// header that has an error, which must be found.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "support/findings.hpp"

namespace tranship::device {
namespace {

namespace fs = std::filesystem;

/// Declares the calls of NVRTC that this program makes, because its header may not be installed.
class Nvrtc {
 public:
  using Program = struct Unknown*;

  /// Looks for `library`, or for those of CUDA 13 and 12 where it is empty.
  explicit Nvrtc(const std::string& library) {
    std::vector<std::string> names{library};
    if (library.empty()) {
      names.clear();
      for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
        for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"})
          names.push_back(std::string(folder) + name);
    }
    for (const std::string& name : names)
      if ((library_ = dlopen(name.c_str(), RTLD_NOW))) break;
    if (!library_) return;
    find(version, "nvrtcVersion");
    find(count_architectures, "nvrtcGetNumSupportedArchs");
    find(get_architectures, "nvrtcGetSupportedArchs");
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(get_log, "nvrtcGetProgramLog");
    find(destroy, "nvrtcDestroyProgram");
    find(text_of, "nvrtcGetErrorString");
  }

  bool is_here() const { return library_ && missing_.empty(); }
  std::string problem() const { return library_ ? "it has no " + missing_ : "no libnvrtc"; }

  int (*version)(int* major, int* minor);
  int (*count_architectures)(int* count);
  int (*get_architectures)(int* architectures);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names);
  int (*compile)(Program, int options, const char* const* option);
  int (*log_size)(Program, std::size_t*);
  int (*get_log)(Program, char*);
  int (*destroy)(Program*);
  const char* (*text_of)(int status);

 private:
  template <class F>
  void find(F& call, const char* name) {
    call = reinterpret_cast<F>(dlsym(library_, name));
    if (!call) missing_ = name;
  }

  void* library_ = nullptr;
  std::string missing_;
};

struct Source {
  std::string name;
  std::string text;
};

/// Returns the log of NVRTC for a source; empty where it compiles without a message.
std::string said(const Nvrtc& nvrtc, const Source& source, const std::string& architecture,
                 const std::vector<std::string>& more) {
  std::vector<std::string> options{"-std=c++20", "--gpu-architecture=" + architecture, "-rdc=true"};
  options.insert(options.end(), more.begin(), more.end());
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());

  Nvrtc::Program program = nullptr;
  const int created = nvrtc.create(&program, source.text.c_str(), source.name.c_str(), 0, nullptr, nullptr);
  if (created != 0) return nvrtc.text_of(created);
  const int status = nvrtc.compile(program, static_cast<int>(words.size()), words.data());
  std::size_t size = 0;
  std::string log;
  if (nvrtc.log_size(program, &size) == 0 && size > 1) {
    log.resize(size);
    if (nvrtc.get_log(program, log.data()) != 0) log.clear();
    log.resize(std::strlen(log.c_str()));
  }
  nvrtc.destroy(&program);
  if (status != 0 && log.empty()) log = nvrtc.text_of(status);
  return log;
}

/// Returns the first lines of a log.
std::string head_of(const std::string& log) {
  constexpr std::size_t bytes_max = 600;
  return log.size() <= bytes_max ? log : log.substr(0, bytes_max) + "...";
}

std::vector<Source> sources_of(const fs::path& folder, const std::vector<std::string>& files, bool has_broken) {
  std::vector<Source> out;
  for (const char* room : {"kernels", "lanes"})
    for (const auto& entry : fs::directory_iterator(folder / "tranship" / room))
      if (entry.path().extension() == ".hpp") {
        const std::string name = std::string(room) + "/" + entry.path().filename().string();
        out.push_back({name, "#include <tranship/" + name + ">\n"});
      }
  std::sort(out.begin(), out.end(), [](const Source& a, const Source& b) { return a.name < b.name; });

  // The call site of an operation must be the caller's line, here the second one.
  out.push_back({"call site",
                 "#include <tranship/lanes/lane.hpp>\n"
                 "static_assert(tranship::KernelSite::here().line == 2);\n"});
  for (const std::string& file : files) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    out.push_back({fs::path(file).filename().string(), in ? text.str() : "#error cannot read it\n"});
  }
  if (has_broken)
    out.push_back({"broken",
                   "#include <tranship/lanes/lane.hpp>\n"
                   "__device__ int broken() { return tranship::Scope::thread; }\n"});
  return out;
}

int run(int argc, char** argv) {
  std::string folder, library;
  std::vector<std::string> files;
  bool has_broken = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--broken")
      has_broken = true;
    else if (word == "--nvrtc" && i + 1 < argc)
      library = argv[++i];
    else if (folder.empty())
      folder = word;
    else
      files.push_back(word);
  }
  if (!fs::is_directory(fs::path(folder) / "tranship")) {
    fault("usage: device_nvrtc_headers SOURCES [FILE.cu ...] [--nvrtc LIBRARY] [--broken]");
    return 2;
  }

  const Nvrtc nvrtc(library);
  if (!nvrtc.is_here()) {
    answer("NVRTC", "no", nvrtc.problem());
    return 0;
  }
  int major = 0, minor = 0, count = 0;
  nvrtc.version(&major, &minor);
  answer("NVRTC", std::to_string(major) + "." + std::to_string(minor));
  nvrtc.count_architectures(&count);
  std::vector<int> known(static_cast<std::size_t>(count));
  nvrtc.get_architectures(known.data());

  // NVRTC 13.0 takes generic lambdas for host functions; 13.5 does not.
  const std::vector<std::string> options{"-default-device", "-I" + folder};
  const std::vector<Source> sources = sources_of(folder, files, has_broken);
  for (const int architecture : {80, 90, 100}) {
    const std::string name = "sm_" + std::to_string(architecture);
    if (std::find(known.begin(), known.end(), architecture) == known.end()) {
      answer("NVRTC for " + name, "no");
      continue;
    }
    for (const Source& source : sources) {
      const std::string log = said(nvrtc, source, name, options);
      check("NVRTC, " + source.name + ", " + name, 1, log.empty() ? 0 : 1, head_of(log));
    }
  }
  const Source all{"collectives", "#include <tranship/lanes/collectives.hpp>\n"};
  const std::string log = said(nvrtc, all, "sm_90", {"-I" + folder});
  answer("NVRTC without -default-device", log.empty() ? "yes" : "no", head_of(log));
  return 0;
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  return tranship::device::run(argc, argv);
}

#include "tranship/fabric/mpi/mpi_process.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <time.h>

#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

std::atomic<bool> stays_running = false;

/// MPI_Finalize of MPICH 4.0 with UCX often does not return when other calls of MPI have gone just before, on hosts
/// that are joined by TCP (9 jobs of 12 after a barrier, 0 of 24 after 50 ms without a call; a plain C program).
void rest_before_finalise(std::string_view version) {
  constexpr timespec rest = {.tv_sec = 0, .tv_nsec = 50'000'000};
  if (version.starts_with("MPICH") && version.find("4.0.") != std::string_view::npos) nanosleep(&rest, nullptr);
}

void finalise_at_exit() {
  const MpiLibrary& library = mpi_library().value();
  const MpiModule& mpi = *library.mpi;
  if (!stays_running && mpi.state() == MpiModule::State::running) finalise_mpi(library);
}

std::vector<std::string> interfaces_here() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<std::string> out;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    out.push_back(std::string(one->ifa_name) + " " + text);
  }
  return out;
}

}  // namespace

const char* name_of(MpiThreads threads) {
  constexpr const char* names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                   "MPI_THREAD_MULTIPLE"};
  return names[std::size_t(threads)];
}

bool mpi_launcher_waits() {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  return is_set("PMIX_NAMESPACE") || is_set("PMI_FD") || is_set("PMI_PORT");
}

void initialise_mpi(const MpiModule& mpi) {
  if (mpi.state() == MpiModule::State::finalised)
    throw_error(ErrorCode::invalid_use, "MPI has been finalised in this process: join a world before MPI_Finalize");
  if (mpi.state() == MpiModule::State::running) return;
  check_mpi(mpi, mpi.initialise(MpiThreads::multiple), "be initialised");
  std::atexit(&finalise_at_exit);
}

int finalise_mpi(const MpiLibrary& library) {
  rest_before_finalise(library.version);
  return library.mpi->finalise();
}

void leave_mpi_running() noexcept {
  stays_running = true;
}

MpiFacts mpi_facts() {
  MpiFacts out{.modules = mpi_modules(), .interfaces = interfaces_here()};
  const Result<MpiLibrary>& library = mpi_library();
  if (!library) {
    out.why_none = library.error().message();
    return out;
  }
  const MpiModule& mpi = *library.value().mpi;
  out.library = library.value().path;
  out.chosen = library.value().chosen;
  out.version = library.value().version;
  out.abi = mpi.abi;
  if (mpi.state() == MpiModule::State::before && mpi_launcher_waits()) initialise_mpi(mpi);
  if (mpi.state() != MpiModule::State::running) return out;
  out.threads = name_of(mpi.threads());
  check_mpi(mpi, mpi.size(mpi.world(), &out.processes), "tell how many processes there are");
  return out;
}

}  // namespace tranship

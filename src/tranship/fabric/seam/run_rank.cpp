#include "tranship/fabric/seam/run_rank.hpp"

#include <cstdlib>
#include <memory>
#include <optional>
#include <typeinfo>

#include <cxxabi.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/rank_scope.hpp>

namespace tranship {
namespace {

/// Returns the type name as the program spells it: "std::out_of_range".
std::string type_name_of_current_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an unknown type";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                    std::free);
  return name ? name.get() : type->name();
}

}  // namespace

Error error_of_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return make_error(ErrorCode::user_exception, "{}: {}", type_name_of_current_exception(), error.what());
  } catch (const std::string& text) {
    return make_error(ErrorCode::user_exception, "a std::string was thrown: {}", text);
  } catch (const char* text) {
    return make_error(ErrorCode::user_exception, "a text was thrown: {}", text);
  } catch (...) {
    return make_error(ErrorCode::user_exception, "an exception of type {}, which is no std::exception",
                      type_name_of_current_exception());
  }
}

std::exception_ptr run_in(RankScope& scope, FunctionRef<void(World&)> body) noexcept {
  std::exception_ptr thrown;
  std::optional<Error> error;
  try {
    body(scope.world());
  } catch (...) {
    thrown = std::current_exception();
    error = error_of_current_exception();
  }
  // Simulated ranks are fibers, which must not be switched while an exception is being handled.
  error ? scope.fail(*error) : scope.finish();
  return thrown;
}

std::exception_ptr run_rank(Board& board, Rank rank, std::int64_t timeout_ns,
                            FunctionRef<std::unique_ptr<Fabric>()> make, FunctionRef<void(World&)> body) noexcept {
  try {
    RankScope scope(nullptr, board, rank, timeout_ns, make);
    return run_in(scope, body);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace tranship

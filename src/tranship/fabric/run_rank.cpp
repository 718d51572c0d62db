#include <tranship/fabric/run_rank.hpp>

namespace tranship {

std::exception_ptr run_rank(Board& board, Rank rank, std::int64_t timeout_ns,
                            FunctionRef<std::unique_ptr<Fabric>()> make, FunctionRef<void(World&)> body) noexcept {
  try {
    board.post_running(rank);
    const std::unique_ptr<Fabric> fabric = make();
    {
      World world(*fabric, timeout_ns);
      body(world);
    }
    board.post_finished(rank);
    return nullptr;
  } catch (const Error& error) {
    board.post_failed(rank, error.code(), error.what());
    return std::current_exception();
  } catch (const std::exception& error) {
    board.post_failed(rank, ErrorCode::internal, error.what());
    return std::current_exception();
  } catch (...) {
    board.post_failed(rank, ErrorCode::internal, "an exception that is no std::exception");
    return std::current_exception();
  }
}

}  // namespace tranship

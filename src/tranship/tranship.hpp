// Includes what most programs need: arrays, exchanges, pipes, buffers, one-sided transfers, collectives, and ways to
// launch, join or simulate ranks. Layouts as text, plans, programs, kernels, files and the interfaces of other systems
// have their own headers, which cmake/public_headers.txt lists.
#pragma once

#include <tranship/array/array.hpp>
#include <tranship/array/check_halo.hpp>
#include <tranship/array/ghosts.hpp>
#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/interface_exchange.hpp>
#include <tranship/array/pipe.hpp>
#include <tranship/array/redistribution.hpp>
#include <tranship/array/switchboard.hpp>
#include <tranship/base/error.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/sub_world.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/layout/tiling.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/plan/transfer_plan.hpp>
#include <tranship/run/exchange.hpp>

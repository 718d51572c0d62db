#pragma once

#include "mpi_program.hpp"

namespace contest {

Methods mpi_redistribution_methods(const Work& work, int rank);
Methods mpi_halo_methods(const Work& work, int rank);
Methods mpi_one_sided_methods(const Work& work, int rank);
Methods mpi_collective_methods(const Work& work, int rank);

}  // namespace contest

// One function for each part of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace tranship::python {

void bind_layouts(nanobind::module_& module);
void bind_worlds(nanobind::module_& module);
void bind_arrays(nanobind::module_& module);
void bind_one_sided(nanobind::module_& module);
void bind_shmem(nanobind::module_& module);
void bind_buffers(nanobind::module_& module);
void bind_files(nanobind::module_& module);
void bind_programs(nanobind::module_& module);
void bind_traces(nanobind::module_& module);
void bind_halo_transformer(nanobind::module_& module);
void bind_halo_update(nanobind::module_& module);

}  // namespace tranship::python

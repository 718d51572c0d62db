#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <tranship/base/amounts.hpp>

#include "bindings.hpp"
#include "interpreter.hpp"
#include "python_devices.hpp"
#include "rank_handle.hpp"
#include "shmem.hpp"

NB_MODULE(_core, module) {
  using namespace tranship::python;
  FiberThread::end_in_children();
  Shmem::end_in_children();
#ifndef TRANSHIP_COSTLY_ASSERTIONS
  nanobind::set_leak_warnings(false);  // compiled functions of Numba keep their arguments when they raise
#endif
  module.def("set_package", &set_package, nanobind::arg("folder"), nanobind::arg("blocks"), nanobind::arg("classes"));
  module.def("plural", &tranship::plural, nanobind::arg("count"), nanobind::arg("one"), nanobind::arg("several") = "");
  bind_layouts(module);
  bind_worlds(module);
  bind_arrays(module);
  bind_one_sided(module);
  bind_shmem(module);
  register_python_devices();
  bind_python_devices(module);
  bind_buffers(module);
  bind_files(module);
  bind_programs(module);
  bind_traces(module);
  bind_halo_transformer(module);
  bind_halo_update(module);
}

// How views of memory cross: NumPy's array interface, and addresses with extents and strides in elements.
#pragma once

#include <cstdint>
#include <string>

#include <nanobind/nanobind.h>

#include <tranship/base/strided_view.hpp>

#include "casters.hpp"

namespace tranship::python {

enum class Access : bool { writable, read_only };

/// NumPy's `__array_interface__` of a view that lies in one plane.
inline nanobind::dict array_interface(const StridedView& view, Access access) {
  const int width = size_bytes(view.type);
  nanobind::dict out;
  out["version"] = 3;
  out["shape"] = view.extents;
  Indices strides = view.strides;
  for (Index& stride : strides) stride *= width;
  out["strides"] = strides;
  const std::string kind(numpy_kind(view.type));
  out["typestr"] = (width == 1 || kind[0] == 'V' ? "|" : "<") + kind;
  out["data"] = nanobind::make_tuple(reinterpret_cast<std::uintptr_t>(view.data), access == Access::read_only);
  return out;
}

/// What Python says of memory: its address, NumPy's kind and size of an element ("f8"), extents and strides.
inline StridedView view_at(std::uintptr_t data, const std::string& type, const Indices& extents,
                           const Indices& strides) {
  return {.data = reinterpret_cast<void*>(data),
          .type = element_type_of_numpy(type).value(),
          .extents = extents,
          .strides = strides};
}

}  // namespace tranship::python

// Conversions between Python and C++: extents and indices are tuples of ints, element types are NumPy's names.
#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tranship/base/index.hpp>

namespace nanobind::detail {

template <>
struct type_caster<tranship::Indices> {
  NB_TYPE_CASTER(tranship::Indices, const_name("tuple[int, ...]"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    // Tuples and lists, and what makes a list, such as an array; texts are no indices.
    PyObject* fast = PySequence_Check(source.ptr()) != 0 && !PyUnicode_Check(source.ptr())
                         ? PySequence_Fast(source.ptr(), "")
                         : nullptr;
    if (fast == nullptr) {
      PyErr_Clear();
      return false;
    }
    const object held = steal(fast);
    const Py_ssize_t size = PySequence_Size(fast);
    if (size > tranship::dims_max) return false;
    value = {};
    for (Py_ssize_t i = 0; i < size; ++i) {
      const object item = steal(PySequence_GetItem(fast, i));
      const object index = item.is_valid() ? steal(PyNumber_Index(item.ptr())) : object();
      const long long number = index.is_valid() ? PyLong_AsLongLong(index.ptr()) : -1;
      if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
      }
      value.push_back(number);
    }
    return true;
  }
  static handle from_cpp(const tranship::Indices& source, rv_policy, cleanup_list*) noexcept {
    PyObject* out = PyTuple_New(source.size());
    for (int i = 0; out != nullptr && i < source.size(); ++i) PyTuple_SetItem(out, i, PyLong_FromLongLong(source[i]));
    return out;
  }
};

}  // namespace nanobind::detail

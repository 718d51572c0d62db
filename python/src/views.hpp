// Conversions of memory views: NumPy's array interface, and addresses with extents and strides in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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
  // Before 2.0, NumPy takes an address of 0 for missing memory, also when there are no elements.
  alignas(16) static std::byte of_no_elements[1];
  const void* const data = view.data == nullptr ? of_no_elements : view.data;
  out["data"] = nanobind::make_tuple(reinterpret_cast<std::uintptr_t>(data), access == Access::read_only);
  return out;
}

/// Makes a view from an address, NumPy's kind and size of an element ("f8"), extents, and strides in elements.
inline StridedView view_at(std::uintptr_t data, const std::string& type, const Indices& extents,
                           const Indices& strides) {
  return {.data = reinterpret_cast<void*>(data),
          .type = element_type_of_numpy(type).value(),
          .extents = extents,
          .strides = strides};
}

/// Memory that a Python object shows by the buffer protocol while this lives.
class BufferView {
 public:
  /// The view is empty when the object shows no memory, when its elements are not of an ElementType in this machine's
  /// byte order, and for masked arrays, whose memory is only a part of them.
  explicit BufferView(nanobind::handle object, Access access) {
    const int flags = PyBUF_STRIDED_RO | PyBUF_FORMAT | (access == Access::writable ? PyBUF_WRITABLE : 0);
    if (PyObject_CheckBuffer(object.ptr()) == 0 || has_mask(object)) return;
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) {
      PyErr_Clear();
      show_bfloat16(object, access);
      return;
    }
    is_held_ = true;
    const std::optional<ElementType> type = type_of(buffer_.format ? buffer_.format : "B");
    if (!type || buffer_.ndim > dims_max || size_bytes(*type) != buffer_.itemsize) return;
    // NumPy leaves these out, although they were asked for, when it shows times, whose bytes are no elements.
    if (buffer_.ndim > 0 && (buffer_.shape == nullptr || buffer_.strides == nullptr)) return;
    view_ = StridedView{.data = buffer_.buf, .type = *type};
    for (int d = 0; d < buffer_.ndim; ++d) {
      if (buffer_.strides[d] % buffer_.itemsize != 0) {
        view_.reset();
        return;
      }
      view_->extents.push_back(buffer_.shape[d]);
      view_->strides.push_back(buffer_.strides[d] / buffer_.itemsize);
    }
  }
  ~BufferView() {
    if (is_held_) PyBuffer_Release(&buffer_);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  const std::optional<StridedView>& view() const noexcept { return view_; }
  bool is_read_only() const noexcept { return buffer_.readonly != 0; }

 private:
  static bool has_mask(nanobind::handle object) {
    static PyObject* const plain =
        nanobind::object(nanobind::module_::import_("numpy").attr("ndarray")).release().ptr();
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
    return type != plain && PyType_IsSubtype(Py_TYPE(object.ptr()), reinterpret_cast<PyTypeObject*>(plain)) != 0 &&
           nanobind::hasattr(object, "_mask");
  }
  /// The buffer protocol has no format for bfloat16, so this reads NumPy's arrays of it by the array interface.
  void show_bfloat16(nanobind::handle object, Access access) {
    namespace nb = nanobind;
    if (!nb::hasattr(object, "dtype") || !object.attr("dtype").attr("name").equal(nb::str("bfloat16"))) return;
    const nb::object interface = nb::getattr(object, "__array_interface__", nb::none());
    const nb::object strides = nb::getattr(object, "strides", nb::none());
    Indices extents, steps;
    if (interface.is_none() || !nb::try_cast(interface["shape"], extents) || !nb::try_cast(strides, steps)) return;
    const nb::object data = interface["data"];
    StridedView view{.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0])), .type = ElementType::bf16};
    for (int d = 0; d < extents.size(); ++d) {
      if (steps[d] % size_bytes(view.type) != 0) return;
      view.extents.push_back(extents[d]);
      view.strides.push_back(steps[d] / size_bytes(view.type));
    }
    buffer_.readonly = nb::cast<bool>(data[1]) ? 1 : 0;
    if (!is_read_only() || access == Access::read_only) view_ = view;
  }

  /// The formats of Python's struct module that NumPy gives its own types.
  static std::optional<ElementType> type_of(std::string_view format) {
    constexpr std::pair<std::string_view, ElementType> types[] = {
        {"d", ElementType::f64},   {"f", ElementType::f32},  {"l", ElementType::i64},  {"i", ElementType::i32},
        {"L", ElementType::u64},   {"I", ElementType::u32},  {"q", ElementType::i64},  {"Q", ElementType::u64},
        {"h", ElementType::i16},   {"H", ElementType::u16},  {"b", ElementType::i8},   {"B", ElementType::u8},
        {"?", ElementType::bool8}, {"e", ElementType::f16},  {"g", ElementType::f128}, {"Zf", ElementType::c64},
        {"Zd", ElementType::c128}, {"Zg", ElementType::c256}};
    for (const auto& [name, type] : types)
      if (name == format) return type;
    return {};
  }

  Py_buffer buffer_{};
  bool is_held_ = false;
  std::optional<StridedView> view_;
};

}  // namespace tranship::python

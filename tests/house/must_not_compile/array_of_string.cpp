// expect: tranship moves NumPy's number types, bfloat16, and as bytes
#include <string>

#include <tranship/array/array.hpp>

tranship::Array<std::string>* array;
const auto& view_of_array() {
  return array->view();
}

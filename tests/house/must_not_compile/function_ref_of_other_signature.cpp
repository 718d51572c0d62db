// expect: conversion from .* to non-scalar type .*FunctionRef|could not convert|no matching function
#include <tranship/base/function_ref.hpp>

int twice(tranship::FunctionRef<int(int)> f) {
  return f(f(1));
}
int wrong() {
  return twice([](const char*) { return 1; });
}

#include "interpreter.hpp"

#include <array>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>

#include <tranship/base/fail.hpp>

namespace tranship::python {
namespace {

/// The classes by number of the error code. Never freed, because errors may be thrown until the interpreter is gone.
nb::dict& error_classes() {
  static auto* classes = new nb::dict();
  return *classes;
}

/// The folder of the package, with a slash at its end.
std::string& package_folder() {
  static auto* folder = new std::string();
  return *folder;
}

/// The file of the standard library that enters and leaves `with` blocks for programs.
std::string& file_of_blocks() {
  static auto* file = new std::string();
  return *file;
}

/// A function's code: its file, whose name lives as long as the process, and whether it belongs to this package or
/// calls the package for a program.
struct KnownCode {
  PyObject* code = nullptr;  // held, so that no other code has its address
  const char* file = nullptr;
  bool is_ours = false;
  int instruction = -1, line = 0;  // the last instruction that was looked up, if any: finding its line is costly
};

KnownCode& known(PyObject* code) {
  // Programs call from few places.
  static auto* recent = new std::array<KnownCode, 64>();
  KnownCode& entry = (*recent)[reinterpret_cast<std::uintptr_t>(code) / 64 % recent->size()];
  if (entry.code == code) return entry;
  static auto* names = new std::set<std::string, std::less<>>();
  const nb::object name = nb::steal(PyObject_GetAttrString(code, "co_filename"));
  Py_ssize_t size = 0;
  const char* text = name.is_valid() ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
  if (text == nullptr) PyErr_Clear();
  const std::string_view file =
      text == nullptr ? std::string_view("<python>") : std::string_view(text, std::size_t(size));
  PyObject* const before = entry.code;
  Py_INCREF(code);
  entry = {.code = code,
           .file = names->emplace(file).first->c_str(),
           .is_ours = !package_folder().empty() && (file.starts_with(package_folder()) || file == file_of_blocks())};
  Py_XDECREF(before);
  return entry;
}

int line_of(PyFrameObject* frame, [[maybe_unused]] KnownCode& code) {
#if PY_VERSION_HEX >= 0x030b0000 && !defined(Py_LIMITED_API)
  const int instruction = PyFrame_GetLasti(frame);
  if (instruction < 0) return PyFrame_GetLineNumber(frame);
  if (instruction != code.instruction) {
    code.line = PyFrame_GetLineNumber(frame);
    code.instruction = instruction;
  }
  return code.line;
#else
  return PyFrame_GetLineNumber(frame);
#endif
}

/// Returns the str() of an object, or a text that says that it has none. Clears errors that Python sets meanwhile.
std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  const nb::object bytes =
      text.is_valid() ? nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace")) : nb::object();
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) {
    PyErr_Clear();
    return "(str() of this object failed)";
  }
  return {data, std::size_t(size)};
}

ErrorCode code_named(std::string_view name) {
#define TRANSHIP_ERROR(code, number, text) \
  if (name == #code) return ErrorCode::code;
#include <tranship/base/errors.def>
#undef TRANSHIP_ERROR
  return ErrorCode::user_exception;
}

void raise(const Error& error) try {
  const char* name = name_of(error.code());
  PyObject* known = PyDict_GetItemString(error_classes().ptr(), name);
  nb::object type = known ? nb::borrow(known) : nb::borrow(PyExc_RuntimeError);
  // Names of files and arrays in the message may have any bytes.
  const nb::object message = nb::steal(PyUnicode_DecodeUTF8(
      error.message().data(), static_cast<Py_ssize_t>(error.message().size()), "backslashreplace"));
  nb::object exception = type(message);
  exception.attr("code") = name;
  const auto number = [](std::int64_t value) { return value < 0 ? nb::none() : nb::object(nb::int_(value)); };
  if (error.rank >= 0) exception.attr("rank") = error.rank;
  exception.attr("peer") = number(error.peer);
  exception.attr("column") = number(error.column);
  PyErr_SetObject(type.ptr(), exception.ptr());
} catch (nb::python_error& another) {  // such as a KeyboardInterrupt, which may come in any line of Python
  another.restore();
}

}  // namespace

CallSite python_call_site() {
  // The first frame outside of this package.
  static PyObject* const back = PyUnicode_InternFromString("f_back");
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    auto* const plain = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(plain)));
    KnownCode& of = known(code.ptr());
    if (!of.is_ours) return {of.file, line_of(plain, of)};
    frame = nb::steal(PyObject_GetAttr(frame.ptr(), back));
  }
  return {"<python>", 0};
}

thread_local int RankOfThread::current_ = -1;
thread_local FiberThread* FiberThread::current_ = nullptr;

void FiberThread::end_in_children() {
  pthread_atfork(nullptr, nullptr, [] { current_ = nullptr; });
}

void FiberThread::run(FunctionRef<void()> body, FunctionRef<void()> look) {
  FiberThread fiber;
  std::exception_ptr thrown;
  std::thread thread([&] {
    current_ = &fiber;
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(fiber.mutex_);
    fiber.is_over_ = true;
    fiber.changed_.notify_all();
  });
  struct Join {
    std::thread& thread;
    ~Join() { thread.join(); }
  };
  {
    const Join join{thread};
    fiber.serve(look);
  }
  if (thrown) std::rethrow_exception(thrown);
}

void FiberThread::serve(FunctionRef<void()> look) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!changed_.wait_for(lock, std::chrono::milliseconds(20),
                              [&] { return is_over_ || (request_ && !is_served_); })) {
      lock.unlock();
      look();
      lock.lock();
    }
    if (is_over_) return;
    const FunctionRef<void()> f = *request_;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    thrown_ = std::move(thrown);
    is_served_ = true;
    changed_.notify_all();
  }
}

void FiberThread::call(FunctionRef<void()> f) {
  std::unique_lock lock(mutex_);
  request_ = f;
  is_served_ = false;
  changed_.notify_all();
  // The wait() without a deadline needs GCC 12's library, and wheels may run with that of GCC 11.
  while (!changed_.wait_for(lock, std::chrono::hours(1), [&] { return is_served_; })) {
  }
  request_.reset();
  if (const std::exception_ptr thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
}

RankState::RankState(PyInterpreterState* interpreter)
    : state_(PyThreadState_New(interpreter)), thread_id_(PyThread_get_thread_ident()) {
  PyEval_RestoreThread(state_);
}
RankState::~RankState() {
  PyThreadState_Clear(state_);
  PyThreadState_DeleteCurrent();
}

Error error_of(const nb::python_error& exception) {
  return error_of(exception.value());
}

Error error_of(nb::handle value) {
  const nb::object code = nb::getattr(value, "code", nb::none());
  std::string message = text_of(value);
  PyObject* base = PyDict_GetItemString(error_classes().ptr(), "base");
  if (base == nullptr || PyObject_IsInstance(value.ptr(), base) != 1 || !nb::isinstance<nb::str>(code))
    return {ErrorCode::user_exception,
            text_of(value.type().attr("__name__")) + (message.empty() ? "" : ": " + message)};
  Error error(code_named(nb::str(code).c_str()), std::move(message));
  const auto number = [&](const char* name) {
    const nb::object said = nb::getattr(value, name, nb::none());
    std::int64_t value = -1;
    return nb::try_cast(said, value, false) ? value : std::int64_t(-1);
  };
  error.rank = int(number("rank"));
  error.peer = int(number("peer"));
  error.column = number("column");
  return error;
}

void raise_for(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(error);
  } catch (const Interrupt&) {
    // One Ctrl-C is one exception: another that is on its way to this thread would arrive in the handler of this one.
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), nullptr);
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

void set_package(std::string folder, std::string blocks, nb::dict classes) {
  package_folder() = std::move(folder);
  file_of_blocks() = std::move(blocks);
  error_classes() = std::move(classes);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) { raise_for(thrown); });
}

}  // namespace tranship::python

// Messages about arguments of wrong types. nanobind lists the signatures of the function that was called, which users
// do not know; they need the name of the argument, and both types. The module is linked so that nanobind's messages
// pass through here (--wrap in CMakeLists.txt): nanobind offers no other place to change them, and checks before each
// call would cost more than the calls.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <tranship/base/amounts.hpp>

namespace tranship::python {
namespace {

using Texts = std::vector<std::string>;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Parts between separators that lie outside of brackets and quotes.
Texts split(std::string_view text, char separator) {
  Texts out;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : separator;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
    if (i < text.size() && (c != separator || depth > 0 || quote != 0)) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) out.emplace_back(part);
    begin = i + 1;
  }
  return out;
}

/// A type as users write it: without modules, and by the package's own names.
std::string shown(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {{"SymmetricView", "Symmetric"},
                                                                            {"LocalArray", "Array"},
                                                                            {"BufferMemory", "Buffer"},
                                                                            {"NoneType", "None"},
                                                                            {"ProgramPlan", "Program"}};
  std::string out, word;
  const auto end_word = [&] {
    const std::string last = word == "..." ? word : word.substr(word.find_last_of('.') + 1);
    const auto* const known =
        std::find_if(std::begin(names), std::end(names), [&](const auto& name) { return name.first == last; });
    out += known == std::end(names) ? last : std::string(known->second);
    word.clear();
  };
  for (const char c : type) {
    if (c == '[' || c == ']' || c == ',' || c == ' ' || c == '|') {
      end_word();
      out += c;
    } else {
      word += c;
    }
  }
  end_word();
  return out;
}

bool is_whole(std::string_view given) {
  return given == "int" || given == "bool" || given.starts_with("int") || given.starts_with("uint");
}

/// Returns true when some value of type `given` may fit a parameter that is annotated with `wanted`.
bool may_be(std::string_view wanted, const std::string& given) {
  for (const std::string& one : split(wanted, '|')) {
    const std::string plain = shown(one), kind = plain.substr(0, plain.find('['));
    if (kind == "object" || kind == "Any" || kind == "Callable" || kind == given) return true;
    if (kind == "int" && is_whole(given)) return true;
    if (kind == "float" && (is_whole(given) || given.starts_with("float"))) return true;
    if ((kind == "Sequence" || kind == "list" || kind == "tuple") &&
        (given == "list" || given == "tuple" || given == "ndarray" || given == "range"))
      return true;
  }
  return false;
}

struct Parameter {
  std::string name, type;
  bool has_default = false;
};
struct Given {
  Texts positional;
  std::vector<std::pair<std::string, std::string>> named;
};

std::vector<Parameter> parameters_of(std::string_view signature) {
  std::vector<Parameter> out;
  const std::size_t begin = signature.find('('), end = signature.rfind(" -> ");
  if (begin == std::string_view::npos) return out;
  const std::size_t close = signature.rfind(')', end);
  for (const std::string& text : split(signature.substr(begin + 1, close - begin - 1), ',')) {
    const Texts sides = split(text, '='), name = split(sides.empty() ? "" : sides[0], ':');
    if (name.empty() || name[0] == "*" || name[0] == "/") continue;
    out.push_back({name[0], name.size() > 1 ? name[1] : "", sides.size() > 1});
  }
  return out;
}

/// Returns the first fault of a call, and the number of right arguments before it.
std::pair<std::string, std::size_t> wrong_in(const std::vector<Parameter>& parameters, const Given& given) {
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    if (i >= parameters.size())
      return {fmt::format("got {}, takes at most {}", amount(given.positional.size(), "argument"), parameters.size()),
              i};
    if (!may_be(parameters[i].type, given.positional[i]))
      return {fmt::format("argument '{}' is {}, not {}", parameters[i].name, shown(parameters[i].type),
                          given.positional[i]),
              i};
  }
  std::size_t right = given.positional.size();
  for (const auto& one_given : given.named) {
    const std::string &name = one_given.first, &type = one_given.second;
    const auto known =
        std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& one) { return one.name == name; });
    if (known == parameters.end()) return {fmt::format("there is no argument '{}'", name), right};
    if (!may_be(known->type, type))
      return {fmt::format("argument '{}' is {}, not {}", name, shown(known->type), type), right};
    ++right;
  }
  for (std::size_t i = given.positional.size(); i < parameters.size(); ++i) {
    const bool is_named = std::any_of(given.named.begin(), given.named.end(),
                                      [&](const auto& one) { return one.first == parameters[i].name; });
    if (!parameters[i].has_default && !is_named)
      return {fmt::format("argument '{}' is missing: {}", parameters[i].name, shown(parameters[i].type)), right};
  }
  std::string all;
  for (const Parameter& one : parameters)
    all += fmt::format("{}'{}' is {}", all.empty() ? "" : ", ", one.name, shown(one.type));
  return {"the value of an argument is out of range, or holds elements of another type: " + all, right};
}

/// Returns the message that replaces nanobind's; nothing when `text` is not about arguments.
std::optional<std::string> reworded(std::string_view text) {
  constexpr std::string_view begin = "(): incompatible function arguments.", invoked = "Invoked with types:";
  const std::size_t lists = text.find(begin), types = text.rfind(invoked);
  if (lists == std::string_view::npos || types == std::string_view::npos) return {};
  Given given;
  constexpr std::string_view keywords = "kwargs = {";
  for (std::string one : split(text.substr(types + invoked.size()), ',')) {
    if (!one.starts_with(keywords)) {
      given.positional.push_back(shown(one));
      continue;
    }
    one = one.substr(keywords.size(), one.rfind('}') - keywords.size());
    for (const std::string& pair : split(one, ',')) {
      const Texts sides = split(pair, ':');
      if (sides.size() == 2) given.named.emplace_back(sides[0], shown(sides[1]));
    }
  }
  // The message is about the signature that fits the most arguments.
  std::optional<std::pair<std::string, std::size_t>> best;
  for (const std::string& line : split(text.substr(0, types), '\n')) {
    const std::size_t number = line.find(". ");
    if (line.find('(') == std::string::npos || number == std::string::npos || number > 3) continue;
    std::vector<Parameter> parameters = parameters_of(std::string_view(line).substr(number + 2));
    Given own = given;
    if (!parameters.empty() && (parameters[0].name == "self" || parameters[0].name == "cls")) {
      parameters.erase(parameters.begin());
      if (!own.positional.empty()) own.positional.erase(own.positional.begin());
    }
    auto found = wrong_in(parameters, own);
    if (!best || found.second > best->second) best = std::move(found);
  }
  if (!best) return {};
  return best->first;
}

}  // namespace
}  // namespace tranship::python

extern "C" {
void __real_PyErr_SetString(PyObject* type, const char* text);  // NOLINT(bugprone-reserved-identifier): the linker's

void __wrap_PyErr_SetString(PyObject* type, const char* text) {  // NOLINT(bugprone-reserved-identifier)
  if (type == PyExc_TypeError) try {
      if (const auto said = tranship::python::reworded(text)) return __real_PyErr_SetString(type, said->c_str());
    } catch (const std::exception&) {
      // No memory for a better message.
    }
  __real_PyErr_SetString(type, text);
}
}

// What an SVG shows, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tranship::test {

/// One element of an SVG document, by its attributes.
using Element = std::map<std::string, std::string>;

/// The elements of a name and class, in order. Enough of XML for what picture_svg writes.
inline std::vector<Element> elements(const std::string& svg, const std::string& name, const std::string& cls) {
  std::vector<Element> out;
  for (std::size_t at = svg.find("<" + name + " "); at != std::string::npos; at = svg.find("<" + name + " ", at + 1)) {
    Element element;
    std::size_t cursor = at + name.size() + 2;
    while (svg[cursor] != '>' && svg[cursor] != '/') {
      const std::size_t equals = svg.find("=\"", cursor);
      const std::size_t end = svg.find('"', equals + 2);
      element[svg.substr(cursor, equals - cursor)] = svg.substr(equals + 2, end - equals - 2);
      cursor = end + 1;
      if (svg[cursor] == ' ') ++cursor;
    }
    if (element["class"] == cls) out.push_back(element);
  }
  return out;
}

inline double number(Element& element, const char* attribute) {
  return std::stod(element.at(attribute));
}

}  // namespace tranship::test

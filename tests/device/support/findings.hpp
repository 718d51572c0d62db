// Programs report what they find on a card as one JSON object a line on standard output, which device.py reads as it
// comes.
//
//   {"figure": "launch", "value": 2.4, "unit": "us", "low": 2.3, "high": 2.9, "samples": 21, "note": "..."}
//   {"answer": "multicast", "value": "no", "note": "error 801"}
//   {"check": "put, 4 ranks as blocks", "cases": 96, "wrong": 0, "note": "..."}
//   {"fault": "cudaMalloc: out of memory (facts/copies.cu:31)"}
//
// A line is written at once, so that a program that is killed later has reported what came before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace tranship::device {

/// Holds times or rates of one thing. The median is reported; at least 9 samples are wanted.
struct Samples {
  std::vector<double> values;

  double median() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    if (sorted.empty()) return 0;
    return sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  double low() const { return values.empty() ? 0 : *std::min_element(values.begin(), values.end()); }
  double high() const { return values.empty() ? 0 : *std::max_element(values.begin(), values.end()); }
  /// Returns `f` of each sample, for instance rates of times.
  template <class F>
  Samples mapped(const F& f) const {
    Samples out;
    for (const double value : values) out.values.push_back(f(value));
    return out;
  }
};

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Reports what kept the program from finding out.
inline void fault(const std::string& text) {
  std::printf("{\"fault\": %s}\n", quoted(text).c_str());
  std::fflush(stdout);
}

/// Reports a measured quantity: the median of the samples and their range.
inline void figure(const std::string& name, const Samples& samples, const char* unit, const std::string& note = {}) {
  if (samples.values.empty() || !std::isfinite(samples.low()) || !std::isfinite(samples.high()))
    return fault(name + ": no samples, or samples that are no numbers");
  std::printf(
      "{\"figure\": %s, \"value\": %.6g, \"unit\": \"%s\", \"low\": %.6g, \"high\": %.6g, \"samples\": %zu, "
      "\"note\": %s}\n",
      quoted(name).c_str(), samples.median(), unit, samples.low(), samples.high(), samples.values.size(),
      quoted(note).c_str());
  std::fflush(stdout);
}
/// Reports a fact that is a word or a count: "yes", "no", a version, an attribute.
inline void answer(const std::string& name, const std::string& value, const std::string& note = {}) {
  std::printf("{\"answer\": %s, \"value\": %s, \"note\": %s}\n", quoted(name).c_str(), quoted(value).c_str(),
              quoted(note).c_str());
  std::fflush(stdout);
}
/// Reports a comparison with what is known to be right. The note names the first case that is wrong.
inline void check(const std::string& name, long long cases, long long wrong, const std::string& note = {}) {
  std::printf("{\"check\": %s, \"cases\": %lld, \"wrong\": %lld, \"note\": %s}\n", quoted(name).c_str(), cases, wrong,
              quoted(note).c_str());
  std::fflush(stdout);
}
}  // namespace tranship::device

// FFTs by FFTW. An object keeps one FFTW plan for each memory layout that it has met. An FFTW plan is made for given
// strides, alignment and distance between the parts of complex numbers, and executes on any arrays that agree in these.
#include "tranship/face/vsip/fft.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <fftw3.h>

#include <tranship/face/vsip/guarded.hpp>
#include <tranship/face/vsip/loops.hpp>

using namespace tranship::vsip;

namespace {

/// FFTW's planner serves one thread at a time.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

template <class T>
struct Fftw;
#define TRANSHIP_FFTW(T, P)                                       \
  template <>                                                     \
  struct Fftw<T> {                                                \
    using Plan = P##plan;                                         \
    using Dim = P##iodim64;                                       \
    static constexpr auto plan_cc = P##plan_guru64_split_dft;     \
    static constexpr auto plan_rc = P##plan_guru64_split_dft_r2c; \
    static constexpr auto plan_cr = P##plan_guru64_split_dft_c2r; \
    static constexpr auto run_cc = P##execute_split_dft;          \
    static constexpr auto run_rc = P##execute_split_dft_r2c;      \
    static constexpr auto run_cr = P##execute_split_dft_c2r;      \
    static constexpr auto destroy = P##destroy_plan;              \
    static constexpr auto alignment = P##alignment_of;            \
  };
TRANSHIP_FFTW(float, fftwf_)
TRANSHIP_FFTW(double, fftw_)
#undef TRANSHIP_FFTW

enum class Kind : unsigned char { cc, rc, cr };

/// One side of a transform; scalars of a real side are at `re`. Strides count scalars, along the transform and across.
template <class T>
struct Side {
  T* re = nullptr;
  T* im = nullptr;
  std::ptrdiff_t along = 0;
  std::ptrdiff_t across = 0;
};

/// The properties of the arrays for which FFTW plans.
struct Layout {
  std::ptrdiff_t numbers[7] = {};
  int alignments[4] = {};
  friend bool operator==(const Layout&, const Layout&) = default;
};

template <class T>
class Transform {
 public:
  Kind kind = Kind::cc;
  vsip_length length = 0;  ///< of the real or complex signal
  vsip_length count = 1;
  vsip_fft_place place = VSIP_FFT_OP;
  T scale = 1;
  vsip_fft_dir dir = VSIP_FFT_FWD;
  vsip_major major = VSIP_ROW;
  bool measure = false;

  Transform() = default;
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;
  ~Transform() {
    const std::lock_guard lock(planner());
    for (const auto& known : plans_) Fftw<T>::destroy(known.plan);
  }

  vsip_length half() const { return length / 2 + 1; }

  /// Returns true if a plan could be made and was run. Does nothing if there is no memory for it.
  bool run(const Side<T>& in, const Side<T>& out) const {
    return count == 0 || guarded(false, [&] { return run_planned(in, out); });
  }

 private:
  bool run_planned(Side<T> in, Side<T> out) const {
    // The inverse transform is the forward one with real and imaginary parts exchanged on both sides.
    if (kind == Kind::cc && dir == VSIP_FFT_INV) {
      std::swap(in.re, in.im);
      std::swap(out.re, out.im);
    }
    const auto plan = plan_for(in, out);
    if (!plan) return false;
    switch (kind) {
      case Kind::cc:
        Fftw<T>::run_cc(plan, in.re, in.im, out.re, out.im);
        break;
      case Kind::rc:
        Fftw<T>::run_rc(plan, in.re, out.re, out.im);
        break;
      case Kind::cr:
        Fftw<T>::run_cr(plan, in.re, in.im, out.re);
        break;
    }
    return true;
  }

  using Plan = typename Fftw<T>::Plan;
  struct Known {
    Layout layout;
    Plan plan;
  };
  static constexpr std::size_t plans_max = 16;

  Plan plan_for(const Side<T>& in, const Side<T>& out) const {
    const auto alignment = [](T* p) { return p ? Fftw<T>::alignment(p) : 0; };
    const Layout layout{{in.along, in.across, out.along, out.across, in.im ? in.im - in.re : 0,
                         out.im ? out.im - out.re : 0, in.re == out.re},
                        {alignment(in.re), alignment(in.im), alignment(out.re), alignment(out.im)}};
    for (const auto& known : plans_)
      if (known.layout == layout) return known.plan;
    const std::lock_guard lock(planner());
    plans_.reserve(plans_max);
    if (!has_room()) return nullptr;
    if (plans_.size() == plans_max) {
      Fftw<T>::destroy(plans_.front().plan);
      plans_.erase(plans_.begin());
    }
    const Plan plan = measure ? measured(in, out) : make(in, out, FFTW_ESTIMATE);
    if (plan) plans_.push_back({layout, plan});
    return plan;
  }

  /// FFTW ends the program when it lacks memory for a plan, so this first allocates and frees as much as FFTW will
  /// need: tables and a buffer. Lengths with large prime factors also need those of a plan of more than twice the
  /// length.
  bool has_room() const {
    vsip_length rest = length;
    for (const vsip_length factor : {2, 3, 5, 7, 11, 13})
      while (rest % factor == 0) rest /= factor;
    const vsip_length bytes_per_element = sizeof(T) * (rest == 1 ? 4 : 16);
    if (length > vsip_length(PTRDIFF_MAX) / bytes_per_element) return false;
    void* const room = ::operator new(length* bytes_per_element, std::nothrow);
    ::operator delete(room);
    return room != nullptr;
  }

  Plan make(const Side<T>& in, const Side<T>& out, unsigned flags) const {
    const typename Fftw<T>::Dim along{std::ptrdiff_t(length), in.along, out.along};
    const typename Fftw<T>::Dim across{std::ptrdiff_t(count), in.across, out.across};
    if (place == VSIP_FFT_OP) flags |= FFTW_PRESERVE_INPUT;
    switch (kind) {
      case Kind::cc:
        return Fftw<T>::plan_cc(1, &along, 1, &across, in.re, in.im, out.re, out.im, flags);
      case Kind::rc:
        return Fftw<T>::plan_rc(1, &along, 1, &across, in.re, out.re, out.im, flags);
      case Kind::cr:
        break;
    }
    return Fftw<T>::plan_cr(1, &along, 1, &across, in.re, in.im, out.re, flags);
  }

  /// Measuring overwrites the arrays, so this saves their values, plans, and restores them.
  Plan measured(const Side<T>& in, const Side<T>& out) const {
    const auto kept_in = values(in, kind == Kind::cr ? half() : length);
    const auto kept_out = values(out, kind == Kind::rc ? half() : length);
    const Plan plan = make(in, out, FFTW_MEASURE);
    restore(out, kept_out, kind == Kind::rc ? half() : length);
    restore(in, kept_in, kind == Kind::cr ? half() : length);
    return plan;
  }

  template <class F>
  void visit(const Side<T>& side, vsip_length n, F f) const {
    for (vsip_length j = 0; j < count; ++j)
      for (vsip_length i = 0; i < n; ++i) {
        const std::ptrdiff_t at = std::ptrdiff_t(j) * side.across + std::ptrdiff_t(i) * side.along;
        f(side.re[at]);
        if (side.im) f(side.im[at]);
      }
  }
  std::vector<T> values(const Side<T>& side, vsip_length n) const {
    std::vector<T> out;
    out.reserve(2 * n * count);
    visit(side, n, [&](T& value) { out.push_back(value); });
    return out;
  }
  void restore(const Side<T>& side, const std::vector<T>& values, vsip_length n) const {
    auto next = values.begin();
    visit(side, n, [&](T& value) { value = *next++; });
  }

  mutable std::vector<Known> plans_;
};

template <class T, int N>
Side<T> side_of(const Place<T, N>& place, int along) {
  return {place.data, nullptr, place.strides[along], N == 2 ? place.strides[1 - along] : 0};
}
template <class T, class C, int N>
Side<T> side_of(const ComplexPlace<T, C, N>& place, int along) {
  return {place.re, place.im, place.strides[along], N == 2 ? place.strides[1 - along] : 0};
}

template <class F>
F* create(const char* call, Kind kind, vsip_length length, vsip_length count, vsip_fft_place place,
          decltype(F::scale) scale, vsip_fft_dir dir, vsip_major major, unsigned ntimes, vsip_alg_hint hint) {
  if (!valid(call, dir) || !valid(call, major) || !valid(call, hint)) return nullptr;
  if (length == 0 || count > vsip_length(PTRDIFF_MAX) / length) return nullptr;
  auto* const fft = new (std::nothrow) F;
  if (!fft) return nullptr;
  fft->kind = kind;
  fft->length = length;
  fft->count = count;
  fft->place = place;
  fft->scale = scale;
  fft->dir = dir;
  fft->major = major;
  fft->measure = ntimes == 0 && hint == VSIP_ALG_TIME;
  return noted(fft);
}

template <class F>
int destroy(const char* call, F* fft) {
  if (!fft || !usable_object(call, "FFT object", fft)) return 0;
  if constexpr (checking) note_destroyed(fft);
  delete fft;
  return 0;
}

template <class F, class V>
bool fits(const char* call, const F& fft, const V& view, vsip_length along_length) {
  constexpr bool matrix = V::dims == 2;
  const int along = matrix && fft.major == VSIP_COL ? 0 : V::dims - 1;
  if (!same_length(call, "the length of the FFT and that of the view", along_length, view.dimensions[along].length))
    return false;
  if constexpr (matrix)
    return same_length(call, "the number of FFTs and of the lines of the view", fft.count,
                       view.dimensions[1 - along].length);
  return true;
}

template <class F, class V, class W>
void execute(const char* call, Kind kind, vsip_fft_place place, const F* fft, const V* in, const W* out) {
  if (!usable_object(call, "FFT object", fft) || !usable_view(call, in) || !usable_view(call, out)) return;
  if (checking && (fft->kind != kind || fft->place != place)) {
    report(call, "the FFT object is of kind %d and place %d, and the call of kind %d and place %d", int(fft->kind),
           int(fft->place), int(kind), int(place));
    return;
  }
  if (!fits(call, *fft, *in, kind == Kind::cr ? fft->half() : fft->length) ||
      !fits(call, *fft, *out, kind == Kind::rc ? fft->half() : fft->length) ||
      (place == VSIP_FFT_OP && !apart(call, Sharing::nothing, *out, *in)))
    return;
  const int along = V::dims == 2 && fft->major == VSIP_COL ? 0 : V::dims - 1;
  if (!fft->run(side_of(place_of(*in), along), side_of(place_of(*out), along))) {
    report(call, "no memory, or FFTW has no plan, for %zu transforms of length %zu", fft->count, fft->length);
    return;
  }
  if (fft->scale != 1) each([s = fft->scale](auto r) { r.store(s * r.load()); }, *out);
}

template <class F>
vsip_length input_length(const F& fft) {
  return fft.kind == Kind::cr ? fft.half() : fft.length;
}
template <class F>
vsip_length output_length(const F& fft) {
  return fft.kind == Kind::rc ? fft.half() : fft.length;
}

}  // namespace

bool tranship::vsip::real_signal(vsip_length n, double* spectrum, double* signal) {
  Transform<double> fft;
  fft.kind = Kind::cr;
  fft.length = n;
  fft.place = VSIP_FFT_IP;
  return fft.run({spectrum, spectrum + 1, 2, 0}, {signal, nullptr, 1, 0});
}

#define TRANSHIP_DEFINE(T)                                                                                             \
  struct vsip_fft_##T : Transform<vsip_scalar_##T> {};                                                                 \
  struct vsip_fftm_##T : Transform<vsip_scalar_##T> {};                                                                \
  vsip_fft_##T* vsip_ccfftip_create_##T(vsip_length n, vsip_scalar_##T scale, vsip_fft_dir dir, unsigned ntimes,       \
                                        vsip_alg_hint hint) {                                                          \
    return create<vsip_fft_##T>("vsip_ccfftip_create_" #T, Kind::cc, n, 1, VSIP_FFT_IP, scale, dir, VSIP_ROW, ntimes,  \
                                hint);                                                                                 \
  }                                                                                                                    \
  vsip_fft_##T* vsip_ccfftop_create_##T(vsip_length n, vsip_scalar_##T scale, vsip_fft_dir dir, unsigned ntimes,       \
                                        vsip_alg_hint hint) {                                                          \
    return create<vsip_fft_##T>("vsip_ccfftop_create_" #T, Kind::cc, n, 1, VSIP_FFT_OP, scale, dir, VSIP_ROW, ntimes,  \
                                hint);                                                                                 \
  }                                                                                                                    \
  vsip_fft_##T* vsip_rcfftop_create_##T(vsip_length n, vsip_scalar_##T scale, unsigned ntimes, vsip_alg_hint hint) {   \
    return create<vsip_fft_##T>("vsip_rcfftop_create_" #T, Kind::rc, n, 1, VSIP_FFT_OP, scale, VSIP_FFT_FWD, VSIP_ROW, \
                                ntimes, hint);                                                                         \
  }                                                                                                                    \
  vsip_fft_##T* vsip_crfftop_create_##T(vsip_length n, vsip_scalar_##T scale, unsigned ntimes, vsip_alg_hint hint) {   \
    return create<vsip_fft_##T>("vsip_crfftop_create_" #T, Kind::cr, n, 1, VSIP_FFT_OP, scale, VSIP_FFT_INV, VSIP_ROW, \
                                ntimes, hint);                                                                         \
  }                                                                                                                    \
  void vsip_ccfftip_##T(const vsip_fft_##T* fft, const vsip_cvview_##T* a) {                                           \
    execute("vsip_ccfftip_" #T, Kind::cc, VSIP_FFT_IP, fft, a, a);                                                     \
  }                                                                                                                    \
  void vsip_ccfftop_##T(const vsip_fft_##T* fft, const vsip_cvview_##T* a, const vsip_cvview_##T* r) {                 \
    execute("vsip_ccfftop_" #T, Kind::cc, VSIP_FFT_OP, fft, a, r);                                                     \
  }                                                                                                                    \
  void vsip_rcfftop_##T(const vsip_fft_##T* fft, const vsip_vview_##T* a, const vsip_cvview_##T* r) {                  \
    execute("vsip_rcfftop_" #T, Kind::rc, VSIP_FFT_OP, fft, a, r);                                                     \
  }                                                                                                                    \
  void vsip_crfftop_##T(const vsip_fft_##T* fft, const vsip_cvview_##T* a, const vsip_vview_##T* r) {                  \
    execute("vsip_crfftop_" #T, Kind::cr, VSIP_FFT_OP, fft, a, r);                                                     \
  }                                                                                                                    \
  void vsip_fft_getattr_##T(const vsip_fft_##T* fft, vsip_fft_attr_##T* attributes) {                                  \
    if (!has_attributes("vsip_fft_getattr_" #T, "FFT object", fft, attributes)) return;                                \
    *attributes = {input_length(*fft), output_length(*fft), fft->place, fft->scale, fft->dir};                         \
  }                                                                                                                    \
  int vsip_fft_destroy_##T(vsip_fft_##T* fft) {                                                                        \
    return destroy("vsip_fft_destroy_" #T, fft);                                                                       \
  }                                                                                                                    \
  vsip_fftm_##T* vsip_ccfftmip_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_fft_dir dir, vsip_major major, unsigned ntimes, vsip_alg_hint hint) {   \
    const bool by_row = major == VSIP_ROW;                                                                             \
    return create<vsip_fftm_##T>("vsip_ccfftmip_create_" #T, Kind::cc, by_row ? columns : rows,                        \
                                 by_row ? rows : columns, VSIP_FFT_IP, scale, dir, major, ntimes, hint);               \
  }                                                                                                                    \
  vsip_fftm_##T* vsip_ccfftmop_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_fft_dir dir, vsip_major major, unsigned ntimes, vsip_alg_hint hint) {   \
    const bool by_row = major == VSIP_ROW;                                                                             \
    return create<vsip_fftm_##T>("vsip_ccfftmop_create_" #T, Kind::cc, by_row ? columns : rows,                        \
                                 by_row ? rows : columns, VSIP_FFT_OP, scale, dir, major, ntimes, hint);               \
  }                                                                                                                    \
  vsip_fftm_##T* vsip_rcfftmop_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_major major, unsigned ntimes, vsip_alg_hint hint) {                     \
    const bool by_row = major == VSIP_ROW;                                                                             \
    return create<vsip_fftm_##T>("vsip_rcfftmop_create_" #T, Kind::rc, by_row ? columns : rows,                        \
                                 by_row ? rows : columns, VSIP_FFT_OP, scale, VSIP_FFT_FWD, major, ntimes, hint);      \
  }                                                                                                                    \
  vsip_fftm_##T* vsip_crfftmop_create_##T(vsip_length rows, vsip_length columns, vsip_scalar_##T scale,                \
                                          vsip_major major, unsigned ntimes, vsip_alg_hint hint) {                     \
    const bool by_row = major == VSIP_ROW;                                                                             \
    return create<vsip_fftm_##T>("vsip_crfftmop_create_" #T, Kind::cr, by_row ? columns : rows,                        \
                                 by_row ? rows : columns, VSIP_FFT_OP, scale, VSIP_FFT_INV, major, ntimes, hint);      \
  }                                                                                                                    \
  void vsip_ccfftmip_##T(const vsip_fftm_##T* fft, const vsip_cmview_##T* a) {                                         \
    execute("vsip_ccfftmip_" #T, Kind::cc, VSIP_FFT_IP, fft, a, a);                                                    \
  }                                                                                                                    \
  void vsip_ccfftmop_##T(const vsip_fftm_##T* fft, const vsip_cmview_##T* a, const vsip_cmview_##T* r) {               \
    execute("vsip_ccfftmop_" #T, Kind::cc, VSIP_FFT_OP, fft, a, r);                                                    \
  }                                                                                                                    \
  void vsip_rcfftmop_##T(const vsip_fftm_##T* fft, const vsip_mview_##T* a, const vsip_cmview_##T* r) {                \
    execute("vsip_rcfftmop_" #T, Kind::rc, VSIP_FFT_OP, fft, a, r);                                                    \
  }                                                                                                                    \
  void vsip_crfftmop_##T(const vsip_fftm_##T* fft, const vsip_cmview_##T* a, const vsip_mview_##T* r) {                \
    execute("vsip_crfftmop_" #T, Kind::cr, VSIP_FFT_OP, fft, a, r);                                                    \
  }                                                                                                                    \
  void vsip_fftm_getattr_##T(const vsip_fftm_##T* fft, vsip_fftm_attr_##T* attributes) {                               \
    if (!has_attributes("vsip_fftm_getattr_" #T, "FFT object", fft, attributes)) return;                               \
    const auto lengths = [&](vsip_length along) {                                                                      \
      return fft->major == VSIP_ROW ? vsip_scalar_mi{fft->count, along} : vsip_scalar_mi{along, fft->count};           \
    };                                                                                                                 \
    *attributes = {                                                                                                    \
        lengths(input_length(*fft)), lengths(output_length(*fft)), fft->place, fft->scale, fft->dir, fft->major};      \
  }                                                                                                                    \
  int vsip_fftm_destroy_##T(vsip_fftm_##T* fft) {                                                                      \
    return destroy("vsip_fftm_destroy_" #T, fft);                                                                      \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

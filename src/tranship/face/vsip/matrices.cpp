// Functions of matrices: corner turns, products, products with vectors.
#include <tranship/face/vsip/moves.hpp>
#include <tranship/face/vsip/operations.hpp>
#include <tranship/kernels/host/matrix_product.hpp>

using namespace tranship::vsip;
using tranship::MatrixPlace;
using tranship::ProductSign;

namespace {

template <class T, int N>
bool same_place(const Place<T, N>& a, const Place<T, N>& b) {
  return a.data == b.data && a.strides == b.strides;
}
template <class T, class C, int N>
bool same_place(const ComplexPlace<T, C, N>& a, const ComplexPlace<T, C, N>& b) {
  return a.re == b.re && a.im == b.im && a.strides == b.strides;
}

/// Returns true if the transpose of `a` is written over `a`. The views have transposable lengths.
template <class V>
bool is_in_place(const V& a, const V& r) {
  return a.dimensions[0].length == a.dimensions[1].length && same_place(place_of(a), place_of(r));
}

template <class V>
bool transposable(const char* call, const V* a, const V* r) {
  if (!usable_view(call, a) || !usable_view(call, r)) return false;
  return same_length(call, "the rows of the result and the columns of the source", r->dimensions[0].length,
                     a->dimensions[1].length) &&
         same_length(call, "the columns of the result and the rows of the source", r->dimensions[1].length,
                     a->dimensions[0].length) &&
         apart(call, is_in_place(*a, *r) ? Sharing::same_scalars : Sharing::nothing, *r, *a);
}

/// Computes r = f(transpose of a), with `f` applied to each element.
template <class F, class V>
void transpose(const char* call, const V* a, const V* r, F f, bool plain) {
  if (!transposable(call, a, r)) return;
  if (!is_in_place(*a, *r)) {
    const V source = transposed(*a);
    if (plain)
      move_elements(source, *r);
    else
      each([f](auto to, auto from) { to.store(f(from.load())); }, *r, source);
    return;
  }
  for (vsip_index i = 0; i < r->dimensions[0].length; ++i)
    for (vsip_index j = 0; j <= i; ++j) {
      const auto below = reference(*r, {i, j});
      const auto above = reference(*r, {j, i});
      const auto kept = f(below.load());
      below.store(f(above.load()));
      above.store(kept);
    }
}

/// Multiplies row i of `b`, or column i, by the vector.
template <class V, class M>
void multiply_lines(const char* call, const V* a, const M* b, vsip_major major, const M* r) {
  if (!valid(call, major) || !usable_view(call, a) || !conform_in_place(call, r, b)) return;
  const int along = major == VSIP_ROW ? 1 : 0;
  if (!same_length(call, "the length of the vector and that of the lines of the matrix", a->dimensions[0].length,
                   b->dimensions[along].length))
    return;
  // The vector as a matrix whose lines are all equal.
  View<typename V::Block, 2> lines;
  lines.block = a->block;
  lines.offset = a->offset;
  lines.dimensions[along] = a->dimensions[0];
  lines.dimensions[1 - along] = {0, b->dimensions[1 - along].length};
  if (!apart(call, Sharing::same_elements, *r, lines)) return;
  each([](auto to, auto x, auto y) { to.store(x.load() * y.load()); }, *r, lines, *b);
}

constexpr auto as_is = [](auto x) { return x; };

/// Returns the elements of a matrix as real numbers: itself, or its real and its imaginary parts.
template <class T>
std::array<MatrixPlace<T>, 1> planes_of(const Place<T, 2>& p) {
  return {{{p.data, p.strides[0], p.strides[1]}}};
}
template <class T, class C>
std::array<MatrixPlace<T>, 2> planes_of(const ComplexPlace<T, C, 2>& p) {
  return {{{p.re, p.strides[0], p.strides[1]}, {p.im, p.strides[0], p.strides[1]}}};
}

struct ProductSizes {
  vsip_length rows, columns, depth;
};

/// Computes r += a b, or a times the conjugate of b, in blocks. Returns false, with arbitrary values in r, when memory
/// is short.
template <bool Conjugates, class P>
bool add_blocks(const P& a, const P& b, const P& r, const ProductSizes& n) {
  const auto left = planes_of(a), right = planes_of(b), to = planes_of(r);
  using T = std::remove_reference_t<decltype(*left[0].data)>;
  const auto add = [&](std::size_t of_a, std::size_t of_b, std::size_t of_r, bool adds) {
    const auto in = [](const MatrixPlace<T>& p) { return MatrixPlace<const T>{p.data, p.row_stride, p.column_stride}; };
    return add_product<T>(static_cast<long long>(n.rows), static_cast<long long>(n.columns),
                          static_cast<long long>(n.depth), in(left[of_a]), in(right[of_b]),
                          adds ? ProductSign::plus : ProductSign::minus, to[of_r]);
  };
  if constexpr (P::complex)
    return add(0, 0, 0, true) && add(1, 1, 0, Conjugates) && add(1, 0, 1, true) && add(0, 1, 1, !Conjugates);
  else
    return add(0, 0, 0, true);
}

template <Density D, class F, class P, class Q>
auto dot_of(vsip_length n, const P& x, const Q& y, F f) {
  using T = decltype(element<D>(x, 0).load());
  constexpr vsip_length lanes = 8;  // independent sums, so that none waits for another
  T sums[lanes] = {};
  vsip_index i = 0;
  for (; i + lanes <= n; i += lanes)
    for (vsip_index lane = 0; lane < lanes; ++lane)
      sums[lane] = sums[lane] +
                   element<D>(x, std::ptrdiff_t(i + lane)).load() * f(element<D>(y, std::ptrdiff_t(i + lane)).load());
  for (; i < n; ++i)
    sums[0] = sums[0] + element<D>(x, std::ptrdiff_t(i)).load() * f(element<D>(y, std::ptrdiff_t(i)).load());
  for (vsip_index lane = 1; lane < lanes; ++lane) sums[0] = sums[0] + sums[lane];
  return sums[0];
}

/// Computes r = a f(b): sums over the columns of a, in the type of the elements.
template <class F, class A, class B, class R>
void product(const char* call, const A& a, const B& b, const R& r, F f) {
  if (!same_length(call, "the columns of the left factor and the rows of the right one", a.dimensions[1].length,
                   b.dimensions[0].length) ||
      !same_length(call, "the rows of the result and of the left factor", r.dimensions[0].length,
                   a.dimensions[0].length) ||
      !same_length(call, "the columns of the result and of the right factor", r.dimensions[1].length,
                   b.dimensions[1].length) ||
      !apart(call, Sharing::nothing, r, a, b))
    return;
  const auto left = place_of(a);
  const auto right = place_of(b);
  const auto to = place_of(r);
  const ProductSizes n{r.dimensions[0].length, r.dimensions[1].length, a.dimensions[1].length};
  if (n.columns == 1) {
    const auto y = row_of(right, 1, 0, 0);
    const bool is_dense_y = is_dense(y, Density::interleaved);
    for (vsip_index i = 0; i < n.rows; ++i) {
      const auto x = row_of(left, 0, std::ptrdiff_t(i), 1);
      const bool is_dense_x = is_dense(x, Density::interleaved);
      element<Density::general>(row_of(to, 1, 0, 0), std::ptrdiff_t(i))
          .store(is_dense_x && is_dense_y ? dot_of<Density::interleaved>(n.depth, x, y, f)
                                          : dot_of<Density::general>(n.depth, x, y, f));
    }
    return;
  }
  constexpr bool is_conjugate = std::is_same_v<F, std::remove_const_t<decltype(op_conj)>>;
  if constexpr (is_conjugate || std::is_same_v<F, std::remove_const_t<decltype(as_is)>>) {
    // With fewer rows, columns or terms, copying the factors costs more than it saves.
    constexpr vsip_length worth = 4;
    if (n.rows >= worth && n.columns >= worth && n.depth >= worth) {
      each([](auto x) { x.store({}); }, r);
      if (add_blocks<is_conjugate>(left, right, to, n)) return;
    }
  }
  for (vsip_index i = 0; i < n.rows; ++i) {
    const auto factors = row_of(left, 0, std::ptrdiff_t(i), 1);
    const auto line = row_of(to, 0, std::ptrdiff_t(i), 1);
    auto clear = [](auto x) { x.store({}); };
    row(n.columns, clear, line);
    for (vsip_index k = 0; k < n.depth; ++k) {
      const auto factor = element<Density::general>(factors, std::ptrdiff_t(k)).load();
      auto add = [factor, f](auto x, auto y) { x.store(x.load() + factor * f(y.load())); };
      row(n.columns, add, line, row_of(right, 0, std::ptrdiff_t(k), 1));
    }
  }
}

template <class F, class A, class B, class R>
void matrix_product(const char* call, const A* a, const B* b, const R* r, bool transpose_b, F f) {
  if (!usable_view(call, a) || !usable_view(call, b) || !usable_view(call, r)) return;
  product(call, *a, transpose_b ? transposed(*b) : *b, *r, f);
}

/// Returns a vector as a matrix of one row or of one column.
template <class V>
View<typename V::Block, 2> as_matrix(const V& v, vsip_major line) {
  View<typename V::Block, 2> out;
  out.block = v.block;
  out.offset = v.offset;
  out.dimensions[line == VSIP_ROW ? 1 : 0] = v.dimensions[0];
  out.dimensions[line == VSIP_ROW ? 0 : 1] = {0, 1};
  return out;
}

/// Computes r = a b, where a is `size` by `size`. Reads each column of b before it writes that of r.
template <int size, class M, class N>
void small_product(const char* call, const M& a, const N& b, const N& r) {
  constexpr vsip_length n = size;
  if (!same_length(call, "the rows of the left factor and those that the call names", a.dimensions[0].length, n) ||
      !same_length(call, "the columns of the left factor and those that the call names", a.dimensions[1].length, n) ||
      !same_length(call, "the rows of the right factor and those that the call names", b.dimensions[0].length, n) ||
      !same_lengths(call, r, b) || !apart(call, Sharing::nothing, r, a) || !apart(call, Sharing::same_elements, r, b))
    return;
  using T = decltype(reference(a, {0, 0}).load());
  T factors[size][size];
  for (vsip_index i = 0; i < n; ++i)
    for (vsip_index k = 0; k < n; ++k) factors[i][k] = reference(a, {i, k}).load();
  const auto right = place_of(b);
  const auto to = place_of(r);
  for (vsip_index j = 0; j < b.dimensions[1].length; ++j) {
    const auto from = row_of(right, 1, std::ptrdiff_t(j), 0);
    const auto out = row_of(to, 1, std::ptrdiff_t(j), 0);
    T column[size];
    for (int k = 0; k < size; ++k) column[k] = element<Density::general>(from, k).load();
    for (int i = 0; i < size; ++i) {
      T sum = factors[i][0] * column[0];
      for (int k = 1; k < size; ++k) sum = sum + factors[i][k] * column[k];
      element<Density::general>(out, i).store(sum);
    }
  }
}

template <class V, class M>
void outer(const char* call, typename V::Element s, const V* a, const V* b, const M* r) {
  if (!usable_view(call, a) || !usable_view(call, b) || !usable_view(call, r)) return;
  product(call, as_matrix(*a, VSIP_COL), as_matrix(*b, VSIP_ROW), *r,
          [s = value_of(s)](auto x) { return s * conjugate(x); });
}

}  // namespace

#define TRANSHIP_DEFINE(C, T)                                                                                          \
  void vsip_##C##vmmul_##T(const vsip_##C##vview_##T* a, const vsip_##C##mview_##T* b, vsip_major major,               \
                           const vsip_##C##mview_##T* r) {                                                             \
    multiply_lines("vsip_" #C "vmmul_" #T, a, b, major, r);                                                            \
  }                                                                                                                    \
  void vsip_##C##mtrans_##T(const vsip_##C##mview_##T* a, const vsip_##C##mview_##T* r) {                              \
    transpose("vsip_" #C "mtrans_" #T, a, r, as_is, true);                                                             \
  }                                                                                                                    \
  void vsip_##C##mprod_##T(const vsip_##C##mview_##T* a, const vsip_##C##mview_##T* b, const vsip_##C##mview_##T* r) { \
    matrix_product("vsip_" #C "mprod_" #T, a, b, r, false, as_is);                                                     \
  }                                                                                                                    \
  void vsip_##C##mprodt_##T(const vsip_##C##mview_##T* a, const vsip_##C##mview_##T* b,                                \
                            const vsip_##C##mview_##T* r) {                                                            \
    matrix_product("vsip_" #C "mprodt_" #T, a, b, r, true, as_is);                                                     \
  }                                                                                                                    \
  void vsip_##C##mvprod_##T(const vsip_##C##mview_##T* a, const vsip_##C##vview_##T* b,                                \
                            const vsip_##C##vview_##T* r) {                                                            \
    if (!usable_view("vsip_" #C "mvprod_" #T, a) || !usable_view("vsip_" #C "mvprod_" #T, b) ||                        \
        !usable_view("vsip_" #C "mvprod_" #T, r))                                                                      \
      return;                                                                                                          \
    product("vsip_" #C "mvprod_" #T, *a, as_matrix(*b, VSIP_COL), as_matrix(*r, VSIP_COL), as_is);                     \
  }                                                                                                                    \
  void vsip_##C##vmprod_##T(const vsip_##C##vview_##T* a, const vsip_##C##mview_##T* b,                                \
                            const vsip_##C##vview_##T* r) {                                                            \
    if (!usable_view("vsip_" #C "vmprod_" #T, a) || !usable_view("vsip_" #C "vmprod_" #T, b) ||                        \
        !usable_view("vsip_" #C "vmprod_" #T, r))                                                                      \
      return;                                                                                                          \
    product("vsip_" #C "vmprod_" #T, as_matrix(*a, VSIP_ROW), *b, as_matrix(*r, VSIP_ROW), as_is);                     \
  }                                                                                                                    \
  void vsip_##C##vouter_##T(vsip_##C##scalar_##T s, const vsip_##C##vview_##T* a, const vsip_##C##vview_##T* b,        \
                            const vsip_##C##mview_##T* r) {                                                            \
    outer("vsip_" #C "vouter_" #T, s, a, b, r);                                                                        \
  }
TRANSHIP_DEFINE(, f)
TRANSHIP_DEFINE(, d)
TRANSHIP_DEFINE(c, f)
TRANSHIP_DEFINE(c, d)
#undef TRANSHIP_DEFINE

#define TRANSHIP_SMALL(N, C, T)                                                                                   \
  void vsip_##C##mprod##N##_##T(const vsip_##C##mview_##T* a, const vsip_##C##mview_##T* b,                       \
                                const vsip_##C##mview_##T* r) {                                                   \
    constexpr auto call = "vsip_" #C "mprod" #N "_" #T;                                                           \
    if (usable_view(call, a) && usable_view(call, b) && usable_view(call, r)) small_product<N>(call, *a, *b, *r); \
  }                                                                                                               \
  void vsip_##C##mvprod##N##_##T(const vsip_##C##mview_##T* a, const vsip_##C##vview_##T* b,                      \
                                 const vsip_##C##vview_##T* r) {                                                  \
    constexpr auto call = "vsip_" #C "mvprod" #N "_" #T;                                                          \
    if (usable_view(call, a) && usable_view(call, b) && usable_view(call, r))                                     \
      small_product<N>(call, *a, as_matrix(*b, VSIP_COL), as_matrix(*r, VSIP_COL));                               \
  }
#define TRANSHIP_DEFINE(C, T) TRANSHIP_SMALL(3, C, T) TRANSHIP_SMALL(4, C, T)
TRANSHIP_DEFINE(, f)
TRANSHIP_DEFINE(, d)
TRANSHIP_DEFINE(c, f)
TRANSHIP_DEFINE(c, d)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(T)                                                                              \
  void vsip_rvcmmul_##T(const vsip_vview_##T* a, const vsip_cmview_##T* b, vsip_major major,            \
                        const vsip_cmview_##T* r) {                                                     \
    multiply_lines("vsip_rvcmmul_" #T, a, b, major, r);                                                 \
  }                                                                                                     \
  void vsip_cmherm_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* r) {                            \
    transpose("vsip_cmherm_" #T, a, r, op_conj, false);                                                 \
  }                                                                                                     \
  void vsip_cmprodh_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r) { \
    matrix_product("vsip_cmprodh_" #T, a, b, r, true, op_conj);                                         \
  }                                                                                                     \
  void vsip_cmprodj_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r) { \
    matrix_product("vsip_cmprodj_" #T, a, b, r, false, op_conj);                                        \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_SMALL
#undef TRANSHIP_DEFINE

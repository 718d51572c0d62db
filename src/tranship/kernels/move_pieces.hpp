// Private: The kernel that moves a list of pieces. It is a template on its lane (lanes/lane.hpp), on how memory is
// accessed, and on a map applied to each vector; the caller provides shared memory as a room. Blocks take groups of
// units in either order (piece.hpp), and a warp finds the piece of its unit with one load. Nothing is atomic. Within a
// unit or a tile all loads precede all stores. The kernel needs blocks of pack_lanes lanes and, if pieces are
// transposed, a room of room_bytes per block.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/piece.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship::packing {

struct alignas(16) Vector16 {
  unsigned long long low, high;
};

/// Returns bytes from the first element of a piece. The arithmetic wraps, and the result fits in 31 bits and a sign.
TRANSHIP_SHARED inline int source_at(const Piece& piece, unsigned outer, unsigned row, unsigned column) {
  return int(outer * unsigned(piece.source_outer) + row * unsigned(piece.source_row) +
             column * unsigned(piece.source_column));
}
TRANSHIP_SHARED inline int target_at(const Piece& piece, unsigned outer, unsigned row, unsigned column) {
  return int(outer * unsigned(piece.target_outer) + row * unsigned(piece.target_row) +
             column * unsigned(piece.target_column));
}

/// The map that leaves a vector unchanged.
struct CopyVector {
  static constexpr bool reads_target = false;
  template <class V>
  TRANSHIP_SHARED V operator()(const V& source, const V&) const {
    return source;
  }
};

/// Moves one unit by the lanes of a warp; each lane moves at most `vectors_max` vectors. `memory` has load<V>(address)
/// and store(address, value); addresses are aligned to V. A map with `reads_target` also gets the target's old value.
template <class V, unsigned vectors_max, class Memory, class Map>
TRANSHIP_SHARED inline void move_elements(unsigned lane, const Memory& memory, const Map& map, const Piece& piece,
                                          const unsigned char* source, unsigned char* target, unsigned unit,
                                          unsigned lane_vectors) {
  constexpr unsigned depth = lane_vectors_of(sizeof(V), vectors_max);
  const unsigned total = piece.columns * piece.rows * piece.outers;
  // These steps lead from the end of a row to the next row, and from the end of all rows to the next outer, so that
  // neither the column nor the row of a vector is needed.
  const unsigned source_line = unsigned(piece.source_row) - piece.columns * unsigned(piece.source_column);
  const unsigned target_line = unsigned(piece.target_row) - piece.columns * unsigned(piece.target_column);
  const unsigned source_plane = unsigned(piece.source_outer) - piece.rows * unsigned(piece.source_row);
  const unsigned target_plane = unsigned(piece.target_outer) - piece.rows * unsigned(piece.target_row);
  const unsigned unit_vectors = lane_vectors_of(sizeof(V), lane_vectors) * warp_lanes, first = unit * unit_vectors;
  if (first >= total) return;
  const unsigned end = total - first < unit_vectors ? total : first + unit_vectors;
  V values[depth] = {};
  V olds[Map::reads_target ? depth : 1] = {};
  int to[depth] = {};
  for (unsigned k = 0; k < depth; ++k) {
    if (k == lean_vectors && first + k * warp_lanes >= end) break;  // a short unit skips half of the indexing
    // Indexing stays outside the branch, which leaves a single predicated load in it; past the end it may wrap.
    const unsigned i = first + k * warp_lanes + lane;
    const unsigned line = divide(i, piece.column_multiplier, piece.column_shift);
    const unsigned outer = divide(line, piece.row_multiplier, piece.row_shift);
    to[k] = int(i * unsigned(piece.target_column) + line * target_line + outer * target_plane);
    const int from = int(i * unsigned(piece.source_column) + line * source_line + outer * source_plane);
    if (i < end) {
      values[k] = memory.template load<V>(source + from);
      if constexpr (Map::reads_target) olds[k] = memory.template load<V>(target + to[k]);
    }
  }
  for (unsigned k = 0; k < depth; ++k)
    if (first + k * warp_lanes + lane < end)
      memory.store(target + to[k], map(values[k], olds[Map::reads_target ? k : 0]));
}

/// Tells where a tile of a transposed piece begins.
struct TileCorner {
  unsigned outer, row, column;
};
TRANSHIP_SHARED inline TileCorner corner_of(const Piece& piece, unsigned tile, unsigned side) {
  const unsigned tiles_across = (piece.columns + side - 1) / side, tiles_down = (piece.rows + side - 1) / side;
  const unsigned line = divide(tile, piece.column_multiplier, piece.column_shift);
  const unsigned outer = divide(line, piece.row_multiplier, piece.row_shift);
  return {outer, (line - outer * tiles_down) * side, (tile - line * tiles_across) * side};
}

/// Accesses shared memory by a lane that has loads and stores, as that of a software card, which checks them.
template <class V, class Lane>
TRANSHIP_SHARED inline V load_shared(const Lane& lane, const V* from) {
  if constexpr (requires { lane.template load<V>(from); })
    return lane.template load<V>(from);
  else
    return *from;
}
template <class V, class Lane>
TRANSHIP_SHARED inline void store_shared(const Lane& lane, V* to, const V& value) {
  if constexpr (requires { lane.store(to, value); })
    lane.store(to, value);
  else
    *to = value;
}

template <class V, class Lane, class Memory>
TRANSHIP_SHARED inline void move_transposed(const Lane& lane, const Memory& memory, const Piece& piece,
                                            const unsigned char* source, unsigned char* target, unsigned tile,
                                            unsigned char* room) {
  constexpr unsigned side = tile_side(PieceKind::transposed, sizeof(V));
  constexpr unsigned lines = pack_lanes / side;  // all lanes load this many lines at once
  constexpr unsigned pitch = side + 1;
  static_assert(1ull * side * pitch * sizeof(V) <= room_bytes && side % lines == 0);
  V* const elements = reinterpret_cast<V*>(room);
  const unsigned x = unsigned(lane.index()) % side, y = unsigned(lane.index()) / side;
  const TileCorner at = corner_of(piece, tile, side);
  V values[side / lines] = {};
  for (unsigned k = 0; k < side / lines; ++k) {
    const unsigned r = at.row + y + k * lines, c = at.column + x;
    if (r < piece.rows && c < piece.columns)
      values[k] = memory.template load<V>(source + source_at(piece, at.outer, r, c));
  }
  lane.block().sync();  // all lanes have read the previous tile
  for (unsigned k = 0; k < side / lines; ++k) store_shared(lane, &elements[(y + k * lines) * pitch + x], values[k]);
  lane.block().sync();
  for (unsigned k = 0; k < side / lines; ++k) {
    const unsigned c = at.column + y + k * lines, r = at.row + x;
    const V value = load_shared(lane, &elements[x * pitch + y + k * lines]);
    if (r < piece.rows && c < piece.columns) memory.store(target + target_at(piece, at.outer, r, c), value);
  }
}

/// Returns the bytes of two words that the digits of `selector` choose, the lowest first: 0 to 3 select from `a`, 4 to
/// 7 from `b`.
TRANSHIP_SHARED inline unsigned chosen_bytes(unsigned a, unsigned b, unsigned selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(a, b, selector);
#else
  const unsigned long long both = (static_cast<unsigned long long>(b) << 32) | a;
  unsigned out = 0;
  for (unsigned i = 0; i < 4; ++i)
    out |= static_cast<unsigned>(both >> (8 * ((selector >> (4 * i)) & 7)) & 0xff) << (8 * i);
  return out;
#endif
}

/// Transposes 2 x 2 elements of 2 bytes, or 4 x 4 of 1 byte.
TRANSHIP_SHARED inline void transpose_words(unsigned (&words)[2]) {
  const unsigned low = chosen_bytes(words[0], words[1], 0x5410);
  words[1] = chosen_bytes(words[0], words[1], 0x7632);
  words[0] = low;
}
TRANSHIP_SHARED inline void transpose_words(unsigned (&words)[4]) {
  const unsigned low01 = chosen_bytes(words[0], words[1], 0x5140), high01 = chosen_bytes(words[0], words[1], 0x7362);
  const unsigned low23 = chosen_bytes(words[2], words[3], 0x5140), high23 = chosen_bytes(words[2], words[3], 0x7362);
  words[0] = chosen_bytes(low01, low23, 0x5410);
  words[1] = chosen_bytes(low01, low23, 0x7632);
  words[2] = chosen_bytes(high01, high23, 0x5410);
  words[3] = chosen_bytes(high01, high23, 0x7632);
}

/// Moves a transposed tile by words. A word has `each` elements, along a row in the source and along a column in the
/// target.
template <unsigned each, class Lane, class Memory>
TRANSHIP_SHARED inline void move_transposed_words(const Lane& lane, const Memory& memory, const Piece& piece,
                                                  const unsigned char* source, unsigned char* target, unsigned tile,
                                                  unsigned char* room) {
  constexpr unsigned side = tile_side(PieceKind::transposed_words, 4 / each);
  constexpr unsigned lines = pack_lanes / warp_lanes;  // all lanes load this many lines at once
  static_assert(side == warp_lanes * each && side * warp_lanes * 4 <= room_bytes);
  unsigned* const words = reinterpret_cast<unsigned*>(room);
  const unsigned x = unsigned(lane.index()) % warp_lanes, y = unsigned(lane.index()) / warp_lanes;
  const TileCorner at = corner_of(piece, tile, side);
  unsigned values[side / lines] = {};
  for (unsigned k = 0; k < side / lines; ++k) {
    const unsigned r = at.row + y + k * lines, c = at.column + each * x;
    if (r < piece.rows && c < piece.columns)
      values[k] = memory.template load<unsigned>(source + source_at(piece, at.outer, r, c));
  }
  lane.block().sync();  // all lanes have read the previous tile
  // Rows are rotated by an exclusive or, so that neither rows nor columns of words have bank conflicts.
  for (unsigned k = 0; k < side / lines; ++k)
    store_shared(lane, &words[(y + k * lines) * warp_lanes + (x ^ ((y + k * lines) / each))], values[k]);
  lane.block().sync();
  for (unsigned k = 0; k < warp_lanes / lines; ++k) {
    const unsigned column = y + k * lines;  // a column of words
    const unsigned c = at.column + each * column, r = at.row + each * x;
    unsigned square[each];
    for (unsigned p = 0; p < each; ++p)
      square[p] = load_shared(lane, &words[(each * x + p) * warp_lanes + (column ^ x)]);
    transpose_words(square);
    if (r < piece.rows && c < piece.columns)
      for (unsigned q = 0; q < each; ++q) memory.store(target + target_at(piece, at.outer, r, c + q), square[q]);
  }
}

/// Returns the piece to which this unit belongs.
TRANSHIP_SHARED inline unsigned piece_of(const PieceListView& list, unsigned unit) {
  unsigned low = 0, high = list.count;
  while (high - low > 1) {
    const unsigned middle = low + (high - low) / 2;
    if (list.first_units[middle] <= unit)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// Returns the byte `offset` bytes behind a base. If the base is address 0, the offsets of its pieces are addresses.
TRANSHIP_SHARED inline unsigned char* place_at(const unsigned char* base, long long offset) {
#ifdef __CUDA_ARCH__
  return const_cast<unsigned char*>(base) + offset;  // so nvcc sees that it is global memory
#else
  const auto address = reinterpret_cast<unsigned long long>(base) + static_cast<unsigned long long>(offset);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): base and offset are one number.
  return reinterpret_cast<unsigned char*>(address);
#endif
}

struct UnitPlace {
  unsigned piece;
  unsigned begin;  ///< the first unit of that piece
};
TRANSHIP_SHARED inline UnitPlace place_of(const PieceListView& list, unsigned group, unsigned unit_of_group) {
  if (!list.starts) {
    const unsigned piece = piece_of(list, group * group_units + unit_of_group);
    return {piece, piece == 0 ? 0 : list.first_units[piece]};
  }
  const GroupStart start = list.starts[group];
  const unsigned before = start.firsts & ((2u << unit_of_group) - 1);
  if (before == 0) return {start.piece, start.begin};
#if defined(__CUDA_ARCH__)
  return {start.piece + __popc(before), group * group_units + 31 - __clz(before)};
#else
  return {start.piece + static_cast<unsigned>(__builtin_popcount(before)),
          group * group_units + 31 - static_cast<unsigned>(__builtin_clz(before))};
#endif
}

/// Returns the vector type of a width: a word, or 16 bytes.
template <int width_bytes>
struct VectorOf : detail::WordOf<width_bytes> {};
template <>
struct VectorOf<16> {
  using Type = Vector16;
};

/// Applies an element type of arithmetic.hpp to each element of a vector.
template <class Element, bool reads_it>
struct MapVector {
  static constexpr bool reads_target = reads_it;
  template <class V>
  TRANSHIP_SHARED V operator()(const V& source, const V& target) const {
    using Word = typename VectorOf<int(Element::width)>::Type;
    V out;
    TRANSHIP_UNROLL
    for (unsigned at = 0; at < sizeof(V); at += unsigned(Element::width)) {
      // Each number is a variable of its own, and its copies are whole words, so that a card keeps them in registers.
      Word from, to;
      detail::copy_bytes(&from, reinterpret_cast<const unsigned char*>(&source) + at, sizeof from);
      detail::copy_bytes(&to, reinterpret_cast<const unsigned char*>(&target) + at, sizeof to);
      Element::apply(reinterpret_cast<const unsigned char*>(&from), reinterpret_cast<unsigned char*>(&to));
      detail::copy_bytes(reinterpret_cast<unsigned char*>(&out) + at, &to, sizeof to);
    }
    return out;
  }
};

/// The number type of lists that only copy.
struct OnlyCopies {};

/// Moves a list. It needs has_tiles where a piece of the list is transposed, because without it there is no room; the
/// list has at most `vectors_max` lane_vectors. Pieces that negate or combine elements need their number type of
/// arithmetic.hpp, the same for all of them.
template <bool has_tiles, unsigned vectors_max, class Number = OnlyCopies, class Lane, class Memory>
TRANSHIP_SHARED inline void move_pieces(const Lane& lane, const Memory& memory, const PieceListView& list,
                                        const Bases& bases, Order order, unsigned char* room) {
  constexpr bool has_maps = !detail::is_same<Number, OnlyCopies>;
  const auto block = unsigned(lane.block_index()), blocks = unsigned(lane.blocks());
  const bool is_strided = order == Order::strided;
  const unsigned step = is_strided ? blocks : 1;
  const unsigned end = is_strided ? list.groups : share_begin(list.groups, block + 1, blocks);
  const unsigned warp = unsigned(lane.index()) / warp_lanes, lane_of_warp = unsigned(lane.index()) % warp_lanes;
  for (unsigned group = is_strided ? block : share_begin(list.groups, block, blocks); group < end; group += step) {
    const UnitPlace place = place_of(list, group, warp);
    const Piece piece = list.pieces[place.piece];
    const unsigned unit = group * group_units + warp - place.begin;
    const unsigned char* const source = place_at(bases[piece.source_base], piece.source_offset);
    unsigned char* const target = place_at(bases[piece.target_base], piece.target_offset);
    const auto elements = [&]<class V>(V, const auto& map) {
      move_elements<V, vectors_max>(lane_of_warp, memory, map, piece, source, target, unit, list.lane_vectors);
    };
    const auto transposed = [&]<class V>(V) {
      move_transposed<V>(lane, memory, piece, source, target, unit / group_units, room);
    };
    const auto with_vector = [&](const auto& move) {
      switch (piece.width_log2) {
        case 4:
          return move(Vector16());
        case 3:
          return move(0ull);
        case 2:
          return move(0u);
        case 1:
          return move(static_cast<unsigned short>(0));
        default:
          return move(static_cast<unsigned char>(0));
      }
    };
    if constexpr (has_maps)
      if (piece.map != ElementMap::copy) {
        detail::with_number_element<Number>(piece.map, [&](auto element) {
          using Element = decltype(element);
          constexpr bool is_negation = detail::is_same<Element, detail::NegateElement<typename Number::Wrapping>>;
          const MapVector<Element, !is_negation> map;
          if (piece.width_log2 == 4)
            elements(Vector16(), map);
          else
            elements(typename VectorOf<int(Element::width)>::Type(), map);
        });
        continue;
      }
    // Units of a transposed piece begin with a group, so all warps of the block take the same branch.
    if (!has_tiles || piece.kind == PieceKind::elements)
      with_vector([&](auto vector) { elements(vector, CopyVector()); });
    else if constexpr (has_tiles) {
      if (piece.kind == PieceKind::transposed)
        with_vector(transposed);
      else if (piece.width_log2 == 1)
        move_transposed_words<2>(lane, memory, piece, source, target, unit / group_units, room);
      else
        move_transposed_words<4>(lane, memory, piece, source, target, unit / group_units, room);
    }
  }
}

}  // namespace tranship::packing

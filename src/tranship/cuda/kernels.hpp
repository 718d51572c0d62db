// Private: the kernels of the back-end: their names, arguments and bodies, for the host that launches them, for nvcc,
// and for a double of the driver that runs them without a card. Each has one argument, a plain struct, and needs blocks
// of packing::pack_lanes lanes.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/move_pieces.hpp>

namespace tranship::cuda {

/// A list of pieces and its bases. A short list travels here, so that a launch needs no other transfer.
struct ListArgs {
  static constexpr unsigned few_max = 24;

  packing::PieceListView list;  ///< null pieces: they are in few_pieces
  packing::Bases bases;
  packing::Piece few_pieces[few_max];
  unsigned few_first_units[few_max + 1];
};

/// Where the pieces of the arguments of a kernel are.
TRANSHIP_SHARED inline packing::PieceListView list_of(const ListArgs& args) {
  packing::PieceListView list = args.list;
  if (!list.pieces) {
    list.pieces = args.few_pieces;
    list.first_units = args.few_first_units;
  }
  return list;
}

/// tranship_move_lean, tranship_move_deep, tranship_move_tiled: move the pieces of a list. Lean lists have at most
/// lean_vectors vectors a lane, and only tiled ones have transposed pieces.
using MoveArgs = ListArgs;

/// tranship_fill: writes an element wherever the pieces have a target. A vector whose source is at o has the bytes of
/// `pattern` from o % 16; nothing is loaded there.
struct FillArgs {
  ListArgs list;
  alignas(16) unsigned char pattern[16];
};

/// tranship_map_TYPE: moves a list without transposed pieces, of which some negate or combine numbers of one type.
using MapArgs = ListArgs;

/// The memory that tranship_fill loads from: a pattern of 16 bytes, again and again. `Memory` stores.
template <class Memory>
struct PatternMemory {
  Memory memory;
  const unsigned char* pattern;

  template <class V>
  TRANSHIP_SHARED V load(const unsigned char* from) const {
    return *reinterpret_cast<const V*>(pattern + reinterpret_cast<unsigned long long>(from) % 16);
  }
  template <class V>
  TRANSHIP_SHARED void store(unsigned char* to, const V& value) const {
    memory.store(to, value);
  }
};

template <unsigned vectors_max, class Lane, class Memory>
TRANSHIP_SHARED inline void move_body(const Lane& lane, const Memory& memory, const MoveArgs& args) {
  packing::move_pieces<false, vectors_max>(lane, memory, list_of(args), args.bases, packing::Order::strided, nullptr);
}
template <class Lane, class Memory>
TRANSHIP_SHARED inline void move_tiled_body(const Lane& lane, const Memory& memory, const MoveArgs& args,
                                            unsigned char* room) {
  packing::move_pieces<true, packing::lane_vectors_max>(lane, memory, list_of(args), args.bases,
                                                        packing::Order::strided, room);
}
template <class Lane, class Memory>
TRANSHIP_SHARED inline void fill_body(const Lane& lane, const Memory& memory, const FillArgs& args) {
  packing::move_pieces<false, packing::lean_vectors>(lane, PatternMemory<Memory>{memory, args.pattern},
                                                     list_of(args.list), args.list.bases, packing::Order::strided,
                                                     nullptr);
}
/// `Number` is a number type of arithmetic.hpp.
template <class Number, class Lane, class Memory>
TRANSHIP_SHARED inline void map_body(const Lane& lane, const Memory& memory, const MapArgs& args) {
  packing::move_pieces<false, packing::lean_vectors, Number>(lane, memory, list_of(args), args.bases,
                                                             packing::Order::strided, nullptr);
}

/// The number types that a card computes with, by the names of their arithmetics: TRANSHIP_CARD_NUMBERS(X) is X(name)
/// for each.
namespace numbers {
using bool8 = detail::Flag;
using i8 = detail::Integer<signed char, unsigned char>;
using u8 = detail::Integer<unsigned char, unsigned char>;
using i16 = detail::Integer<short, unsigned short>;
using u16 = detail::Integer<unsigned short, unsigned short>;
using i32 = detail::Integer<int, unsigned>;
using u32 = detail::Integer<unsigned, unsigned>;
using i64 = detail::Integer<long long, unsigned long long>;
using u64 = detail::Integer<unsigned long long, unsigned long long>;
using f16 = detail::Half<float_of_f16, f16_of_float>;
using bf16 = detail::Half<float_of_bf16, bf16_of_float>;
using f32 = detail::Real<float, unsigned>;
using f64 = detail::Real<double, unsigned long long>;
}  // namespace numbers
#define TRANSHIP_CARD_NUMBERS(X) \
  X(bool8) X(i8) X(u8) X(i16) X(u16) X(i32) X(u32) X(i64) X(u64) X(f16) X(bf16) X(f32) X(f64)

}  // namespace tranship::cuda

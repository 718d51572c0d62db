// NDSL's own packed buffers and unpacked arrays, byte for byte, and what is refused where NDSL goes wrong in silence.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/face/ndsl/halo_data_transformer.hpp>
#include <tranship/face/ndsl/halo_message.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/fake_devices.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "support/error_of.hpp"
#include "support/ndsl_cases.hpp"

namespace tranship::ndsl {
namespace {

using nlohmann::json;
using test::NdslArrays;

ElementType type_of(const std::string& dtype) {
  return element_type_of_numpy(dtype.substr(1)).value();
}

Indices indices_of(const json& list) {
  return Indices(list.get<std::vector<Index>>());
}

Box box_of(const json& slices) {
  Box out;
  for (const json& slice : slices) {
    out.lower.push_back(slice[0]);
    out.upper.push_back(slice[1]);
  }
  return out;
}

QuantityHaloSpec spec_of(const json& q, Index n_points) {
  const ElementType type = type_of(q.at("dtype"));
  return {.n_points = n_points,
          .strides = indices_of(q.at("strides_bytes")),
          .itemsize = size_bytes(type),
          .shape = indices_of(q.at("shape")),
          .origin = indices_of(q.at("origin")),
          .extent = indices_of(q.at("extent")),
          .dims = q.at("dims"),
          .dtype = type};
}

/// The exchanges of a case, the arrays that they move, and the memories these lie in.
struct Scene {
  Scene(const json& c, const NdslArrays& arrays) {
    for (const json& q : c.at("quantities")) memories.push_back(arrays.elements(q.at("mem")));
    const auto view = [&](int i) {
      const json& q = c.at("quantities")[std::size_t(i)];
      const QuantityHaloSpec spec = spec_of(q, c.at("n_points"));
      StridedView out{.data = memories[std::size_t(i)].data() + q.at("offset_elems").get<Index>() * spec.itemsize,
                      .type = spec.dtype,
                      .extents = spec.shape,
                      .strides = spec.strides};
      for (Index& stride : out.strides) stride /= spec.itemsize;
      return out;
    };
    for (const json& e : c.at("exchanges"))
      for (const char* part : {"x", "y"}) {
        if (!e.contains(part) || e.at(part).is_null()) continue;
        const std::string name = part;
        const int i = e.at(part);
        (name == "x" ? x : y)
            .push_back({.specification = spec_of(c.at("quantities")[std::size_t(i)], c.at("n_points")),
                        .pack_slices = box_of(e.at("pack_" + name)),
                        .pack_clockwise_rotation = e.at("rotation"),
                        .unpack_slices = box_of(e.at("unpack_" + name))});
        (name == "x" ? quantities_x : quantities_y).push_back(view(i));
      }
  }
  std::vector<std::string> memories;
  std::vector<HaloExchangeSpec> x, y;
  std::vector<StridedView> quantities_x, quantities_y;
};

template <class F>
bool is_misuse(F&& f) {
  return test::error_of(f).starts_with(name_of(ErrorCode::invalid_use));
}

std::string bytes_of(std::span<const std::byte> buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

bool is_refused(const json& c) {
  const std::string note = c.at("note");
  return note.find("lacks a horizontal dimension") != std::string::npos || note.find("n_points > extent") == 0;
}

TEST(NdslTransformer, PacksAndUnpacksEveryByteAsNdslDoes) {
  const json index = json::parse(test::read_ndsl("transformer_index.json"));
  int moved = 0, refused = 0;
  for (const auto& [family, listed] : index.items()) {
    const NdslArrays arrays(listed.at("npz").get<std::string>());
    for (const json& c : listed.at("cases")) {
      SCOPED_TRACE(family + " " + c.at("id").get<std::string>() + ": " + c.at("note").get<std::string>());
      Scene scene(c, arrays);
      if (is_refused(c)) {
        ++refused;
        EXPECT_TRUE(is_misuse([&] { HaloDataTransformer::get(scene.x, scene.y); }));
        continue;
      }
      ++moved;
      HaloDataTransformer transformer = HaloDataTransformer::get(scene.x, scene.y);
      transformer.async_pack(scene.quantities_x, scene.quantities_y);
      ASSERT_EQ(transformer.get_pack_buffer().size(), c.at("nbytes").get<std::size_t>());
      EXPECT_EQ(bytes_of(transformer.get_pack_buffer()), arrays.elements(c.at("pack")));
      const std::string received = arrays.elements(c.at("unpack_in"));
      ASSERT_EQ(received.size(), transformer.get_unpack_buffer().size());
      std::memcpy(transformer.get_unpack_buffer().data(), received.data(), received.size());
      transformer.async_unpack(scene.quantities_x, scene.quantities_y);
      transformer.synchronize();
      for (std::size_t i = 0; i < scene.memories.size(); ++i)
        EXPECT_EQ(scene.memories[i], arrays.elements(c.at("quantities")[i].at("mem_after"))) << "quantity " << i;
    }
  }
  EXPECT_GE(moved, 20);
  EXPECT_GE(refused, 2);
}

/// A quantity of 6 by 5 by 4 cells with 3 points of halo, in NumPy's own order.
QuantityHaloSpec small_spec(ElementType type = ElementType::f64) {
  const Index size = size_bytes(type);
  return {.n_points = 3,
          .strides = {11 * 4 * size, 4 * size, size},
          .itemsize = size,
          .shape = {12, 11, 4},
          .origin = {3, 3, 0},
          .extent = {6, 5, 4},
          .dims = {"i", "j", "k"},
          .dtype = type};
}
constexpr std::size_t small_cells = 12 * 11 * 4;
constexpr BoundaryDirection west{.j = 0, .i = -1};

StridedView view_of(void* memory, const QuantityHaloSpec& spec) {
  StridedView out{.data = memory, .type = spec.dtype, .extents = spec.shape, .strides = spec.strides};
  for (Index& stride : out.strides) stride /= spec.itemsize;
  return out;
}

using Exchanges = std::vector<HaloExchangeSpec>;

void expect_refused(ErrorCode code, const Exchanges& x, const Exchanges& y, std::initializer_list<const char*> parts) {
  const std::string error = test::error_of([&] { HaloMessage(x, y); });
  EXPECT_TRUE(error.starts_with(name_of(code))) << error;
  for (const char* part : parts) EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(NdslTransformer, RefusesExchangesThatContradictThemselves) {
  const HaloExchangeSpec good = exchange_at(small_spec(), west, 1);
  const auto changed = [&](const std::function<void(HaloExchangeSpec&)>& change) {
    HaloExchangeSpec out = good;
    change(out);
    return Exchanges{out};
  };
  EXPECT_EQ(HaloMessage(Exchanges{good}).bytes(), 3 * 5 * 4 * 8);
  expect_refused(ErrorCode::invalid_use, {}, {}, {"at least 1 exchange"});
  expect_refused(ErrorCode::invalid_use, {good, good}, {good}, {"2", "1"});
  expect_refused(ErrorCode::unsupported, {good, exchange_at(small_spec(ElementType::f32), west, 1)}, {},
                 {"f64", "f32"});
  expect_refused(ErrorCode::unsupported, {good}, {exchange_at(small_spec(ElementType::f32), west, 1)}, {"f64", "f32"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.n_points = 0; }), {}, {"0"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.itemsize = 4; }), {}, {"4", "8"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.strides[2] = 6; }), {}, {"6", "8"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.strides = {8, 8}; }), {}, {"2", "3"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.extent[0] = 10; }), {}, {"10", "12"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.pack_slices.upper[1] = 12; }), {}, {"12", "11"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.pack_slices.lower[1] = -1; }), {}, {"-1", "11"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.unpack_slices.upper[0] = 2; }), {}, {"60", "40"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) {
                   e.pack_slices = {{3, 2, 0}, {6, 7, 4}};
                 }),
                 {}, {"[2, 7)", "[3, 8)"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.unpack_slices = e.pack_slices; }), {},
                 {"overwritten"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.dims[0] = "x"; }), {}, {"i dimension"});
  expect_refused(ErrorCode::invalid_use, changed([](auto& e) { e.specification.dims[2] = "j_interface"; }), {},
                 {"two dimensions along j"});
  // Vectors.
  expect_refused(ErrorCode::invalid_use, {good}, {exchange_at(small_spec(), west, 2)}, {"1", "2"});
  QuantityHaloSpec other_order = small_spec();
  other_order.dims = {"j", "i", "k"};
  expect_refused(ErrorCode::invalid_use, {good}, {exchange_at(other_order, {.j = -1, .i = 0}, 1)}, {"order"});
  const HaloExchangeSpec flags = exchange_at(small_spec(ElementType::bool8), west, 1);
  expect_refused(ErrorCode::invalid_use, {flags}, {flags}, {"bool8"});
  EXPECT_NO_THROW(HaloMessage({{flags}}));
}

TEST(NdslTransformer, SlicesOfBoundariesThatLeaveTheArrayAreRefused) {
  QuantityHaloSpec spec = small_spec();
  spec.n_points = 4;
  EXPECT_TRUE(is_misuse([&] { exchange_at(spec, west, 0); }));
  spec.n_points = 2;  // of three allocated
  const HaloExchangeSpec two = exchange_at(spec, {.j = 1, .i = -1}, 0);
  EXPECT_EQ(two.pack_slices, (Box{{3, 6, 0}, {5, 8, 4}}));
  EXPECT_EQ(two.unpack_slices, (Box{{1, 8, 0}, {3, 10, 4}}));
  EXPECT_TRUE(is_misuse([&] { exchange_at(spec, {.j = 0, .i = 0}, 0); }));
  EXPECT_TRUE(is_misuse([&] { exchange_at(spec, {.j = 2, .i = 0}, 0); }));
  spec.extent = {6, 1, 4};
  EXPECT_TRUE(is_misuse([&] { exchange_at(spec, {.j = 1, .i = 0}, 0); }));
}

TEST(NdslTransformer, RefusesArraysThatAreNotThoseOfTheSpecs) {
  const QuantityHaloSpec spec = small_spec();
  const Exchanges exchanges{exchange_at(spec, west, 0)};
  std::vector<double> memory(2 * small_cells, 1.0);
  const std::vector<double> before = memory;
  HaloDataTransformer transformer = HaloDataTransformer::get(exchanges);
  const StridedView good = view_of(memory.data(), spec);
  StridedView other_type = good, larger = good, smaller = good, elsewhere = good;
  other_type.type = ElementType::i64;
  larger.extents[0] = 13;
  smaller.extents[2] = 3;
  elsewhere.device = Device::fake(0);
  for (const StridedView& wrong : {other_type, larger, smaller, elsewhere}) {
    EXPECT_TRUE(is_misuse([&] { transformer.async_pack({&wrong, 1}); }));
    EXPECT_TRUE(is_misuse([&] { transformer.async_unpack({&wrong, 1}); }));
  }
  const std::vector<StridedView> two{good, good};
  EXPECT_TRUE(is_misuse([&] { transformer.async_pack(two); }));
  EXPECT_TRUE(is_misuse([&] { transformer.async_pack({}); }));
  EXPECT_TRUE(is_misuse([&] { transformer.async_pack({&good, 1}, {&good, 1}); }));
  HaloDataTransformer vectors = HaloDataTransformer::get(exchanges, exchanges);
  EXPECT_TRUE(is_misuse([&] { vectors.async_pack({&good, 1}); }));
  EXPECT_TRUE(is_misuse([&] { vectors.async_unpack({&good, 1}, two); }));
  EXPECT_EQ(memory, before);

  EXPECT_TRUE(transformer.ready());
  transformer.finalize();
  transformer.finalize();
  EXPECT_FALSE(transformer.ready());
  EXPECT_TRUE(is_misuse([&] { transformer.get_pack_buffer(); }));
  EXPECT_TRUE(is_misuse([&] { transformer.get_unpack_buffer(); }));
  EXPECT_TRUE(is_misuse([&] { transformer.async_pack({&good, 1}); }));
  transformer.synchronize();
}

TEST(NdslTransformer, ArraysOfOtherStridesAreMovedRight) {
  const QuantityHaloSpec spec = small_spec();
  HaloMessage message(Exchanges{exchange_at(spec, west, 3)});
  std::vector<double> rows(small_cells), columns(small_cells);
  StridedView c = view_of(rows.data(), spec), f = c;
  f.data = columns.data();
  f.strides = {1, 12, 132};
  for_each_coordinate(spec.shape, [&](const Indices& at) {
    const double value = double(at[0] * 10000 + at[1] * 100 + at[2]);
    rows[std::size_t(at[0] * 44 + at[1] * 4 + at[2])] = value;
    columns[std::size_t(at[0] + at[1] * 12 + at[2] * 132)] = value;
  });
  std::vector<double> packed(60), packed_columns(60), again(60);
  const auto pack = [&](const StridedView& view, std::vector<double>& out) {
    message.bind({&view, 1}).pack(reinterpret_cast<std::byte*>(out.data()));
  };
  const HaloMessage::Bound first = message.bind({&c, 1});
  pack(c, packed);
  pack(f, packed_columns);
  first.pack(reinterpret_cast<std::byte*>(again.data()));  // what was bound stays bound
  EXPECT_EQ(packed, packed_columns);
  EXPECT_EQ(packed, again);
  // r = 3: P[a, b] = B[b, Nx-1-a], with a along j and b along i.
  for (Index b = 0; b < 5; ++b)
    for (Index a = 0; a < 3; ++a)
      EXPECT_EQ(packed[std::size_t((b * 3 + a) * 4)], double((3 + 2 - a) * 10000 + (3 + b) * 100));
}

/// A message of one array at several boundaries, of which the corner of a later one overlaps an earlier one.
TEST(NdslTransformer, ALaterExchangeWins) {
  const QuantityHaloSpec spec = small_spec(ElementType::u8);
  HaloExchangeSpec high = exchange_at(spec, {.j = 0, .i = 1}, 0), low = exchange_at(spec, west, 0);
  low.unpack_slices = high.unpack_slices;
  std::vector<std::uint8_t> memory(small_cells, 0);
  const std::vector<StridedView> both(2, view_of(memory.data(), spec));
  for (const Exchanges& exchanges : {Exchanges{high, low}, Exchanges{low, high}}) {
    HaloMessage message(exchanges);
    std::vector<std::byte> received(std::size_t(message.bytes()), std::byte{1});
    std::fill(received.begin() + message.bytes() / 2, received.end(), std::byte{2});
    message.bind(both).unpack(received.data());
    EXPECT_EQ(memory[std::size_t(9 * 44 + 3 * 4)], 2);
  }
}

/// Thousands of quantities, as many as tracers have, and quantities without levels among them.
TEST(NdslTransformer, ThousandsOfQuantitiesAreOneMessage) {
  constexpr int count = 5000;
  const QuantityHaloSpec spec = small_spec(ElementType::i32);
  QuantityHaloSpec empty = spec;
  empty.extent[2] = 0;
  Exchanges exchanges;
  std::vector<std::vector<std::int32_t>> memories;
  std::vector<StridedView> views;
  for (int q = 0; q < count; ++q) {
    exchanges.push_back(exchange_at(q % 7 == 3 ? empty : spec, west, q % 4));
    views.push_back(view_of(memories.emplace_back(small_cells, q).data(), spec));
  }
  HaloDataTransformer transformer = HaloDataTransformer::get(exchanges);
  transformer.async_pack(views);
  const auto packed = transformer.get_pack_buffer();
  ASSERT_EQ(packed.size() % (60 * 4), 0u);
  std::size_t at = 0;
  for (int q = 0; q < count; ++q) {
    if (q % 7 == 3) continue;
    std::int32_t first = -1, last = -1;
    std::memcpy(&first, &packed[at], 4);
    std::memcpy(&last, &packed[at + 59 * 4], 4);
    ASSERT_EQ(first, q);
    ASSERT_EQ(last, q);
    at += 60 * 4;
  }
  EXPECT_EQ(at, packed.size());
  std::memset(transformer.get_unpack_buffer().data(), 0, packed.size());
  transformer.async_unpack(views);
  for (int q = 0; q < count; ++q)
    ASSERT_EQ(std::count(memories[std::size_t(q)].begin(), memories[std::size_t(q)].end(), 0),
              q == 0       ? std::ptrdiff_t(small_cells)
              : q % 7 == 3 ? 0
                           : 60);
}

TEST(NdslTransformer, WorkOfADeviceIsDoneWhenItIsWaitedFor) {
  for (const FakeTiming timing : {FakeTiming::deferred, FakeTiming::threaded}) {
    Devices devices({.kinds = {FakeDevices{.count = 1, .timing = timing}}});
    const Device device = Device::fake(0);
    Driver& driver = devices.driver(devices.memory_of(device));
    auto* memory = static_cast<double*>(driver.allocate(small_cells * sizeof(double)));
    for (std::size_t i = 0; i < small_cells; ++i) memory[i] = double(i);
    QuantityHaloSpec spec = small_spec();
    spec.device = device;
    StridedView view = view_of(memory, spec);
    view.device = device;
    const Exchanges exchanges{exchange_at(spec, west, 0)};
    {
      HaloDataTransformer transformer = HaloDataTransformer::get(exchanges, {}, {.devices = &devices});
      const auto packed = transformer.get_pack_buffer();
      std::memset(packed.data(), 0, packed.size());
      transformer.async_pack({&view, 1});
      if (timing == FakeTiming::deferred) {
        EXPECT_EQ(packed[1], std::byte{0});
        EXPECT_EQ(packed[7], std::byte{0});  // of 144, the exponent
      }
      transformer.synchronize();
      double first = 0;
      std::memcpy(&first, transformer.get_pack_buffer().data(), sizeof first);
      EXPECT_EQ(first, 3 * 44 + 3 * 4);
      // Two pieces of work at once, and the end of the transformer while the second one may not have begun.
      std::memcpy(transformer.get_unpack_buffer().data(), transformer.get_pack_buffer().data(), packed.size());
      transformer.async_unpack({&view, 1});
      transformer.async_pack({&view, 1});
    }
    EXPECT_EQ(memory[3 * 4], 3 * 44 + 3 * 4);
    driver.deallocate(memory, small_cells * sizeof(double));
  }
}

TEST(NdslTransformer, BuffersAreUsedAgainByAllThreads) {
  const Exchanges exchanges{exchange_at(small_spec(), west, 0)};
  HaloDataTransformer::get(exchanges);
  const BufferCounts before = buffer_counts();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<double> memory(small_cells, 1.0);
      const StridedView view = view_of(memory.data(), small_spec());
      for (int i = 0; i < 250; ++i) {
        HaloDataTransformer one = HaloDataTransformer::get(exchanges), other = HaloDataTransformer::get(exchanges);
        one.async_pack({&view, 1});
        EXPECT_NE(one.get_pack_buffer().data(), other.get_pack_buffer().data());
        EXPECT_NE(one.get_pack_buffer().data(), one.get_unpack_buffer().data());
      }
    });
  for (std::thread& thread : threads) thread.join();
  const BufferCounts after = buffer_counts();
  EXPECT_EQ(after.allocations - before.allocations, 4 * 250 * 4);
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_GE(after.reuses - before.reuses, 4 * 250 * 4 - 16);  // every thread holds four at most
  EXPECT_LE(after.kept_bytes, kept_buffer_bytes_max);
}

}  // namespace
}  // namespace tranship::ndsl

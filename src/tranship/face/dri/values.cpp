// Global data, overlaps, partitions, layouts, distributions.
#include <algorithm>
#include <numeric>

#include <tranship/base/amounts.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/face/dri/state.hpp>

namespace tranship::dri {
namespace {

static_assert(DRI_DIMS_MAX == dims_max);
static_assert(sizeof(int) == 4 && sizeof(short) == 2 && (sizeof(long) == 8 || sizeof(long) == 4));
constexpr bool long_is_64 = sizeof(long) == 8;

struct TypeRow {
  DRI_Dataspec spec;
  ElementType type;
  bool is_split;
  const char *dri, *mpi, *fortran, *vsipl, *c;  ///< names; MPI's names in C and in Fortran
};
constexpr TypeRow types[] = {
    {DRI_FLOAT, ElementType::f32, false, "DRI_FLOAT", "MPI_FLOAT", "MPI_REAL", "vsip_scalar_f", "float"},
    {DRI_DOUBLE, ElementType::f64, false, "DRI_DOUBLE", "MPI_DOUBLE", "MPI_DOUBLE_PRECISION", "vsip_scalar_d",
     "double"},
    {DRI_COMPLEX, ElementType::c64, false, "DRI_COMPLEX", "MPI_C_FLOAT_COMPLEX", "MPI_COMPLEX", "vsip_cscalar_f",
     "float _Complex"},
    {DRI_DOUBLE_COMPLEX, ElementType::c128, false, "DRI_DOUBLE_COMPLEX", "MPI_C_DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX",
     "vsip_cscalar_d", "double _Complex"},
    {DRI_COMPLEX_SPLIT, ElementType::c64, true, "DRI_COMPLEX_SPLIT", nullptr, nullptr, "vsip_cscalar_f", nullptr},
    {DRI_DOUBLE_COMPLEX_SPLIT, ElementType::c128, true, "DRI_DOUBLE_COMPLEX_SPLIT", nullptr, nullptr, "vsip_cscalar_d",
     nullptr},
    {DRI_INTEGER, ElementType::i32, false, "DRI_INTEGER", "MPI_INT", "MPI_INTEGER", "vsip_scalar_i", "int"},
    {DRI_SHORT, ElementType::i16, false, "DRI_SHORT", "MPI_SHORT", nullptr, "vsip_scalar_si", "short"},
    {DRI_UNSIGNED_SHORT, ElementType::u16, false, "DRI_UNSIGNED_SHORT", "MPI_UNSIGNED_SHORT", nullptr, "vsip_scalar_us",
     "unsigned short"},
    {DRI_LONG, long_is_64 ? ElementType::i64 : ElementType::i32, false, "DRI_LONG", "MPI_LONG", nullptr,
     "vsip_scalar_li", "long"},
    {DRI_UNSIGNED_LONG, long_is_64 ? ElementType::u64 : ElementType::u32, false, "DRI_UNSIGNED_LONG",
     "MPI_UNSIGNED_LONG", nullptr, "vsip_scalar_ul", "unsigned long"},
};

const TypeRow& row_of(DRI_Dataspec type) {
  const int number = int(type) - 1;
  if (number < 0 || number >= int(std::size(types))) refuse(DRI_ERR_ARGUMENT, "{} is no data type", int(type));
  return types[number];
}

/// Accepts other spellings of C's names, as in the table of the draft.
DRI_Dataspec type_named(std::string_view name) {
  for (const auto& [written, type] :
       {std::pair("DRI_UNSINGED_LONG", DRI_UNSIGNED_LONG), std::pair("signed short int", DRI_SHORT),
        std::pair("short int", DRI_SHORT), std::pair("unsigned short int", DRI_UNSIGNED_SHORT),
        std::pair("signed long int", DRI_LONG), std::pair("long int", DRI_LONG),
        std::pair("unsigned long int", DRI_UNSIGNED_LONG)})
    if (name == written) return type;
  const std::string vsipl = name.starts_with("vsipl_") ? "vsip_" + std::string(name.substr(6)) : std::string(name);
  for (const TypeRow& row : types)
    for (const char* known : {row.dri, row.mpi, row.fortran, row.vsipl, row.c})
      if (known && vsipl == known) return row.spec;
  refuse(DRI_ERR_ARGUMENT, "'{}' is no data type of DRI, MPI, VSIPL or C that DRI has", name);
}

template <class T>
void create_data(int ndims, const T dims[], std::optional<DRI_Dataspec> type, dri_global_data** data) {
  (void)initialised();
  output(data, "data");
  check_range("the number of dimensions", ndims, 1, DRI_DIMS_MAX);
  output(dims, "dims");
  if (type) check_type(*type);
  auto out = std::make_shared<GlobalData>();
  for (int d = 0; d < ndims; ++d) {
    check_range("the extent of a dimension", Index(dims[d]), 0, INT64_MAX);
    out->extents.push_back(Index(dims[d]));
  }
  out->type = type;
  *data = Handles::all().add<GlobalData, dri_global_data>(std::move(out));
}

void create_partition(Partition rule, const dri_overlap* left, const dri_overlap* right, DRI_Partition* partition) {
  (void)initialised();
  output(partition, "partition");
  if (left) rule.overlap.left = object_of<OverlapObject>(left)->side;
  if (right) rule.overlap.right = object_of<OverlapObject>(right)->side;
  *partition =
      Handles::all().add<PartitionObject, dri_partition>(std::make_shared<PartitionObject>(PartitionObject{rule}));
}

MemoryLayout memory_of(const Layout* layout, int dims) {
  MemoryLayout out;
  if (layout && layout->ndims >= 0 && layout->ndims != dims)
    refuse(DRI_ERR_MISMATCH, "the layout has {}, the data {}", counted(layout->ndims, "dimension"), dims);
  const int* order = layout ? layout->order : nullptr;
  std::vector<bool> named(static_cast<std::size_t>(dims));
  for (int i = dims - 1; i >= 0; --i) {  // tranship's order is slowest first
    const int d = order ? order[i] : i;
    check_range("a dimension of the layout's order", d, 0, dims - 1);
    if (named[std::size_t(d)]) refuse(DRI_ERR_ARGUMENT, "dimension {} stands in the layout's order twice", d);
    named[std::size_t(d)] = true;
    out.order.push_back(d);
  }
  if (layout && layout->strides)
    for (int d = 0; d < dims; ++d) {
      check_range("a stride of the layout", layout->strides[d], 1, INT32_MAX);
      out.spacing.push_back(layout->strides[d]);
    }
  if (layout) out.offset = layout->offset;
  return out;
}

void check_member(const DistributionObject& d) {
  if (!d.value.grid().place_of(d.rank))
    refuse(DRI_ERR_ARGUMENT, "rank {} is not in the group of the distribution", d.rank);
}

}  // namespace

void check_type(DRI_Dataspec type) {
  (void)row_of(type);
}
bool is_split(DRI_Dataspec type) noexcept {
  return type == DRI_COMPLEX_SPLIT || type == DRI_DOUBLE_COMPLEX_SPLIT;
}
std::string name_of(DRI_Dataspec type) {
  const TypeRow& row = row_of(type);
  return fmt::format("{}{}", row.is_split ? "split " : "", tranship::name_of(row.type));
}
bool is_shown_as(DRI_Dataspec elements, DRI_Dataspec view) {
  return elements == view || (is_split(elements) && !is_split(view) && row_of(elements).type == row_of(view).type);
}
/// Bytes of an element in one plane.
int size_bytes_of(DRI_Dataspec type) {
  const TypeRow& row = row_of(type);
  return row.is_split ? size_bytes(part_of(row.type)) : size_bytes(row.type);
}

bool DistributionObject::is_cyclic() const {
  bool out = false;
  for (int d = 0; d < value.dims(); ++d) out |= value.axis(d).partition().kind == PartitionKind::cyclic;
  return out;
}

ArraySpec DistributionObject::spec(DRI_Dataspec type) const {
  const TypeRow& row = row_of(type);
  MemoryLayout memory = value.memory();
  if (row.is_split) memory.parts = ComplexParts::split;
  std::vector<Partition> partitions;
  for (int d = 0; d < value.dims(); ++d) partitions.push_back(value.axis(d).partition());
  return {row.type, Distribution(value.extents(), value.grid(), std::move(partitions), memory)};
}

std::vector<Index> DistributionObject::slices_along() const {
  check_member(*this);
  const Place place = *value.grid().place_of(rank);
  std::vector<Index> out;
  for (int d = 0; d < value.dims(); ++d) out.push_back(value.axis(d).slice_count(place.coordinates[d]));
  return out;
}

std::vector<int> DistributionObject::shown_by_view(int dims) const {
  check_member(*this);
  const Place place = *value.grid().place_of(rank);
  std::vector<int> shown(std::size_t(value.dims()));
  std::iota(shown.begin(), shown.end(), 0);
  const auto has_single_elements = [&](int d) {
    for (const SliceFamily& family : value.axis(d).slices(place.coordinates[d]))
      if (family.stored() != 1) return false;
    return true;
  };
  // Omit the dimensions by their extents first: extents are equal on all ranks, lengths of slices are not.
  for (const bool by_extent : {true, false})
    for (int d = value.dims() - 1; d >= 0 && int(shown.size()) > dims; --d)
      if ((value.extents()[d] == 1) == by_extent && has_single_elements(d)) std::erase(shown, d);
  if (int(shown.size()) > dims)
    refuse(DRI_ERR_MISMATCH, "a view of {} is asked for, but the slices have {} with more than one element",
           counted(dims, "dimension"), shown.size());
  return shown;
}

DRI_Viewshape DistributionObject::viewshape(const std::vector<int>& shown, int number) const {
  const DRI_Blockinfo at = slice(number);
  DRI_Viewshape out{.real = nullptr,
                    .imaginary = nullptr,
                    .elements = std::size_t(value.storage(rank).elements),
                    .offset = at.offset,
                    .length = {1, 1, 1},
                    .stride = {1, 1, 1},
                    .slice = number};
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out.length[i] = at.dims[shown[i]].length;
    out.stride[i] = at.dims[shown[i]].stride;
  }
  return out;
}

DRI_Blockinfo DistributionObject::slice(Index number) const {
  check_member(*this);
  const Index count = value.slice_count(rank);
  if (count == 0) refuse(DRI_ERR_ARGUMENT, "rank {} holds no slice", rank);
  if (!is_cyclic())
    number = 0;
  else
    check_range("the number of a slice", number, 0, count - 1);
  const Slice slice = value.slice(rank, number);
  DRI_Blockinfo out{};
  out.ndims = value.dims();
  out.offset = slice.offset;
  const Indices& order = value.memory().order;
  for (int d = 0; d < out.ndims; ++d) {
    out.layout_order[d] = order.empty() ? out.ndims - 1 - d : int(order[out.ndims - 1 - d]);
    out.dims[d] = {.first = slice.stored.lower[d],
                   .length = slice.extents[d],
                   .left = slice.owned.lower[d] - slice.stored.lower[d],
                   .right = slice.stored.upper[d] - slice.owned.upper[d],
                   .stride = slice.strides[d]};
  }
  return out;
}

}  // namespace tranship::dri

using namespace tranship;
using namespace tranship::dri;

extern "C" {

int DRI_Global_Data_create(int ndims, const int dims[], DRI_Dataspec type, dri_global_data** data) {
  return guarded([&] { create_data(ndims, dims, type, data); });
}
int DRI_Global_Data_create_64(int ndims, const int64_t dims[], DRI_Dataspec type, dri_global_data** data) {
  return guarded([&] { create_data(ndims, dims, type, data); });
}
int DRI_Globaldata_create(int ndims, const int dims[], dri_global_data** data) {
  return guarded([&] { create_data(ndims, dims, {}, data); });
}
int DRI_Global_Data_destroy(dri_global_data** data) {
  return guarded([&] { Handles::all().take<GlobalData>(data); });
}
int DRI_Globaldata_destroy(dri_global_data** data) {
  return DRI_Global_Data_destroy(data);
}

int DRI_Dataspec_get_names(DRI_Dataspec type, DRI_Dataspec_names* names) {
  return guarded([&] {
    const TypeRow& row = row_of(type);
    output(names, "names") = {row.dri, row.mpi, row.vsipl, row.c, std::size_t(size_bytes(row.type))};
  });
}
int DRI_Dataspec_from_name(const char* name, DRI_Dataspec* type) {
  return guarded([&] {
    output(name, "name");
    output(type, "type") = type_named(name);
  });
}

int DRI_Overlap_create(DRI_Overlap_type type, int positions, dri_overlap** overlap) {
  return guarded([&] {
    (void)initialised();
    output(overlap, "overlap");
    constexpr EdgePolicy policies[] = {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero,
                                       EdgePolicy::replicate_local, EdgePolicy::replicate};
    check_range("the type of an overlap", int(type), 0, 4);
    check_range("the positions of an overlap", positions, 0, INT32_MAX);
    auto out = std::make_shared<OverlapObject>(OverlapObject{{.width = positions, .edge = policies[int(type)]}});
    *overlap = Handles::all().add<OverlapObject, dri_overlap>(std::move(out));
  });
}
int DRI_Overlap_destroy(dri_overlap** overlap) {
  return guarded([&] { Handles::all().take<OverlapObject>(overlap); });
}

int DRI_Partition_whole_create(DRI_Partition* partition) {
  return guarded([&] { create_partition(whole(), nullptr, nullptr, partition); });
}
int DRI_Partition_block_create(const dri_overlap* left, const dri_overlap* right, int minimum, int modulo,
                               DRI_Partition* partition) {
  return guarded([&] {
    check_range("the minimum of a partition", minimum, 0, INT32_MAX);
    check_range("the modulo of a partition", modulo, 1, INT32_MAX);
    create_partition(block().with_minimum(minimum).with_modulo(modulo), left, right, partition);
  });
}
int DRI_Partition_blockcyclic_create(const dri_overlap* left, const dri_overlap* right, int size,
                                     DRI_Partition* partition) {
  return guarded([&] {
    check_range("the size of a block", size, 1, INT32_MAX);
    create_partition(cyclic(size), left, right, partition);
  });
}
int DRI_Partition_set_remainder(DRI_Partition partition, DRI_Remainder remainder) {
  return guarded([&] {
    check_range("the remainder", int(remainder), 0, 2);
    const auto object = object_of<PartitionObject>(partition);
    if (object->rule.kind != PartitionKind::block)
      refuse(DRI_ERR_ARGUMENT, "only a block partition has a remainder; this one is {}", name_of(object->rule.kind));
    constexpr Remainder policies[] = {Remainder::low, Remainder::high, Remainder::ceil};
    object->rule.remainder = policies[int(remainder)];
  });
}
int DRI_Partition_destroy(DRI_Partition* partition) {
  return guarded([&] { Handles::all().take<PartitionObject>(partition); });
}

int DRI_Layout_create(int64_t offset, const int order[], const int strides[], DRI_Layout* layout) {
  return guarded([&] {
    (void)initialised();
    output(layout, "layout");
    check_range("the offset of a layout", offset, 0, INT64_MAX);
    auto out = std::make_shared<Layout>();
    out->offset = offset;
    out->order = order;
    out->strides = strides;
    *layout = Handles::all().add<Layout, dri_layout>(std::move(out));
  });
}
int DRI_Layout_create_nd(int ndims, int64_t offset, const int order[], const int strides[], DRI_Layout* layout) {
  return guarded([&] {
    (void)initialised();
    output(layout, "layout");
    check_range("the number of dimensions", ndims, 1, DRI_DIMS_MAX);
    check_range("the offset of a layout", offset, 0, INT64_MAX);
    auto out = std::make_shared<Layout>();
    out->offset = offset;
    out->ndims = ndims;
    if (order) out->own_order.assign(order, order + ndims);
    if (strides) out->own_strides.assign(strides, strides + ndims);
    if (order) out->order = out->own_order.data();
    if (strides) out->strides = out->own_strides.data();
    (void)memory_of(out.get(), ndims);
    *layout = Handles::all().add<Layout, dri_layout>(std::move(out));
  });
}
int DRI_Layout_destroy(DRI_Layout* layout) {
  return guarded([&] { Handles::all().take<Layout>(layout); });
}

int DRI_Distribution_create(const dri_global_data* data, const dri_group* group, const int processes[],
                            const DRI_Partition partitions[], DRI_Layout layout, dri_distribution** distribution) {
  return guarded([&] {
    const RankState& state = initialised();
    output(distribution, "distribution");
    const auto shape = object_of<GlobalData>(data);
    const auto members = object_of<Group>(group);
    if (members->token != state.token) refuse_foreign(state, "the group", members->owner);
    output(processes, "processes");
    output(partitions, "partitions");
    const std::shared_ptr<Layout> memory = layout ? object_of<Layout>(layout) : nullptr;
    const int dims = shape->extents.size();
    Indices grid;
    Index product = 1;
    std::vector<Partition> rules;
    for (int d = 0; d < dims; ++d) {
      check_range("the number of processes of a dimension", processes[d], 1, INT32_MAX);
      grid.push_back(processes[d]);
      product = checked_multiply(product, Index(processes[d]));
      rules.push_back(object_of<PartitionObject>(partitions[d])->rule);
    }
    if (product != Index(members->ranks.size()))
      refuse(DRI_ERR_MISMATCH, "the product of the processes along all dimensions is {}, and the group has {}", product,
             counted(Index(members->ranks.size()), "rank"));
    auto out = std::make_shared<DistributionObject>(
        DistributionObject{*shape, members,
                           Distribution(shape->extents, Grid(grid, {.ranks = members->ranks}), std::move(rules),
                                        memory_of(memory.get(), dims)),
                           state.world->rank()});
    *distribution = Handles::all().add<DistributionObject, dri_distribution>(std::move(out));
  });
}
int DRI_Distribution_destroy(dri_distribution** distribution) {
  return guarded([&] { Handles::all().take<DistributionObject>(distribution); });
}

int DRI_Distribution_get_numslices(const dri_distribution* distribution, int* slices) {
  return guarded([&] {
    const auto object = object_of<DistributionObject>(distribution);
    output(slices, "slices");
    (void)object->slices_along();
    const Index count = object->value.slice_count(object->rank);
    check_range("the number of slices", count, 0, INT32_MAX);
    *slices = int(count);
  });
}
int DRI_Distribution_get_numslices_multid(const dri_distribution* distribution, int slices[]) {
  return guarded([&] {
    const std::vector<Index> along = object_of<DistributionObject>(distribution)->slices_along();
    output(slices, "slices");
    for (const Index count : along) check_range("the number of slices", count, 0, INT32_MAX);
    for (std::size_t d = 0; d < along.size(); ++d) slices[d] = int(along[d]);
  });
}
int DRI_Distribution_get_bufsize(const dri_distribution* distribution, size_t* bytes) {
  return guarded([&] {
    const auto object = object_of<DistributionObject>(distribution);
    if (!object->data.type) refuse(DRI_ERR_ORDER, "the data has no type: DRI_Distribution_get_bufsize_of takes one");
    output(bytes, "bytes") =
        std::size_t(checked_multiply(object->value.storage(object->rank).elements, size_bytes_of(*object->data.type)));
  });
}
int DRI_Distribution_get_bufsize_of(const dri_distribution* distribution, DRI_Datatype type, size_t* bytes) {
  return guarded([&] {
    const auto object = object_of<DistributionObject>(distribution);
    check_type(type);
    output(bytes, "bytes") =
        std::size_t(checked_multiply(object->value.storage(object->rank).elements, size_bytes_of(type)));
  });
}
int DRI_Distribution_get_slice(const dri_distribution* distribution, int slice, DRI_Blockinfo* info) {
  return guarded([&] { output(info, "info") = object_of<DistributionObject>(distribution)->slice(slice); });
}
int DRI_Distribution_get_viewshapes(const dri_distribution* distribution, int dims, int count, DRI_Viewshape shapes[]) {
  return guarded([&] {
    const auto object = object_of<DistributionObject>(distribution);
    check_range("the number of dimensions of a view", dims, 1, 3);
    const std::vector<int> shown = object->shown_by_view(dims);
    const Index slices = object->value.slice_count(object->rank);
    if (count < slices)
      refuse(DRI_ERR_ARGUMENT, "there is room for {}; the rank has {}", counted(count, "shape"),
             counted(slices, "slice"));
    if (slices > 0) output(shapes, "shapes");
    for (Index number = 0; number < slices; ++number) shapes[number] = object->viewshape(shown, int(number));
  });
}
int DRI_Distribution_get_numblocks(const dri_distribution* distribution, int* blocks) {
  return DRI_Distribution_get_numslices(distribution, blocks);
}
int DRI_Distribution_get_blockinfo(const dri_distribution* distribution, int block, DRI_Blockinfo* info) {
  return DRI_Distribution_get_slice(distribution, block, info);
}

}  // extern "C"

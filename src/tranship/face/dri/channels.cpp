// Buffersets, channels, reorganizations, buffers.
#include <algorithm>
#include <cstring>

#include <tranship/base/amounts.hpp>
#include <tranship/face/dri/state.hpp>

namespace tranship::dri {
namespace {

std::shared_ptr<Bufferset> system_buffers(int count, std::shared_ptr<DistributionObject> distribution) {
  check_range("the number of buffers", count, 1, 256);
  auto out = std::make_shared<Bufferset>();
  out->buffers.count = count;
  out->distribution = std::move(distribution);
  return out;
}

/// Memory that the program provides for buffers.
struct UserMemory {
  void* const* first;
  void* const* second;  ///< second planes, for split complex types
};

std::shared_ptr<Bufferset> user_buffers(int count, UserMemory memory, std::shared_ptr<DistributionObject> distribution,
                                        DRI_Dataspec type) {
  auto out = system_buffers(count, std::move(distribution));
  const DistributionObject& d = *out->distribution;
  const bool is_empty = d.value.storage(d.rank).elements == 0;
  if (!is_empty) output(memory.first, "memory");
  for (int i = 0; i < count; ++i) {
    const auto plane = [&](void* const* planes) { return planes ? planes[i] : nullptr; };
    if (!is_empty && !plane(memory.first)) refuse(DRI_ERR_ARGUMENT, "the memory of buffer {} is NULL", i);
    if (!is_empty && is_split(type) && !plane(memory.second))
      refuse(DRI_ERR_ARGUMENT, "the second plane of buffer {} is NULL; split complex elements lie in 2 planes", i);
    out->buffers.memory.push_back({plane(memory.first), plane(memory.second)});
  }
  return out;
}

DRI_Dataspec type_of(const DistributionObject& distribution) {
  if (!distribution.data.type)
    refuse(DRI_ERR_ORDER, "the data has no type: it was made for DRI_Reorg_create, which takes one");
  return *distribution.data.type;
}

void create_channel(std::string label, DRI_Side side, DRI_Dataspec type,
                    std::shared_ptr<DistributionObject> distribution, std::shared_ptr<Bufferset> buffers,
                    dri_channel** channel) {
  RankState& state = initialised();
  output(channel, "channel");
  if (distribution->group->token != state.token) refuse_foreign(state, "the distribution", distribution->rank);
  if (distribution->group->rank < 0)
    refuse(DRI_ERR_ARGUMENT, "rank {} is not in the group of the distribution", distribution->rank);
  if (buffers->is_used) refuse(DRI_ERR_ORDER, "the bufferset belongs to another channel");
  if (!(buffers->distribution->value == distribution->value))
    refuse(DRI_ERR_MISMATCH, "the bufferset was made for another distribution");
  for (const auto& other : state.channels)
    if (other->label == label && other->side == side)
      refuse(DRI_ERR_ORDER, "this rank has that end of {} already", label);
  auto out = std::make_shared<Channel>();
  out->rank = &state;
  out->label = std::move(label);
  out->side = side;
  out->type = type;
  out->distribution = std::move(distribution);
  out->buffers = std::move(buffers);
  out->buffers->is_used = true;
  state.channels.push_back(out);
  *channel = Handles::all().add<Channel, dri_channel>(std::move(out));
}

std::shared_ptr<Channel> own_channel(const dri_channel* handle) {
  RankState& state = initialised();
  auto channel = object_of<Channel>(handle);
  if (channel->rank != &state) refuse_foreign(state, channel->label, channel->distribution->rank);
  return channel;
}
std::shared_ptr<Channel> connected(const dri_channel* handle) {
  auto channel = own_channel(handle);
  if (!channel->end)
    refuse(DRI_ERR_ORDER, "{} is not connected{}", channel->label,
           channel->waits_for_other_end ? ": connect its other end on this rank, too" : "");
  return channel;
}

void attach_line(Channel& channel, const std::shared_ptr<PipeLine>& line) {
  Pipe& pipe = line->pipe();
  channel.line = line;
  channel.waits_for_other_end = false;
  for (Index i = 0; i < channel.buffers->buffers.count; ++i) {
    auto buffer = std::make_shared<BufferObject>();
    buffer->channel = &channel;
    channel.handles.push_back(Handles::all().add<BufferObject, dri_buffer>(std::move(buffer)));
  }
  channel.end = channel.side == DRI_SEND ? &pipe.sender() : &pipe.receiver();
}

void connect(Channel& channel) {
  RankState& state = *channel.rank;
  if (channel.end || channel.waits_for_other_end) refuse(DRI_ERR_ORDER, "{} is connected already", channel.label);
  const auto other = std::find_if(state.channels.begin(), state.channels.end(),
                                  [&](const auto& c) { return c.get() != &channel && c->label == channel.label; });
  Channel* const other_end = other == state.channels.end() ? nullptr : other->get();
  if (other_end && other_end->end) refuse(DRI_ERR_ORDER, "the other end of {} is connected already", channel.label);
  if (other_end && !other_end->waits_for_other_end) {
    channel.waits_for_other_end = true;
    return;
  }
  std::optional<ArraySpec> source, target;
  PipeOptions options{.from = {}, .to = {}, .name = channel.label};
  for (Channel* const end : {&channel, other_end}) {
    if (!end) continue;
    (end->side == DRI_SEND ? source : target) = end->distribution->spec(end->type);
    (end->side == DRI_SEND ? options.from : options.to) = end->buffers->buffers;
  }
  const auto line = std::make_shared<PipeLine>(
      state.board->connect(channel.label, source, target, options, call_of("DRI_Channel_connect")));
  attach_line(channel, line);
  if (other_end) attach_line(*other_end, line);
}

dri_buffer* give(Channel& channel, const PipeBuffer& got) {
  dri_buffer* const handle = channel.handles[std::size_t(got.number)];
  const auto buffer = object_of<BufferObject>(handle);
  const Index skipped = channel.distribution->value.memory().offset * size_bytes_of(channel.type);
  const auto first = [&](void* data) { return data ? static_cast<std::byte*>(data) - skipped : nullptr; };
  buffer->memory = first(got.view.data);
  buffer->imaginary = first(got.view.imaginary);
  buffer->is_held = true;
  ++channel.given;
  return handle;
}

[[noreturn]] void fail_of(const Channel& channel, const Error& error) {
  throw error.with_message(channel.label + ": " + error.message() + (channel.line ? channel.line->rank_key() : ""));
}

/// Runs a wait and makes its errors name this channel.
template <class F>
auto of_channel(const Channel& channel, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail_of(channel, error);
  }
}

/// Like of_channel, for a wait for a buffer. If the sender of a receiver has destroyed its end and no frame was lost,
/// the stream has ended.
template <class F>
auto of_stream(const Channel& channel, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::peer_lost && channel.side == DRI_RECV && channel.end->peer_has_ended())
      refuse(DRI_ERR_END, "{}: the stream has ended: {}{}", channel.label, error.message(), channel.line->rank_key());
    fail_of(channel, error);
  }
}

void check_has_free_buffer(const Channel& channel) {
  const Index held = channel.given - channel.taken_back, count = channel.buffers->buffers.count;
  if (held == count)
    refuse(DRI_ERR_ORDER, "no buffer of {} is free ({} held of {}): put one first", channel.label, held, count);
}

std::shared_ptr<BufferObject> held(const dri_buffer* handle) {
  auto buffer = object_of<BufferObject>(handle);
  if (!buffer->is_held) refuse(DRI_ERR_ORDER, "the buffer of {} is not held: get it first", buffer->channel->label);
  return buffer;
}

int slice_number(const DistributionObject& d, const std::vector<Index>& along, const int slices[]) {
  Index number = 0;
  for (std::size_t i = 0; i < along.size(); ++i) {
    const bool is_cyclic = d.value.axis(int(i)).partition().kind == PartitionKind::cyclic;
    if (is_cyclic) check_range("the number of a slice", slices[i], 0, along[i] - 1);
    number = number * along[i] + (is_cyclic ? slices[i] : 0);
  }
  return int(number);
}

/// `number_of` returns the number of the slice, given the dimensions that are shown.
template <class F>
DRI_Viewshape shape_of_view(const BufferObject& buffer, DRI_Dataspec type, int dims, F&& number_of) {
  Channel& channel = *buffer.channel;
  const DistributionObject& d = *channel.distribution;
  check_range("the number of dimensions of a view", dims, 1, 3);
  if (!is_shown_as(channel.type, type))
    refuse(DRI_ERR_MISMATCH, "a view of {} is asked for, but the elements are {}", name_of(type),
           name_of(channel.type));
  const std::lock_guard lock(channel.shapes_mutex);
  ViewShapes& shapes = channel.shapes[dims - 1];
  if (shapes.shown.empty()) shapes.shown = d.shown_by_view(dims);
  const int number = d.is_cyclic() ? number_of(shapes.shown) : 0;
  auto known = shapes.known.find(number);
  if (known == shapes.known.end()) known = shapes.known.emplace(number, d.viewshape(shapes.shown, number)).first;
  DRI_Viewshape out = known->second;
  out.real = buffer.memory;
  out.imaginary = buffer.imaginary;
  return out;
}

std::string end_name(const Channel& channel) {
  return fmt::format("the {} end of {}", channel.side == DRI_SEND ? "sending" : "receiving", channel.label);
}

void put(Channel& channel, dri_buffer** handle) {
  output(handle, "buffer");
  const auto buffer = held(*handle);
  if (buffer->channel != &channel)
    refuse(DRI_ERR_MISMATCH, "a buffer of {} is put on {}", end_name(*buffer->channel), end_name(channel));
  if (channel.handles[std::size_t(channel.taken_back % Index(channel.handles.size()))] != *handle)
    refuse(DRI_ERR_ORDER, "buffers go back in the order in which they were got: another one of {} is held longer",
           end_name(channel));
  Loans::all().end_of_holder(*buffer);
  for (const auto& [key, attachment] : buffer->attached)
    if (attachment.on_put) attachment.on_put(attachment.value);
  of_channel(channel, [&] { channel.end->put(call_of("DRI_Channel_put")); });
  ++channel.taken_back;
  buffer->is_held = false;
  *handle = nullptr;
}

}  // namespace

Channel::~Channel() {
  for (dri_buffer* handle : handles) {
    try {
      const auto buffer = Handles::all().take<BufferObject>(&handle);
      Loans::all().end_of_holder(*buffer);
      for (const auto& [key, attachment] : buffer->attached)
        if (attachment.release) attachment.release(attachment.value);
      Loans::all().end_of_channel(*buffer);
    } catch (const Refusal&) {
      // The program cannot have destroyed this handle.
    }
  }
  if (buffers) buffers->is_used = false;
}

}  // namespace tranship::dri

using namespace tranship;
using namespace tranship::dri;

extern "C" {

int DRI_Bufferset_system_create(int count, const dri_distribution* distribution, dri_bufferset** buffers) {
  return guarded([&] {
    (void)initialised();
    output(buffers, "buffers");
    const auto object = object_of<DistributionObject>(distribution);
    (void)type_of(*object);
    *buffers = Handles::all().add<Bufferset, dri_bufferset>(system_buffers(count, object));
  });
}
int DRI_Bufferset_user_create(int count, void* const memory[], void* const imaginary[],
                              const dri_distribution* distribution, dri_bufferset** buffers) {
  return guarded([&] {
    (void)initialised();
    output(buffers, "buffers");
    const auto object = object_of<DistributionObject>(distribution);
    *buffers = Handles::all().add<Bufferset, dri_bufferset>(
        user_buffers(count, {memory, imaginary}, object, type_of(*object)));
  });
}
int DRI_Bufferset_destroy(dri_bufferset** buffers) {
  return guarded([&] { Handles::all().take<Bufferset>(buffers); });
}

static int create_numbered(int id, DRI_Side side, const dri_distribution* distribution, dri_bufferset* buffers,
                           dri_channel** channel) {
  return guarded([&] {
    check_range("the number of a channel", id, 0, INT32_MAX);
    const auto object = object_of<DistributionObject>(distribution);
    create_channel(fmt::format("channel {}", id), side, type_of(*object), object, object_of<Bufferset>(buffers),
                   channel);
  });
}
int DRI_Channel_create_send(int id, const dri_distribution* distribution, dri_bufferset* buffers,
                            dri_channel** channel) {
  return create_numbered(id, DRI_SEND, distribution, buffers, channel);
}
int DRI_Channel_create_recv(int id, const dri_distribution* distribution, dri_bufferset* buffers,
                            dri_channel** channel) {
  return create_numbered(id, DRI_RECV, distribution, buffers, channel);
}

static void create_named(DRI_Library library, DRI_Side side, const char* name, DRI_Datatype type,
                         const dri_distribution* distribution, int count, const UserMemory* memory,
                         dri_channel** reorg) {
  check_range("the library", int(library), DRI_LIBRARY_NATIVE, DRI_LIBRARY_NATIVE);
  check_range("the side", int(side), DRI_SEND, DRI_RECV);
  if (!name || !*name) refuse(DRI_ERR_ARGUMENT, "a reorg needs a name");
  check_range("the length of a name", Index(std::strlen(name)), 1, 1024);
  if (std::strchr(name, '\n')) refuse(DRI_ERR_ARGUMENT, "the name of a reorg has a new line in it");
  check_type(type);
  const auto object = object_of<DistributionObject>(distribution);
  create_channel(fmt::format("reorg {}", name), side, type, object,
                 memory ? user_buffers(count, *memory, object, type) : system_buffers(count, object), reorg);
}
int DRI_Reorg_create(DRI_Library library, DRI_Side side, const char* name, DRI_Datatype type,
                     const dri_distribution* distribution, int count, dri_channel** reorg) {
  return guarded([&] { create_named(library, side, name, type, distribution, count, nullptr, reorg); });
}
int DRI_Reorg_create_user(DRI_Library library, DRI_Side side, const char* name, DRI_Datatype type,
                          const dri_distribution* distribution, int count, void* const memory[],
                          void* const imaginary[], dri_channel** reorg) {
  const UserMemory user{memory, imaginary};
  return guarded([&] { create_named(library, side, name, type, distribution, count, &user, reorg); });
}

int DRI_Channel_connect(dri_channel* channel) {
  return guarded([&] {
    const auto object = own_channel(channel);
    of_channel(*object, [&] { connect(*object); });
  });
}

int DRI_Channel_get(dri_channel* channel, dri_buffer** buffer) {
  return guarded([&] {
    const auto object = connected(channel);
    output(buffer, "buffer");
    check_has_free_buffer(*object);
    *buffer = give(*object, of_stream(*object, [&] { return object->end->get(call_of("DRI_Channel_get")); }));
  });
}
int DRI_Channel_gettest(dri_channel* channel, dri_buffer** buffer, int* flag) {
  return guarded([&] {
    const auto object = connected(channel);
    output(buffer, "buffer");
    output(flag, "flag");
    check_has_free_buffer(*object);
    const std::optional<PipeBuffer> got =
        of_stream(*object, [&] { return object->end->test_get(call_of("DRI_Channel_gettest")); });
    if (got) *buffer = give(*object, *got);
    *flag = got ? 1 : 0;
  });
}
int DRI_Channel_put(dri_channel* channel, dri_buffer** buffer) {
  return guarded([&] { put(*connected(channel), buffer); });
}
int DRI_Channel_puttest(dri_channel* channel, dri_buffer** buffer, int* flag) {
  return guarded([&] {
    output(flag, "flag");
    put(*connected(channel), buffer);
    *flag = 1;
  });
}
int DRI_Channel_flush(dri_channel* channel) {
  return guarded([&] {
    const auto object = connected(channel);
    of_channel(*object, [&] { object->end->drain(call_of("DRI_Channel_flush")); });
  });
}

int DRI_Channel_destroy(dri_channel** channel) {
  return guarded([&] {
    output(channel, "the address of the channel");
    const auto object = own_channel(*channel);
    Handles::all().take<Channel>(channel);
    auto& all = object->rank->channels;
    all.erase(std::find(all.begin(), all.end(), object));
    // This rank's other end cannot be connected alone any more, so its set-up may begin again.
    for (const auto& other : all)
      if (other->label == object->label && !other->end) other->waits_for_other_end = false;
    if (!object->end) return;
    // The other end of this rank may stay in use. An error here concerns this rank alone; its peers must not wait for
    // it.
    struct Ended {
      PipeEnd& end;
      ~Ended() { end.end(); }
    } ended{*object->end};
    of_channel(*object, [&] { object->end->drain(call_of("DRI_Channel_destroy")); });
  });
}

int DRI_Reorg_connect(dri_channel* reorg) {
  return DRI_Channel_connect(reorg);
}
int DRI_Reorg_get(dri_channel* reorg, dri_buffer** part) {
  return DRI_Channel_get(reorg, part);
}
int DRI_Reorg_put(dri_channel* reorg, dri_buffer** part) {
  return DRI_Channel_put(reorg, part);
}
int DRI_Reorg_gettest(dri_channel* reorg, dri_buffer** part, int* flag) {
  return DRI_Channel_gettest(reorg, part, flag);
}
int DRI_Reorg_puttest(dri_channel* reorg, dri_buffer** part, int* flag) {
  return DRI_Channel_puttest(reorg, part, flag);
}
int DRI_Reorg_destroy(dri_channel** reorg) {
  return DRI_Channel_destroy(reorg);
}

int DRI_Buffer_get_memory(const dri_buffer* buffer, void** memory, void** imaginary) {
  return guarded([&] {
    const auto object = held(buffer);
    output(memory, "memory") = object->memory;
    if (imaginary) *imaginary = object->imaginary;
  });
}
int DRI_Buffer_get_bytes(const dri_buffer* buffer, size_t* bytes) {
  return guarded([&] {
    const Channel& channel = *object_of<BufferObject>(buffer)->channel;
    const DistributionObject& d = *channel.distribution;
    output(bytes, "bytes") =
        std::size_t(checked_multiply(d.value.storage(d.rank).elements, size_bytes_of(channel.type)));
  });
}
int DRI_Buffer_get_type(const dri_buffer* buffer, DRI_Dataspec* type) {
  return guarded([&] { output(type, "type") = object_of<BufferObject>(buffer)->channel->type; });
}
int DRI_Buffer_get_slice(const dri_buffer* buffer, int slice, DRI_Blockinfo* info) {
  return guarded([&] { output(info, "info") = object_of<BufferObject>(buffer)->channel->distribution->slice(slice); });
}
int DRI_Buffer_get_slice_number(const dri_buffer* buffer, const int slices[], int* slice) {
  return guarded([&] {
    const auto object = object_of<BufferObject>(buffer);
    output(slices, "slices");
    const DistributionObject& d = *object->channel->distribution;
    output(slice, "slice") = slice_number(d, d.slices_along(), slices);
  });
}
int DRI_Buffer_get_viewshape(const dri_buffer* buffer, DRI_Dataspec type, int dims, int slice, DRI_Viewshape* shape) {
  return guarded([&] {
    const auto object = held(buffer);
    output(shape, "shape") = shape_of_view(*object, type, dims, [&](const auto&) { return slice; });
  });
}
int DRI_Buffer_multid_get_viewshape(const dri_buffer* buffer, DRI_Dataspec type, int dims, const int slices[],
                                    DRI_Viewshape* shape) {
  return guarded([&] {
    const auto object = held(buffer);
    output(slices, "slices");
    const DistributionObject& d = *object->channel->distribution;
    output(shape, "shape") = shape_of_view(*object, type, dims, [&](const std::vector<int>& shown) {
      std::vector<int> of_data(std::size_t(d.value.dims()), 0);
      for (std::size_t i = 0; i < shown.size(); ++i) of_data[std::size_t(shown[i])] = slices[i];
      const std::vector<Index> along = d.slices_along();
      for (int dim = 0; dim < d.value.dims(); ++dim)
        if (std::find(shown.begin(), shown.end(), dim) == shown.end() && along[std::size_t(dim)] > 1)
          refuse(DRI_ERR_ARGUMENT,
                 "dimension {} has {} and is not shown by a view of {}: name the slice by its linear number", dim,
                 counted(along[std::size_t(dim)], "slice"), counted(dims, "dimension"));
      return slice_number(d, along, of_data.data());
    });
  });
}
int DRI_Buffer_attach(dri_buffer* buffer, int64_t key, void* value, void (*on_put)(void*), void (*release)(void*)) {
  return guarded([&] {
    const auto object = object_of<BufferObject>(buffer);
    const auto known = object->attached.find(key);
    if (known != object->attached.end()) {
      const Attachment before = known->second;
      object->attached.erase(known);
      if (before.release && before.value != value) before.release(before.value);
    }
    if (value) object->attached.emplace(key, Attachment{value, on_put, release});
  });
}
void* DRI_Buffer_attached(const dri_buffer* buffer, int64_t key) {
  void* value = nullptr;
  (void)guarded([&] {
    const auto object = object_of<BufferObject>(buffer);
    const auto known = object->attached.find(key);
    if (known != object->attached.end()) value = known->second.value;
  });
  return value;
}

}  // extern "C"

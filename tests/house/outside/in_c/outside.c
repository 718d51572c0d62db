/* A program in C: a row goes from one rank to the other. */
#include <stdio.h>

#include <dri.h>

static int run(void *unused) {
  const int dims[1] = {6}, one[1] = {1};
  struct dri_channel *channel = NULL;
  struct dri_bufferset *buffers = NULL;
  struct dri_buffer *buffer = NULL;
  DRI_Global_Data *data = NULL;
  DRI_Distribution *distribution = NULL;
  DRI_Group *world = NULL, *self = NULL;
  DRI_Partition part;
  void *memory = NULL;
  int rank = -1, i, code = 0;
  (void)unused;
  code |= DRI_Init(NULL, NULL);
  code |= DRI_Group_create_world(&world);
  code |= DRI_Group_rank(world, &rank);
  code |= DRI_Group_create(1, &rank, &self);
  code |= DRI_Global_Data_create(1, dims, DRI_INTEGER, &data);
  code |= DRI_Partition_whole_create(&part);
  code |= DRI_Distribution_create(data, self, one, &part, NULL, &distribution);
  code |= DRI_Bufferset_system_create(2, distribution, &buffers);
  code |= (rank == 0 ? DRI_Channel_create_send : DRI_Channel_create_recv)(1, distribution, buffers, &channel);
  code |= DRI_Channel_connect(channel);
  code |= DRI_Channel_get(channel, &buffer);
  code |= DRI_Buffer_get_memory(buffer, &memory, NULL);
  if (code != 0) return code;
  for (i = 0; i < 6; ++i) {
    if (rank == 0) ((int *)memory)[i] = 10 + i;
    if (rank == 1 && ((int *)memory)[i] != 10 + i) return 1;
  }
  code |= DRI_Channel_put(channel, &buffer);
  code |= DRI_Channel_destroy(&channel);
  return code | DRI_Finalize();
}

int main(void) {
  const int code = DRI_Launch_threads(2, run, NULL);
  printf("%s\n", code == 0 ? "6 elements" : DRI_Error_detail());
  return code;
}

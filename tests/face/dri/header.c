/* dri.h in a language that has neither inline functions nor a choice by types. One rank sends itself a frame of floats. */
#include <dri.h>
#include <vsip.h>

int main(void) {
  const int dims[1] = {8}, processes[1] = {1};
  DRI_Global_Data *data = NULL;
  DRI_Group *world = NULL;
  DRI_Partition part = NULL;
  DRI_Distribution *distribution = NULL;
  DRI_Bufferset *from = NULL, *to = NULL;
  DRI_Channel *sender = NULL, *receiver = NULL;
  DRI_Buffer_Id *buffer = NULL;
  vsip_vview *view = NULL;
  int code = DRI_Init(NULL, NULL);
  code |= DRI_Group_create_world(&world);
  code |= DRI_Global_Data_create(1, dims, DRI_FLOAT, &data);
  code |= DRI_Partition_whole_create(&part);
  code |= DRI_Distribution_create(data, world, processes, &part, NULL, &distribution);
  code |= DRI_Bufferset_system_create(1, distribution, &from);
  code |= DRI_Bufferset_system_create(1, distribution, &to);
  code |= DRI_Channel_create_send(1, distribution, from, &sender);
  code |= DRI_Channel_create_recv(1, distribution, to, &receiver);
  code |= DRI_Channel_connect(sender);
  code |= DRI_Channel_connect(receiver);
  code |= DRI_Channel_get(sender, &buffer);
  code |= DRI_Buffer_get_view(buffer, 0, &view);
  vsip_vput(view, 5, 2.5F);
  code |= DRI_Channel_put(sender, &buffer);
  code |= DRI_Channel_get(receiver, &buffer);
  code |= DRI_Buffer_get_vview(buffer, 0, &view);
  code |= vsip_vget(view, 5) > 2 && vsip_vget(view, 5) < 3 ? 0 : 1;
  (void)vsip_vdestroy(view);
  code |= DRI_Channel_put(receiver, &buffer);
  code |= DRI_Channel_destroy(&receiver);
  code |= DRI_Channel_destroy(&sender);
  code |= DRI_Finalize();
  if (code != 0) fprintf(stderr, "%s\n", DRI_Error_detail());
  return code != 0;
}

/* A job to test the hosts with: ranks pass the sum of their numbers round a ring, and rank 0 prints where all of them ran.
 *
 *   ring                      passes, and says so in TRANSHIP_TEST_DONE_DIR
 *   ring hangs-in-finalise    says so, and then does not end
 *   ring hangs                neither says so nor ends
 *   ring fails                rank 0 ends with status 3, and says so
 *   ring says-BYTES           each rank has also sent that many bytes to its right neighbour
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_done(int rank, int status) {
  const char* folder = getenv("TRANSHIP_TEST_DONE_DIR");
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", folder, rank);
  FILE* file = fopen(path, "w");
  if (!file || fprintf(file, "%d\n", status) < 0 || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

int main(int count, char** words) {
  const char* way = count > 1 ? words[1] : "";
  int rank, ranks;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(way, "hangs") == 0) {
    pause();
  }

  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  int sum = rank, passed = rank;
  for (int step = 1; step < ranks; ++step) {
    MPI_Sendrecv_replace(&passed, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += passed;
  }
  if (sum != ranks * (ranks - 1) / 2) {
    fprintf(stderr, "rank %d: the sum is %d, not %d\n", rank, sum, ranks * (ranks - 1) / 2);
    return 1;
  }
  if (strncmp(way, "says-", 5) == 0) {
    const int bytes = atoi(way + 5);
    char* sent = calloc(1, bytes);
    MPI_Sendrecv_replace(sent, bytes, MPI_CHAR, right, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(sent);
  }

  char own[64] = "", *all = malloc(64 * ranks);
  gethostname(own, sizeof own - 1);
  MPI_Gather(own, 64, MPI_CHAR, all, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    const char* passed_on = getenv("RING_WORD");
    printf("ring of %d %s:", ranks, passed_on ? passed_on : "");
    for (int of = 0; of < ranks; ++of) {
      printf(" %s", all + 64 * of);
    }
    printf("\n");
    fflush(stdout);
  }
  free(all);
  const int status = strcmp(way, "fails") == 0 && rank == 0 ? 3 : 0;
  say_done(rank, status);
  if (strcmp(way, "hangs-in-finalise") == 0) {
    pause();
  }
  MPI_Finalize();
  return status;
}

/* The names of data types of MPI, as much as dri.h looks at of them. */
#ifndef FOREIGN_MPI_H
#define FOREIGN_MPI_H

#define MPI_VERSION 3
#define MPI_SUBVERSION 1
typedef enum {
  MPI_FLOAT,
  MPI_DOUBLE,
  MPI_C_FLOAT_COMPLEX,
  MPI_C_DOUBLE_COMPLEX,
  MPI_INT,
  MPI_SHORT,
  MPI_UNSIGNED_SHORT,
  MPI_LONG,
  MPI_UNSIGNED_LONG
} MPI_Datatype;

#endif

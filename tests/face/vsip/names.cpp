// The same as C++, where overloads choose.
#include "names.c"

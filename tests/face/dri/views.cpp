// The same as C++, where overloads choose the types of views.
#include "views.c"

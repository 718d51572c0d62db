/* Placeholder until vsip.h is here. */
#ifndef TRANSHIP_DRI_VIEWS_H
#define TRANSHIP_DRI_VIEWS_H
#endif

// One text for the three forms of a collective: COLLECTIVE(form, Bcast, bcast, arguments...) is MPI_Bcast,
// MPI_Ibcast and its wait, or MPI_Bcast_init started and completed. A persistent request is started `starts` times:
// twice where the call gives the same result again, once where it works in place.
#pragma once

#include "check.h"

typedef enum { blocking, nonblocking, persistent, form_count } Form;
static const char* const form_names[form_count] = {"blocking", "nonblocking", "persistent"};

static inline void complete_persistent(MPI_Request* request, int starts) {
  for (int i = 0; i < starts; ++i) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(request);
}

#define COLLECTIVE_STARTED(starts, form, Name, name, ...)       \
  do {                                                          \
    MPI_Request request_;                                       \
    if (form == blocking) {                                     \
      MPI_##Name(__VA_ARGS__);                                  \
    } else if (form == nonblocking) {                           \
      MPI_I##name(__VA_ARGS__, &request_);                      \
      MPI_Wait(&request_, MPI_STATUS_IGNORE);                   \
    } else {                                                    \
      MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_); \
      complete_persistent(&request_, starts);                   \
    }                                                           \
  } while (0)

#define COLLECTIVE(form, Name, name, ...) COLLECTIVE_STARTED(2, form, Name, name, __VA_ARGS__)
#define COLLECTIVE_IN_PLACE(form, Name, name, ...) COLLECTIVE_STARTED(1, form, Name, name, __VA_ARGS__)

// The file of --json: one JSON object, written by rank 0. It is opened before anything is timed, so that a path that
// cannot be written is refused at once, and gets its name when it is complete.
#pragma once

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"

static FILE* json;  // on rank 0, with --json
static char json_part[4096];

static inline void json_text(const char* text) {
  fputc('"', json);
  for (const char* at = text; *at != '\0'; ++at) {
    const unsigned char byte = (unsigned char)*at;
    if (byte == '"' || byte == '\\')
      fprintf(json, "\\%c", byte);
    else if (byte < ' ')
      fprintf(json, "\\u%04x", byte);
    else
      fputc(byte, json);
  }
  fputc('"', json);
}

static inline void json_number(double value) {
  if (value - value == 0)
    fprintf(json, "%.15g", value);
  else
    fprintf(json, "null");  // JSON has no infinity
}

static inline const char* why_not_written(const char* path) {
  struct stat there;
  if (path[0] == '\0' || strlen(path) + sizeof ".part" > sizeof json_part) return "the path is empty or too long";
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return "that is no file";
  snprintf(json_part, sizeof json_part, "%s.part", path);
  json = fopen(json_part, "w");
  return json == NULL ? strerror(errno) : NULL;
}

// The object is begun with what is known of the job. A refusal ends the job by MPI_Abort, since a message that told the
// other ranks would be one more before what is timed.
static inline void open_json(const char* path) {
  if (path == NULL || my_rank != 0) return;
  const char* reason = why_not_written(path);
  if (reason != NULL) {
    fprintf(stderr, "--json: %s: accepted is a file that can be written: %s\n", path, reason);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(library, &length);
  library[strcspn(library, "\n")] = '\0';
  fprintf(json, "{\n  \"program\": ");
  json_text(program);
  fprintf(json, ",\n  \"library\": ");
  json_text(library);
  fprintf(json, ",\n  \"ranks\": %d", rank_count);
}

// False where it could not be written whole; then nothing of it is left.
static inline int close_json(const char* path) {
  if (json == NULL) return 1;
  fprintf(json, "\n}\n");
  const int complete = !ferror(json);
  const int written = fclose(json) == 0 && complete && rename(json_part, path) == 0;
  json = NULL;
  if (written) return 1;
  fprintf(stderr, "--json: %s cannot be written: %s\n", path, strerror(errno));
  unlink(json_part);
  return 0;
}

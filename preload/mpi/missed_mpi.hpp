// A program that opens an MPI library itself (dlopen), or a module that is linked against one, and only one of the
// other family than the run has: what it says of that is that a file is missing. Which one it was shows in what it asks
// for and in the error that it reads. Many try several names and take what they find, or go on without, so nothing is
// said before the process ends, and only if it ends as failed and has no MPI library by then.
#pragma once

namespace dryfly::preload {

// The program opens that file.
void note_asked_for(const char* file);
// The program has read that of an error (dlerror).
void note_error(const char* text);

}  // namespace dryfly::preload

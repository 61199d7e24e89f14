// Marks the functions that take the place of the program's. Everything else in this library is hidden.
#pragma once

#define DRYFLY_EXPORT extern "C" __attribute__((visibility("default")))

/* Short vectors, as programs for GPUs use them, where the GPU runtime's own headers are not there. C11 and C++11. */
#ifndef DRYFLY_VECTORS_H
#define DRYFLY_VECTORS_H

#define DRYFLY_VECTORS(element, name, align2, align4)                                                        \
  typedef struct {                                                                                           \
    element x;                                                                                               \
  } name##1;                                                                                                 \
  typedef struct __attribute__((aligned(align2))) {                                                          \
    element x, y;                                                                                            \
  } name##2;                                                                                                 \
  typedef struct {                                                                                           \
    element x, y, z;                                                                                         \
  } name##3;                                                                                                 \
  typedef struct __attribute__((aligned(align4))) {                                                          \
    element x, y, z, w;                                                                                      \
  } name##4;                                                                                                 \
  static inline __attribute__((unused)) name##1 make_##name##1(element x) {                                  \
    name##1 made = {x};                                                                                      \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __attribute__((unused)) name##2 make_##name##2(element x, element y) {                       \
    name##2 made = {x, y};                                                                                   \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __attribute__((unused)) name##3 make_##name##3(element x, element y, element z) {            \
    name##3 made = {x, y, z};                                                                                \
    return made;                                                                                             \
  }                                                                                                          \
  static inline __attribute__((unused)) name##4 make_##name##4(element x, element y, element z, element w) { \
    name##4 made = {x, y, z, w};                                                                             \
    return made;                                                                                             \
  }

DRYFLY_VECTORS(signed char, char, 2, 4)
DRYFLY_VECTORS(unsigned char, uchar, 2, 4)
DRYFLY_VECTORS(short, short, 4, 8)
DRYFLY_VECTORS(unsigned short, ushort, 4, 8)
DRYFLY_VECTORS(int, int, 8, 16)
DRYFLY_VECTORS(unsigned int, uint, 8, 16)
DRYFLY_VECTORS(long, long, 16, 16)
DRYFLY_VECTORS(unsigned long, ulong, 16, 16)
DRYFLY_VECTORS(long long, longlong, 16, 16)
DRYFLY_VECTORS(unsigned long long, ulonglong, 16, 16)
DRYFLY_VECTORS(float, float, 8, 16)
DRYFLY_VECTORS(double, double, 16, 16)
#undef DRYFLY_VECTORS

#ifdef __cplusplus
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1) : x(in_x), y(in_y), z(in_z) {}
  constexpr dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
  operator uint3() const { return make_uint3(x, y, z); }
};
#else
typedef struct {
  unsigned x, y, z;
} dim3;
#endif

#endif

// Derived datatypes: contiguous, vector, indexed, struct, subarray, resized; sent to a contiguous receive and back, in
// collectives and in RMA; and pack/unpack. Sizes on both sides of the eager limit, as packing is done differently
// there.
#include "check.h"

// A type to be checked: how many elements it picks from an area of int64, and which ones, in order.
typedef struct {
  const char* name;
  MPI_Datatype type;
  int picked, area;
  int* places;
} Layout;

static Layout make_layout(const char* name, MPI_Datatype type, int picked, int area) {
  Layout layout = {name, type, picked, area, allocate((size_t)picked * sizeof(int))};
  MPI_Type_commit(&layout.type);
  int bytes;
  MPI_Type_size(type, &bytes);
  REQUIRE_EQUAL(bytes, picked * 8, "the size of a type");
  return layout;
}

static Layout vector_layout(int blocks) {
  MPI_Datatype type;
  MPI_Type_vector(blocks, 2, 5, MPI_INT64_T, &type);
  Layout layout = make_layout("vector", type, 2 * blocks, 5 * blocks);
  for (int i = 0; i < 2 * blocks; ++i) layout.places[i] = i / 2 * 5 + i % 2;
  return layout;
}

// Blocks of 1, 2, 3, 1, 2, 3... elements that begin at multiples of 4, the later blocks first.
static Layout indexed_layout(int blocks) {
  int *lengths = allocate((size_t)blocks * sizeof(int)), *begins = allocate((size_t)blocks * sizeof(int)), picked = 0;
  for (int b = 0; b < blocks; ++b) {
    lengths[b] = b % 3 + 1;
    begins[b] = 4 * (blocks - 1 - b);
    picked += lengths[b];
  }
  MPI_Datatype type;
  MPI_Type_indexed(blocks, lengths, begins, MPI_INT64_T, &type);
  Layout layout = make_layout("indexed", type, picked, 4 * blocks);
  for (int b = 0, at = 0; b < blocks; ++b)
    for (int i = 0; i < lengths[b]; ++i) layout.places[at++] = begins[b] + i;
  free(lengths);
  free(begins);
  return layout;
}

// The inside of an n x n x n cube, without its faces.
static Layout subarray_layout(int n) {
  int sizes[3] = {n, n, n}, inside[3] = {n - 2, n - 2, n - 2}, begin[3] = {1, 1, 1}, at = 0;
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, inside, begin, MPI_ORDER_C, MPI_INT64_T, &type);
  Layout layout = make_layout("subarray", type, (n - 2) * (n - 2) * (n - 2), n * n * n);
  for (int x = 1; x < n - 1; ++x)
    for (int y = 1; y < n - 1; ++y)
      for (int z = 1; z < n - 1; ++z) layout.places[at++] = (x * n + y) * n + z;
  return layout;
}

// Every third element: an int64 resized to 24 bytes, in a contiguous type, so nested.
static Layout resized_layout(int count) {
  MPI_Datatype wide, type;
  MPI_Type_create_resized(MPI_INT64_T, 0, 24, &wide);
  MPI_Type_contiguous(count, wide, &type);
  MPI_Type_free(&wide);
  Layout layout = make_layout("resized", type, count, 3 * count);
  for (int i = 0; i < count; ++i) layout.places[i] = 3 * i;
  return layout;
}

static int64_t* cleared(int elements) { return memset(allocate((size_t)elements * 8), 0xff, (size_t)elements * 8); }

static int64_t* filled_area(const Layout* layout, int seed) {
  int64_t* area = cleared(layout->area);
  for (int i = 0; i < layout->picked; ++i) area[layout->places[i]] = value_of(seed, i);
  return area;
}

// The area holds what filled_area(layout, seed) makes: picked elements in place, all others untouched.
static void require_area(const Layout* layout, const int64_t* area, int seed, const char* what) {
  int64_t* expected = filled_area(layout, seed);
  for (int i = 0; i < layout->area; ++i)
    REQUIRE(area[i] == expected[i], "%s with a %s type: element %d of %d is wrong", what, layout->name, i,
            layout->area);
  free(expected);
}

static void require_row(const Layout* layout, const int64_t* row, int seed, const char* what) {
  for (int i = 0; i < layout->picked; ++i)
    REQUIRE(row[i] == value_of(seed, i), "%s with a %s type: element %d of %d is wrong", what, layout->name, i,
            layout->picked);
}

static void in_messages(const Layout* layout) {
  int64_t *area = filled_area(layout, my_rank), *row = cleared(layout->picked), *back = cleared(layout->area);
  int count;
  MPI_Status status;
  MPI_Sendrecv(area, 1, layout->type, right_rank(), 1, row, layout->picked, MPI_INT64_T, left_rank(), 1, MPI_COMM_WORLD,
               &status);
  require_row(layout, row, left_rank(), "a message from");
  MPI_Sendrecv(row, layout->picked, MPI_INT64_T, left_rank(), 2, back, 1, layout->type, right_rank(), 2, MPI_COMM_WORLD,
               &status);
  require_area(layout, back, my_rank, "a message to");
  MPI_Get_count(&status, layout->type, &count);
  REQUIRE_EQUAL(count, 1, "the count in units of the type");
  MPI_Get_elements(&status, layout->type, &count);
  REQUIRE_EQUAL(count, layout->picked, "the count in basic elements");
  free(area);
  free(row);
  free(back);
}

static void in_collectives(const Layout* layout) {
  int64_t* area = my_rank == 0 ? filled_area(layout, 9) : cleared(layout->area);
  MPI_Bcast(area, 1, layout->type, 0, MPI_COMM_WORLD);
  require_area(layout, area, 9, "a bcast");
  free(area);
  area = filled_area(layout, my_rank);
  int64_t* rows = cleared(layout->picked * rank_count);
  MPI_Allgather(area, 1, layout->type, rows, layout->picked, MPI_INT64_T, MPI_COMM_WORLD);
  for (int r = 0; r < rank_count; ++r) require_row(layout, rows + r * layout->picked, r, "an allgather");
  free(area);
  free(rows);
}

static void in_windows(const Layout* layout) {
  MPI_Win window;
  int64_t *exposed = cleared(layout->area), *row = cleared(layout->picked);
  MPI_Win_create(exposed, (MPI_Aint)layout->area * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < layout->picked; ++i) row[i] = value_of(my_rank, i);
  MPI_Win_fence(0, window);
  MPI_Put(row, layout->picked, MPI_INT64_T, right_rank(), 0, 1, layout->type, window);
  MPI_Win_fence(0, window);
  require_area(layout, exposed, left_rank(), "a put");
  MPI_Get(row, layout->picked, MPI_INT64_T, right_rank(), 0, 1, layout->type, window);
  MPI_Win_fence(0, window);
  require_row(layout, row, my_rank, "a get");
  memset(exposed, 0, (size_t)layout->area * 8);
  MPI_Win_fence(0, window);
  MPI_Accumulate(row, layout->picked, MPI_INT64_T, left_rank(), 0, 1, layout->type, MPI_SUM, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < layout->picked; ++i)
    REQUIRE_EQUAL(exposed[layout->places[i]], value_of(right_rank(), i), "an accumulate with a derived type");
  MPI_Win_free(&window);
  free(exposed);
  free(row);
}

static void packed(const Layout* layout) {
  int64_t *area = filled_area(layout, my_rank), *back = cleared(layout->area);
  int bytes, at = 0, header = my_rank, header_bytes;
  MPI_Pack_size(1, layout->type, MPI_COMM_WORLD, &bytes);
  MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &header_bytes);
  bytes += header_bytes;
  char* buffer = allocate((size_t)bytes);
  MPI_Pack(&header, 1, MPI_INT, buffer, bytes, &at, MPI_COMM_WORLD);
  MPI_Pack(area, 1, layout->type, buffer, bytes, &at, MPI_COMM_WORLD);
  MPI_Sendrecv_replace(buffer, at, MPI_PACKED, right_rank(), 3, left_rank(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int end = at;
  at = 0;
  MPI_Unpack(buffer, end, &at, &header, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Unpack(buffer, end, &at, back, 1, layout->type, MPI_COMM_WORLD);
  REQUIRE_EQUAL(header, left_rank(), "the packed header");
  require_area(layout, back, left_rank(), "a packed message");
  free(area);
  free(back);
  free(buffer);
}

// A struct with padding, as an array: the type is resized to the C struct's size.
static void structs_in_messages(int count) {
  typedef struct {
    char letter;
    double number;
    int32_t triple[3];
  } Record;
  Record *sent = calloc((size_t)count, sizeof(Record)), *received = calloc((size_t)count, sizeof(Record));
  int lengths[3] = {1, 1, 3};
  MPI_Aint begins[3] = {offsetof(Record, letter), offsetof(Record, number), offsetof(Record, triple)};
  MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT32_T}, tight, type;
  MPI_Type_create_struct(3, lengths, begins, types, &tight);
  MPI_Type_create_resized(tight, 0, sizeof(Record), &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < count; ++i)
    sent[i] = (Record){(char)('a' + i % 26), my_rank + i / 8.0, {i, my_rank, i * my_rank}};
  MPI_Sendrecv(sent, count, type, right_rank(), 4, received, count, type, left_rank(), 4, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < count; ++i) {
    const Record* r = &received[i];
    REQUIRE(r->letter == 'a' + i % 26 && r->number == left_rank() + i / 8.0 && r->triple[0] == i &&
                r->triple[1] == left_rank() && r->triple[2] == i * left_rank(),
            "struct %d of %d arrived wrong", i, count);
  }
  MPI_Type_free(&type);
  MPI_Type_free(&tight);
  free(sent);
  free(received);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  static const int scales[] = {3, 40, 2000};  // 48 B to 32 KB in a vector type
  static const int edges[] = {3, 8, 22};      // 8 B to 64 KB inside the cube
  for (int s = 0; s < 3; ++s) {
    Layout layouts[] = {vector_layout(scales[s]), indexed_layout(scales[s]), subarray_layout(edges[s]),
                        resized_layout(scales[s])};
    for (int k = 0; k < 4; ++k) {
      in_messages(&layouts[k]);
      in_collectives(&layouts[k]);
      in_windows(&layouts[k]);
      packed(&layouts[k]);
      MPI_Type_free(&layouts[k].type);
      free(layouts[k].places);
    }
    structs_in_messages(scales[s]);
  }
  return check_end("datatypes");
}

#include "preload/test/fake_mpi.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

using dryfly::wire::GateKind;

namespace {

dryfly::wire::RankPage fake_page;
dryfly::wire::SegmentHeader fake_header;

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

int make_segment(const char* name) {
  const int made = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  fcntl(made, F_SETFD, FD_CLOEXEC);  // and no tail call, which would look like one from the test
  return made;
}

int pass_gate(GateKind kind) {
  fake_mpi.gates[fake_mpi.gate_count++ % 8] = static_cast<std::uint32_t>(kind);
  return kind == GateKind::end && fake_mpi.tests >= 2 ? 1 : 0;
}

int join() {
  auto* self = static_cast<dryfly::rank::Self*>(dlsym(RTLD_DEFAULT, "dryfly_self"));
  fake_mpi.self = self;
  if (self == nullptr) return 0;
  self->page = &fake_page;
  self->header = &fake_header;
  self->publish = [] { ++fake_mpi.publishes; };
  self->gate = pass_gate;
  self->attached.store(1);
  return 0;
}

template <typename... Words>
int note(Words... words) {
  const long all[] = {reinterpret_cast<long>(reinterpret_cast<void*>(static_cast<std::uintptr_t>(words)))...};
  for (std::size_t i = 0; i < sizeof...(words); ++i) fake_mpi.words[i] = all[i];
  if (fake_mpi.self != nullptr) {
    fake_mpi.mode = fake_mpi.self->call_mode.load();
    fake_mpi.self->now_ps.fetch_add(fake_mpi.takes_ps);
    fake_mpi.self->waited_ps.fetch_add(fake_mpi.waits_ps);
  }
  fake_mpi.call_index = fake_page.call_index.load();
  fake_mpi.takes_ps = fake_mpi.waits_ps = 0;
  return fake_mpi.status;
}

}  // namespace

extern "C" {

FakeMpi fake_mpi{nullptr, &fake_page, &fake_header, {},           0,       0, 0, {}, 0, 0, 0, 0, 0,
                 0,       false,      monotonic_ns, make_segment, nullptr, 0};

// Four processes; a datatype's handle is its size.
int PMPI_Type_size(int type, int* size) { return *size = type, 0; }
int PMPI_Comm_size(int, int* size) { return *size = 4, 0; }
int PMPI_Comm_test_inter(int, int* flag) { return *flag = 0, 0; }
int PMPI_Initialized(int* flag) { return *flag = 1, 0; }
int PMPI_Test(int*, int* flag, void*) { return *flag = 0, ++fake_mpi.tests, 0; }
int PMPI_Grequest_start(void*, void*, void*, void*, int* request) {
  if (fake_mpi.open_requests++ == 8 && fake_mpi.request_block == nullptr) {
    void* made = mmap(nullptr, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fake_mpi.request_block = static_cast<char*>(made);
  }
  return *request = fake_mpi.open_requests, 0;
}
int PMPI_Grequest_complete(int request) { return request == fake_mpi.open_requests ? 0 : 1; }
int PMPI_Wait(int*, void*) { return --fake_mpi.open_requests, 0; }
double PMPI_Wtime() { return 42.0; }
double PMPI_Wtick() { return 0.5; }
int PMPI_Init(int*, char***) { return join(); }
int PMPI_Init_thread(int*, char***, int, int* provided) { return *provided = fake_mpi.provided, join(); }
int PMPI_Finalize() { return note(); }
int PMPI_Barrier(int a) { return note(a); }
int PMPI_Send(long a, int b, int c, int d, int e, int f) { return note(a, b, c, d, e, f); }
int PMPI_Send_c(long a, long b, int c, int d, int e, int f) { return note(a, b, c, d, e, f); }
int PMPI_Recv(long a, int b, int c, int d, int e, int f, long g) { return note(a, b, c, d, e, f, g); }
int PMPI_Isend(long a, int b, int c, int d, int e, int f, long g) { return note(a, b, c, d, e, f, g); }
int PMPI_Bcast(long a, int b, int c, int d, int e) {
  if (fake_mpi.nested) MPI_Send(nullptr, 1, 1, 0, 0, 0);
  return note(a, b, c, d, e);
}
int PMPI_Allgather(long a, int b, int c, long d, int e, int f, int g) { return note(a, b, c, d, e, f, g); }
int PMPI_Alltoall(long a, int b, int c, long d, int e, int f, int g) { return note(a, b, c, d, e, f, g); }
int PMPI_Alltoallv(long a, long b, long c, int d, long e, long f, long g, int h, int i) {
  return note(a, b, c, d, e, f, g, h, i);
}
int PMPI_Sendrecv(long a, int b, int c, int d, int e, long f, int g, int h, int i, int j, int k, long l) {
  return note(a, b, c, d, e, f, g, h, i, j, k, l);
}
int PMPI_Rget_accumulate(long a, int b, int c, long d, int e, int f, int g, long h, int i, int j, int k, int l,
                         long m) {
  return note(a, b, c, d, e, f, g, h, i, j, k, l, m);
}
int PMPI_Comm_spawn(long a, long b, int c, int d, int e, int f, long g, long h) { return note(a, b, c, d, e, f, g, h); }

// What a program is linked against; the preload takes their place where it is loaded.
int MPI_Init(int* a, char*** b) { return PMPI_Init(a, b); }
int MPI_Init_thread(int* a, char*** b, int c, int* d) { return PMPI_Init_thread(a, b, c, d); }
int MPI_Finalize() { return PMPI_Finalize(); }
int MPI_Barrier(int a) { return PMPI_Barrier(a); }
int MPI_Send(const void* a, int b, int c, int d, int e, int f) {
  return PMPI_Send(reinterpret_cast<long>(a), b, c, d, e, f);
}
int MPI_Send_c(const void* a, std::int64_t b, int c, int d, int e, int f) {
  return PMPI_Send_c(reinterpret_cast<long>(a), b, c, d, e, f);
}
int MPI_Isend(const void* a, int b, int c, int d, int e, int f, int* g) {
  return PMPI_Isend(reinterpret_cast<long>(a), b, c, d, e, f, reinterpret_cast<long>(g));
}
int MPI_Bcast(void* a, int b, int c, int d, int e) { return PMPI_Bcast(reinterpret_cast<long>(a), b, c, d, e); }
int MPI_Allgather(const void* a, int b, int c, void* d, int e, int f, int g) {
  return PMPI_Allgather(reinterpret_cast<long>(a), b, c, reinterpret_cast<long>(d), e, f, g);
}
int MPI_Alltoall(const void* a, int b, int c, void* d, int e, int f, int g) {
  return PMPI_Alltoall(reinterpret_cast<long>(a), b, c, reinterpret_cast<long>(d), e, f, g);
}
int MPI_Alltoallv(const void* a, const int* b, const int* c, int d, void* e, const int* f, const int* g, int h, int i) {
  return PMPI_Alltoallv(reinterpret_cast<long>(a), reinterpret_cast<long>(b), reinterpret_cast<long>(c), d,
                        reinterpret_cast<long>(e), reinterpret_cast<long>(f), reinterpret_cast<long>(g), h, i);
}
int MPI_Sendrecv(const void* a, int b, int c, int d, int e, void* f, int g, int h, int i, int j, int k, void* l) {
  return PMPI_Sendrecv(reinterpret_cast<long>(a), b, c, d, e, reinterpret_cast<long>(f), g, h, i, j, k,
                       reinterpret_cast<long>(l));
}
int MPI_Rget_accumulate(const void* a, int b, int c, void* d, int e, int f, int g, long h, int i, int j, int k, int l,
                        int* m) {
  return PMPI_Rget_accumulate(reinterpret_cast<long>(a), b, c, reinterpret_cast<long>(d), e, f, g, h, i, j, k, l,
                              reinterpret_cast<long>(m));
}
int MPI_Comm_spawn(const char* a, char** b, int c, int d, int e, int f, int* g, int* h) {
  return PMPI_Comm_spawn(reinterpret_cast<long>(a), reinterpret_cast<long>(b), c, d, e, f, reinterpret_cast<long>(g),
                         reinterpret_cast<long>(h));
}
double MPI_Wtime() { return PMPI_Wtime(); }
double MPI_Wtick() { return PMPI_Wtick(); }
}

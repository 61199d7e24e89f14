// A rank's GPU, for matrices that lie in its memory (--memory gpu): memory, copies and kernels, by whichever GPU
// runtime the node has. Nothing is linked with one.
//
// Only GPUs that dryfly simulates are taken: a kernel here is a function of this program, which the simulated runtime
// calls when the kernel's time is over (docs/model/gpu.md#kernels). Its time is that of the work which it is launched
// with. There are two streams, as in the HPLs of the vendors: kernels are one behind the other, and copies go beside
// them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dryfly::hpl {

// What MPI is given: the GPU's memory itself, or pinned memory of the host's, to and from which everything is copied.
enum class Transfers { device, staged };

// What a kernel does, in the amounts of docs/guide/compute-model.md.
struct KernelWork {
  int precision = 0;
  std::int64_t operations = 0, bytes = 0;

  static KernelWork product(std::int64_t m, std::int64_t n, std::int64_t k, int precision);
  static KernelWork triangular_solve(std::int64_t m, std::int64_t n, int precision);
  static KernelWork memory(std::int64_t bytes);
};

class Gpu {
 public:
  enum class Place { device, pinned };
  enum class Order { among_kernels, beside };  // the stream of a copy
  using Mark = void*;                          // a point in the stream of kernels, for the host to wait for

  // The device of this rank, by its number on the node among those that a mask leaves. Null: `error` says why.
  static std::unique_ptr<Gpu> open(std::string* error);
  virtual ~Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const std::string& runtime() const { return name_; }
  // Whether MPI says itself that it takes this runtime's memory.
  bool known_to_mpi() const;
  // What `body` captures is the kernel's arguments; it is not called where results are not wanted.
  void launch(const KernelWork& work, std::function<void()> body);

  // Which device it is, whatever masks there are; of a GPU's tile the GPU's, and kTile with its number.
  static constexpr const char* kTile = " tile ";
  virtual std::string address() const = 0;
  virtual std::size_t free_bytes() const = 0;

  virtual void* take(std::size_t bytes, Place place) = 0;  // null: there is not so much
  virtual void give_back(void* memory, Place place) = 0;

  virtual void copy(void* to, const void* from, std::size_t bytes, Order order) = 0;
  virtual void copy_columns(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                            std::size_t bytes, std::size_t columns, Order order) = 0;
  // Copies from now on begin behind the kernels up to now.
  virtual void let_copies_follow() = 0;

  virtual Mark new_mark() = 0;
  virtual void set(Mark mark) = 0;
  virtual void wait(Mark mark) = 0;  // of one that was not set: not at all
  virtual void wait_for_kernels() = 0;
  virtual void wait_for_copies() = 0;

 protected:
  using Body = std::function<void()>;

  // `asked_of_mpi`: functions of MPI libraries that tell whether they take the runtime's memory.
  Gpu(const char* name, std::vector<const char*> asked_of_mpi) : name_(name), asked_of_mpi_(std::move(asked_of_mpi)) {}
  void check(const char* what, int code) const;
  static void call(Body* body);

 private:
  // A kernel that calls that; the work was announced.
  virtual void launch_body(Body* body) = 0;

  const std::string name_;
  const std::vector<const char*> asked_of_mpi_;
};

// Throws BadInput where a process's part of a matrix of that order needs more than the GPUs of all have. Collective.
void check_gpu_memory(const Gpu& gpu, std::int64_t order, double need_bytes, MPI_Comm all);

// Collective. Null where the matrix is in the host's memory; throws BadInput where it cannot be in a GPU's.
std::unique_ptr<Gpu> open_gpu(bool wanted, Transfers transfers, MPI_Comm all);

}  // namespace dryfly::hpl

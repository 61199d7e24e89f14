// What a rank of a skeleton does: a coroutine whose first parameter is its Rank. A task may await another, as a program
// calls a function: the awaited one runs at once and its caller goes on when it has ended.
//
//   Task halo(Rank& me, Bytes size) {
//     me.irecv(me.id() - 1, 0);
//     me.isend(me.id() + 1, 0, size);
//     co_await me.wait_all();
//     co_await allreduce(me, world(me), Bytes{8});
//   }
//
// A reference or pointer parameter has to outlive the task; values are kept in its frame.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

#include "core/motif/job/frames.hpp"

namespace dryfly::motif {

class Rank;
Frames& frames_of(Rank& rank);

class Task {
 public:
  struct promise_type {
    template <class... Arguments>
    static void* operator new(std::size_t bytes, Rank& rank, Arguments&&...) {
      return frames_of(rank).take(bytes);
    }
    // A lambda's task has the lambda itself before its parameters.
    template <class Closure, class... Arguments>
    static void* operator new(std::size_t bytes, const Closure&, Rank& rank, Arguments&&...) {
      return frames_of(rank).take(bytes);
    }
    static void operator delete(void* frame, std::size_t bytes) { Frames::give_back(frame, bytes); }

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct Ended {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
        const std::coroutine_handle<> caller = ended.promise().caller;
        return caller ? caller : std::noop_coroutine();
      }
      void await_resume() const noexcept {}
    };
    Ended final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() { failure = std::current_exception(); }

    std::coroutine_handle<> caller;
    std::exception_ptr failure;
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool done() const { return handle_.done(); }
  // The outermost task of a rank: begins it. What it throws, check() throws again.
  void begin() { handle_.resume(); }
  void check() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    handle_.promise().caller = caller;
    return handle_;
  }
  void await_resume() const { check(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace dryfly::motif

// What streams of GPUs and the network have to do with each other: a counter's extension of the cxi provider
// (FI_CXI_COUNTER_OPS of fi_cxi_ext.h), which is a doorbell that processors and GPUs write to, and a buffer to which
// the NIC writes the counter's value back. Models docs/model/gpu.md#stream-triggered-communication.
//
// A doorbell is a page of memory. What a stream writes there is known at once, as is what a kernel has written. What
// the program's own processor writes is seen where its clock goes on, or the provider is called, next: two values
// written to one word without either between them are one. Left out: failures in the buffer.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "provider/process.hpp"
#include "rank/channel.hpp"
#include "wire/wire.hpp"

namespace dryfly::provider {

struct Counter;

// The rank's clock finds what it has to ask for.
void serve_streams(rank::Channel& channel);

// fi_open_ops of a counter.
int open_counter_extension(fid* fid, const char* name, std::uint64_t flags, void** calls, void* context);
void close_extension(const Session& session, Counter& counter);

// What the processor has written to doorbells reaches the NIC.
void look_at_doorbells(const Session& session);
// The program has read the counter, which has its NIC write it back.
void show_value(const Session& session, const Counter& counter);

// As a command to the NIC; `flags`: command_flag::sets.
wire::Command change_of(const Counter& counter, std::uint64_t value, std::uint32_t flags);

}  // namespace dryfly::provider

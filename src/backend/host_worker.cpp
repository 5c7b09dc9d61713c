// SPDX-License-Identifier: MIT
#include "backend/host_worker.hpp"

#include "backend/host_copy.hpp"
#include "backend/host_facts.hpp"

#include <pthread.h>

namespace mgpu {
namespace {

// Waking helpers costs more than copying this much.
constexpr Bytes alone_below = Bytes{1} << 20;

constexpr std::uint32_t capacity = 256;  // of the ring; divides 2^32, so that counters may wrap

}  // namespace

HostWorker::HostWorker(HostDevice& device, HostMemory& memory, std::atomic<Nanos>& retired_delay)
    : device_(device),
      memory_(memory),
      retired_delay_(retired_delay),
      seat_(device.next_seat()),
      ring_(capacity),
      times_(64),
      // Asked here: the thread may start late, when the device has been opened otherwise.
      thread_([this, cpus = device.cpus()] {
        if (!cpus.empty()) bind_thread(cpus.subspan(seat_, 1));
        execute_all();
      }) {}

HostWorker::~HostWorker() {
  submit({});
}

Nanos HostWorker::begin(Nanos) {
  bind_thread(device_.cpus());
  marks_ = 0;
  return steady_now();
}

void HostWorker::advise(Part, Advice advice, Site) {
  if (advice != Advice::none)
    throw Error(ErrorKind::unavailable,
                "the host backend takes no advice on memory: leave out --advise");
}

void HostWorker::prefetch(Part part, Site to) {
  Command command;
  command.kind = Command::Kind::prefetch;
  command.destination = HostBuffer::data(part);
  // Memory that cannot move is a command all the same, so that what a policy submits costs what it
  // costs.
  if (static_cast<const HostBuffer&>(*part.buffer).managed()) command.node = memory_.node(to);
  command.bytes = part.bytes;
  submit(command);
}

void HostWorker::copy(Part destination, Part source, Engine engine, int access) {
  Command command;
  command.kind = Command::Kind::copy;
  command.destination = HostBuffer::data(destination);
  command.source = HostBuffer::data(source);
  command.bytes = destination.bytes;
  command.engine = engine;
  command.access = access;
  submit(command);
}

int HostWorker::mark() {
  if (static_cast<std::size_t>(marks_) == times_.size()) {
    sync();  // the thread writes into what grows
    times_.resize(2 * times_.size());
  }
  Command command;
  command.kind = Command::Kind::mark;
  command.mark = static_cast<std::size_t>(marks_);
  submit(command);
  return marks_++;
}

void HostWorker::wait_for(Worker& worker, OwnerWait how) {
  auto& other = static_cast<HostWorker&>(worker);
  switch (how) {
    case OwnerWait::none:
      return;
    case OwnerWait::host:
      return other.sync();
    case OwnerWait::event: {
      Command command;
      command.kind = Command::Kind::wait;
      command.other = &other.done_;
      command.target = other.given_;
      return submit(command);
    }
  }
}

void HostWorker::sync() {
  await(done_, given_);
}

void HostWorker::await(const Counter& counter, std::uint32_t target) {
  for (auto seen = counter.load(); static_cast<std::int32_t>(seen - target) < 0;
       seen = counter.load())
    counter.wait(seen);
}

void HostWorker::submit(const Command& command) {
  const std::uint32_t number = given_;
  await(done_, number + 1 - capacity);
  ring_[number % capacity] = command;
  given_ = number + 1;
  given_.notify_one();
}

void HostWorker::execute_all() {
  pthread_setname_np(pthread_self(), queue_thread_name);
  for (std::uint32_t number = 0;; ++number) {
    await(given_, number + 1);
    const Command& command = ring_[number % capacity];
    if (command.kind == Command::Kind::stop) break;
    execute(command);
    done_ = number + 1;
    done_.notify_all();
  }
  retired_delay_ += thread_queue_delay();
}

void HostWorker::execute(const Command& command) {
  switch (command.kind) {
    case Command::Kind::copy:
      return copy_now(command);
    case Command::Kind::prefetch:
      if (command.node && command.bytes > 0)
        memory_.move(command.destination, command.bytes, *command.node);
      return;
    case Command::Kind::mark:
      times_[command.mark] = steady_now();
      return;
    case Command::Kind::wait:
      return await(*command.other, command.target);
    case Command::Kind::stop:
      return;
  }
}

void HostWorker::copy_now(const Command& command) {
  const bool streaming = command.bytes >= streaming_from;
  const auto block = [&command, streaming](Bytes offset, Bytes bytes) {
    std::byte* destination = command.destination + offset;
    const std::byte* source = command.source + offset;
    switch (command.engine) {
      case Engine::kernel:
        return copy_by_access(destination, source, bytes, command.access);
      case Engine::memcpy:
        return copy_by_memcpy(destination, source, bytes, streaming);
    }
  };
  if (command.bytes < alone_below || device_.helpers().count() < 2) return block(0, command.bytes);
  device_.helpers().run(command.bytes, seat_, std::cref(block));
}

}  // namespace mgpu

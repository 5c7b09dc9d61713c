// SPDX-License-Identifier: MIT
#include "team.hpp"

#if MGPU_HAS_MPI
#include "model/error.hpp"

#include <list>
#include <map>
#include <mpi.h>
#include <string_view>
#include <utility>

namespace mgpu {
namespace {

// Of this size and below, libraries of MPI send at once: the text arrives also where the sender
// dies behind it. What is larger would be fetched from its memory.
constexpr std::size_t packet_bytes = 1024;
constexpr char last_packet = '.', more_packets = '+';

class MpiTeam : public Team {
 public:
  MpiTeam() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED)
      throw Error(ErrorKind::unavailable,
                  "this MPI allows no threads: use an mgpu built with another, or without MPI");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // a rank that died is no reason
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }

  void send(int to, std::string text) override {
    for (std::string_view rest = text;; rest.remove_prefix(packet_bytes)) {
      const bool last = rest.size() <= packet_bytes;
      Sent& sent = sent_.emplace_back(
          Sent{(last ? last_packet : more_packets) + std::string(rest.substr(0, packet_bytes)),
               MPI_REQUEST_NULL});
      MPI_Isend(sent.packet.data(), static_cast<int>(sent.packet.size()), MPI_BYTE, to, 0,
                MPI_COMM_WORLD, &sent.request);
      if (last) break;
    }
  }

  std::optional<Message> receive() override {
    forget_sent();
    for (;;) {
      int arrived = 0;
      MPI_Message handle = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (MPI_Improbe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &arrived, &handle, &status) !=
              MPI_SUCCESS ||
          !arrived)
        return std::nullopt;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::string packet(static_cast<std::size_t>(bytes), '\0');
      MPI_Mrecv(packet.data(), bytes, MPI_BYTE, &handle, MPI_STATUS_IGNORE);
      std::string& text = arriving_[status.MPI_SOURCE];
      text.append(packet, 1);
      if (packet.front() == last_packet) return Message{status.MPI_SOURCE, std::exchange(text, {})};
    }
  }

  void leave() override {
    for (Sent& sent : sent_) MPI_Wait(&sent.request, MPI_STATUS_IGNORE);
    MPI_Finalize();
  }

 private:
  struct Sent {
    std::string packet;  // MPI reads it until the request is done
    MPI_Request request;
  };

  void forget_sent() {
    sent_.remove_if([](Sent& sent) {
      int done = 0;
      MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  int rank_ = 0, size_ = 1, local_size_ = 1;
  std::list<Sent> sent_;                 // a list, for the packets must stay where they are
  std::map<int, std::string> arriving_;  // by rank: what has come of a message
};

}  // namespace

std::unique_ptr<Team> join_team() {
  return std::make_unique<MpiTeam>();
}

}  // namespace mgpu

#else

namespace mgpu {

std::unique_ptr<Team> join_team() {
  return nullptr;
}

}  // namespace mgpu

#endif

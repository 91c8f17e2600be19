#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/postgres/tenant_database.h"
#include "reprise/ids.h"
#include "reprise/queue.h"
#include "reprise/result.h"
#include "store/chat_files.h"
#include "store/record.h"

namespace reprise {

// Messages that wait, a row each, in the order in which they were committed. An instance starts those that it has
// added, because it has their clients, and those whose instance is dead or has left them. A message that has begun
// leaves a row without text for some minutes, so that it is not added twice and its client can be told. Thread-safe.
class PostgresQueue {
 public:
  struct Options {
    Database& database;      // both must outlive it
    const ChatFiles& files;  // seals the messages
    std::string tenant;
    std::string instance;  // empty: a command, whose messages any instance may start
  };
  explicit PostgresQueue(Options options);

  // As the functions of QueueStore.
  Result<std::vector<WaitingMessage>> Load(const ChatId& chat);
  Result<void> Add(const ChatId& chat, const QueuedMessage& message);
  Result<void> Change(const ChatId& chat, std::string_view id, const std::string& user_message);
  Result<void> Remove(const ChatId& chat, std::string_view id);
  Result<void> NoteFailure(const ChatId& chat, std::string_view id, const Error& failure);
  Result<void> Clear(const ChatId& chat);
  Result<std::vector<ChatId>> List();
  Result<std::optional<InteractionId>> Begun(const ChatId& chat, std::string_view id);
  void Leave();

 private:
  Result<Rows> ReadRows(const ChatId& chat);
  Result<WaitingMessage> ReadRow(const ChatId& chat, const Rows& rows, std::size_t row);
  Result<QueuedMessage> OpenOne(const ChatId& chat, std::string_view id, std::string_view record) const;
  // Splits a queue that an earlier version kept as a whole into rows.
  Result<void> Split(const ChatId& chat, std::string_view record);

  const Options options_;
  TenantDatabase database_;
  const SqlValue instance_;
};

// SQLSTATEs of begin_queued_turn: the message does not wait any more; it is not the next one, or was changed.
inline constexpr std::string_view kDequeuedState = "RP002", kNotNextState = "RP003";

}  // namespace reprise

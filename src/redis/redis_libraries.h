#pragma once

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#include "reprise/result.h"

namespace reprise {

// The functions of hiredis that we use: what reads and writes the protocol. Looked up at run time, as a server without
// Redis does without it.
struct HiredisLibrary {
  decltype(&::redisReaderCreate) create_reader;
  decltype(&::redisReaderFree) free_reader;
  decltype(&::redisReaderFeed) feed;
  decltype(&::redisReaderGetReply) get_reply;
  decltype(&::freeReplyObject) free_reply;
  decltype(&::redisFormatCommandArgv) format;
  decltype(&::redisFreeCommand) free_command;

  // Loads the library at the first call; later calls give the same answer at no cost. Thread-safe. It stays loaded.
  // kUnavailable if it is not there.
  static Result<const HiredisLibrary*> Load();
};

// Those of OpenSSL's libssl, likewise; libcrypto is linked.
struct SslLibrary {
  decltype(&::TLS_client_method) client_method;
  decltype(&::SSL_CTX_new) new_context;
  decltype(&::SSL_CTX_free) free_context;
  decltype(&::SSL_CTX_ctrl) control;
  decltype(&::SSL_CTX_set_verify) set_verify;
  decltype(&::SSL_CTX_set_default_verify_paths) trust_system;
  decltype(&::SSL_CTX_load_verify_locations) trust_file;
  decltype(&::SSL_new) create;
  decltype(&::SSL_free) free;
  decltype(&::SSL_ctrl) control_one;
  decltype(&::SSL_get0_param) parameters;
  decltype(&::SSL_set_bio) set_bio;
  decltype(&::SSL_set_connect_state) set_connect_state;
  decltype(&::SSL_do_handshake) handshake;
  decltype(&::SSL_read) read;
  decltype(&::SSL_write) write;
  decltype(&::SSL_get_error) get_error;
  decltype(&::SSL_get_verify_result) verify_result;

  static Result<const SslLibrary*> Load();
};

}  // namespace reprise

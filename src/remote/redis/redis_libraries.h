#pragma once

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#include "base/shared_library.h"
#include "reprise/result.h"

namespace reprise {

// The functions of hiredis that we use, which read and write the protocol. Looked up at run time, because only servers
// with Redis need it.
struct HiredisLibrary : SharedLibrary {
  HiredisLibrary() : SharedLibrary(kHiredisLibrary) {}

  decltype(&::redisReaderCreate) create_reader = Find("redisReaderCreate");
  decltype(&::redisReaderFree) free_reader = Find("redisReaderFree");
  decltype(&::redisReaderFeed) feed = Find("redisReaderFeed");
  decltype(&::redisReaderGetReply) get_reply = Find("redisReaderGetReply");
  decltype(&::freeReplyObject) free_reply = Find("freeReplyObject");
  decltype(&::redisFormatCommandArgv) format = Find("redisFormatCommandArgv");
  decltype(&::redisFreeCommand) free_command = Find("redisFreeCommand");

  // The first call loads the library; later calls return the same result at no cost. Thread-safe. It stays loaded.
  // kUnavailable if it is missing.
  static Result<const HiredisLibrary*> Load();
};

// The same for OpenSSL's libssl; libcrypto is linked.
struct SslLibrary : SharedLibrary {
  SslLibrary() : SharedLibrary(kSslLibrary) {}

  decltype(&::TLS_client_method) client_method = Find("TLS_client_method");
  decltype(&::SSL_CTX_new) new_context = Find("SSL_CTX_new");
  decltype(&::SSL_CTX_free) free_context = Find("SSL_CTX_free");
  decltype(&::SSL_CTX_ctrl) control = Find("SSL_CTX_ctrl");
  decltype(&::SSL_CTX_set_verify) set_verify = Find("SSL_CTX_set_verify");
  decltype(&::SSL_CTX_set_default_verify_paths) trust_system = Find("SSL_CTX_set_default_verify_paths");
  decltype(&::SSL_CTX_load_verify_locations) trust_file = Find("SSL_CTX_load_verify_locations");
  decltype(&::SSL_new) create = Find("SSL_new");
  decltype(&::SSL_free) free = Find("SSL_free");
  decltype(&::SSL_ctrl) control_one = Find("SSL_ctrl");
  decltype(&::SSL_get0_param) parameters = Find("SSL_get0_param");
  decltype(&::SSL_set_bio) set_bio = Find("SSL_set_bio");
  decltype(&::SSL_set_connect_state) set_connect_state = Find("SSL_set_connect_state");
  decltype(&::SSL_do_handshake) handshake = Find("SSL_do_handshake");
  decltype(&::SSL_read) read = Find("SSL_read");
  decltype(&::SSL_write) write = Find("SSL_write");
  decltype(&::SSL_get_error) get_error = Find("SSL_get_error");
  decltype(&::SSL_get_verify_result) verify_result = Find("SSL_get_verify_result");

  static Result<const SslLibrary*> Load();
};

}  // namespace reprise

#include "postgres/postgres_library.h"

#include <dlfcn.h>

#include <string>

namespace reprise {
namespace {

constexpr const char* kLibraryName = "libpq.so.5";

Error NotAvailable(std::string detail) {
  return Error{.code = ErrorCode::kUnavailable,
               .reason = "no_postgres_library",
               .message = "the PostgreSQL client library (libpq 14 or newer; Debian's package libpq5) is not available",
               .detail = std::move(detail)};
}

Result<PostgresLibrary> LoadOnce() {
  void* handle = ::dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return Fail(NotAvailable(why != nullptr ? why : kLibraryName));
  }
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = ::dlsym(handle, name);
    if (symbol == nullptr && missing.empty()) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  PostgresLibrary library{};
  find(library.connect_start, "PQconnectStartParams");
  find(library.connect_poll, "PQconnectPoll");
  find(library.parse_url, "PQconninfoParse");
  find(library.free_options, "PQconninfoFree");
  find(library.free_memory, "PQfreemem");
  find(library.finish, "PQfinish");
  find(library.status, "PQstatus");
  find(library.socket, "PQsocket");
  find(library.server_version, "PQserverVersion");
  find(library.error_message, "PQerrorMessage");
  find(library.set_nonblocking, "PQsetnonblocking");
  find(library.set_notice_processor, "PQsetNoticeProcessor");
  find(library.enter_pipeline_mode, "PQenterPipelineMode");
  find(library.pipeline_sync, "PQpipelineSync");
  find(library.send_query, "PQsendQueryParams");
  find(library.flush, "PQflush");
  find(library.consume_input, "PQconsumeInput");
  find(library.is_busy, "PQisBusy");
  find(library.get_result, "PQgetResult");
  find(library.notifies, "PQnotifies");
  find(library.result_status, "PQresultStatus");
  find(library.error_field, "PQresultErrorField");
  find(library.rows, "PQntuples");
  find(library.value, "PQgetvalue");
  find(library.length, "PQgetlength");
  find(library.is_null, "PQgetisnull");
  find(library.clear, "PQclear");
  if (!missing.empty()) return Fail(NotAvailable("libpq has no " + missing));
  return library;
}

}  // namespace

Result<const PostgresLibrary*> PostgresLibrary::Load() {
  static const Result<PostgresLibrary> library = LoadOnce();
  if (!library) return Fail(library.error());
  return &*library;
}

}  // namespace reprise

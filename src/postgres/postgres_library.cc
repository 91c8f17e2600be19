#include "postgres/postgres_library.h"

#include <string>
#include <utility>

#include "base/library_names.h"
#include "base/shared_library.h"

namespace reprise {
namespace {

Error NotAvailable(std::string detail) {
  return Refused(ErrorCode::kUnavailable, "no_postgres_library",
                 "the PostgreSQL client library (libpq 14 or newer; Debian's package libpq5) is not available",
                 std::move(detail));
}

Result<PostgresLibrary> LoadOnce() {
  SharedLibrary libpq(kPostgresLibrary);
  PostgresLibrary library{};
  libpq.Find(library.connect_start, "PQconnectStartParams");
  libpq.Find(library.connect_poll, "PQconnectPoll");
  libpq.Find(library.parse_url, "PQconninfoParse");
  libpq.Find(library.free_options, "PQconninfoFree");
  libpq.Find(library.free_memory, "PQfreemem");
  libpq.Find(library.finish, "PQfinish");
  libpq.Find(library.status, "PQstatus");
  libpq.Find(library.socket, "PQsocket");
  libpq.Find(library.server_version, "PQserverVersion");
  libpq.Find(library.error_message, "PQerrorMessage");
  libpq.Find(library.set_nonblocking, "PQsetnonblocking");
  libpq.Find(library.set_notice_processor, "PQsetNoticeProcessor");
  libpq.Find(library.enter_pipeline_mode, "PQenterPipelineMode");
  libpq.Find(library.pipeline_sync, "PQpipelineSync");
  libpq.Find(library.send_query, "PQsendQueryParams");
  libpq.Find(library.send_prepare, "PQsendPrepare");
  libpq.Find(library.send_prepared, "PQsendQueryPrepared");
  libpq.Find(library.flush, "PQflush");
  libpq.Find(library.consume_input, "PQconsumeInput");
  libpq.Find(library.is_busy, "PQisBusy");
  libpq.Find(library.get_result, "PQgetResult");
  libpq.Find(library.notifies, "PQnotifies");
  libpq.Find(library.result_status, "PQresultStatus");
  libpq.Find(library.error_field, "PQresultErrorField");
  libpq.Find(library.rows, "PQntuples");
  libpq.Find(library.value, "PQgetvalue");
  libpq.Find(library.length, "PQgetlength");
  libpq.Find(library.is_null, "PQgetisnull");
  libpq.Find(library.clear, "PQclear");
  if (!libpq.problem().empty()) return Fail(NotAvailable(libpq.problem()));
  return library;
}

}  // namespace

Result<const PostgresLibrary*> PostgresLibrary::Load() {
  static const Result<PostgresLibrary> library = LoadOnce();
  if (!library) return Fail(library.error());
  return &*library;
}

}  // namespace reprise

#pragma once

#include <libpq-fe.h>

#include "base/shared_library.h"
#include "reprise/result.h"

namespace reprise {

// The functions of libpq that we use, looked up at run time: a server that keeps its chats in files does not load libpq
// and its libraries (Kerberos, LDAP), as linking would at every start.
struct PostgresLibrary : SharedLibrary {
  PostgresLibrary() : SharedLibrary(kPostgresLibrary) {}

  decltype(&::PQconnectStartParams) connect_start = Find("PQconnectStartParams");
  decltype(&::PQconnectPoll) connect_poll = Find("PQconnectPoll");
  decltype(&::PQconninfoParse) parse_url = Find("PQconninfoParse");
  decltype(&::PQconninfoFree) free_options = Find("PQconninfoFree");
  decltype(&::PQfreemem) free_memory = Find("PQfreemem");
  decltype(&::PQfinish) finish = Find("PQfinish");
  decltype(&::PQstatus) status = Find("PQstatus");
  decltype(&::PQsocket) socket = Find("PQsocket");
  decltype(&::PQserverVersion) server_version = Find("PQserverVersion");
  decltype(&::PQerrorMessage) error_message = Find("PQerrorMessage");
  decltype(&::PQsetnonblocking) set_nonblocking = Find("PQsetnonblocking");
  decltype(&::PQsetNoticeProcessor) set_notice_processor = Find("PQsetNoticeProcessor");
  decltype(&::PQenterPipelineMode) enter_pipeline_mode = Find("PQenterPipelineMode");
  decltype(&::PQpipelineSync) pipeline_sync = Find("PQpipelineSync");
  decltype(&::PQsendQueryParams) send_query = Find("PQsendQueryParams");
  decltype(&::PQsendPrepare) send_prepare = Find("PQsendPrepare");
  decltype(&::PQsendQueryPrepared) send_prepared = Find("PQsendQueryPrepared");
  decltype(&::PQflush) flush = Find("PQflush");
  decltype(&::PQconsumeInput) consume_input = Find("PQconsumeInput");
  decltype(&::PQisBusy) is_busy = Find("PQisBusy");
  decltype(&::PQgetResult) get_result = Find("PQgetResult");
  decltype(&::PQnotifies) notifies = Find("PQnotifies");
  decltype(&::PQresultStatus) result_status = Find("PQresultStatus");
  decltype(&::PQresultErrorField) error_field = Find("PQresultErrorField");
  decltype(&::PQntuples) rows = Find("PQntuples");
  decltype(&::PQgetvalue) value = Find("PQgetvalue");
  decltype(&::PQgetlength) length = Find("PQgetlength");
  decltype(&::PQgetisnull) is_null = Find("PQgetisnull");
  decltype(&::PQclear) clear = Find("PQclear");

  // Loads the library at the first call; later calls return the same at no cost. Thread-safe. It stays loaded to the
  // end of the process. kUnavailable if it is missing or too old.
  static Result<const PostgresLibrary*> Load();
};

}  // namespace reprise

#pragma once

#include <libpq-fe.h>

#include "reprise/result.h"

namespace reprise {

// The functions of libpq that we use, looked up at run time: a server that keeps its chats in files does without it and
// its libraries (Kerberos, LDAP), which linking would load at every start.
struct PostgresLibrary {
  decltype(&::PQconnectStartParams) connect_start;
  decltype(&::PQconnectPoll) connect_poll;
  decltype(&::PQconninfoParse) parse_url;
  decltype(&::PQconninfoFree) free_options;
  decltype(&::PQfreemem) free_memory;
  decltype(&::PQfinish) finish;
  decltype(&::PQstatus) status;
  decltype(&::PQsocket) socket;
  decltype(&::PQserverVersion) server_version;
  decltype(&::PQerrorMessage) error_message;
  decltype(&::PQsetnonblocking) set_nonblocking;
  decltype(&::PQsetNoticeProcessor) set_notice_processor;
  decltype(&::PQenterPipelineMode) enter_pipeline_mode;
  decltype(&::PQpipelineSync) pipeline_sync;
  decltype(&::PQsendQueryParams) send_query;
  decltype(&::PQsendPrepare) send_prepare;
  decltype(&::PQsendQueryPrepared) send_prepared;
  decltype(&::PQflush) flush;
  decltype(&::PQconsumeInput) consume_input;
  decltype(&::PQisBusy) is_busy;
  decltype(&::PQgetResult) get_result;
  decltype(&::PQnotifies) notifies;
  decltype(&::PQresultStatus) result_status;
  decltype(&::PQresultErrorField) error_field;
  decltype(&::PQntuples) rows;
  decltype(&::PQgetvalue) value;
  decltype(&::PQgetlength) length;
  decltype(&::PQgetisnull) is_null;
  decltype(&::PQclear) clear;

  // Loads the library at the first call; later calls give the same answer at no cost. Thread-safe. It stays loaded to
  // the end of the process. kUnavailable if it is not there or too old.
  static Result<const PostgresLibrary*> Load();
};

}  // namespace reprise

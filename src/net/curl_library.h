#pragma once

#include <curl/curl.h>

#include <memory>

#include "base/shared_library.h"
#include "reprise/result.h"

namespace reprise {

// The functions of libcurl that we use, looked up at run time. libcurl is not linked because it loads about thirty
// further libraries (6 MB of resident memory), which an idle server or one with the offline model never needs.
struct CurlLibrary : SharedLibrary {
  CurlLibrary() : SharedLibrary(kCurlLibrary) {}

  decltype(&::curl_global_init) global_init = Find("curl_global_init");
  decltype(&::curl_easy_init) easy_init = Find("curl_easy_init");
  decltype(&::curl_easy_cleanup) easy_cleanup = Find("curl_easy_cleanup");
  decltype(&::curl_easy_reset) easy_reset = Find("curl_easy_reset");
  decltype(&::curl_easy_setopt) easy_setopt = Find("curl_easy_setopt");
  decltype(&::curl_easy_getinfo) easy_getinfo = Find("curl_easy_getinfo");
  decltype(&::curl_easy_strerror) easy_strerror = Find("curl_easy_strerror");
  decltype(&::curl_slist_append) slist_append = Find("curl_slist_append");
  decltype(&::curl_slist_free_all) slist_free_all = Find("curl_slist_free_all");
  decltype(&::curl_multi_init) multi_init = Find("curl_multi_init");
  decltype(&::curl_multi_cleanup) multi_cleanup = Find("curl_multi_cleanup");
  decltype(&::curl_multi_setopt) multi_setopt = Find("curl_multi_setopt");
  decltype(&::curl_multi_add_handle) multi_add_handle = Find("curl_multi_add_handle");
  decltype(&::curl_multi_remove_handle) multi_remove_handle = Find("curl_multi_remove_handle");
  decltype(&::curl_multi_socket_action) multi_socket_action = Find("curl_multi_socket_action");
  decltype(&::curl_multi_assign) multi_assign = Find("curl_multi_assign");
  decltype(&::curl_multi_info_read) multi_info_read = Find("curl_multi_info_read");

  // The first call loads and initialises the library; later calls return the same result at no cost. Thread-safe. The
  // library stays loaded. kInternal if it is missing or too old.
  static Result<const CurlLibrary*> Load();
};

}  // namespace reprise

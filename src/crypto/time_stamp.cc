#include "crypto/time_stamp.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ts.h>
#include <openssl/x509_vfy.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "base/terminal_text.h"

namespace reprise {
namespace {

template <typename T, void (*Free)(T*)>
struct FreedBy {
  void operator()(T* object) const { Free(object); }
};
using StampQuery = std::unique_ptr<TS_REQ, FreedBy<TS_REQ, TS_REQ_free>>;
using Imprint = std::unique_ptr<TS_MSG_IMPRINT, FreedBy<TS_MSG_IMPRINT, TS_MSG_IMPRINT_free>>;
using Algorithm = std::unique_ptr<X509_ALGOR, FreedBy<X509_ALGOR, X509_ALGOR_free>>;
using StampReply = std::unique_ptr<TS_RESP, FreedBy<TS_RESP, TS_RESP_free>>;
using StampCheck = std::unique_ptr<TS_VERIFY_CTX, FreedBy<TS_VERIFY_CTX, TS_VERIFY_CTX_free>>;

tl::unexpected<Error> BadStamp(const std::string& what) {
  const unsigned long last = ERR_peek_last_error();
  const char* const reason = last == 0 ? nullptr : ERR_reason_error_string(last);
  ERR_clear_error();
  return Fail(ErrorCode::kCorruption, "the time stamp " + what, reason == nullptr ? "" : reason);
}

// By what OpenSSL has found last: the stamp is of another bundle, or its signature or certificate does not hold.
tl::unexpected<Error> Unverified() {
  const char* data = nullptr;
  int flags = 0;
  const unsigned long last = ERR_peek_last_error_all(nullptr, nullptr, nullptr, &data, &flags);
  if (ERR_GET_LIB(last) == ERR_LIB_TS && ERR_GET_REASON(last) == TS_R_MESSAGE_IMPRINT_MISMATCH) {
    return BadStamp("is not of this bundle");
  }
  const char* const reason = ERR_reason_error_string(last);
  std::string why = reason == nullptr ? "" : reason;
  const bool has_text = data != nullptr && (static_cast<unsigned>(flags) & ERR_TXT_STRING) != 0;
  if (has_text && *data != 0) why = data;  // "Verify error:certificate has expired"
  return BadStamp("is not by that authority, or its certificate does not hold: " + why);
}

// What an authority says that gave no time stamp; empty if it gave one.
std::string RefusalIn(TS_RESP* response) {
  TS_STATUS_INFO* const info = TS_RESP_get_status_info(response);
  const long status = ASN1_INTEGER_get(TS_STATUS_INFO_get0_status(info));
  if (status == TS_STATUS_GRANTED || status == TS_STATUS_GRANTED_WITH_MODS) return {};
  std::string why;
  const STACK_OF(ASN1_UTF8STRING)* const texts = TS_STATUS_INFO_get0_text(info);
  for (int i = 0; i < sk_ASN1_UTF8STRING_num(texts); ++i) {
    const ASN1_UTF8STRING* const text = sk_ASN1_UTF8STRING_value(texts, i);
    const auto* const bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
    why += (i > 0 ? "; " : "") + std::string(bytes, static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  constexpr std::size_t kMost = 200;
  return why.empty() ? "status " + std::to_string(status) : VisibleOnOneLine(why.substr(0, kMost));
}

// nullopt if it is none that a clock shows.
std::optional<std::time_t> ClockTime(const ASN1_GENERALIZEDTIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return timegm(&parts);
}

std::string TimeText(const ASN1_GENERALIZEDTIME* time) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  char text[64] = {};
  if (!out || ASN1_GENERALIZEDTIME_print(out.get(), time) != 1) return "";
  const int size = BIO_read(out.get(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

}  // namespace

std::string TimeStampQuery(std::string_view digest) {
  const StampQuery query(TS_REQ_new());
  const Imprint imprint(TS_MSG_IMPRINT_new());
  const Algorithm algorithm(X509_ALGOR_new());
  std::string bytes(digest);
  auto* const octets = reinterpret_cast<unsigned char*>(bytes.data());
  unsigned char* der = nullptr;
  int size = -1;
  if (query && imprint && algorithm &&
      X509_ALGOR_set0(algorithm.get(), OBJ_nid2obj(NID_sha256), V_ASN1_NULL, nullptr) == 1 &&
      TS_MSG_IMPRINT_set_algo(imprint.get(), algorithm.get()) == 1 &&
      TS_MSG_IMPRINT_set_msg(imprint.get(), octets, static_cast<int>(bytes.size())) == 1 &&
      TS_REQ_set_version(query.get(), 1) == 1 && TS_REQ_set_msg_imprint(query.get(), imprint.get()) == 1 &&
      TS_REQ_set_cert_req(query.get(), 1) == 1) {
    size = i2d_TS_REQ(query.get(), &der);
  }
  if (size <= 0) std::abort();  // only without memory
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return text;
}

Result<std::string> TimeOfStamp(std::string_view reply, std::string_view digest, const std::string& ca_file) {
  ERR_clear_error();
  const auto* at = reinterpret_cast<const unsigned char*>(reply.data());
  const auto* const end = at + reply.size();
  const StampReply response(d2i_TS_RESP(nullptr, &at, static_cast<long>(reply.size())));
  if (!response || at != end) return BadStamp("is not a reply of RFC 3161");
  if (const std::string refusal = RefusalIn(response.get()); !refusal.empty()) {
    return Fail(ErrorCode::kCorruption, "the authority gave no time stamp: " + refusal);
  }
  TS_TST_INFO* const stamp = TS_RESP_get_tst_info(response.get());
  const auto made_at = stamp == nullptr ? std::nullopt : ClockTime(TS_TST_INFO_get_time(stamp));
  if (!made_at) return BadStamp("has no time");
  const StampCheck check(TS_VERIFY_CTX_new());
  auto* const imprint = static_cast<unsigned char*>(OPENSSL_malloc(digest.size()));  // the context owns it
  if (!check || imprint == nullptr) std::abort();
  std::memcpy(imprint, digest.data(), digest.size());
  TS_VERIFY_CTX_set_imprint(check.get(), imprint, static_cast<long>(digest.size()));
  int flags = TS_VFY_VERSION | TS_VFY_IMPRINT;
  if (!ca_file.empty()) {
    X509_STORE* const store = X509_STORE_new();
    TS_VERIFY_CTX_set_store(check.get(), store);  // which owns it
    if (store == nullptr || X509_STORE_load_file(store, ca_file.c_str()) != 1) {
      ERR_clear_error();
      return Fail(ErrorCode::kIo, "cannot read certificates from " + ca_file);
    }
    // As of the time that it states: certificates expire, and proofs stay.
    X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), *made_at);
    flags |= TS_VFY_SIGNATURE;
  }
  TS_VERIFY_CTX_set_flags(check.get(), flags);
  if (TS_RESP_verify_response(check.get(), response.get()) != 1) return Unverified();
  const std::string time = TimeText(TS_TST_INFO_get_time(stamp));
  if (time.empty()) return BadStamp("has no time");
  return time;
}

}  // namespace reprise

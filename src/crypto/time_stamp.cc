#include "crypto/time_stamp.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ts.h>
#include <openssl/x509_vfy.h>

#include <cstdlib>
#include <cstring>
#include <memory>

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
    flags |= TS_VFY_SIGNATURE;
  }
  TS_VERIFY_CTX_set_flags(check.get(), flags);
  if (TS_RESP_verify_response(check.get(), response.get()) != 1) {
    return BadStamp(ca_file.empty() ? "is not of this bundle" : "is not of this bundle, or not by that authority");
  }
  const std::string time = TimeText(TS_TST_INFO_get_time(TS_RESP_get_tst_info(response.get())));
  if (time.empty()) return BadStamp("has no time");
  return time;
}

}  // namespace reprise

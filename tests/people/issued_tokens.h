#pragma once

// Keys of an issuer and a token of each: by python3-cryptography, for "reprise" until 2100.
namespace reprise::issued {

inline constexpr const char* kRs256Key =
    R"({"kty": "RSA", "kid": "rsa", "use": "sig", "alg": "RS256", "n": "sxZuGdHjHQSgifheLdwRBmb67akq16PbfPdHGbUsxXdpb7khTJ2Ik-9EdT63O34b5PmFzpSomeKUn6U5nj9CiJLdtC4d1cO7U-mePTz9v9tABA9OBeylt7EPTifC0kCqC9HoU-6NRE2GOg06pmM9SOwijPV05hBonhHS0Dc7rCNMnCBW4806_27FIKwsc8lWTtqmvChBbKqzrpdq9nzU103eNzbGTEkIrxZo738fPiDx9OmKVUSh427knLhWiqkAz-ffWbwlyih-shQkrgz6YYbCqKNs1-gjZv5azDZ-Nq90p8ALFbjHXfAXTBWADPWhFWdK_U_SP1IgpsM3LFl3nw", "e": "AQAB"})";
inline constexpr const char* kRs256Token =
    "eyJ0eXAiOiAiYXQrand0IiwgImFsZyI6ICJSUzI1NiIsICJraWQiOiAicnNhIn0."
    "eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbInJlcHJpc2UiXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0OD"
    "AwfQ.qldOeB3J57A-RhzEtIRFPNZm14jkjSBJ9-UYRf0ayPZ4cByUGDJPyQeMlz5aJhxJsWYBIulux9O-"
    "LxFmpRdnkYIowxuAsBPoZAFSNNj2gYFqsOSdqzY9zZereitNUFpTrUTMWUwz7TrYs3VprlJkCvARaAXvLvcdy-iV9QjzrmiJPb8zouMSeGcT1O-"
    "1d9LPutDzpLrXhlQCw4QKL6Z84H__Gg-heITPXuukaUWebLVCpVi-"
    "FKYJq3z1FAzFG7aLnZChEb133KkxDfUfNgZjRK4bS3dz7tCiKZmI9mVUgySbckrsxPGNgaLto3eG1i0fVSK6ABtjOUUtGZ5fkigm-Q";
inline constexpr const char* kEs256Key =
    R"({"kty": "EC", "kid": "ec", "crv": "P-256", "x": "3O2aTxX0PakD5f8YUFD8rZv0S8TdASVwv1SKp16D-BY", "y": "Y3DfvGl0g80pIleRnaAqrO0i0xjLcG3PmHzOMrqZId4"})";
inline constexpr const char* kEs256Token =
    "eyJ0eXAiOiAiYXQrand0IiwgImFsZyI6ICJFUzI1NiIsICJraWQiOiAiZWMifQ."
    "eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbInJlcHJpc2UiXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0OD"
    "AwfQ.ZvyWH7qKWkOZPPkwGEFCksT-3tooZWtq1QOFu0i5GBNXAr4IIsgy6cNWL7lZGUVw5VhtZpJMIVxRWW1Qu8qbRw";
inline constexpr const char* kEdDsaKey =
    R"({"kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": "DHikfQ4B_jQxuVDsvHhFAMay5lVbBja5iwEumF3jm6E"})";
inline constexpr const char* kEdDsaToken =
    "eyJ0eXAiOiAiYXQrand0IiwgImFsZyI6ICJFZERTQSIsICJraWQiOiAiZWQifQ."
    "eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJhdWQiOiBbInJlcHJpc2UiXSwgInN1YiI6ICJhbGljZSIsICJleHAiOiA0MTAyNDQ0OD"
    "AwfQ.oWoGuP6Q6Llo8bgX76DXbRnewGSvbm8kCGr7vuY-VISIYbMRVLY8lRvIrzVePKiaVtbtYgkuLA1yoUtMoBOtBA";
// Of 1024 bits.
inline constexpr const char* kShortRsaKey =
    R"({"kty": "RSA", "n": "3omDq9WIONJ6IAsNtGpN4eviC_ksgFyT_fsIfihBx1mvHQIkFF_sV9wiLpowK-LrCrVVcm-EOBJNu1ncylMfMExmYVQgcyANuhxAKn73ceQkYRmrdquobCb25QmegKtaz0VCs3WWIPy3wdeii6or2R9crduyT7YUWlf9Vso6eGM", "e": "AQAB"})";

}  // namespace reprise::issued

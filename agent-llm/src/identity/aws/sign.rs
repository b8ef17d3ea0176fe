//! AWS Signature Version 4.

use std::time::SystemTime;

use agent_core::{Error, Result};
use aws_credential_types::Credentials as Keys;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningParams as Params, SigningSettings, sign as signature_of},
    sign::v4::SigningParams,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header};
use sha2::{Digest, Sha256};

/// Headers that a signature adds.
const OWN: [&str; 3] = ["authorization", "x-amz-date", "x-amz-security-token"];

/// Signs a request for `time`, including its host, content type and AWS headers. Other headers may
/// be changed in transit without invalidating the signature.
///
/// # Errors
/// [`Config`](agent_core::ErrorKind::Config) if the credentials or the URL are not valid in a
/// request.
pub(super) fn sign(
    request: &mut Request<Bytes>,
    keys: &Keys,
    region: &str,
    service: &str,
    time: SystemTime,
) -> Result<()> {
    OWN.iter().for_each(|name| drop(request.headers_mut().remove(*name)));
    // Checked up front, because the signing code panics on invalid header values.
    let texts = [keys.access_key_id(), keys.session_token().unwrap_or_default(), region];
    if request.uri().host().is_none() || texts.iter().any(|text| HeaderValue::from_str(text).is_err()) {
        return Err(unsigned());
    }
    let identity = keys.clone().into();
    let params: Params<'_> = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|e| unsigned().with_source(e))?
        .into();
    let sum = Sha256::digest(request.body()).iter().map(|byte| format!("{byte:02x}")).collect();
    let uri = request.uri().to_string();
    let signable = SignableRequest::new(
        request.method().as_str(),
        &*uri,
        signed_headers(request.headers()),
        SignableBody::Precomputed(sum),
    );
    let signed =
        signable.and_then(|signable| signature_of(signable, &params)).map_err(|e| unsigned().with_source(e))?;
    signed.into_parts().0.apply_to_request_http1x(request);
    for name in OWN {
        if let Some(value) = request.headers_mut().get_mut(name) {
            value.set_sensitive(true);
        }
    }
    Ok(())
}

fn signed_headers(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let is_signed = |name: &str| name == header::CONTENT_TYPE.as_str() || name.starts_with("x-amz-");
    let headers = headers.iter().filter(move |(name, _)| is_signed(name.as_str()));
    headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
}

fn unsigned() -> Error {
    Error::config("the request cannot be signed: see the keys of AWS, the region and the base URL")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Timestamp of AWS's published examples: 30 August 2015, 12:36:00.
    const THEN: Duration = Duration::from_secs(1_440_938_160);

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn signed(request: http::request::Builder, body: &'static str, token: Option<&str>) -> Request<Bytes> {
        let keys = Keys::new("AKIDEXAMPLE", SECRET, token.map(str::to_owned), None, "test");
        let mut request = request.body(Bytes::from_static(body.as_bytes())).expect("a request");
        sign(&mut request, &keys, "us-east-1", "service", SystemTime::UNIX_EPOCH + THEN).expect("signs");
        request
    }

    fn authorization(request: &Request<Bytes>) -> &str {
        request.headers()["authorization"].to_str().expect("a text")
    }

    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let form = ("application/x-www-form-urlencoded", "Param1=value1");
        for (method, path, typed, headers, signature) in [
            ("GET", "/", None, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("POST", "/", None, "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                "GET",
                "/?Param2=value2&Param1=value1",
                None,
                "host;x-amz-date",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "POST",
                "/",
                Some(form),
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
        ] {
            let mut request = Request::builder().method(method).uri(format!("https://example.amazonaws.com{path}"));
            if let Some((kind, _)) = typed {
                request = request.header("content-type", kind);
            }
            let request = signed(request, typed.map_or("", |(_, body)| body), None);
            let scope = "20150830/us-east-1/service/aws4_request";
            let wanted = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={headers}, Signature={signature}"
            );
            assert_eq!(authorization(&request), wanted, "{method} {path}");
            assert_eq!(request.headers()["x-amz-date"], "20150830T123600Z");
        }
    }

    #[test]
    fn the_colon_of_a_models_name_is_encoded_twice_where_it_is_signed() {
        let post = |path: &str| Request::post(format!("https://bedrock-runtime.us-east-1.amazonaws.com{path}"));
        let request = signed(post("/model/m%3A0/converse"), "{}", None);
        // Computed independently, with the path as /model/m%253A0/converse.
        assert!(authorization(&request).ends_with(BY_HAND), "{}", authorization(&request));
    }

    const BY_HAND: &str = "7a6a09b7ebbfff211d5b8fcb0a394121fa2f5f8916d9cab2e37ac85c1539338d";

    #[test]
    fn a_token_is_signed_along_and_what_was_signed_before_is_not() {
        let once = signed(Request::post("https://h.test/").header("x-team", "7"), "{}", Some("a-token"));
        assert_eq!(once.headers()["x-amz-security-token"], "a-token");
        assert!(authorization(&once).contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"));
        let again = Request::post("https://h.test/").header("authorization", "Bearer old").header("x-amz-date", "old");
        assert_eq!(authorization(&signed(again, "{}", Some("a-token"))), authorization(&once));
    }

    #[test]
    fn what_was_signed_is_not_shown() {
        let request = signed(Request::post("https://h.test/"), "{}", Some("a-long-token"));
        let shown = format!("{request:?}");
        assert!(!shown.contains("a-long-token") && !shown.contains("Signature="), "{shown}");
    }

    #[test]
    fn keys_that_no_header_can_hold_are_an_error() {
        let keys = Keys::new("AKID\n", SECRET, None, None, "test");
        let mut request = Request::post("https://h.test/").body(Bytes::new()).expect("a request");
        let error = sign(&mut request, &keys, "r", "s", SystemTime::now()).expect_err("it is no key");
        assert!(!format!("{error:?}").contains("AKID"), "{error:?}");
    }
}

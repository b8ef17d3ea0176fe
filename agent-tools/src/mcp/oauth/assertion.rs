//! Client authentication with a signed assertion: `private_key_jwt` of RFC 7523.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{Request, header::CONTENT_TYPE};
use ring::{
    rand::{SecureRandom, SystemRandom},
    rsa,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        RSA_PKCS1_SHA256,
    },
};
use rmcp::transport::auth::{AuthError, AuthorizationMetadata};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::network::Network;

/// Lifetime of an assertion in seconds.
const HOLDS: u64 = 300;

/// Private key, with its algorithm.
pub(super) enum Key {
    Es256(EcdsaKeyPair),
    Es384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rs256(rsa::KeyPair),
}

fn failed(why: impl Into<String>) -> AuthError {
    AuthError::ClientCredentialsError(why.into())
}

impl Key {
    /// Parses a PEM key; `None` if it is of no supported kind.
    pub(super) fn from_pem(pem: &str) -> Option<Self> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (der, random) = (key.secret_pkcs8_der(), SystemRandom::new());
        let curve = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der, &random).ok();
        let es256 = curve(&ECDSA_P256_SHA256_FIXED_SIGNING).map(Self::Es256);
        let es384 = || curve(&ECDSA_P384_SHA384_FIXED_SIGNING).map(Self::Es384);
        let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Self::Ed25519);
        let rs256 = || rsa::KeyPair::from_pkcs8(der).ok().map(Self::Rs256);
        es256.or_else(es384).or_else(ed25519).or_else(rs256)
    }

    /// Returns the JWT name of the algorithm.
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Es384(_) => "ES384",
            Self::Ed25519(_) => "EdDSA",
            Self::Rs256(_) => "RS256",
        }
    }

    fn sign(&self, text: &str, random: &SystemRandom) -> Result<Vec<u8>, AuthError> {
        let signed = match self {
            Self::Es256(key) | Self::Es384(key) => key.sign(random, text.as_bytes()).map(|it| it.as_ref().to_vec()),
            Self::Ed25519(key) => Ok(key.sign(text.as_bytes()).as_ref().to_vec()),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, random, text.as_bytes(), &mut signature).map(|()| signature)
            }
        };
        signed.map_err(|_| failed("the client's key cannot sign"))
    }

    /// Returns a signed assertion for `audience` that identifies the client `id`.
    fn assertion(&self, id: &str, audience: &str) -> Result<String, AuthError> {
        let (random, mut nonce) = (SystemRandom::new(), [0; 16]);
        random.fill(&mut nonce).map_err(|_| failed("there are no random numbers"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let header = json!({"alg": self.algorithm(), "typ": "JWT"});
        let claims = json!({
            "iss": id, "sub": id, "aud": audience, "iat": now, "exp": now + HOLDS,
            "jti": BASE64_URL_SAFE_NO_PAD.encode(nonce),
        });
        let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(&claims));
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.sign(&text, &random)?);
        Ok(format!("{text}.{signature}"))
    }

    /// Requests a token for the client `id` and the resource.
    pub(super) async fn token(
        &self,
        id: &str,
        network: &Network,
        server: &AuthorizationMetadata,
        scopes: &[String],
        resource: &str,
    ) -> Result<Value, AuthError> {
        let request = self.request(id, server, scopes, resource)?;
        let answer = network.exchange(request).await.map_err(|e| failed(e.to_string()))?;
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        if answer.status().is_success() {
            return Ok(body);
        }
        let why = body["error"].as_str().unwrap_or("without saying why");
        Err(failed(format!("the authorization server refused the client: {}: {why:.200}", answer.status())))
    }

    fn request(
        &self,
        id: &str,
        server: &AuthorizationMetadata,
        scopes: &[String],
        resource: &str,
    ) -> Result<Request<Vec<u8>>, AuthError> {
        self.check(server)?;
        let audience = server.issuer.as_deref().unwrap_or(&server.token_endpoint);
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials")
            .append_pair("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            .append_pair("client_assertion", &self.assertion(id, audience)?)
            .append_pair("resource", resource);
        if !scopes.is_empty() {
            form.append_pair("scope", &scopes.join(" "));
        }
        let request = Request::post(&server.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.finish().into_bytes());
        request.map_err(|_| failed("the authorization server's address for tokens is none"))
    }

    /// Rejects an authorization server that does not support this signature algorithm.
    fn check(&self, server: &AuthorizationMetadata) -> Result<(), AuthError> {
        let takes = |field: &str, value: &str| {
            let known = server.additional_fields.get(field).and_then(Value::as_array);
            known.is_none_or(|known| known.iter().any(|known| known == value))
        };
        if !takes("token_endpoint_auth_methods_supported", "private_key_jwt") {
            return Err(failed("the authorization server takes no client that signs who it is"));
        }
        if !takes("token_endpoint_auth_signing_alg_values_supported", self.algorithm()) {
            return Err(failed(format!("the authorization server takes no signature by {}", self.algorithm())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    use super::*;

    #[test]
    fn an_assertion_is_a_token_that_the_public_key_verifies() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            base64::prelude::BASE64_STANDARD.encode(der.as_ref())
        );
        let key = Key::from_pem(&pem).expect("a key");
        let token = key.assertion("me", "https://as.example").expect("signed");
        let (text, signature) = token.rsplit_once('.').expect("three parts");
        let Key::Es256(pair) = &key else { panic!("{}", key.algorithm()) };
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key());
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base64");
        public.verify(text.as_bytes(), &bytes).expect("its own");
        let claims = text.split_once('.').expect("two parts").1;
        let claims: Value =
            serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("me"), &json!("me"), &json!("https://as.example"))
        );
        assert_eq!(claims["exp"].as_u64(), claims["iat"].as_u64().map(|at| at + HOLDS));
    }

    #[test]
    fn keys_of_other_kinds_are_found_out_and_what_is_no_key_is_none() {
        let random = SystemRandom::new();
        let pem = |der: &[u8]| {
            let text = base64::prelude::BASE64_STANDARD.encode(der);
            format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
        };
        let es384 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).expect("a key");
        assert_eq!(Key::from_pem(&pem(es384.as_ref())).expect("a key").algorithm(), "ES384");
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        assert_eq!(Key::from_pem(&pem(ed25519.as_ref())).expect("a key").algorithm(), "EdDSA");
        assert!(Key::from_pem(&pem(b"nothing")).is_none() && Key::from_pem("hush").is_none());
    }

    #[test]
    fn a_server_that_takes_no_such_signature_is_not_asked() {
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).expect("a key");
        let key = Key::Es256(
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &SystemRandom::new())
                .expect("a key"),
        );
        let server = |methods: Value, algorithms: Value| {
            serde_json::from_value(json!({
                "authorization_endpoint": "a", "token_endpoint": "b",
                "token_endpoint_auth_methods_supported": methods,
                "token_endpoint_auth_signing_alg_values_supported": algorithms,
            }))
            .expect("metadata")
        };
        assert!(key.check(&server(json!(["private_key_jwt"]), json!(["RS256", "ES256"]))).is_ok());
        assert!(key.check(&server(json!(["client_secret_post"]), json!(["ES256"]))).is_err());
        assert!(key.check(&server(json!(["private_key_jwt"]), json!(["RS256"]))).is_err());
    }
}

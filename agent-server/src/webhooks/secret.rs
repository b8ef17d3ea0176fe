//! Keys derived from the server's webhook secret: signing keys of tenants, and the encryption key
//! of persisted webhooks.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use agent::{Error, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
    rand::{SecureRandom, SystemRandom},
};

use super::hook::Hook;

/// Minimum size of the server's secret in bytes.
const SHORTEST: usize = 16;

/// Server's webhook secret with the keys derived from it.
pub(crate) struct Secrets {
    root: hmac::Key,
    seal: LessSafeKey,
}

impl Secrets {
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if the secret is too short.
    pub(super) fn new(secret: &str) -> Result<Self> {
        if secret.len() < SHORTEST {
            return Err(Error::config(format!(
                "the webhook secret must be a random text of at least {SHORTEST} bytes"
            )));
        }
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let seal = UnboundKey::new(&AES_256_GCM, hmac::sign(&root, b"seal").as_ref()).expect("the key has 32 bytes");
        Ok(Self { root, seal: LessSafeKey::new(seal) })
    }

    /// Returns the secret that a tenant verifies messages with, in the format of Standard Webhooks.
    pub(crate) fn of_tenant(&self, tenant: &str) -> String {
        format!("whsec_{}", STANDARD.encode(self.key(tenant)))
    }

    /// Returns the headers with the message's id, time and signature.
    pub(crate) fn headers(&self, tenant: &str, id: &str, body: &str) -> HeaderMap {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signed = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, self.key(tenant).as_ref()),
            format!("{id}.{since}.{body}").as_bytes(),
        );
        let value = |text: String| HeaderValue::from_str(&text).expect("header values are ASCII");
        HeaderMap::from_iter([
            (HeaderName::from_static("webhook-id"), value(id.to_owned())),
            (HeaderName::from_static("webhook-timestamp"), value(since.to_string())),
            (HeaderName::from_static("webhook-signature"), value(format!("v1,{}", STANDARD.encode(signed)))),
        ])
    }

    /// Encrypts a webhook for the journal, whose readers must learn neither its URL nor its tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if the operating system provides no random
    /// numbers.
    pub(crate) fn seal(&self, hook: &Hook) -> Result<String> {
        let mut nonce = [0; NONCE_LEN];
        let no_numbers = |_| Error::config("the operating system provides no random numbers");
        SystemRandom::new().fill(&mut nonce).map_err(no_numbers)?;
        let mut sealed = serde_json::to_vec(hook).expect("webhooks have string keys");
        let nonce_of = Nonce::assume_unique_for_key(nonce);
        self.seal.seal_in_place_append_tag(nonce_of, Aad::empty(), &mut sealed).map_err(no_numbers)?;
        Ok(STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts a webhook; none if it was encrypted with another secret.
    pub(crate) fn open(&self, sealed: &str) -> Option<Hook> {
        let mut bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let hook = self.seal.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        serde_json::from_slice(hook).ok()
    }

    fn key(&self, tenant: &str) -> hmac::Tag {
        hmac::sign(&self.root, format!("tenant {tenant}").as_bytes())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::{Authentication, Push, Webhook};

    #[test]
    fn what_is_sealed_says_nothing_and_opens_with_its_secret_alone() {
        let secrets = Secrets::new("a secret of twenty bytes").expect("long enough");
        let authentication = Some(Authentication { schemes: vec!["Bearer".into()], credentials: Some("hush".into()) });
        let push = Some(Push { token: Some("hush".into()), authentication, version: Default::default() });
        let hook = Hook { push, ..Hook::of("h", Webhook::new("https://a.example/hush")) };
        let sealed = secrets.seal(&hook).expect("sealed");
        assert_eq!(secrets.open(&sealed), Some(hook.clone()));
        assert_eq!(Secrets::new("another secret of theirs").expect("long enough").open(&sealed), None);
        assert!(secrets.open("").is_none() && secrets.open("AAAA").is_none());
        assert!(!format!("{hook:?}{secrets:?}").contains("hush"));
        assert_eq!(hook.headers()["authorization"], "Bearer hush");
        assert!(Secrets::new("short").is_err());
    }

    #[test]
    fn a_message_is_signed_with_its_tenants_secret() {
        let secrets = Secrets::new("a secret of twenty bytes").expect("long enough");
        let headers = secrets.headers("t", "msg_1", "{}");
        let told = secrets.of_tenant("t");
        let key = STANDARD.decode(told.strip_prefix("whsec_").expect("their form")).expect("base64");
        let since = headers["webhook-timestamp"].to_str().expect("digits");
        let tag = headers["webhook-signature"].to_str().expect("letters").strip_prefix("v1,").expect("version 1");
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let signed = format!("msg_1.{since}.{{}}");
        assert!(hmac::verify(&key, signed.as_bytes(), &STANDARD.decode(tag).expect("base64")).is_ok());
        assert_ne!(told, secrets.of_tenant("u"));
    }
}

//! Callers with tokens of an OpenID Connect issuer.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_server::{Oidc, Server};
use axum::{Json, Router, routing::get};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

use super::support::{Client, Serving, support};

/// Issuer at a loopback address.
struct Issuer {
    address: String,
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
    /// Held while the issuer does not answer.
    answers: Arc<tokio::sync::Mutex<()>>,
}

/// Signing key with its public half.
struct Signer {
    id: &'static str,
    private: EncodingKey,
    public: Value,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let private = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, private.as_ref(), &random).expect("a key");
        let point = &pair.public_key().as_ref()[1..];
        let [x, y] = [&point[..32], &point[32..]].map(|half| URL_SAFE_NO_PAD.encode(half));
        let public = json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id, "x": x, "y": y});
        Self { id, private: EncodingKey::from_ec_der(private.as_ref()), public }
    }

    fn token(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.private).expect("it signs")
    }
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let said = json!({"issuer": address, "jwks_uri": format!("{address}/keys")});
        let answers = Arc::<tokio::sync::Mutex<()>>::default();
        let (published, count, may) = (keys.clone(), asked.clone(), answers.clone());
        let router = Router::new().route("/.well-known/openid-configuration", get(|| async move { Json(said) })).route(
            "/keys",
            get(|| async move {
                count.fetch_add(1, Ordering::Relaxed);
                drop(may.lock().await);
                Json(json!({"keys": *published.lock().expect("keys")}))
            }),
        );
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, keys, asked, answers }
    }

    /// Starts a server that trusts the issuer.
    async fn serving(&self) -> Serving {
        let oidc = Oidc::builder(&self.address, "agents").build().expect("it is on this machine");
        Serving::new(Server::builder().agent(support([]).build().expect("an agent")).oidc(oidc)).await
    }

    fn claims(&self) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        json!({"iss": self.address, "aud": "agents", "exp": now + 300, "sub": "ada", "tenant": "teapots", "scope": "openid read"})
    }
}

async fn status(client: &Client, token: &str) -> u16 {
    client.with_key(token).get("/api/agents").await.status
}

#[tokio::test]
async fn a_token_says_who_asks_and_what_may_be_done() {
    let signer = Signer::new("k1");
    let issuer = Issuer::start(vec![signer.public.clone()]).await;
    let serving = issuer.serving().await;
    let client = serving.client();
    let ada = client.with_key(&signer.token(&issuer.claims()));
    assert_eq!(ada.get("/api/agents").await.status, 200);
    assert_eq!(ada.post("/api/agents/support/runs", &json!({"input": "Hi."})).await.status, 403, "it only reads");
    assert_eq!(client.get("/api/agents").await.status, 401);
}

#[tokio::test]
async fn a_token_of_others_for_others_or_of_another_time_is_none() {
    let (signer, stranger) = (Signer::new("k1"), Signer::new("k1"));
    let issuer = Issuer::start(vec![signer.public.clone()]).await;
    let serving = issuer.serving().await;
    let client = serving.client();
    let good = issuer.claims();
    assert_eq!(status(&client, &signer.token(&good)).await, 200);
    for (claim, value) in [
        ("aud", json!("shop")),
        ("iss", json!("http://127.0.0.1:1")),
        ("exp", json!(1_000_000_000)),
        ("nbf", json!(4_000_000_000_u64)),
        ("tenant", Value::Null),
        ("sub", json!("")),
        ("exp", Value::Null),
    ] {
        let mut bad = good.clone();
        bad[claim] = value;
        assert_eq!(status(&client, &signer.token(&bad)).await, 401, "{claim}: {bad}");
    }
    assert_eq!(status(&client, &stranger.token(&good)).await, 401, "another key of the same name");
    // A token must not select the check: not the algorithm `none`, nor the public key as an HMAC
    // secret.
    let claims = URL_SAFE_NO_PAD.encode(good.to_string());
    let unsigned = format!("{}.{claims}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"k1"}"#));
    assert_eq!(status(&client, &unsigned).await, 401);
    let secret = EncodingKey::from_secret(signer.public.to_string().as_bytes());
    let header = Header { kid: Some("k1".into()), ..Header::new(Algorithm::HS256) };
    assert_eq!(status(&client, &encode(&header, &good, &secret).expect("it signs")).await, 401);
}

#[tokio::test]
async fn a_new_key_is_read_when_it_comes_and_made_up_ones_ask_the_issuer_only_now_and_then() {
    let (old, new) = (Signer::new("k1"), Signer::new("k2"));
    let issuer = Issuer::start(vec![old.public.clone()]).await;
    let serving = issuer.serving().await;
    let client = serving.client();
    let claims = issuer.claims();
    assert_eq!(status(&client, &old.token(&claims)).await, 200);
    for _ in 0..5 {
        assert_eq!(status(&client, &Signer::new("made up").token(&claims)).await, 401);
    }
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 1);
    issuer.keys.lock().expect("keys").push(new.public.clone());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    let client = serving.client(); // the server closed the idle connection
    assert_eq!(status(&client, &new.token(&claims)).await, 200);
    assert_eq!(status(&client, &old.token(&claims)).await, 200);
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_made_up_key_id_makes_nobody_with_a_known_key_wait_for_a_silent_issuer() {
    let signer = Signer::new("k1");
    let issuer = Issuer::start(vec![signer.public.clone()]).await;
    let serving = issuer.serving().await;
    let claims = issuer.claims();
    let good = signer.token(&claims);
    assert_eq!(status(&serving.client(), &good).await, 200);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    let silent = issuer.answers.clone().lock_owned().await;
    let (forged, client) = (Signer::new("made up").token(&claims), serving.client());
    let forging = tokio::spawn(async move { status(&client, &forged).await });
    while issuer.asked.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&serving.client(), &good).await, 200, "the issuer still has not answered");
    drop(silent);
    assert_eq!(forging.await.expect("it ends"), 401);
}

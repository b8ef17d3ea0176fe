//! Servers that require OAuth, with an authorization server in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use agent_core::{Toolset, tool::Secret};
use agent_tools::mcp::{Client, ClientBuilder, FileTokens, Http, Loopback, MemoryTokens, OAuth, TokenStore};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use super::support::*;

/// Server and its authorization server, at one address.
#[derive(Clone, Default)]
struct Guarded(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    at: String,
    /// Grant types of token requests, such as `authorization_code`.
    grants: Vec<String>,
    challenge: String,
    /// Number of the valid token.
    token: usize,
    /// Required scope.
    scope: String,
    granted: String,
    /// Secret that a client gets at registration, required in each of its token requests.
    secret: Option<String>,
    /// Issuer that differs from this address.
    issuer: Option<String>,
    /// True if the server does not name its authorization server.
    names_none: bool,
}

fn form(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

impl Guarded {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let guarded = Self::default();
        guarded.state().at = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = guarded.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.answer(stream).await });
            }
        });
        guarded
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("free")
    }

    fn http(&self) -> Http {
        Http::new(format!("{}/mcp", self.state().at))
    }

    /// Returns a client whose user authorises it immediately.
    async fn builder(&self, tokens: impl TokenStore) -> ClientBuilder {
        let browser = Loopback::bind(|url| {
            let url = url.to_owned();
            tokio::spawn(async move {
                let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
                let answer = get(host, &format!("/{path}")).await.expect("an answer");
                let place =
                    answer.split("location: http://").nth(1).expect("a redirect").lines().next().expect("a line");
                let (host, path) = place.split_once('/').expect("a path");
                let forged = get(host, "/callback?code=forged&state=forged").await.expect("an answer");
                assert!(forged.starts_with("HTTP/1.1 404"), "{forged}");
                get(host, &format!("/{path}")).await.expect("an answer");
            });
        });
        let access = OAuth::new(browser.await.expect("a port")).tokens(tokens);
        Client::builder("g", self.http().oauth(access)).required()
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let (head, body) = read(&mut stream).await?;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, more, body) = self.respond(&path, &head, &String::from_utf8_lossy(&body));
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await
    }

    fn respond(&self, path: &str, head: &str, body: &str) -> (&'static str, String, String) {
        let mut state = self.state();
        let at = state.at.clone();
        let ok = |value: Value| ("200 OK", String::new(), value.to_string());
        if path.contains("/.well-known/oauth-protected-resource") && state.names_none {
            return ("404 Not Found", String::new(), String::new());
        }
        if path.starts_with("/.well-known/oauth-protected-resource") {
            return ok(json!({"resource": format!("{at}/mcp"), "authorization_servers": [at]}));
        }
        if path == "/.well-known/oauth-authorization-server" {
            return ok(json!({
                "issuer": state.issuer.as_ref().unwrap_or(&at), "authorization_endpoint": format!("{at}/authorize"), "token_endpoint": format!("{at}/token"),
                "registration_endpoint": format!("{at}/register"), "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"], "grant_types_supported": ["authorization_code", "refresh_token"],
            }));
        }
        if path == "/register" {
            let mut asked: Value = serde_json::from_str(body).expect("JSON");
            asked["client_id"] = json!("registered");
            asked["client_secret"] = json!(state.secret);
            return ("201 Created", String::new(), asked.to_string());
        }
        if let Some(query) = path.strip_prefix("/authorize?") {
            let asked = form(query);
            assert_eq!((&*asked["client_id"], &*asked["code_challenge_method"]), ("registered", "S256"));
            state.challenge.clone_from(&asked["code_challenge"]);
            state.granted = asked.get("scope").cloned().unwrap_or_default();
            let back = format!("location: {}?code=abc&state={}\r\n", asked["redirect_uri"], asked["state"]);
            return ("302 Found", back, String::new());
        }
        if path == "/token" {
            let asked = form(body);
            let grant = asked["grant_type"].clone();
            if let Some(verifier) = asked.get("code_verifier") {
                let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
                assert_eq!((&digest, &*asked["code"]), (&state.challenge, "abc"));
            }
            if let Some(secret) = &state.secret {
                let basic = BASE64_STANDARD.encode(format!("registered:{secret}"));
                assert!(head.contains(&format!("authorization: Basic {basic}")), "{grant}: {head}");
            }
            if let Some(assertion) = asked.get("client_assertion") {
                let claims = BASE64_URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1).expect("claims"));
                let claims: Value = serde_json::from_slice(&claims.expect("base64")).expect("JSON");
                assert_eq!((&claims["sub"], &claims["aud"]), (&json!("program"), &json!(at)));
            } else if grant == "client_credentials" {
                let basic_or_body = head.contains("authorization: Basic") || asked["client_secret"] == "hush-hush";
                assert!(basic_or_body, "{asked:?}");
            }
            assert_eq!(asked["resource"], format!("{at}/mcp"));
            state.grants.push(grant);
            state.token += 1;
            let token = format!("hush-{}", state.token);
            return ok(json!({
                "access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "hush-refresh",
                "scope": state.granted,
            }));
        }
        if path != "/mcp" {
            return ("404 Not Found", String::new(), String::new());
        }
        if !head.to_lowercase().contains(&format!("authorization: bearer hush-{}\r\n", state.token)) || state.token == 0
        {
            let names = format!("Bearer resource_metadata=\"{at}/.well-known/oauth-protected-resource/mcp\"");
            let challenge = if state.names_none { "Bearer".to_owned() } else { names };
            return ("401 Unauthorized", format!("www-authenticate: {challenge}\r\n"), String::new());
        }
        let asked: Value = serde_json::from_str(body).unwrap_or_default();
        let result = match asked["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") if !state.granted.contains(&state.scope) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", state.scope);
                return ("403 Forbidden", format!("www-authenticate: {challenge}\r\n"), String::new());
            }
            _ if head.starts_with("GET") => return ("405 Method Not Allowed", String::new(), String::new()),
            _ if asked["id"].is_null() => return ("202 Accepted", String::new(), String::new()),
            _ => json!({"content": [{"type": "text", "text": "worked"}]}),
        };
        ok(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
    }
}

#[tokio::test]
async fn a_user_lets_the_client_in_a_refused_token_is_renewed_and_more_scope_is_asked_for() {
    let guarded = Guarded::start().await;
    let client = guarded.builder(MemoryTokens::default()).await.build().expect("builds");
    assert_eq!(call(&client, "g_work", json!({})).await.expect("let in").to_text(), "worked");
    assert_eq!(guarded.state().grants, ["authorization_code"]);
    // The server requires another token from now on.
    guarded.state().token += 1;
    assert_eq!(call(&client, "g_work", json!({})).await.expect("renewed").to_text(), "worked");
    assert_eq!(guarded.state().grants, ["authorization_code", "refresh_token"]);
    guarded.state().scope = "write".into();
    assert_eq!(call(&client, "g_work", json!({})).await.expect("allowed more").to_text(), "worked");
    assert_eq!(guarded.state().grants[2..], ["authorization_code"]);
    assert!(!format!("{client:?}").contains("hush"));
}

#[tokio::test]
async fn tokens_in_a_file_are_for_this_user_alone_and_the_next_process_needs_no_user() {
    let (guarded, dir) = (Guarded::start().await, tempfile::tempdir().expect("a directory"));
    let tokens = || FileTokens::new(dir.path().join("tokens"));
    let client = guarded.builder(tokens()).await.build().expect("builds");
    client.warm_up().await.expect("let in");
    let again = guarded.builder(tokens()).await.build().expect("builds");
    again.warm_up().await.expect("known");
    assert_eq!(guarded.state().grants, ["authorization_code"], "the user was asked once");
    #[cfg(unix)]
    for file in std::fs::read_dir(dir.path().join("tokens")).expect("a directory") {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.expect("a file").metadata().expect("facts").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn the_secret_of_a_registered_client_is_kept_with_its_tokens_and_the_next_process_renews_with_it() {
    let (guarded, dir) = (Guarded::start().await, tempfile::tempdir().expect("a directory"));
    guarded.state().secret = Some("hush-client".into());
    let tokens = || FileTokens::new(dir.path());
    let client = guarded.builder(tokens()).await.build().expect("builds");
    client.warm_up().await.expect("let in");
    // The token is rejected from now on.
    guarded.state().token += 1;
    let again = guarded.builder(tokens()).await.build().expect("builds");
    again.warm_up().await.expect("renewed");
    assert_eq!(guarded.state().grants, ["authorization_code", "refresh_token"], "the user was asked once");
    assert!(!format!("{client:?} {again:?}").contains("hush"));
}

#[tokio::test]
async fn a_server_that_names_no_authorization_server_may_have_its_issuer_at_its_own_origin_and_nowhere_else() {
    let let_in = async |names_none: bool, issuer: Option<&str>| {
        let guarded = Guarded::start().await;
        let issuer = issuer.map_or_else(|| format!("{}/oauth", guarded.state().at), str::to_owned);
        (guarded.state().names_none, guarded.state().issuer) = (names_none, Some(issuer));
        let client = guarded.builder(MemoryTokens::default()).await.build().expect("builds");
        client.warm_up().await.is_ok()
    };
    assert!(let_in(true, None).await, "a server of the first version with OAuth");
    assert!(!let_in(true, Some("https://elsewhere.example")).await);
    assert!(!let_in(false, None).await, "who names one is held to the name");
}

#[tokio::test]
async fn a_client_that_signs_who_it_is_needs_no_user_and_a_key_that_is_none_is_refused_when_it_is_built() {
    use ring::{rand::SystemRandom, signature};
    let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = signature::EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
    let text = BASE64_STANDARD.encode(key.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    let guarded = Guarded::start().await;
    let client = |key: &str| Client::builder("g", guarded.http().oauth(OAuth::private_key_jwt("program", key))).build();
    let good = client(&pem).expect("builds");
    assert_eq!(call(&good, "g_work", json!({})).await.expect("let in").to_text(), "worked");
    guarded.state().token += 1;
    assert_eq!(call(&good, "g_work", json!({})).await.expect("asked anew").to_text(), "worked");
    assert_eq!(guarded.state().grants, ["client_credentials"; 2]);
    assert!(!format!("{good:?}").contains(&text[..20]));
    let error = client("hush-hush").expect_err("no key");
    assert!(error.message().contains("PKCS #8") && !format!("{error:?}").contains("hush"), "{error}");
}

#[tokio::test]
async fn a_client_that_is_known_itself_needs_no_user_and_nothing_shows_its_secret() {
    let guarded = Guarded::start().await;
    let access = OAuth::client_credentials("program", "hush-hush");
    let client = Client::builder("g", guarded.http().oauth(access)).required().build().expect("builds");
    assert_eq!(call(&client, "g_work", json!({})).await.expect("let in").to_text(), "worked");
    assert_eq!(guarded.state().grants, ["client_credentials"]);
    assert!(!format!("{client:?}").contains("hush"));
}

#[tokio::test]
async fn a_server_that_asks_for_oauth_is_away_for_a_client_without() {
    let guarded = Guarded::start().await;
    let client = Client::builder("g", guarded.http()).required().build().expect("builds");
    let error = client.warm_up().await.expect_err("refused");
    assert!(error.message().contains("wants to know who asks"), "{error}");
}

#[tokio::test]
async fn a_store_of_files_keeps_replaces_and_forgets() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = FileTokens::new(dir.path());
    let kept = async || tokens.load("a").await.expect("read").map(|text| text.expose().to_owned());
    assert_eq!(kept().await, None);
    for text in ["one", "two"] {
        tokens.save("a", Secret::from(text)).await.expect("kept");
        assert_eq!(kept().await.as_deref(), Some(text));
    }
    tokens.remove("a").await.expect("forgotten");
    tokens.remove("a").await.expect("nothing to forget");
    assert_eq!(kept().await, None);
}

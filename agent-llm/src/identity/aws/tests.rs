//! Each source of credentials, with in-process servers and temporary files.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::ErrorKind;
use aws_smithy_types::date_time::{DateTime, Format};
use http::{Response, StatusCode};
use tempfile::TempDir;

use super::*;
use crate::{Body, transport_fn};

/// A machine with an environment and a home directory, and the requests that its servers received.
struct Place {
    home: TempDir,
    vars: BTreeMap<String, String>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone, Debug)]
struct Asked {
    line: String,
    head: String,
    body: String,
}

type Answer = fn(&Asked, usize) -> Option<(u16, String)>;

impl Place {
    fn new(vars: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut vars: BTreeMap<_, _> = vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        vars.insert("HOME".into(), home.path().display().to_string());
        Self { home, vars, asked: Arc::default() }
    }

    /// Adds a file to the home directory, optionally named by a variable.
    fn file(mut self, name: &str, text: &str, variable: Option<&str>) -> Self {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
        if let Some(variable) = variable {
            self.vars.insert(variable.into(), path.display().to_string());
        }
        self
    }

    /// Returns the identity on this machine; requests are numbered. A server without an answer does
    /// not exist.
    fn identity(&self, answer: Answer) -> AwsIdentity {
        let (asked, count) = (self.asked.clone(), AtomicUsize::new(0));
        let transport = transport_fn(move |request: Request<Bytes>| {
            let said = Asked {
                line: format!("{} {}", request.method(), request.uri()),
                head: request.headers().iter().map(|(n, v)| format!("{n}: {}\n", v.to_str().unwrap_or("-"))).collect(),
                body: String::from_utf8_lossy(request.body()).into_owned(),
            };
            asked.lock().expect("a lock").push(said.clone());
            let answer = answer(&said, count.fetch_add(1, Ordering::Relaxed));
            async move {
                // Simulates latency.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let Some((status, body)) = answer else { return std::future::pending().await };
                Ok(Response::builder().status(status).body(Body::from(body)).expect("an answer"))
            }
        });
        let vars = self.vars.clone();
        let machine = Machine { env: Arc::new(move |name| vars.get(name).cloned()), transport: None };
        AwsIdentity::on(machine).transport(transport)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("a lock").clone()
    }

    fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

fn nobody(_: &Asked, _: usize) -> Option<(u16, String)> {
    None
}

/// Returns the id, the secret and the token.
async fn keys(identity: &AwsIdentity) -> Result<Option<(String, String, String)>> {
    let keys = identity.keys().await?;
    Ok(keys.map(|keys| {
        let token = keys.session_token().unwrap_or("-").to_owned();
        (keys.access_key_id().to_owned(), keys.secret_access_key().to_owned(), token)
    }))
}

fn triple(id: &str, secret: &str, token: &str) -> Option<(String, String, String)> {
    Some((id.into(), secret.into(), token.into()))
}

/// Returns a time from now, in AWS's format.
fn in_seconds(seconds: u64) -> String {
    let then = DateTime::from(SystemTime::now() + Duration::from_secs(seconds));
    DateTime::from_secs(then.secs()).fmt(Format::DateTime).expect("a time")
}

fn of_role(id: &str, seconds: u64) -> String {
    format!(
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><AssumedRoleUser>\
         <Arn>arn:x</Arn></AssumedRoleUser><Credentials><AccessKeyId>{id}</AccessKeyId>\n<SecretAccessKey>s/{id}+</SecretAccessKey>\
         <SessionToken>t-{id}</SessionToken><Expiration>{}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        in_seconds(seconds)
    )
}

fn of_metadata(id: &str, seconds: u64) -> String {
    let expires = in_seconds(seconds);
    format!(
        r#"{{"Code":"Success","AccessKeyId":"{id}","SecretAccessKey":"s-{id}","Token":"t-{id}","Expiration":"{expires}"}}"#
    )
}

const OF_ENV: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "of-env"), ("AWS_SESSION_TOKEN", "t-env")];

const FILES: &str = "[default]\naws_access_key_id=AKFILE\naws_secret_access_key=of/file\n";

#[tokio::test(start_paused = true)]
async fn keys_of_the_environment_go_before_all_others_and_a_profile_in_code_before_them() {
    let place = Place::new(&OF_ENV).file(".aws/credentials", FILES, None);
    assert_eq!(keys(&place.identity(nobody)).await.expect("keys"), triple("AKENV", "of-env", "t-env"));
    let said = place.identity(nobody).profile("default");
    assert_eq!(keys(&said).await.expect("keys"), triple("AKFILE", "of/file", "-"));
    let error = keys(&place.identity(nobody).profile("nobody")).await.expect_err("there is none");
    assert_eq!((error.kind(), error.message().contains("nobody")), (ErrorKind::Config, true));
}

#[tokio::test(start_paused = true)]
async fn a_profile_is_read_from_the_files_that_the_environment_names() {
    let place = Place::new(&[("AWS_PROFILE", "work")])
        .file(
            "c",
            "[work]\naws_access_key_id=AKWORK\naws_secret_access_key=w\naws_session_token=t\n",
            Some("AWS_SHARED_CREDENTIALS_FILE"),
        )
        .file("f", "[profile work]\nregion = eu-west-3\n", Some("AWS_CONFIG_FILE"));
    let identity = place.identity(nobody);
    assert_eq!(keys(&identity).await.expect("keys"), triple("AKWORK", "w", "t"));
    let request = Request::post("https://gateway.test/").body(Bytes::new()).expect("a request");
    assert_eq!(identity.region_of(&request).expect("a region"), "eu-west-3");
    assert_eq!(region(&|name| place.vars.get(name).cloned()).as_deref(), Some("eu-west-3"));
}

#[tokio::test(start_paused = true)]
async fn a_profile_takes_a_role_with_the_keys_of_another() {
    let place = Place::new(&[("AWS_REGION", "eu-west-1")]).file(".aws/credentials", FILES, None).file(
        ".aws/config",
        "[default]\nregion=us-east-1\n[profile one]\nrole_arn=arn:aws:iam::1:role/one\nsource_profile=default\nexternal_id=x/1\n\
         [profile two]\nrole_arn=arn:aws:iam::2:role/two\nsource_profile=one\nrole_session_name=me\n",
        None,
    );
    let identity = place.identity(|_, nth| Some((200, of_role(&format!("AK{nth}"), 3_600)))).profile("two");
    assert_eq!(keys(&identity).await.expect("keys"), triple("AK1", "s/AK1+", "t-AK1"));
    let asked = place.asked();
    assert_eq!(place.lines(), ["POST https://sts.eu-west-1.amazonaws.com/"; 2]);
    assert!(asked[0].body.contains("Action=AssumeRole&") && asked[0].body.contains("ExternalId=x%2F1"), "{asked:?}");
    assert!(asked[0].head.contains("Credential=AKFILE/") && asked[0].head.contains("/eu-west-1/sts/"), "{asked:?}");
    assert!(asked[1].head.contains("Credential=AK0/") && asked[1].head.contains("x-amz-security-token: t-AK0"));
    assert!(asked[1].body.contains("RoleSessionName=me"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_profile_that_only_the_sdk_can_use_is_an_error_that_says_so() {
    for says in ["sso_session = mine", "credential_process = /bin/keys", "login_session = arn"] {
        let place = Place::new(&[]).file(".aws/config", &format!("[default]\n{says}\n"), None);
        let error = keys(&place.identity(nobody)).await.expect_err("it needs the SDK");
        assert!(error.message().contains("'aws-sdk'"), "{error}");
    }
    let round = "[profile a]\nrole_arn=r\nsource_profile=b\n[profile b]\nrole_arn=r\nsource_profile=a\n";
    let place = Place::new(&[]).file(".aws/config", round, None);
    assert!(keys(&place.identity(nobody).profile("a")).await.is_err(), "it goes round");
}

#[tokio::test(start_paused = true)]
async fn a_workload_shows_its_token_for_the_keys_of_a_role() {
    let vars = [("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod"), ("AWS_ROLE_SESSION_NAME", "pod-7")];
    let place = Place::new(&vars).file("token", "eyJ.the token\n", Some("AWS_WEB_IDENTITY_TOKEN_FILE"));
    let identity = place.identity(|_, _| Some((200, of_role("AKPOD", 3_600))));
    assert_eq!(keys(&identity).await.expect("keys"), triple("AKPOD", "s/AKPOD+", "t-AKPOD"));
    let asked = place.asked();
    assert_eq!(asked[0].line, "POST https://sts.amazonaws.com/");
    assert!(!asked[0].head.contains("authorization"), "the token is the proof: {asked:?}");
    for said in ["Action=AssumeRoleWithWebIdentity", "WebIdentityToken=eyJ.the%20token", "RoleSessionName=pod-7"] {
        assert!(asked[0].body.contains(said), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_sts_refuses_is_said_and_may_pass_if_its_server_is_at_fault() {
    let refusal = |_: &Asked, nth: usize| {
        let body = "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code><Message>Token expired</Message></Error></ErrorResponse>";
        Some(if nth == 0 { (400, body.to_owned()) } else { (503, String::new()) })
    };
    let place =
        Place::new(&[("AWS_ROLE_ARN", "arn:r")]).file("t", "secret-of-the-pod", Some("AWS_WEB_IDENTITY_TOKEN_FILE"));
    let identity = place.identity(refusal);
    let error = keys(&identity).await.expect_err("refused");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false));
    assert!(error.message().contains("ExpiredTokenException Token expired"), "{error}");
    assert!(!format!("{error:?}").contains("secret-of-the-pod"));
    assert!(keys(&identity).await.expect_err("at fault").is_retryable());
}

#[tokio::test(start_paused = true)]
async fn a_container_has_its_keys_from_the_server_beside_it() {
    let place = Place::new(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials")]).file(
        "token",
        "of-the-pod\n",
        Some("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    );
    let identity = place.identity(|_, _| Some((200, of_metadata("AKTASK", 3_600))));
    assert_eq!(keys(&identity).await.expect("keys"), triple("AKTASK", "s-AKTASK", "t-AKTASK"));
    let asked = place.asked();
    assert_eq!(asked[0].line, "GET http://169.254.170.23/v1/credentials");
    assert!(asked[0].head.contains("authorization: of-the-pod\n"), "{asked:?}");

    let place = Place::new(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/c?id=1")]);
    let identity = place.identity(|_, _| Some((200, of_metadata("AKTASK", 3_600))));
    assert!(keys(&identity).await.expect("keys").is_some());
    assert_eq!(place.lines(), ["GET http://169.254.170.2/v2/c?id=1"]);

    let place = Place::new(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://elsewhere.test/")]);
    assert_eq!(keys(&place.identity(nobody)).await.expect_err("anybody reads it").kind(), ErrorKind::Config);
    assert!(place.lines().is_empty());
}

fn instance(asked: &Asked, _: usize) -> Option<(u16, String)> {
    let path = asked.line.rsplit_once("169.254.169.254").map_or("", |(_, path)| path);
    Some(match (path, asked.head.contains("x-aws-ec2-metadata-token: token-of-it\n")) {
        ("/latest/api/token", _) => (200, "token-of-it".into()),
        (_, false) => (401, String::new()),
        ("/latest/meta-data/iam/security-credentials/", _) => (200, "my-role\n".into()),
        ("/latest/meta-data/iam/security-credentials/my-role", _) => (200, of_metadata("AKVM", 21_600)),
        _ => (404, String::new()),
    })
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_the_cloud_has_the_keys_of_its_role() {
    let place = Place::new(&[]);
    assert_eq!(keys(&place.identity(instance)).await.expect("keys"), triple("AKVM", "s-AKVM", "t-AKVM"));
    assert!(place.asked()[0].line.starts_with("PUT ") && place.asked()[0].head.contains("-ttl-seconds: 300"));
    let place = Place::new(&[("AWS_EC2_METADATA_DISABLED", "True")]);
    assert_eq!(keys(&place.identity(instance)).await.expect("none"), None);
    assert!(place.lines().is_empty(), "it is not asked");
}

#[tokio::test(start_paused = true)]
async fn no_machine_of_the_cloud_waits_long_to_find_that_out() {
    let place = Place::new(&[]);
    let (identity, began) = (place.identity(nobody), tokio::time::Instant::now());
    let mut request =
        Request::post("https://bedrock-runtime.us-east-1.amazonaws.com/").body(Bytes::new()).expect("one");
    let error = identity.sign(&mut request).await.expect_err("no keys");
    assert!(error.message().contains("AWS_ACCESS_KEY_ID") && error.message().contains("AWS_BEARER_TOKEN_BEDROCK"));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // The next call does not fetch either, for a while.
    assert!(identity.sign(&mut request).await.is_err());
    assert_eq!(place.lines().len(), 1);
    let lenient = AwsIdentity { may_lack: true, ..identity };
    lenient.sign(&mut request).await.expect("a recording needs no keys");
    assert!(request.headers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_anew_before_they_expire_by_one_caller() {
    let vars = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c")];
    let place = Place::new(&vars);
    let identity = place.identity(|_, nth| Some((200, of_metadata(&format!("AK{nth}"), 3_600))));
    let id = async |identity: &AwsIdentity| keys(identity).await.expect("keys").expect("some").0;
    let (one, other, third) = tokio::join!(id(&identity), id(&identity), id(&identity));
    assert_eq!([one, other, third], ["AK0", "AK0", "AK0"]);
    tokio::time::advance(Duration::from_secs(3_200)).await;
    assert_eq!((id(&identity).await, place.lines().len()), ("AK0".into(), 1), "they are good for a while");
    tokio::time::advance(Duration::from_secs(150)).await;
    let (one, other) = tokio::join!(id(&identity), id(&identity));
    assert_eq!((one.as_str(), other.as_str()), ("AK1", "AK0"), "who does not fetch takes what is still good");
    assert_eq!(place.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_good_are_used_on_while_none_are_to_be_had() {
    let place = Place::new(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c")]);
    let identity =
        place.identity(|_, nth| Some(if nth == 0 { (200, of_metadata("AK0", 3_600)) } else { (500, String::new()) }));
    let id = async || keys(&identity).await.map(|keys| keys.expect("some").0);
    assert_eq!(id().await.expect("keys"), "AK0");
    tokio::time::advance(Duration::from_secs(3_400)).await;
    for _ in 0..5 {
        assert_eq!(id().await.expect("they are good"), "AK0");
    }
    assert_eq!(place.lines().len(), 2, "a server in trouble is left alone for a minute");
    tokio::time::advance(Duration::from_secs(300)).await;
    assert!(id().await.expect_err("they have expired").is_retryable());
}

#[tokio::test(start_paused = true)]
async fn keys_that_were_refused_are_fetched_anew_once_they_are_older_than_a_minute() {
    let place = Place::new(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c")]);
    let identity = place.identity(|_, nth| Some((200, of_metadata(&format!("AK{}", nth.min(1)), 3_600))));
    keys(&identity).await.expect("keys");
    assert!(!identity.refused().await, "they are new");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(identity.refused().await, "there are others now");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(!identity.refused().await, "there are the same");
    assert_eq!(keys(&identity).await.expect("keys").expect("some").0, "AK1");
}

#[test]
fn the_region_is_that_of_the_host_that_is_asked() {
    for (host, region) in [
        ("bedrock-runtime.eu-west-1.amazonaws.com", Some("eu-west-1")),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
        ("vpce-1-a.bedrock-runtime.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
        ("bedrock-runtime.us-west-2.api.aws", Some("us-west-2")),
        ("gpu-7.api.acme.test", None),
        ("sts.amazonaws.com", None),
    ] {
        assert_eq!(of_host(host).as_deref(), region, "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_shown() {
    let place = Place::new(&OF_ENV);
    let identity = place.identity(nobody);
    keys(&identity).await.expect("keys");
    let shown = format!("{identity:?} {:?}", identity.kept);
    assert!(!shown.contains("of-env") && !shown.contains("t-env"), "{shown}");
}

#[test]
fn a_status_without_words_is_an_error_all_the_same() {
    let error = sts::refused("x", StatusCode::FORBIDDEN, "", "");
    assert_eq!(error.kind(), ErrorKind::Authentication);
}

//! Servers in child processes: this test binary itself.

use std::{env, time::Duration};

use agent_core::{ErrorKind, Toolset};
use agent_tools::mcp::{Client, ClientBuilder, Stdio};
use serde_json::json;

use super::{support::*, wild::Wild};

/// Environment variable that selects the server's misbehaviour.
const HOW: &str = "MCP_TEST_SERVER";

/// The server program. The test harness writes to its standard output too: invalid lines, which are
/// skipped.
#[test]
fn serve() {
    if let Ok(how) = env::var(HOW) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(Wild(how).serve(tokio::io::stdin(), tokio::io::stdout()));
        // Its thread may be blocked on input.
        runtime.shutdown_background();
    }
}

fn program(how: &str) -> Stdio {
    let itself = env::current_exe().expect("a path").display().to_string();
    Stdio::new(itself).args(["mcp::programs::serve", "--exact", "--nocapture"]).env(HOW, how)
}

fn builder(how: &str) -> ClientBuilder {
    Client::builder("child", program(how))
}

#[tokio::test]
async fn a_program_is_started_spoken_to_and_ended() {
    let client = builder("well").build().expect("builds");
    assert_eq!(call(&client, "child_work", json!({})).await.expect("works").to_text(), "worked");
    client.close().await.expect("closes");
    assert_eq!(call(&client, "child_work", json!({})).await.expect("started again").to_text(), "worked");
    client.close().await.expect("closes");
}

#[tokio::test]
async fn a_program_that_dies_in_the_middle_of_a_call_or_hangs_costs_an_error() {
    let dies = builder("die tools/call").build().expect("builds");
    let error = call(&dies, "child_work", json!({})).await.expect_err("dies");
    assert_eq!(error.kind(), ErrorKind::Tool);
    assert!(error.message().contains("went away"), "{error}");
    let hangs = builder("hang tools/call").timeout(Duration::from_millis(100)).build().expect("builds");
    let error = call(&hangs, "child_work", json!({})).await.expect_err("hangs");
    assert!(error.message().contains("did not answer"), "{error}");
    hangs.close().await.expect("closes");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_left_out_with_the_reason() {
    let client = Client::builder("none", Stdio::new("no-such-program-at-all")).required().build().expect("builds");
    let error = client.warm_up().await.expect_err("not there");
    assert!(error.message().contains("no-such-program-at-all"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_ends_at_once_is_reported_with_its_last_lines_and_without_its_keys() {
    let script = "echo starting >&2; echo \"cannot read config.json for $KEY\" >&2; exit 3";
    let program = Stdio::new("sh").args(["-c", script]).env("KEY", "k-0123456789");
    let client = Client::builder("ends", program).required().build().expect("builds");
    let told = client.warm_up().await.expect_err("it ended").message().to_owned();
    assert!(told.contains("it wrote last: starting | cannot read config.json for ..."), "{told}");
    assert!(!told.contains("k-0123456789") && !told.contains("Broken pipe"), "{told}");
}

#[tokio::test]
async fn a_program_gets_no_variable_that_was_not_named() {
    let passed = ["PATH", "HOME", "LANG", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER"];
    let other =
        env::vars().map(|(name, _)| name).find(|name| !passed.contains(&name.as_str())).expect("one more variable");
    let gets = async |stdio: Stdio| {
        let client = Client::builder("child", stdio).build().expect("builds");
        let names = call(&client, "child_work", json!({})).await.expect("told").to_text();
        names.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let names = gets(program("environment")).await;
    assert!(names.iter().all(|name| passed.contains(&name.as_str()) || name == HOW), "{names:?}");
    assert!(names.contains(&HOW.to_owned()) && names.contains(&"PATH".to_owned()), "{names:?}");
    assert!(gets(program("environment").pass(other.clone())).await.contains(&other));
}

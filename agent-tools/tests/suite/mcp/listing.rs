//! Tool listing.

use std::{sync::Arc, time::Duration};

use agent_core::{Effect, ErrorKind, Toolset};
use agent_tools::mcp::{Client, Http, Stdio};
use serde_json::json;
use tokio::time::Instant;

use super::{double::Double, support::*, wild};

#[tokio::test]
async fn tools_have_a_prefix_and_names_that_providers_take_and_a_tool_without_a_valid_schema_is_left_out() {
    let double = Double::new();
    let names = names(&double.client()).await;
    assert!(names.contains(&"double_echo".to_owned()) && names.contains(&"double_a_b_c".to_owned()), "{names:?}");
    assert!(!names.contains(&"double_broken".to_owned()));
    assert_eq!(names.len(), 14, "both pages: {names:?}");
    let called = call(&double.client(), "double_a_b_c", json!({})).await.expect("called");
    assert_eq!(called.to_text(), "dotted");
}

#[tokio::test]
async fn only_allowed_tools_are_offered_and_no_denied_one() {
    let client = Double::new().builder().prefix("").allow("a*").allow("echo").deny("ask").build().expect("builds");
    assert_eq!(names(&client).await, ["echo", "add", "a_b_c"]);
}

#[tokio::test]
async fn hints_become_effects_if_the_server_is_trusted() {
    let double = Double::new();
    let effects = async |client: Client| {
        let mut effects = Vec::new();
        for name in ["double_echo", "double_add", "double_zoo"] {
            effects.push(tool(&client, name).await.options().effect);
        }
        effects
    };
    assert_eq!(
        effects(double.builder().trust_hints().build().expect("builds")).await,
        [Effect::Pure, Effect::Idempotent, Effect::AtMostOnce]
    );
    let distrusting = double.builder().serial().build().expect("builds");
    assert!(tool(&distrusting, "double_echo").await.options().serial);
    assert_eq!(effects(distrusting).await, [Effect::AtMostOnce; 3]);
}

#[tokio::test]
async fn the_same_tool_is_the_same_from_call_to_call_and_over_connections_and_a_changed_list_is_read_anew() {
    let double = Double::new();
    let client = double.client();
    let before = tool(&client, "double_echo").await;
    assert!(Arc::ptr_eq(&before, &tool(&client, "double_echo").await));
    assert_eq!(double.count("list"), 2, "two pages, read once");

    call(&client, "double_grow", json!({})).await.expect("grows");
    until(|| double.count("grow") == 1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(names(&client).await.contains(&"double_grown".to_owned()));
    assert!(Arc::ptr_eq(&before, &tool(&client, "double_echo").await), "the others are as they were");

    double.kill();
    tokio::time::sleep(Duration::from_millis(20)).await;
    call(&client, "double_echo", json!({"text": "again"})).await.expect("connects anew");
    assert!(Arc::ptr_eq(&before, &tool(&client, "double_echo").await));
    assert_eq!(double.count("connected"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_left_out_and_tried_again_later_and_later() {
    let double = Double::new();
    double.set_away(true);
    let client = double.client();
    assert_eq!(names(&client).await, ["connect_double"]);
    for _ in 0..20 {
        names(&client).await;
    }
    let tried = double.count("connected");
    assert!(tried <= 3, "it is left alone: {tried}");
    double.set_away(false);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(names(&client).await.len(), 14);
}

#[tokio::test(start_paused = true)]
async fn a_required_server_that_is_away_is_an_error() {
    let double = Double::new();
    double.set_away(true);
    double.client().warm_up().await.expect("another one is only left out");
    let client = double.builder().required().build().expect("builds");
    let run = run(|_| {});
    for error in [client.warm_up().await.expect_err("away"), client.tools(run.cx()).await.err().expect("away")] {
        assert_eq!(error.kind(), ErrorKind::Tool);
        assert!(error.message().contains("nobody listens") || error.message().contains("tried again"), "{error}");
    }
}

#[tokio::test]
async fn warming_up_connects_closing_ends_and_a_later_call_connects_again() {
    let double = Double::new();
    let client = double.client();
    client.warm_up().await.expect("connects");
    client.warm_up().await.expect("does nothing");
    assert_eq!(double.count("connected"), 1);
    assert!(client.is_healthy().await);
    assert_eq!(client.instructions().await.expect("told").as_deref(), Some("Be kind."));
    client.close().await.expect("closes");
    assert_eq!(call(&client, "double_echo", json!({"text": "a"})).await.expect("called").to_text(), "a");
    assert_eq!(double.count("connected"), 2);
}

#[test]
fn what_cannot_work_is_refused_when_it_is_built() {
    let refused = |client: agent_core::Result<Client>| {
        let error = client.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    refused(Client::builder("", Stdio::new("a")).build());
    refused(Client::builder("with space", Stdio::new("a")).build());
    refused(Client::builder("a", Stdio::new("a")).prefix("a.b").build());
    refused(Client::builder("a", Stdio::new("")).build());
    let error = refused(Client::builder("a", Stdio::new("a").pass("NO_SUCH_VARIABLE_AT_ALL")).build());
    assert!(error.contains("NO_SUCH_VARIABLE_AT_ALL"), "{error}");
    refused(Client::builder("a", Http::new("ftp://a.example")).build());
    let error = refused(Client::builder("a", Http::new("https://a.example").header("x", "hush\n")).build());
    assert!(!error.contains("hush"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_hangs_later_costs_one_short_wait_and_the_tools_that_were_known_are_offered() {
    let client = wild::builder("relists").build().expect("builds");
    call(&client, "wild_work", json!({})).await.expect("works");
    let begin = Instant::now();
    for _ in 0..3 {
        assert_eq!(names(&client).await, ["wild_work"]);
    }
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(5) && waited < Duration::from_secs(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_had_at_first_is_asked_for_later_and_later() {
    let client = wild::builder("hang tools/list").build().expect("builds");
    let begin = Instant::now();
    for _ in 0..50 {
        assert_eq!(names(&client).await, ["connect_wild"]);
    }
    assert!(begin.elapsed() < Duration::from_secs(35), "once, and then it is left alone: {:?}", begin.elapsed());
}

#[tokio::test]
async fn a_list_without_end_ends_and_what_a_tool_says_of_itself_is_bounded() {
    assert_eq!(names(&wild::builder("pages").build().expect("builds")).await, [""; 0]);
    let client = wild::builder("talks").build().expect("builds");
    assert_eq!(names(&client).await, ["wild_work"], "a tool with a schema of a megabyte is left out");
    assert!(tool(&client, "wild_work").await.spec().description.len() < 20_000);
}

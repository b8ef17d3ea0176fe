//! Tool sets, tools from closures, and changed tool specifications.

use std::time::Duration;

use agent_core::{Effect, ErrorKind, Tool, ToolRequest};
use agent_tools::{ArgumentSchema, FromFn, ToolExt, ToolSet, from_fn, from_schema, tool};
use serde_json::{Value, json};

use crate::support::call;

/// Says it again.
#[tool(effect = "pure")]
fn echo(text: String) -> String {
    text
}

/// Says nothing.
#[tool]
fn hush() {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greeting {
    /// Name of the person to greet.
    name: String,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

fn greet() -> impl Tool {
    from_fn("greet", "Greets.", async |Greeting { name, times }, _: ToolRequest| format!("hello {name} ").repeat(times))
}

#[tokio::test]
async fn a_closure_is_a_tool_with_typed_arguments() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the person to greet."},
            "times": {"type": "integer", "minimum": 0, "default": 1},
        },
        "required": ["name"],
    });
    assert_eq!(greet().spec().parameters, schema);
    assert_eq!(
        call(&greet(), json!({"name": "you", "times": 2})).await.expect("greets").to_text(),
        "hello you hello you "
    );
}

#[tokio::test]
async fn a_closure_with_a_schema_of_its_own_takes_json() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let next = from_schema("next", "", schema, async |args: Value, _: ToolRequest| args["n"].as_i64().map(|n| n + 1));
    assert_eq!(call(&next, json!({"n": 1})).await.expect("counts").to_text(), "2");
    assert_eq!(call(&next, json!({})).await.expect("counts").to_text(), "null");
}

#[tokio::test]
async fn a_tool_under_another_name_does_the_same_and_errors_have_that_name() {
    let say = echo.named("say").described("Speaks.").with_options(|o| o.timeout(Duration::from_secs(1)));
    assert_eq!((say.spec().name, say.spec().description), ("say".to_owned(), "Speaks.".to_owned()));
    assert_eq!((say.options().effect, say.options().timeout), (Effect::Pure, Some(Duration::from_secs(1))));
    assert_eq!(call(&say, json!({"text": "a"})).await.expect("says").to_text(), "a");
    let error = call(&say, json!({})).await.expect_err("no text");
    assert_eq!(error.message(), "Invalid arguments for tool 'say': 'text' is required.");
}

#[test]
fn a_selection_keeps_the_asked_order_and_names_what_there_is_when_it_fails() {
    let set = ToolSet::new("talk").tool(echo).tool(hush).extend(ToolSet::new("more").tool(greet()));
    assert_eq!(set.named(&["greet", "echo"]).expect("both are there").names(), ["greet", "echo"]);
    let error = set.named(&["echo", "shout"]).expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.message(), "no tool 'shout' in the set 'talk'; there are: echo, hush, greet");
}

#[test]
fn two_tools_of_one_name_are_an_error_and_a_prefix_helps() {
    let twice = ToolSet::new("talk").tool(echo).tool(echo);
    let error = twice.into_tools().err().expect("twice");
    assert!(error.message().contains("two tools of the set 'talk' are named 'echo'"), "{error}");
    let apart = ToolSet::new("talk").tool(echo).extend(ToolSet::new("other").tool(echo).prefixed("other_"));
    let tools = apart.into_tools().expect("apart");
    assert_eq!(tools.iter().map(|t| t.spec().name).collect::<Vec<_>>(), ["echo", "other_echo"]);
}

#[test]
fn every_schema_that_is_made_can_be_compiled() {
    for tool in ToolSet::new("all").tool(echo).tool(hush).tool(greet()) {
        assert!(ArgumentSchema::compile(&tool.spec()).is_ok(), "{}", tool.spec().name);
    }
}

#[test]
fn debug_shows_names_and_not_closures() {
    let set = ToolSet::new("talk").tool(echo);
    assert_eq!(format!("{set:?}"), r#"ToolSet { name: "talk", tools: ["echo"] }"#);
    fn debug<A, F>(tool: &FromFn<A, F>) -> String {
        format!("{tool:?}")
    }
    let tool = from_fn("greet", "", async |_: Greeting, _: ToolRequest| ());
    assert!(debug(&tool).starts_with("FromFn { spec: ToolSpec { name: \"greet\""));
}

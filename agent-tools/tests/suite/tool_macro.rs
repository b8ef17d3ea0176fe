//! The `#[tool]` attribute.

use std::{thread, time::Duration};

use agent_core::{Effect, Error, ErrorKind, GlobalStorage, Key, Resources, RunCx, State, Tool, ToolRequest};
use agent_tools::{Json, Resource, Typed, tool};
use serde_json::{Value, json};

use crate::support::{call, call_in, run};

/// Adds numbers.
///
/// The sum may be large.
///
/// # Arguments
/// * `a` - The first number,
///   which comes first.
/// * `b`: ignored, since the parameter says it itself.
///
/// # Panics
/// Never.
#[tool]
async fn add(
    a: i64,
    /// The second number.
    b: i64,
    #[tool(default = 10)] c: u8,
    d: Option<i64>,
) -> i64 {
    a + b + i64::from(c) + d.unwrap_or(0)
}

/// Weather of a place.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Weather {
    degrees: f64,
}

/// Says it.
#[tool]
async fn weather() -> Result<Typed<Weather>, String> {
    Ok(Typed(Weather { degrees: 21.5 }))
}

/// Says it in words.
#[tool(destructive = false, open_world = true)]
async fn words() -> impl agent_tools::IntoToolOutput {
    "warm"
}

#[test]
fn a_tool_says_of_which_type_its_value_is_where_that_is_known() {
    let output = weather.spec().output.expect("its type is known");
    assert_eq!((&output["type"], &output["properties"]["degrees"]["type"]), (&json!("object"), &json!("number")));
    assert_eq!(add.spec().output, Some(json!({"type": "integer"})));
    assert_eq!(words.spec().output, None);
    let hints = words.options().hints;
    assert_eq!((hints.destructive, hints.open_world), (Some(false), Some(true)));
}

#[test]
fn the_model_is_told_what_the_comments_say_and_no_more() {
    let spec = add.spec();
    assert_eq!(spec.name, "add");
    assert_eq!(spec.description, "Adds numbers.\n\nThe sum may be large.");
    assert_eq!(
        spec.parameters,
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first number, which comes first."},
                "b": {"type": "integer", "description": "The second number."},
                "c": {"type": "integer", "minimum": 0, "maximum": 255, "default": 10},
                "d": {"type": ["integer", "null"]},
            },
            "required": ["a", "b"],
        })
    );
}

#[tokio::test]
async fn what_the_model_leaves_out_has_its_default() {
    assert_eq!(call(&add, json!({"a": 1, "b": 2})).await.expect("adds").to_text(), "13");
    assert_eq!(call(&add, json!({"a": 1, "b": 2, "c": 3, "d": 4})).await.expect("adds").to_text(), "10");
    assert_eq!(add::run(1, 2, 3, None).await, 6);
}

#[tokio::test]
async fn an_argument_that_the_type_refuses_is_named() {
    #[derive(Debug)]
    struct Even;

    impl<'de> serde::Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            let n = u32::deserialize(d)?;
            if n % 2 == 0 { Ok(Self) } else { Err(serde::de::Error::custom(format!("{n} is odd"))) }
        }
    }

    impl schemars::JsonSchema for Even {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Even".into()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
            u32::json_schema(generator)
        }
    }

    #[tool(reads(secret = "key"))]
    fn check(n: Even, secret: Option<Even>) -> String {
        format!("{n:?} {}", secret.is_some())
    }

    let message = async |args: Value| call(&check, args).await.expect_err("odd").message().to_owned();
    assert_eq!(message(json!({"n": 7})).await, "Invalid arguments for tool 'check': 'n': 7 is odd.");
    let hidden = message(json!({"n": 2, "secret": 7777})).await;
    assert_eq!(hidden, "Invalid arguments for tool 'check': 'secret' does not fit its type.");
}

/// A place.
#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[schemars(title = "Point of interest")]
struct Point {
    x: i64,
    y: f64,
}

#[tool(
    name = "go-to",
    description = "Goes there.",
    effect = "idempotent",
    serial,
    timeout = "90s",
    concurrency = 2,
    reads(token = "api_token"),
    writes(last_place = "place", log)
)]
fn go_to(place: Point, via: Vec<Point>, token: String) -> Json<Value> {
    Json(json!({"place": place, "via": via.len(), "token": token.len()}))
}

#[tokio::test]
async fn options_are_as_written_and_types_that_are_used_twice_are_defined_once() {
    let options = go_to.options();
    assert_eq!((options.effect, options.serial, options.concurrency), (Effect::Idempotent, true, Some(2)));
    assert_eq!(options.timeout, Some(Duration::from_secs(90)));
    assert_eq!((&*options.reads[0].key, &*options.reads[0].param), ("api_token", "token"));
    let writes: Vec<_> = options.writes.iter().map(|w| (w.key.as_str(), w.source.as_deref())).collect();
    assert_eq!(writes, [("last_place", Some("place")), ("log", None)]);

    let spec = go_to.spec();
    assert_eq!((&*spec.name, &*spec.description), ("go-to", "Goes there."));
    assert_eq!(spec.parameters["required"], json!(["place", "via"]), "what the state fills in may be left out");
    assert_eq!(
        spec.parameters["$defs"]["Point"]["properties"],
        json!({"x": {"type": "integer"}, "y": {"type": "number"}})
    );

    let args = json!({"place": {"x": 1, "y": 2}, "via": [], "token": "abc"});
    let output = call(&go_to, args).await.expect("goes");
    assert_eq!(output.as_value().expect("a value")["token"], json!(3));
    let error = call(&go_to, json!({"place": {"x": 1, "y": 2}, "via": []})).await.expect_err("no token");
    assert_eq!(error.message(), "Invalid arguments for tool 'go-to': 'token' is required.");
}

struct Db(&'static str);

const SEEN: Key<u32> = Key::new("seen");

/// Uses everything that a run has.
#[tool]
async fn everything(
    cx: &RunCx,
    req: ToolRequest,
    state: &State,
    globals: GlobalStorage,
    db: Resource<Db>,
    r#type: &'_ Resource<Db>,
) -> Result<String, Error> {
    globals.set(&SEEN, &cx.step())?;
    Ok(format!("{} {} {} {}", req.call.id, state.has("x"), db.0.0, r#type.0.0))
}

#[tokio::test]
async fn what_the_run_has_is_filled_in_and_not_shown_to_the_model() {
    assert_eq!(everything.spec().parameters, json!({"type": "object", "properties": {}}));
    assert!(everything.options().uses_state);
    assert!(!add.options().uses_state);

    let with_db = run(Resources::default().with(Db("main")));
    let output = call_in(with_db.cx(), &everything, json!({})).await.expect("runs");
    assert_eq!(output.to_text(), "c1 false main main");
    assert_eq!(with_db.cx().globals().get(&SEEN).expect("reads"), Some(0));

    let error = call(&everything, json!({})).await.expect_err("no handle");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().contains("Db"), "{error}");
}

#[tokio::test]
async fn a_question_in_a_tool_suspends_and_is_not_told_as_a_failure() {
    #[tool]
    async fn ask(req: &ToolRequest) -> Result<String, agent_core::BoxError> {
        let approved: bool = req.ask("approval", json!({}))?;
        Ok(approved.to_string())
    }

    let error = call(&ask, json!({})).await.expect_err("asks");
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(error.questions()[0].id, "c1/approval");
}

#[tokio::test]
async fn a_blocking_function_runs_on_another_thread() {
    #[tool(blocking)]
    fn thread_of(name: String, cx: &RunCx) -> String {
        format!("{name} {:?} {}", thread::current().id(), cx.step())
    }

    #[tool]
    fn inline() -> String {
        format!("{:?}", thread::current().id())
    }

    let here = format!("{:?}", thread::current().id());
    assert_eq!(call(&inline, json!({})).await.expect("runs").to_text(), here);
    let there = call(&thread_of, json!({"name": "n"})).await.expect("runs").to_text();
    assert!(there.starts_with("n ") && there.ends_with(" 0") && !there.contains(&here), "{there}");
}

#[tokio::test]
#[should_panic(expected = "the disk is on fire")]
async fn a_panic_in_a_blocking_function_is_a_panic_of_the_call() {
    #[tool(blocking)]
    fn burn() {
        panic!("the disk is on fire");
    }

    drop(call(&burn, json!({})).await);
}

#[test]
fn names_that_are_words_of_rust_lose_their_mark() {
    /// Matches.
    #[tool]
    fn r#match(r#type: String) -> String {
        r#type
    }

    assert_eq!(r#match.spec().name, "match");
    assert_eq!(r#match.spec().parameters["required"], json!(["type"]));
}

/// Adds one to a number of any size.
#[tool]
async fn next(n: u128, rates: Vec<f64>) -> Result<u128, String> {
    n.checked_add(1).filter(|_| rates == [std::f64::consts::PI]).ok_or_else(|| "too large".into())
}

#[tokio::test]
async fn a_function_takes_and_returns_numbers_of_more_than_64_bits() {
    let args = agent_core::exact::from_str(r#"{"n": 12345678901234567890123, "rates": [3.14159265358979323846]}"#);
    let output = call(&next, args.expect("JSON")).await.expect("is counted");
    assert_eq!(output.to_text(), "12345678901234567890124");
    let schema = agent_tools::ArgumentSchema::compile(&next.spec()).expect("compiles");
    let args = schema.parse(r#"{"n": 12345678901234567890123, "rates": ["3.14159265358979323846", 2]}"#);
    schema.check(&args.value, &[]).expect("they are numbers");
    let wrong = schema.parse(r#"{"n": 12345678901234567890123.5, "rates": []}"#);
    assert!(schema.check(&wrong.value, &[]).is_err(), "it is no integer");
}

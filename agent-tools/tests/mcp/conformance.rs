//! The client and the server of the protocol's own conformance suite, which is run by hand: the suite starts the client with the
//! address of a server in `MCP_SERVER_URL`, and judges what it does there; it speaks to the server itself.

use std::{env, time::Duration};

use agent_core::{Ask, Error, Media, Part, Tool, ToolOutput, ToolRequest, Toolset, engine::RunParts};
use agent_tools::{
    from_schema,
    mcp::{Authorizer, Client, Http, OAuth, Server},
};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
#[ignore = "started by the conformance suite"]
async fn client() {
    // The suite gives the address as the last argument, which a test cannot take: see the page of the checks.
    let url = env::var("MCP_SERVER_URL").expect("an address");
    let client = Client::builder("suite", Http::new(url).oauth(access()))
        .prefix("")
        .elicitation()
        .timeout(Duration::from_secs(20))
        .required()
        .build()
        .expect("builds");
    client.warm_up().await.expect("connects");
    let mut run = run(|_| {});
    for name in names(&client).await {
        let args = if name == "add_numbers" { json!({"a": 5, "b": 3}) } else { json!({}) };
        // Whatever is asked is accepted as it stands.
        let output = loop {
            match call_in(run.cx(), &client, &name, args.clone()).await {
                Err(error) if !error.questions().is_empty() => {
                    let answers: Vec<_> =
                        error.questions().iter().map(|question| question.answer(accepted())).collect();
                    let ids = (**run.cx().ids()).clone();
                    run = run_as(ids, |parts: &mut RunParts| parts.answers.extend(answers));
                }
                done => break done,
            }
        };
        println!("{name}: {:?}", output.map(|output| output.to_text()));
    }
}

/// Access as the scenario wants it.
fn access() -> OAuth {
    let context: Value = env::var("MCP_CONFORMANCE_CONTEXT")
        .map_or(Value::Null, |context| serde_json::from_str(&context).expect("JSON"));
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let known = context["client_id"].as_str().zip(context["client_secret"].as_str());
    match known {
        Some((id, secret)) if scenario.contains("client-credentials") => OAuth::client_credentials(id, secret),
        Some((id, secret)) => OAuth::new(Redirected).client(id).client_secret(secret),
        None => OAuth::new(Redirected).client_metadata_url("https://conformance-test.local/client-metadata.json"),
    }
}

/// A user that lets every client in at once: the suite's authorization server sends the browser straight back.
struct Redirected;

#[agent_core::async_trait]
impl Authorizer for Redirected {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:39112/callback".into()
    }

    async fn authorize(&self, url: &str) -> agent_core::Result<String> {
        let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
        let answer = get(host, &format!("/{path}")).await.expect("an answer");
        let place = answer
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location")));
        Ok(place.expect("a redirect").1.trim().to_owned())
    }
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {}})
}

/// A tool that asks for these fields.
fn asks(name: &str, fields: &Value) -> impl Tool + use<> {
    let schema = json!({"type": "object", "properties": fields});
    from_schema(name, "Asks.", json!({"type": "object", "properties": {}}), move |args: Value, req: ToolRequest| {
        let message = args["message"].as_str().unwrap_or("Please provide this").to_owned();
        let ask = Ask::new("form", json!({"message": message})).schema(schema.clone());
        async move {
            let answer: Value = req.ask_with(ask)?.parse()?;
            Ok::<_, Error>(format!("User response: {answer}"))
        }
    })
}

fn resource(uri: &str) -> Part {
    Part::Document(Media::base64("aGVsbG8=", "text/plain").with_name(uri))
}

/// The server of the suite: the tools that it names, at `127.0.0.1:39111` until it is killed.
#[tokio::test]
#[ignore = "spoken to by the conformance suite"]
async fn server() {
    let any = || json!({"type": "object", "properties": {}});
    let text = from_schema(
        "test_simple_text",
        "Gives text.",
        any(),
        async |_: Value, _: ToolRequest| "This is a simple text response for testing.",
    );
    let images = from_schema("test_image_content", "Gives an image.", any(), async |_: Value, _: ToolRequest| {
        ToolOutput::parts(vec![Part::Image(Media::base64("iVBORw0KGgo=", "image/png"))])
    });
    let sound = from_schema("test_audio_content", "Gives sound.", any(), async |_: Value, _: ToolRequest| {
        ToolOutput::parts(vec![Part::Document(Media::base64("UklGRg==", "audio/wav"))])
    });
    let fails = from_schema("test_error_handling", "Fails.", any(), async |_: Value, _: ToolRequest| {
        Err::<Value, _>(Error::tool("This tool intentionally returns an error for testing"))
    });
    let counts = from_schema("test_tool_with_progress", "Counts.", any(), async |_: Value, req: ToolRequest| {
        for progress in [0, 50, 100] {
            req.progress(json!({"progress": progress, "total": 100}));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        "counted"
    });
    let embedded =
        from_schema("test_embedded_resource", "Gives a resource.", any(), async |_: Value, _: ToolRequest| {
            ToolOutput::parts(vec![resource("test://embedded-resource")])
        });
    let mixed = from_schema("test_multiple_content_types", "Gives all.", any(), async |_: Value, _: ToolRequest| {
        let image = Part::Image(Media::base64("iVBORw0KGgo=", "image/png"));
        ToolOutput::parts(vec![Part::text("Multiple content types test:"), image, resource("test://mixed")])
    });
    let text_field = json!({"type": "string"});
    let user = json!({"username": text_field, "email": text_field});
    let defaults = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    let options = json!(["option1", "option2", "option3"]);
    let titled =
        |title: &str| json!([1, 2, 3].map(|n| json!({"const": format!("value{n}"), "title": format!("{title} {n}")})));
    let enums = json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    });
    let server = Server::builder("suite").tool(text).tool(images).tool(sound).tool(fails).tool(counts);
    let server = server.tool(embedded).tool(mixed);
    let server = server.tool(asks("test_elicitation", &user));
    let server = server.tool(asks("test_elicitation_sep1034_defaults", &defaults));
    let server = server.tool(asks("test_elicitation_sep1330_enums", &enums));
    let _serving = server.build().expect("builds").serve_http(([127, 0, 0, 1], 39111).into()).await.expect("serves");
    tokio::time::sleep(Duration::from_secs(120)).await;
}

//! Client and server for the protocol's own conformance suite, which is run manually: the suite
//! starts the client with the address of a server in `MCP_SERVER_URL`, and judges its behaviour; it
//! connects to the server itself.

use std::{
    env,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Ask, Error, History, Media, Message, ModelRequest, Part, Tool, ToolOutput, ToolRequest, Toolset, UserMessage,
};
use agent_tools::{
    from_schema,
    mcp::{
        Authorizer, Caller, Client, Http, LogLevel, OAuth, Prompt, PromptArgument, PromptRequest, Resource,
        ResourceRequest, ResourceTemplate, Server, ServerBuilder,
    },
};
use serde_json::{Value, json};

use super::support::*;

#[tokio::test]
#[ignore = "started by the conformance suite"]
async fn client() {
    // The suite passes the address as the last argument, which a test cannot accept: see the page
    // on the checks.
    let url = env::var("MCP_SERVER_URL").expect("an address");
    let client = Client::builder("suite", Http::new(url).oauth(access()))
        .prefix("")
        // Accepts every elicitation with an empty object.
        .elicitation_by(async |_| Ok(Some(json!({}))))
        .timeout(Duration::from_secs(20))
        .required()
        .build()
        .expect("builds");
    client.warm_up().await.expect("connects");
    for name in names(&client).await {
        let args = match &*name {
            "add_numbers" => json!({"a": 5, "b": 3}),
            "json_schema_echo" => json!({"schema": tool(&client, "json_schema_2020_12_tool").await.spec().parameters}),
            _ => json!({}),
        };
        let calls = context()["toolCalls"].as_array().cloned().unwrap_or_default();
        let mut given: Vec<_> =
            calls.iter().filter(|call| call["name"] == name).map(|call| call["arguments"].clone()).collect();
        if given.is_empty() {
            given.push(args);
        }
        for args in given {
            let output = call(&client, &name, args).await;
            println!("{name}: {:?}", output.map(|output| output.to_text()));
        }
    }
}

/// Returns what the suite tells the client about its scenario.
fn context() -> Value {
    env::var("MCP_CONFORMANCE_CONTEXT").map_or(Value::Null, |context| serde_json::from_str(&context).expect("JSON"))
}

/// Returns the OAuth flow that the scenario requires.
fn access() -> OAuth {
    let context = context();
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    if let Some((id, key)) = context["client_id"].as_str().zip(context["private_key_pem"].as_str()) {
        return OAuth::private_key_jwt(id, key);
    }
    let known = context["client_id"].as_str().zip(context["client_secret"].as_str());
    match known {
        Some((id, secret)) if scenario.contains("client-credentials") => OAuth::client_credentials(id, secret),
        Some((id, secret)) => OAuth::new(Redirected).client(id).client_secret(secret),
        None => OAuth::new(Redirected).client_metadata_url("https://conformance-test.local/client-metadata.json"),
    }
}

/// User that authorises every client immediately: the suite's authorization server redirects the
/// browser straight back.
struct Redirected;

#[agent_core::async_trait]
impl Authorizer for Redirected {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:19112/callback".into()
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

/// Tool that elicits these fields.
fn asks(name: &str, fields: &Value) -> impl Tool + use<> {
    let schema = json!({"type": "object", "properties": fields});
    let takes = json!({"type": "object", "properties": {"message": {"type": "string"}}});
    from_schema(name, "Asks.", takes, move |args: Value, req: ToolRequest| {
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

/// Adds the resources and prompts that the suite names.
fn with_resources_and_prompts(server: ServerBuilder) -> ServerBuilder {
    let resource = |uri: &str, mime: &str| Resource::new(uri, uri).with_description("Of the suite.").with_mime(mime);
    let prompt = |name: &str| Prompt::new(name).with_description("Of the suite.");
    let argument = |name: &str| PromptArgument::new(name).required();
    let image = || Part::Image(Media::base64("iVBORw0KGgo=", "image/png"));
    let said = |parts: Vec<Part>| Message::User(UserMessage::new(parts));
    server
        .resource(resource("test://static-text", "text/plain"), async |_| "The content of the static text resource.")
        .resource(resource("test://static-binary", "image/png"), move |_| async move { vec![image()] })
        .resource(resource("test://watched-resource", "text/plain"), async |_| "watched")
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "data").with_mime("application/json"),
            async |asked: ResourceRequest| json!({"id": asked.get("id"), "templateTest": true}),
        )
        .prompt(prompt("test_simple_prompt"), async |_| Ok(vec![Message::user("This is a simple prompt for testing.")]))
        .prompt(
            prompt("test_prompt_with_arguments").with_argument(argument("arg1")).with_argument(argument("arg2")),
            async |asked: PromptRequest| {
                let text = format!("Prompt with arguments: arg1='{}', arg2='{}'", asked.get("arg1"), asked.get("arg2"));
                Ok(vec![Message::user(text)])
            },
        )
        .completion("test_prompt_with_arguments", "arg1", async |asked| vec![format!("{}ing", asked.typed)])
        .prompt(
            prompt("test_prompt_with_embedded_resource").with_argument(argument("resourceUri")),
            move |asked: PromptRequest| async move {
                let media = Media::base64("aGVsbG8=", "text/plain").with_name(asked.get("resourceUri"));
                Ok(vec![said(vec![Part::Document(media), Part::text("Please process the embedded resource above.")])])
            },
        )
        .prompt(prompt("test_prompt_with_image"), move |_| async move {
            Ok(vec![said(vec![image(), Part::text("Please analyze the image above.")])])
        })
}

/// Adds the tools of the suite that send requests to its client.
fn with_tools_that_call_back(server: ServerBuilder) -> ServerBuilder {
    let any = || json!({"type": "object", "properties": {}});
    let logs = from_schema("test_tool_with_logging", "Logs.", any(), async |_: Value, req: ToolRequest| {
        let caller = req.cx.resources().get::<Caller>()?;
        for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            caller.log(LogLevel::Info, text);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok::<_, Error>("logged")
    });
    let prompt = json!({"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]});
    let samples = from_schema("test_sampling", "Asks a model.", prompt, async |args: Value, req: ToolRequest| {
        let model = req.cx.resources().get::<Caller>()?.model()?;
        let mut request = ModelRequest::new(req.cx.clone());
        request.messages = History::from_messages([Message::user(args["prompt"].as_str().unwrap_or_default())])?;
        let said = req.cx.call_model(&model, request).await?.message.text();
        Ok::<_, Error>(format!("LLM response: {said}"))
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    let of_2020 = from_schema("json_schema_2020_12_tool", "Takes an address.", schema, async |args: Value, _| args);
    server.tool(logs).tool(samples).tool(of_2020)
}

/// The served suite, which its tools change.
static SERVED: OnceLock<Server> = OnceLock::new();

/// True while the suite has a further tool and a further prompt.
static GROWN: AtomicBool = AtomicBool::new(false);

/// Adds the tools that request input by results.
fn with_tools_that_request_input(server: ServerBuilder) -> ServerBuilder {
    let any = || json!({"type": "object", "properties": {}});
    let field =
        |name: &str, kind: &str| json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
    /// Asks by these keys one after the other; the last answer ends the tool.
    fn asking(name: &str, questions: &'static [(&str, &str, &str, &str)], done: &'static str) -> impl Tool + use<> {
        let takes = json!({"type": "object", "properties": {}});
        from_schema(name, "Asks.", takes, move |_: Value, req: ToolRequest| async move {
            let mut last = Value::Null;
            for (key, message, field, kind) in questions {
                let schema = json!({"type": "object", "properties": {*field: {"type": kind}}, "required": [field]});
                last = req.ask_with(Ask::new(*key, json!({"message": message})).schema(schema))?.parse()?;
            }
            Ok::<_, Error>(format!("{done} {last}"))
        })
    }
    let name = &[("user_name", "What is your name?", "name", "string")][..];
    let ok = &[("confirm", "Please confirm", "ok", "boolean")][..];
    let steps = &[
        ("step1", "Step 1: What is your name?", "name", "string"),
        ("step2", "Step 2: What is your favorite color?", "color", "string"),
    ][..];
    async fn sampled(req: &ToolRequest, text: &str) -> agent_core::Result<String> {
        let model = req.cx.resources().get::<Caller>()?.model()?;
        let mut request = ModelRequest::new(req.cx.clone());
        request.messages = History::from_messages([Message::user(text)])?;
        Ok(req.cx.call_model(&model, request).await?.message.text())
    }
    let sampling = |name: &str| {
        from_schema(name, "Asks a model.", any(), async |_: Value, req: ToolRequest| {
            sampled(&req, "What is the capital of France?").await
        })
    };
    let roots =
        from_schema("test_input_required_result_list_roots", "Lists.", any(), async |_: Value, req: ToolRequest| {
            Ok::<_, Error>(req.cx.resources().get::<Caller>()?.roots().await?.join(" "))
        });
    let schema = field("name", "string");
    let all = from_schema(
        "test_input_required_result_multiple_inputs",
        "Asks all.",
        any(),
        move |_: Value, req: ToolRequest| {
            let schema = schema.clone();
            async move {
                let who = req.ask_with(Ask::new("user_name", json!({"message": "What is your name?"})).schema(schema));
                let caller = req.cx.resources().get::<Caller>()?;
                let (said, roots) = tokio::join!(sampled(&req, "Generate a greeting"), caller.roots());
                Ok::<_, Error>(format!("{} {:?} {:?}", said?, roots?, who?.value))
            }
        },
    );
    let change = |name: &str| {
        from_schema(name, "Changes the lists.", any(), async |_: Value, _: ToolRequest| {
            GROWN.fetch_xor(true, Ordering::AcqRel);
            SERVED.get().expect("served").replace(suite())?;
            Ok::<_, Error>("changed")
        })
    };
    let logs = from_schema("test_logging_tool", "Logs.", any(), async |_: Value, req: ToolRequest| {
        req.cx.resources().get::<Caller>()?.log(LogLevel::Error, "working");
        Ok::<_, Error>("logged")
    });
    let header = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let routed = from_schema("test_custom_header", "Is routed.", header, async |args: Value, _| args);
    server
        .tool(asking("test_input_required_result_elicitation", name, "Hello"))
        .tool(asking("test_streaming_elicitation", name, "Hello"))
        .tool(asking("test_input_required_result_request_state", ok, "state-ok"))
        .tool(asking("test_input_required_result_tampered_state", ok, "state-ok"))
        .tool(asking("test_input_required_result_multi_round", steps, "Done"))
        .tool(sampling("test_input_required_result_sampling"))
        .tool(sampling("test_input_required_result_capabilities"))
        .tool(sampling("test_missing_capability"))
        .tool(roots)
        .tool(all)
        .tool(change("test_trigger_tool_change"))
        .tool(change("test_trigger_prompt_change"))
        .tool(logs)
        .tool(routed)
}

/// Server for the suite, with the content that the suite names, at `127.0.0.1:19111` until it is
/// killed.
#[tokio::test]
#[ignore = "spoken to by the conformance suite"]
async fn server() {
    let server = suite().build().expect("builds");
    let _serving = server.serve_http(([127, 0, 0, 1], 19111).into()).await.expect("serves");
    SERVED.set(server).unwrap_or_else(|_| panic!("served once"));
    tokio::time::sleep(Duration::from_secs(600)).await;
}

fn suite() -> ServerBuilder {
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
    let server = with_tools_that_request_input(with_tools_that_call_back(with_resources_and_prompts(server)));
    if !GROWN.load(Ordering::Acquire) {
        return server;
    }
    let further = from_schema("test_further", "Is new.", any(), async |_: Value, _: ToolRequest| "new");
    server.tool(further).prompt(Prompt::new("test_further"), async |_| Ok(vec![Message::user("New.")]))
}

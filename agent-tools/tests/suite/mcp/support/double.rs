//! Well-behaved server in this process that records its observations.
#![expect(
    deprecated,
    reason = "roots, sampling and logging are on their way out of the protocol, and servers have them"
)]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use agent_core::{Error, ErrorKind};
use agent_tools::mcp::{Client, ClientBuilder, Protocol, Reader, Streams, Writer};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, model::*, service::RequestContext};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

#[derive(Clone, Default)]
pub(crate) struct Double(Arc<Inner>);

#[derive(Default)]
struct Inner {
    seen: Mutex<Vec<String>>,
    away: AtomicBool,
    grown: AtomicBool,
    connections: Mutex<Vec<AbortHandle>>,
}

impl Double {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns a client of the server.
    pub(crate) fn client(&self) -> Client {
        self.builder().build().expect("builds")
    }

    /// Returns a builder of a client that begins with a handshake.
    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder("double", self.streams()).protocol(Protocol::Handshake)
    }

    pub(crate) fn streams(&self) -> Streams {
        let double = self.clone();
        Streams::new(move || {
            let double = double.clone();
            Box::pin(async move {
                double.note("connected");
                if double.0.away.load(Ordering::Acquire) {
                    return Err(Error::new(ErrorKind::Transport, "nobody listens"));
                }
                let (near, mut far) = tokio::io::duplex(64 * 1024);
                let (mut cut, end) = tokio::io::duplex(64 * 1024);
                let wire = tokio::spawn(async move { tokio::io::copy_bidirectional(&mut far, &mut cut).await });
                double.0.connections.lock().expect("free").push(wire.abort_handle());
                tokio::spawn(async move {
                    if let Ok(server) = double.serve(end).await {
                        let _ = server.waiting().await;
                    }
                });
                let (reader, writer) = tokio::io::split(near);
                Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
            })
        })
    }

    /// Closes every connection.
    pub(crate) fn kill(&self) {
        self.0.connections.lock().expect("free").drain(..).for_each(|wire| wire.abort());
    }

    pub(crate) fn set_away(&self, away: bool) {
        self.0.away.store(away, Ordering::Release);
    }

    fn note(&self, what: impl Into<String>) {
        self.0.seen.lock().expect("free").push(what.into());
    }

    /// Returns the number of recorded observations of this kind.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.0.seen.lock().expect("free").iter().filter(|seen| *seen == what).count()
    }
}

fn tool(name: &'static str, schema: &Value) -> Tool {
    Tool::new(name, format!("Does {name}."), schema.as_object().cloned().expect("an object"))
}

fn text(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResponse::Complete(CallToolResult::success(vec![ContentBlock::text(text)])))
}

impl ServerHandler for Double {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().enable_logging().build();
        ServerConfig::new(capabilities).with_instructions("Be kind.")
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.note("list");
        let any = json!({"type": "object"});
        if page.and_then(|page| page.cursor).is_none() {
            let text = json!({"type": "object", "properties": {"text": {"type": "string", "pattern": "^.*$"}}});
            let mut result = ListToolsResult::with_all_items(vec![
                tool("echo", &text).annotate(ToolAnnotations::new().read_only(true)),
                tool("add", &any).annotate(ToolAnnotations::new().idempotent(true)),
                tool("zoo", &any),
                tool("broken", &json!({"type": "object", "properties": {"a": {"type": "nonsense"}}})),
            ]);
            result.next_cursor = Some("more".into());
            return Ok(result);
        }
        let mut tools: Vec<_> =
            ["fail", "refuse", "slow", "ask", "nag", "think", "where", "grow", "big", "log", "a.b/c"]
                .into_iter()
                .map(|name| tool(name, &any))
                .collect();
        if self.0.grown.load(Ordering::Acquire) {
            tools.push(tool("grown", &any));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(params.arguments.clone().unwrap_or_default());
        self.note(&*params.name);
        match &*params.name {
            "echo" => text(args["text"].as_str().unwrap_or_default()),
            "a.b/c" => text("dotted"),
            "add" => {
                let sum = args["a"].as_i64().unwrap_or_default() + args["b"].as_i64().unwrap_or_default();
                Ok(CallToolResponse::Complete(CallToolResult::structured(json!({ "sum": sum }))))
            }
            "zoo" => Ok(CallToolResponse::Complete(CallToolResult::success(vec![
                ContentBlock::text("a lion"),
                ContentBlock::image("aW1n", "image/png"),
                ContentBlock::Audio(AudioContent::new("c291bmQ=", "audio/wav")),
                ContentBlock::resource(ResourceContents::text("It roars.", "zoo://lion")),
                ContentBlock::resource(ResourceContents::blob("cGRm", "zoo://map").with_mime_type("application/pdf")),
                ContentBlock::resource_link(Resource::new("zoo://all", "everything")),
            ]))),
            "fail" => Ok(CallToolResponse::Complete(CallToolResult::error(vec![ContentBlock::text("no lion today")]))),
            "refuse" => Err(ErrorData::invalid_params("there is no such lion", None)),
            "slow" => {
                let token = cx.meta.get_progress_token().expect("a token");
                for step in 1..=3 {
                    let told = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
                    let _ = cx.peer.notify_progress(told.with_message(format!("step {step}"))).await;
                }
                if args["end"] == true {
                    return text("done");
                }
                cx.ct.cancelled().await;
                self.note("slow was cancelled");
                text("too late")
            }
            "ask" => {
                let fields = json!({"name": {"type": "string"}, "mood": {"type": "integer", "default": 7}});
                let schema = json!({"type": "object", "properties": fields, "required": ["name"]});
                let request = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "Who are you?".to_owned()
                        + &"!".repeat(usize::try_from(args["long"].as_u64().unwrap_or_default()).expect("fits")),
                    requested_schema: serde_json::from_value(schema).expect("a schema"),
                };
                match cx.peer.create_elicitation(request).await {
                    Ok(answer) => text(format!("{:?} {}", answer.action, answer.content.unwrap_or_default())),
                    Err(error) => text(format!("nobody could be asked: {error}")),
                }
            }
            "nag" => {
                let mut answers = 0;
                for _ in 0..150 {
                    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text("And now?")], 1);
                    answers += u32::from(cx.peer.create_message(params).await.is_ok());
                }
                text(format!("{answers} answers"))
            }
            "think" => {
                let mut thoughts = Vec::new();
                let of = args["of"].as_array().cloned().unwrap_or_else(|| vec![json!("What is 6 x 7?")]);
                for asks in of.iter().filter_map(Value::as_str) {
                    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(asks)], 100);
                    thoughts.push(match cx.peer.create_message(params).await {
                        Ok(said) => format!(
                            "{asks}: {}",
                            said.message.content.first().and_then(|c| c.as_text()).map_or("", |t| &t.text)
                        ),
                        Err(error) => format!("no model: {error}"),
                    });
                }
                text(thoughts.join(", "))
            }
            "where" => {
                let roots = cx.peer.list_roots().await.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
                text(roots.roots.iter().map(|root| root.uri.clone()).collect::<Vec<_>>().join(" "))
            }
            "grow" => {
                self.0.grown.store(true, Ordering::Release);
                let _ = cx.peer.notify_tool_list_changed().await;
                text("grown")
            }
            "big" => text("x".repeat(usize::try_from(args["size"].as_u64().unwrap_or_default()).expect("fits"))),
            "log" => {
                let said = LoggingMessageNotificationParam::new(LoggingLevel::Warning, json!("the lion is loose"));
                let _ = cx.peer.notify_logging_message(said).await;
                text("logged")
            }
            _ => Err(ErrorData::invalid_params("unknown tool", None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let lion = Resource::new("zoo://lion", "lion").with_mime_type("text/plain").with_description("A cat.");
        Ok(ListResourcesResult::with_all_items(vec![lion]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![ResourceTemplate::new("zoo://{animal}", "animal")]))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match &*params.uri {
            "zoo://lion" => {
                let contents = vec![ResourceContents::text("It roars.", "zoo://lion")];
                Ok(ReadResourceResponse::Complete(ReadResourceResult::new(contents)))
            }
            "zoo://big" => {
                let contents = vec![ResourceContents::text("x".repeat(100_000), "zoo://big")];
                Ok(ReadResourceResponse::Complete(ReadResourceResult::new(contents)))
            }
            other => Err(ErrorData::resource_not_found(format!("there is no {other}"), None)),
        }
    }

    async fn subscribe(&self, params: SubscribeRequestParams, cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.note("subscribed");
        tokio::spawn(async move {
            let _ = cx.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(params.uri)).await;
        });
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.note("unsubscribed");
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = PromptArgument::new("animal").with_required(true);
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("story", Some("A story."), Some(vec![argument]))]))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let animal = params.arguments.unwrap_or_default()["animal"].as_str().unwrap_or_default().to_owned();
        Ok(GetPromptResponse::Complete(GetPromptResult::new(vec![
            PromptMessage::new_text(Role::User, format!("Tell of a {animal}.")),
            PromptMessage::new_text(Role::Assistant, "Once upon a time"),
        ])))
    }
}

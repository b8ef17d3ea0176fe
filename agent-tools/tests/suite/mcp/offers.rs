//! Served resources, prompts, completions and logs, over streams and HTTP.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::Toolset;
use agent_core::{AssistantMessage, Block, ErrorKind, History, Media, Message, ModelRequest, Part, ToolRequest};
use agent_tools::{
    from_schema,
    mcp::{
        Caller, Client, CompletionRequest, Http, ListChange, LogLevel, Prompt, PromptArgument, PromptRequest, Resource,
        ResourceRequest, ResourceTemplate, Server, ServerBuilder,
    },
};
use futures::StreamExt;
use rmcp::model::{self as told, ArgumentInfo, CallToolRequestParams, CompleteRequestParams, Reference};
use serde_json::{Value, json};

use super::{served::over_streams, support::*};

fn any() -> Value {
    json!({"type": "object", "properties": {}})
}

fn server() -> ServerBuilder {
    let advise = Prompt::new("advise").with_description("Advises.");
    let advise =
        advise.with_argument(PromptArgument::new("city").required()).with_argument(PromptArgument::new("tone"));
    Server::builder("zoo")
        .resource(Resource::new("zoo://lion", "lion").with_mime("text/markdown"), async |_| "It *roars*.")
        .resource(Resource::new("zoo://photo", "photo"), async |_| {
            vec![Part::Image(Media::base64("aW1n", "image/png"))]
        })
        .resource(Resource::new("zoo://closed", "closed"), async |_| Err::<String, _>("the house is closed"))
        .resource(Resource::new("zoo://broken", "broken"), async |_| -> String { panic!("hush") })
        .resource_template(ResourceTemplate::new("zoo://{animal}/food", "food"), async |asked: ResourceRequest| {
            format!("{} eats.", asked.get("animal"))
        })
        .prompt(advise, async |asked: PromptRequest| {
            let said = AssistantMessage::new(vec![Block::text("Gladly.")]);
            Ok(vec![Message::user(format!("Advise on {}.", asked.get("city"))), Message::Assistant(said)])
        })
        .completion("advise", "city", async |asked: CompletionRequest| {
            (0..250).map(|n| format!("{}{n}", asked.typed)).collect()
        })
        .completion("zoo://{animal}/food", "animal", async |_| vec!["lion".to_owned()])
}

/// Runs a test over streams and over HTTP.
async fn both(test: impl AsyncFn(Client, Server)) {
    let over = server().build().expect("builds");
    test(Client::builder("z", over_streams(over.clone())).build().expect("builds"), over).await;
    let over = server().build().expect("builds");
    let serving = over.serve_http(([127, 0, 0, 1], 0).into()).await.expect("serves");
    let http = Http::new(format!("http://{}/mcp", serving.address()));
    test(Client::builder("z", http).build().expect("builds"), over).await;
}

#[tokio::test]
async fn resources_and_templates_are_listed_and_read_and_a_failure_has_its_words() {
    both(async |client, _| {
        let listed: Vec<_> = client.resources().await.expect("listed").into_iter().map(|r| r.uri).collect();
        assert_eq!(listed, ["zoo://lion", "zoo://photo", "zoo://closed", "zoo://broken"]);
        assert_eq!(client.resource_templates().await.expect("listed")[0].uri, "zoo://{animal}/food");
        let read = async |uri: &str| client.read_resource(uri).await;
        assert!(read("zoo://lion").await.expect("read")[0].as_text().expect("text").ends_with("It *roars*."));
        assert!(matches!(&read("zoo://photo").await.expect("read")[..], [Part::Image(_)]));
        assert!(
            read("zoo://sea%20lion/food").await.expect("read")[0].as_text().expect("text").ends_with("sea lion eats.")
        );
        assert_eq!(read("zoo://unicorn").await.expect_err("none").message(), "there is no such resource");
        assert_eq!(read("zoo://closed").await.expect_err("closed").message(), "the house is closed");
        let broken = read("zoo://broken").await.expect_err("a panic");
        assert_eq!((broken.kind(), broken.message()), (ErrorKind::Tool, "The server failed."));
    })
    .await;
}

#[tokio::test]
async fn who_subscribed_hears_of_a_change_until_it_wants_to_no_more() {
    both(async |client, server| {
        let mut updates = client.resource_updates();
        client.subscribe("zoo://lion").await.expect("subscribed");
        client.subscribe("zoo://tiger/food").await.expect("subscribed");
        assert!(client.subscribe("zoo://unicorn").await.is_err(), "there is none");
        server.resource_updated("zoo://photo");
        server.resource_updated("zoo://lion");
        assert_eq!(updates.next().await.as_deref(), Some("zoo://lion"));
        client.unsubscribe("zoo://lion").await.expect("unsubscribed");
        server.resource_updated("zoo://lion");
        server.resource_updated("zoo://tiger/food");
        assert_eq!(updates.next().await.as_deref(), Some("zoo://tiger/food"));
    })
    .await;
}

#[tokio::test]
async fn what_is_served_in_place_of_something_else_is_offered_to_clients_that_are_there() {
    both(async |client, server| {
        assert_eq!(names(&client).await, [""; 0]);
        let dance = from_schema("dance", "Dances.", any(), async |_: Value, _: ToolRequest| "danced");
        server.replace(self::server().tool(dance)).expect("replaced");
        let mut known = Vec::new();
        for _ in 0..200 {
            known = names(&client).await;
            if !known.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(known, ["z_dance"]);
        let twice = self::server().resource(Resource::new("zoo://lion", "again"), async |_| "");
        assert!(server.replace(twice).expect_err("twice").message().contains("'zoo://lion'"));
        assert_eq!(call(&client, "z_dance", json!({})).await.expect("still there").to_text(), "danced");
    })
    .await;
}

#[tokio::test]
async fn a_prompt_is_made_of_its_arguments_and_not_without_those_that_it_needs() {
    both(async |client, _| {
        let prompts = client.prompts().await.expect("listed");
        assert!(prompts[0].arguments[0].required && !prompts[0].arguments[1].required);
        let made = client.prompt("advise", [("city", "Bern")]).await.expect("made");
        assert!(matches!(&made[..], [Message::User(_), Message::Assistant(_)]));
        assert_eq!(made[0].text(), "Advise on Bern.");
        let error = client.prompt("advise", [("tone", "dry")]).await.expect_err("no city");
        assert_eq!(error.message(), "the prompt 'advise' needs the argument 'city'");
        assert_eq!(client.prompt("sing", []).await.expect_err("none").message(), "there is no prompt 'sing'");
    })
    .await;
}

#[tokio::test]
async fn a_list_of_many_resources_comes_whole_and_page_by_page() {
    let many = (0..600).fold(Server::builder("many"), |server, n| {
        server.resource(Resource::new(format!("n://{n}"), n.to_string()), async |_| "")
    });
    let many = many.build().expect("builds");
    let peer = raw(many.clone(), Heard::default()).await;
    let first = peer.list_resources(None).await.expect("listed");
    assert_eq!((first.resources.len(), first.next_cursor.is_some()), (250, true));
    let client = Client::builder("m", over_streams(many)).build().expect("builds");
    let all: Vec<_> = client.resources().await.expect("listed").into_iter().map(|r| r.name).collect();
    assert_eq!(all, (0..600).map(|n| n.to_string()).collect::<Vec<_>>());
}

/// Notifications that a client of the library received.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().expect("free").push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().expect("free").clone()
    }
}

type Told = rmcp::service::NotificationContext<rmcp::RoleClient>;

impl rmcp::ClientHandler for Heard {
    #[expect(deprecated, reason = "servers ask models in this way")]
    fn get_info(&self) -> told::ClientConfig {
        let can = told::ClientCapabilities::builder().enable_sampling().build();
        told::ClientConfig::new(can, told::Implementation::new("test", "1"))
    }

    async fn on_tool_list_changed(&self, _: Told) {
        self.note("tools");
    }

    async fn on_prompt_list_changed(&self, _: Told) {
        self.note("prompts");
    }

    async fn on_resource_list_changed(&self, _: Told) {
        self.note("resources");
    }

    #[expect(deprecated, reason = "servers log in this way")]
    async fn on_logging_message(&self, log: told::LoggingMessageNotificationParam, _: Told) {
        self.note(format!("{:?} {}", log.level, log.data));
    }

    #[expect(deprecated, reason = "servers ask models in this way")]
    async fn create_message(
        &self,
        asked: told::CreateMessageRequestParams,
        _: rmcp::service::RequestContext<rmcp::RoleClient>,
    ) -> Result<told::CreateMessageResult, rmcp::ErrorData> {
        self.note(format!("{} tokens, {:?}", asked.max_tokens, asked.system_prompt));
        Ok(told::CreateMessageResult::new(told::SamplingMessage::assistant_text("42"), "a-model".into()))
    }
}

/// Returns a client of the library at the other end of two streams.
async fn raw(server: Server, heard: Heard) -> rmcp::service::RunningService<rmcp::RoleClient, Heard> {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(async move { server.serve(reader, writer).await });
    rmcp::serve_client(heard, near).await.expect("connects")
}

#[tokio::test]
async fn a_program_is_told_of_the_lists_that_changed() {
    both(async |client, server| {
        client.warm_up().await.expect("connects");
        let mut changes = client.list_changes();
        let closed = ResourceTemplate::new("zoo://{animal}/bed", "bed");
        let prompt = self::server().prompt(Prompt::new("sing"), async |_| Ok(vec![]));
        server.replace(prompt.resource_template(closed, async |_| "straw")).expect("replaced");
        let told = [changes.next().await.expect("told"), changes.next().await.expect("told")];
        assert_eq!(told, [ListChange::Resources, ListChange::Prompts]);
        let dance = from_schema("dance", "Dances.", any(), async |_: Value, _: ToolRequest| "danced");
        server.replace(self::server().tool(dance)).expect("replaced");
        assert_eq!(changes.next().await, Some(ListChange::Tools));
    })
    .await;
}

#[tokio::test]
async fn clients_are_told_of_the_lists_that_changed_and_of_no_other() {
    let (heard, server) = (Heard::default(), server().build().expect("builds"));
    let peer = raw(server.clone(), heard.clone()).await;
    peer.list_prompts(None).await.expect("the hello is over");
    server.replace(self::server()).expect("replaced by the same");
    server.replace(self::server().prompt(Prompt::new("sing"), async |_| Ok(vec![]))).expect("replaced");
    until(|| !heard.all().is_empty()).await;
    let dance = from_schema("dance", "Dances.", any(), async |_: Value, _: ToolRequest| "danced");
    server.replace(self::server().tool(dance)).expect("replaced");
    until(|| heard.all().len() == 3).await;
    assert_eq!(heard.all(), ["prompts", "tools", "prompts"]);
}

#[tokio::test]
async fn an_argument_is_completed_with_a_hundred_values_at_most_and_an_unknown_one_with_none() {
    let peer = raw(server().build().expect("builds"), Heard::default()).await;
    let complete = async |of: Reference, name: &str| {
        let asked = CompleteRequestParams::new(of, ArgumentInfo::new(name, "B"));
        peer.complete(asked).await.expect("completed").completion
    };
    let cities = complete(Reference::for_prompt("advise"), "city").await;
    assert_eq!(
        (cities.values.len(), &*cities.values[0], cities.total, cities.has_more),
        (100, "B0", Some(250), Some(true))
    );
    assert_eq!(complete(Reference::for_prompt("advise"), "tone").await.values, [""; 0]);
    assert_eq!(complete(Reference::for_resource("zoo://{animal}/food"), "animal").await.values, ["lion"]);
    let nothing = server().completion("advise", "colour", async |_| vec![]).build().expect_err("no such argument");
    assert!(nothing.message().contains("'colour' of 'advise'"), "{nothing}");
}

#[tokio::test]
async fn a_tool_logs_what_its_client_wants_to_hear_and_no_more_than_can_be_read() {
    let talk = from_schema("talk", "Talks.", any(), async |_: Value, req: ToolRequest| {
        let caller = req.cx.resources().get::<Caller>()?;
        caller.log(LogLevel::Debug, "a detail");
        caller.log(LogLevel::Error, json!({"what": "x".repeat(100_000)}));
        (0..1000).for_each(|n| caller.log(LogLevel::Info, n));
        Ok::<_, agent_core::Error>("talked")
    });
    let (heard, server) = (Heard::default(), Server::builder("t").tool(talk).build().expect("builds"));
    let peer = raw(server, heard.clone()).await;
    let call = async || peer.call_tool(CallToolRequestParams::new("talk")).await.expect("called");
    call().await;
    let first = heard.all();
    assert!(first[0].starts_with("Error") && first[0].len() < 20_000, "{}", first[0].len());
    assert!((10..=70).contains(&first.len()), "{}", first.len());
    #[expect(deprecated, reason = "clients set the level in this way")]
    peer.set_level(told::SetLevelRequestParams::new(told::LoggingLevel::Error)).await.expect("set");
    call().await;
    assert_eq!(heard.all().len(), first.len() + 1, "what matters less is not told");
}

#[tokio::test]
async fn a_tool_asks_the_model_of_its_client_if_there_is_one() {
    let think = || {
        from_schema("think", "Thinks.", any(), async |_: Value, req: ToolRequest| {
            let model = req.cx.resources().get::<Caller>()?.model()?;
            let mut request = ModelRequest::new(req.cx.clone());
            request.messages = History::from_messages([Message::user("What is 6 x 7?")])?;
            Ok::<_, agent_core::Error>(req.cx.call_model(&model, request).await?.message.text())
        })
    };
    let (heard, server) = (Heard::default(), Server::builder("t").tool(think()).build().expect("builds"));
    let peer = raw(server.clone(), heard.clone()).await;
    let result = peer.call_tool(CallToolRequestParams::new("think")).await.expect("called");
    assert!(serde_json::to_string(&result).expect("JSON").contains("\"42\""), "{result:?}");
    assert_eq!(heard.all(), ["4096 tokens, None"]);
    let client = Client::builder("t", over_streams(server)).build().expect("builds");
    let refused = call(&client, "t_think", json!({})).await.expect_err("an error of the protocol");
    assert!(refused.message().contains("lets no server ask one"), "{refused}");
}

#[cfg(feature = "skills")]
#[tokio::test]
async fn skills_are_served_as_resources_with_their_files_and_nothing_beside_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let skill = dir.path().join("tea");
    std::fs::create_dir(&skill).expect("made");
    std::fs::write(skill.join("SKILL.md"), "---\ndescription: How tea is made.\n---\nBoil water.").expect("written");
    std::fs::write(skill.join("kinds.md"), "Green, black.").expect("written");
    std::fs::write(dir.path().join("secret"), "hush").expect("written");
    let skills = agent_tools::Skills::open(dir.path()).expect("skills");
    let server = Server::builder("s").skills(&skills).build().expect("builds");
    let client = Client::builder("s", over_streams(server)).build().expect("builds");
    let listed = client.resources().await.expect("listed");
    assert_eq!((&*listed[0].uri, listed[0].description.as_deref()), ("skill://tea/SKILL.md", Some("How tea is made.")));
    let read =
        async |uri: &str| client.read_resource(uri).await.map(|parts| parts[0].as_text().expect("text").to_owned());
    assert!(read("skill://tea/SKILL.md").await.expect("read").contains("Boil water."));
    assert!(read("skill://tea/kinds.md").await.expect("read").contains("Green, black."));
    for uri in ["skill://tea/../secret", "skill://tea/%2e%2e/secret", "skill://tea//etc/passwd", "skill://none/x"] {
        assert!(read(uri).await.is_err(), "{uri}");
    }
}

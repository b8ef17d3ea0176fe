//! Response cache.

use crate::common;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    AssistantMessage, Block, Chunk, Error, ErrorKind, Event, EventKind, FinishReason, History, Message, Model,
    ModelInfo, ModelParams, ModelRequest, ModelResponse, ModelService, Part, Result, SystemMessage, Text, ToolMessage,
    ToolSpec, ToolSpecs, Usage, UserMessage, async_trait,
    message::{Cache, Origin, Raw},
    testing::detached_run,
    tool::RemoteMcp,
};
use agent_llm::{
    ResponseCache, ScriptedModel, Turn,
    cache::{CACHE_MARK, CacheKey, CacheLayer, CacheStore, MemoryCache, is_hit},
};
use futures::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{listen, request};

fn cache() -> ResponseCache {
    ResponseCache::new(MemoryCache::new())
}

fn layer(cache: &ResponseCache) -> CacheLayer {
    cache.layer(ModelInfo::new("m").with_provider("acme"))
}

fn stack(layer: &CacheLayer, model: &ScriptedModel) -> ModelService {
    let model = model.clone();
    let service = service_fn(move |req: ModelRequest| {
        let model = model.clone();
        async move { model.call(req).await }
    });
    ModelService::new(layer.layer(ModelService::new(service)))
}

async fn ask(stack: &ModelService, text: &str) -> Result<ModelResponse> {
    let run = common::run([Message::user(text)]);
    stack.clone().oneshot(ModelRequest::new(run.cx().clone())).await
}

fn slow(text: &str) -> Turn {
    Turn::text(text).delay(Duration::from_secs(1))
}

// --- hits ---

#[tokio::test]
async fn a_hit_is_the_same_answer_of_no_usage_and_is_marked() {
    let mut used = Usage::new(100, 20);
    (used.cost, used.priced) = (7, 1);
    let model = ScriptedModel::new([Turn::text("forty-two").usage(used)]);
    let cache = cache();
    let stack = stack(&layer(&cache), &model);
    let (first, again) = (ask(&stack, "6 x 7?").await.expect("asked"), ask(&stack, "6 x 7?").await.expect("known"));
    assert_eq!((first.usage, is_hit(&first)), (used, false));
    assert_eq!((again.usage, is_hit(&again)), (Usage::default(), true));
    assert_eq!((again.message, again.finish, again.model), (first.message, first.finish, first.model));
    assert_eq!(again.details[CACHE_MARK], json!({"hit": true, "saved": used}));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.saved), (1, 1, used));
}

#[tokio::test]
async fn a_hit_is_told_to_whoever_listens() {
    let calls = AssistantMessage::new(vec![Block::text("let me see"), Block::tool_call("c", "look", r#"{"at":1}"#)]);
    let model = ScriptedModel::new([Turn::message(calls.clone())]);
    let stack = stack(&layer(&cache()), &model);
    ask(&stack, "look").await.expect("asked");
    let run = common::run([Message::user("look")]);
    let mut req = ModelRequest::new(run.cx().clone());
    req.stream = true;
    let heard = listen(&mut req);
    let hit = stack.oneshot(req).await.expect("known");
    assert_eq!((&hit.message, hit.finish.clone(), model.calls()), (&calls, FinishReason::ToolCalls, 1));
    let heard = heard.lock().expect("lock").clone();
    assert!(heard.contains(&Chunk::Text { index: 0, delta: "let me see".into() }), "{heard:?}");
    assert!(heard.contains(&Chunk::ToolCall { index: 1, id: "c".into(), name: "look".into() }), "{heard:?}");
}

#[tokio::test]
async fn a_call_that_is_skipped_is_neither_answered_nor_kept() {
    let model = ScriptedModel::new(["one", "two", "three"].map(Turn::text));
    let cache = cache();
    let (all, none) = (stack(&layer(&cache), &model), stack(&layer(&cache).skip(|_| true), &model));
    assert_eq!(ask(&none, "a").await.expect("asked").message.text(), "one");
    assert_eq!(ask(&all, "a").await.expect("asked").message.text(), "two");
    assert_eq!(ask(&none, "a").await.expect("asked").message.text(), "three");
    assert_eq!(ask(&all, "a").await.expect("known").message.text(), "two");
}

#[tokio::test]
async fn errors_are_not_kept() {
    let fail = || Error::new(ErrorKind::Provider, "broken");
    let model = ScriptedModel::new([Turn::error(fail), Turn::text("fine")]);
    let stack = stack(&layer(&cache()), &model);
    assert_eq!(ask(&stack, "a").await.expect_err("broken").kind(), ErrorKind::Provider);
    assert_eq!(ask(&stack, "a").await.expect("asked again").message.text(), "fine");
    assert!(is_hit(&ask(&stack, "a").await.expect("known")));
}

// --- concurrent calls ---

#[tokio::test(start_paused = true)]
async fn the_same_calls_at_once_are_one_call() {
    let model = ScriptedModel::new([slow("only one"), slow("another")]);
    let stack = stack(&layer(&cache()), &model);
    let all = join_all((0..20).map(|n| ask(&stack, if n < 19 { "same" } else { "other" }))).await;
    let usage = all.iter().map(|r| r.as_ref().expect("an answer").usage.calls).sum::<u64>();
    assert_eq!((usage, model.calls(), model.peak()), (2, 2, 2), "different ones do not wait for each other");
}

#[tokio::test(start_paused = true)]
async fn if_the_call_that_others_wait_for_fails_the_next_one_is_made() {
    let fail = || Error::new(ErrorKind::Provider, "broken");
    let model = ScriptedModel::new([slow("").then_fail(fail), slow("fine")]);
    let stack = stack(&layer(&cache()), &model);
    let all = join_all((0..5).map(|_| ask(&stack, "same"))).await;
    assert_eq!((all.iter().filter(|r| r.is_err()).count(), model.calls()), (1, 2), "only its own caller is told");
}

#[tokio::test(start_paused = true)]
async fn if_the_call_that_others_wait_for_is_dropped_the_next_one_is_made() {
    let model = ScriptedModel::new([slow("a b c"), slow("fine")]);
    let stack = stack(&layer(&cache()), &model);
    let cut = tokio::time::timeout(Duration::from_millis(1_500), ask(&stack, "same"));
    let (cut, other) = tokio::join!(cut, ask(&stack, "same"));
    assert!(cut.is_err());
    assert_eq!((other.expect("an answer").message.text().as_str(), model.calls()), ("fine", 2));
}

// --- changes by outer layers ---

fn from_provider() -> AssistantMessage {
    let raw = Raw::parse(Origin::new("w", "p", "m"), r#"{"content": "a secret word"}"#).expect("valid JSON");
    AssistantMessage::from_provider(vec![Block::text("a secret word")], raw)
}

/// A request whose outer layers hide a word.
fn hiding() -> ModelRequest {
    let mut req = request([Message::user("say")]);
    req.sink = req.sink.with(|chunk| {
        Ok(Some(match chunk {
            Chunk::Text { index, delta } => Chunk::Text { index, delta: delta.replace("secret", "[hidden]") },
            other => other,
        }))
    });
    req
}

#[tokio::test]
async fn what_is_kept_is_the_models_answer_and_each_caller_has_its_own_layers() {
    let model = ScriptedModel::new([Turn::message(from_provider())]);
    let stack = stack(&layer(&cache()), &model);
    let hidden = stack.clone().oneshot(hiding()).await.expect("asked").message;
    assert_eq!((hidden.text().as_str(), hidden.is_edited()), ("a [hidden] word", true));
    let plain = ask(&stack, "say").await.expect("known").message;
    assert_eq!((plain.text().as_str(), plain.is_edited(), plain.raw().is_some()), ("a secret word", false, true));
    let again = stack.oneshot(hiding()).await.expect("known").message;
    assert_eq!((again.text().as_str(), again.is_edited()), ("a [hidden] word", true));
}

#[tokio::test]
async fn layers_that_change_nothing_leave_the_answer_with_its_raw_json() {
    let model = ScriptedModel::new([Turn::message(from_provider())]);
    let mut req = request([Message::user("say")]);
    req.sink = req.sink.with(|chunk| Ok(Some(chunk)));
    let message = stack(&layer(&cache()), &model).oneshot(req).await.expect("asked").message;
    assert!(!message.is_edited() && message.raw().is_some());
}

#[tokio::test]
async fn a_layer_outside_can_end_a_call_and_a_hit() {
    let model = ScriptedModel::new(["one", "two"].map(Turn::text));
    let stack = stack(&layer(&cache()), &model);
    let refusing = || {
        let mut req = request([Message::user("say")]);
        req.sink = req.sink.with(|_| Err(Error::new(ErrorKind::ContentFiltered, "no")));
        req
    };
    let ended = stack.clone().oneshot(refusing()).await.expect_err("ended");
    assert_eq!(ended.kind(), ErrorKind::ContentFiltered);
    assert_eq!(ask(&stack, "say").await.expect("not kept").message.text(), "two");
    assert_eq!(stack.oneshot(refusing()).await.expect_err("ended").kind(), ErrorKind::ContentFiltered);
}

// --- stores ---

/// A store as in another process: it keeps serialised text.
#[derive(Default)]
struct Elsewhere(Mutex<HashMap<String, String>>);

#[async_trait]
impl CacheStore for Elsewhere {
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<ModelResponse>>> {
        let kept = self.0.lock().expect("lock").get(&key.to_string()).cloned();
        Ok(kept.map(|json| Arc::new(serde_json::from_str(&json).expect("a response"))))
    }

    async fn put(&self, key: CacheKey, response: Arc<ModelResponse>) -> Result<()> {
        let json = serde_json::to_string(&*response).expect("JSON");
        self.0.lock().expect("lock").insert(key.to_string(), json);
        Ok(())
    }
}

#[tokio::test]
async fn an_application_can_keep_answers_elsewhere() {
    let model = ScriptedModel::new([Turn::message(from_provider())]);
    let store = Arc::new(Elsewhere::default());
    ask(&stack(&layer(&ResponseCache::new(store.clone())), &model), "say").await.expect("asked");
    let later = ask(&stack(&layer(&ResponseCache::new(store)), &model), "say").await.expect("known");
    assert_eq!((later.message, is_hit(&ModelResponse::new("x"))), (from_provider(), false));
}

struct Broken;

#[async_trait]
impl CacheStore for Broken {
    async fn get(&self, _: &CacheKey) -> Result<Option<Arc<ModelResponse>>> {
        Err(Error::new(ErrorKind::Store, "unreachable"))
    }

    async fn put(&self, _: CacheKey, _: Arc<ModelResponse>) -> Result<()> {
        Err(Error::new(ErrorKind::Store, "unreachable"))
    }
}

#[tokio::test]
async fn a_store_that_fails_is_reported_and_the_model_is_asked() {
    let stack = stack(&layer(&ResponseCache::new(Broken)), &ScriptedModel::new([Turn::text("fine")]));
    let run = common::run([Message::user("a")]);
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let sink = warnings.clone();
    run.cx().attach(Arc::new(move |event: &Event| {
        if let EventKind::Warning { message } = &event.kind {
            sink.lock().expect("lock").push(message.clone());
        }
    }));
    let answer = stack.oneshot(ModelRequest::new(run.cx().clone())).await.expect("asked");
    let warnings = warnings.lock().expect("lock").clone();
    assert_eq!((answer.message.text().as_str(), warnings.len()), ("fine", 2));
    assert!(warnings.iter().all(|warning| warning.contains("unreachable")), "{warnings:?}");
}

// --- keys ---

fn key(req: &ModelRequest) -> CacheKey {
    CacheKey::of(&ModelInfo::new("m").with_provider("acme"), req)
}

/// A turn with two calls with these ids.
fn turn(first: &str, second: &str, raw: bool) -> Vec<Message> {
    let calls = [first, second].map(|id| Block::tool_call(id, "look", "{}")).to_vec();
    let json = format!(r#"{{"calls": [{{"id": "{first}"}}, {{"id": "{second}"}}]}}"#);
    let message = match raw {
        true => AssistantMessage::from_provider(calls, Raw::parse(Origin::new("w", "p", "m"), json).expect("JSON")),
        false => AssistantMessage::new(calls),
    };
    let result = |id: &str, text: &str| Message::Tool(ToolMessage::text(id, "look", text, false));
    vec![Message::user("go"), Message::Assistant(message), result(first, "one"), result(second, "two")]
}

#[test]
fn who_asks_and_how_calls_are_named_does_not_decide_an_answer() {
    let plain = request([Message::user("hi")]);
    let mut streamed = request([Message::user("hi")]);
    (streamed.stream, streamed.resumed) = (true, true);
    assert_ne!(plain.cx.ids().run_id, streamed.cx.ids().run_id);
    assert_eq!(key(&plain), key(&streamed));
    let mark = Part::Text(Text::new("hi").with_cache(Cache::Long));
    assert_eq!(key(&plain), key(&request([Message::User(UserMessage::new(vec![mark]))])));
    for raw in [false, true] {
        assert_eq!(key(&request(turn("a", "b", raw))), key(&request(turn("call_7", "call_9", raw))));
    }
    assert_ne!(key(&request(turn("a", "b", false))), key(&request(turn("a", "b", true))));
}

#[test]
fn everything_that_is_asked_decides_an_answer() {
    let base = || request([Message::user("hi")]);
    let with = |change: &dyn Fn(&mut ModelRequest)| {
        let mut req = base();
        change(&mut req);
        key(&req)
    };
    let tool = |name: &str, about: &str, parameters| ToolSpecs::from_iter([ToolSpec::new(name, about, parameters)]);
    let mcp = || RemoteMcp::new("wiki", "https://mcp.test");
    let wiki = |server: RemoteMcp| ToolSpecs::from_iter([ToolSpec::of_server(server)]);
    let params = |params: ModelParams| with(&move |req| req.params = Arc::new(params.clone()));
    let keys = [
        key(&base()),
        CacheKey::of(&ModelInfo::new("m").with_provider("other"), &base()),
        CacheKey::of(&ModelInfo::new("m2").with_provider("acme"), &base()),
        with(&|req| req.model = Some(Arc::new(ModelInfo::new("m").with_provider("acme")))),
        with(&|req| req.model = Some(Arc::new(ModelInfo::new("m2").with_provider("acme")))),
        with(&|req| req.system = Some(SystemMessage::new(vec![Part::text("hi")]))),
        with(&|req| req.system = Some(SystemMessage::new(vec![]))),
        with(&|req| req.tools = tool("f", "", json!({}))),
        with(&|req| req.tools = tool("f", "does", json!({}))),
        with(&|req| req.tools = tool("f", "", json!({"type": "object"}))),
        with(&|req| req.tools = wiki(mcp())),
        with(&|req| req.tools = wiki(mcp().authorization("hush"))),
        with(&|req| req.tools = wiki(mcp().authorization("hush hush"))),
        with(&|req| req.tools = wiki(mcp().header("x-key", "hush"))),
        params(ModelParams::default().temperature(0.0)),
        params(ModelParams::default().temperature(0.5)),
        params(ModelParams::default().max_tokens(5)),
        params(ModelParams::default().extra("seed", 1)),
        key(&request([Message::user("hi"), Message::user("")])),
        key(&request([Message::assistant("hi")])),
        key(&request([Message::system("hi")])),
        key(&request(turn("a", "b", false))),
        {
            let mut swapped = turn("a", "b", false);
            let names =
                ["b", "a"].map(|id| ToolMessage::text(id, "look", if id == "a" { "two" } else { "one" }, false));
            swapped[1] = Message::Assistant(AssistantMessage::new(
                ["b", "a"].map(|id| Block::tool_call(id, if id == "a" { "see" } else { "look" }, "{}")).to_vec(),
            ));
            (swapped[2], swapped[3]) = (Message::Tool(names[0].clone()), Message::Tool(names[1].clone()));
            key(&request(swapped))
        },
    ];
    for (at, one) in keys.iter().enumerate() {
        assert!(keys[at + 1..].iter().all(|other| one != other), "{at}");
    }
}

/// Content from a small alphabet, so that equal values occur.
fn content() -> impl Strategy<Value = Vec<Message>> {
    let text = || prop::sample::select(vec!["", "a", "b", "ab"]);
    let parts = || prop::collection::vec(text().prop_map(Part::text), 0..3);
    let message = prop_oneof![
        parts().prop_map(|parts| vec![Message::User(UserMessage::new(parts))]),
        parts().prop_map(|parts| vec![Message::System(SystemMessage::new(parts))]),
        prop::collection::vec(text(), 1..3).prop_map(|texts| vec![Message::Assistant(AssistantMessage::new(
            texts.into_iter().map(Block::text).collect()
        ))]),
        (text(), text(), any::<bool>()).prop_map(|(arguments, result, failed)| {
            let call = AssistantMessage::new(vec![Block::tool_call("c", "f", arguments)]);
            vec![Message::Assistant(call), Message::Tool(ToolMessage::text("c", "f", result, failed))]
        }),
    ];
    prop::collection::vec(message, 0..3).prop_map(|turns| turns.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn two_requests_have_the_same_key_if_and_only_if_they_say_the_same(
        a in content(), b in content(),
        systems in prop::collection::vec(prop::option::of(prop::sample::select(vec!["", "a"])), 2),
    ) {
        let request = |messages: &[Message], system: Option<&str>| {
            let history = History::from_messages(messages.iter().cloned()).expect("paired");
            let mut req = ModelRequest::new(detached_run(history).cx().clone());
            req.system = system.map(|text| SystemMessage::new(vec![Part::text(text)]));
            req
        };
        let same = a == b && systems[0] == systems[1];
        prop_assert_eq!(key(&request(&a, systems[0])) == key(&request(&b, systems[1])), same);
        prop_assert_eq!(key(&request(&a, None)), key(&request(&a, None)));
    }
}

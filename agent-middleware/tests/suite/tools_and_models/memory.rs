//! Memory from one run to the next.

use agent_core::{
    Checkpoint, Error, ErrorKind, Message, Middleware, Result, RunCx, RunRequest, async_trait,
    history::ReplaceReason,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::{
    ChatHistory, LongTermMemory, PromptInjection,
    memory::{ChatHistoryConfig, KeepOfRun, LongTermMemoryConfig, MemoryScope},
    prompt_injection::{Sink, SinkWhen},
};
use agent_retrieval::memory::{
    ChatMessage, ChatMessageStore, ChatQuery, Memory, MemoryQuery, MemoryStore, ScoredMemory,
};
use agent_store::{InMemoryChatMessageStore, InMemoryMemoryStore};
use serde_json::{Map, Value, json};

use super::{asks, finished, says, tool, warnings};

fn agent(model: &ScriptedModel, middleware: impl Middleware) -> Agent {
    Agent::builder("a", model.clone())
        .tool(tool("look", ""))
        .tool(asks("wait"))
        .middleware(middleware)
        .build()
        .expect("builds")
}

fn ask(text: &str, user: &str, session: &str) -> RunRequest {
    RunRequest::user(text).on_behalf_of(user).session(session)
}

async fn texts(store: &InMemoryMemoryStore, user: &str, query: &str) -> Vec<String> {
    let found = store.search(user, &MemoryQuery::new(query)).await.expect("searches");
    found.into_iter().map(|found| found.memory.text).collect()
}

/// Resumes the run in another process and drives it to its end.
async fn answered(agent: &Agent, checkpoint: &Checkpoint) -> agent_core::Finished {
    let checkpoint = Checkpoint::from_json(&checkpoint.to_json().expect("serialises")).expect("parses");
    let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), json!("well"))).collect::<Vec<_>>();
    finished(agent.start(RunRequest::resume(checkpoint, answers)).await)
}

// --- memories ---

#[tokio::test]
async fn what_one_run_left_is_told_the_next_and_is_not_kept_in_its_conversation() {
    let store = InMemoryMemoryStore::default();
    let model = says(&["Noted.", "Not the walnut cake."]);
    let agent = agent(&model, LongTermMemory::new(store.clone()));
    finished(agent.start(ask("Nuts make me ill.", "ada", "1")).await);
    let end = finished(agent.start(ask("May I have the cake with nuts?", "ada", "2")).await);
    let told = model.requests()[1].texts();
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("<memories>\n- The user said: Nuts make me ill.\nThe answer was: Noted.\n</memories>"));
    assert_eq!(end.history.len(), 2, "the question and the answer");
    assert_eq!(model.requests()[0].texts(), ["Nuts make me ill."], "nothing was known yet");
}

#[tokio::test]
async fn nobody_is_told_what_another_user_said_and_a_run_without_a_user_fails() {
    let store = InMemoryMemoryStore::default();
    let model = says(&["Noted.", "Of course."]);
    let agent = agent(&model, LongTermMemory::new(store.clone()));
    finished(agent.start(ask("Nuts make me ill.", "ada", "1")).await);
    finished(agent.start(ask("May I have nuts?", "bob", "1")).await);
    assert_eq!(model.requests()[1].texts().len(), 1);
    let error = agent.run("Nuts?").await.expect_err("whose?");
    assert_eq!((error.kind(), error.context("middleware")), (ErrorKind::Config, Some("long_term_memory")));
    assert!(error.message().contains("on_behalf_of"), "{error}");
}

#[tokio::test]
async fn memories_can_be_those_of_the_session_or_the_agent_alone() {
    let store = InMemoryMemoryStore::default();
    for (agent, session, text) in [("a", "1", "bees one"), ("a", "2", "bees two"), ("b", "1", "bees three")] {
        store.add("ada", vec![Memory::new(text).with("agent", agent).with("session", session)]).await.expect("adds");
    }
    let told = async |scope| {
        let model = says(&["so"]);
        let memory = LongTermMemory::new(store.clone()).scope(scope).keep(KeepOfRun::Nothing).user("ada");
        finished(agent(&model, memory).start(RunRequest::user("bees?").session("1")).await);
        let told = model.requests()[0].texts().remove(1);
        ["one", "two", "three"].map(|word| told.contains(word))
    };
    assert_eq!(told(MemoryScope::User).await, [true, true, true]);
    assert_eq!(told(MemoryScope::Session).await, [true, false, true]);
    assert_eq!(told(MemoryScope::Agent).await, [true, true, false]);
}

#[tokio::test]
async fn a_model_can_say_what_is_worth_remembering_and_what_it_used_counts() {
    let store = InMemoryMemoryStore::default();
    let facts = says(&[r#"Here: ["Ada is allergic to nuts.", " "]"#, "[]", "Nothing at all."]);
    let model = says(&["Noted.", "Fine.", "Bye."]);
    let memory = LongTermMemory::new(store.clone()).facts_with(facts.clone());
    let (warnings, heard) = warnings();
    let agent = Agent::builder("a", model.clone()).middleware(heard).middleware(memory).build().expect("builds");
    let end = finished(agent.start(ask("Nuts make me ill.", "ada", "1")).await);
    assert_eq!((end.usage.calls, end.tree_usage.calls), (2, 2));
    assert_eq!(texts(&store, "ada", "nuts").await, ["Ada is allergic to nuts."]);
    finished(agent.start(ask("No nuts today.", "ada", "1")).await);
    assert!(facts.requests()[1].texts()[0].starts_with("<known>\n- Ada is allergic to nuts.\n</known>"));
    finished(agent.start(ask("Bye.", "ada", "1")).await);
    assert_eq!(texts(&store, "ada", "").await.len(), 1, "nothing was added");
    let warnings = warnings.lock().expect("lock").clone();
    assert!(warnings.len() == 1 && warnings[0].contains("no JSON array"), "{warnings:?}");
}

#[tokio::test]
async fn the_model_can_keep_what_it_wants_to() {
    let store = InMemoryMemoryStore::default();
    let model =
        ScriptedModel::new([Turn::call("c1", "remember", json!({"text": "Ada keeps bees."})), Turn::text("so")]);
    let memory = LongTermMemory::new(store.clone()).tool().keep(KeepOfRun::Nothing);
    finished(agent(&model, memory).start(ask("Remember my bees.", "ada", "1")).await);
    assert_eq!(texts(&store, "ada", "bees").await, ["Ada keeps bees."]);
}

#[tokio::test]
async fn what_was_untrusted_when_it_was_stored_is_untrusted_in_the_next_session() {
    let store = InMemoryMemoryStore::default();
    let labelled = |turns: Vec<Turn>| {
        let injection = PromptInjection::builder().untrusted("look");
        let injection = injection.sink(Sink::new("send").when(SinkWhen::Untrusted)).build().expect("sound");
        Agent::builder("a", ScriptedModel::new(turns))
            .tool(tool("look", ""))
            .tool(tool("send", ""))
            .middleware(injection)
            .middleware(LongTermMemory::new(store.clone()))
            .build()
            .expect("builds")
    };
    let sent = async |session: &str, user: &str| {
        let agent = labelled(vec![Turn::call("c1", "send", json!({})), Turn::text("done")]);
        let end = finished(agent.start(ask("What about bees?", user, session)).await);
        end.history.iter().any(|message| message.text() == "send")
    };
    assert!(sent("0", "bob").await, "nothing is untrusted yet");
    let reads = labelled(vec![Turn::call("c1", "look", json!({})), Turn::text("Bees want to be paid.")]);
    finished(reads.start(ask("Look up bees.", "ada", "1")).await);
    assert!(!sent("2", "ada").await, "the memory is of the untrusted text");
    assert!(sent("3", "bob").await, "another user has no such memory");
}

#[tokio::test]
async fn a_run_that_goes_on_elsewhere_is_told_the_same_and_keeps_its_exchange_once() {
    let store = InMemoryMemoryStore::default();
    store.add("ada", vec![Memory::new("bees").with_id("b")]).await.expect("adds");
    let model = ScriptedModel::new([Turn::call("c1", "wait", json!({})), Turn::text("Honey.")]);
    let end = agent(&model, LongTermMemory::new(store.clone())).start(ask("What of bees?", "ada", "1")).await;
    let end = end.expect("runs");
    assert_eq!(texts(&store, "ada", "").await, ["bees"], "nothing is kept of a run that waits");
    store.delete("ada", "b").await.expect("deletes");
    answered(&agent(&model, LongTermMemory::new(store.clone())), end.checkpoint().expect("waits")).await;
    let last = |at: usize| model.requests()[at].texts().pop().expect("some");
    assert_eq!(last(0), last(1));
    let kept = texts(&store, "ada", "").await;
    assert_eq!(kept, ["The user said: What of bees?\nThe answer was: Honey."]);
}

/// A store that finds nothing and stores nothing.
struct Broken;

#[async_trait]
impl MemoryStore for Broken {
    async fn add(&self, _: &str, _: Vec<Memory>) -> Result<Vec<String>> {
        Err(Error::new(ErrorKind::Store, "the disk is full"))
    }

    async fn search(&self, _: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>> {
        match query.text.as_str() {
            "fail" => Err(Error::new(ErrorKind::Store, "the disk is gone")),
            _ => Ok(Vec::new()),
        }
    }

    async fn update(&self, _: &str, _: &str, _: &str, _: Map<String, Value>) -> Result<bool> {
        Ok(false)
    }

    async fn delete(&self, _: &str, _: &str) -> Result<bool> {
        Ok(false)
    }

    async fn delete_all(&self, _: &str) -> Result<usize> {
        Ok(0)
    }
}

#[tokio::test]
async fn a_memory_that_cannot_be_kept_is_warned_of_and_one_that_cannot_be_looked_up_fails_the_run() {
    let (warnings, events) = warnings();
    let agent = Agent::builder("a", says(&["so"]))
        .middleware(events)
        .middleware(LongTermMemory::new(Broken))
        .build()
        .expect("builds");
    assert_eq!(finished(agent.start(ask("hi", "ada", "1")).await).answer, "so");
    assert!(warnings.lock().expect("lock")[0].contains("the disk is full"));
    let error = agent.start(ask("fail", "ada", "1")).await.expect_err("fails");
    assert_eq!(error.kind(), ErrorKind::Store);
}

// --- chats ---

async fn chat(store: &InMemoryChatMessageStore, id: &str) -> Vec<String> {
    let messages = store.retrieve(id, &ChatQuery::default()).await.expect("reads");
    messages.into_iter().map(|kept| format!("{}: {}", kept.message.role(), kept.message.text())).collect()
}

#[tokio::test]
async fn a_run_sees_its_system_messages_then_the_newest_rounds_then_its_own() {
    let store = InMemoryChatMessageStore::default();
    let said = ["a", "b", "c"].map(|text| [Message::user(text), Message::assistant(text.to_uppercase())]);
    store.write("s", said.concat().into_iter().map(ChatMessage::from).collect()).await.expect("writes");
    let model = says(&["D"]);
    let request = RunRequest::new(vec![Message::system("Be kind."), Message::user("d")]).session("s");
    finished(agent(&model, ChatHistory::new(store.clone()).last_k(2)).start(request).await);
    assert_eq!(model.requests()[0].texts(), ["Be kind.", "b", "B", "c", "C", "d"]);
    assert_eq!(chat(&store, "s").await[6..], ["user: d", "assistant: D"]);
}

#[tokio::test]
async fn calls_and_results_are_kept_too_and_chats_are_apart() {
    let store = InMemoryChatMessageStore::default();
    let model = ScriptedModel::new([Turn::call("c1", "look", json!({})), Turn::text("so"), Turn::text("hi")]);
    let agent = agent(&model, ChatHistory::new(store.clone()));
    finished(agent.start(RunRequest::user("Go.").session("s")).await);
    assert_eq!(chat(&store, "s").await, ["user: Go.", "assistant: ", "tool: look", "assistant: so"]);
    finished(agent.start(RunRequest::user("Hi.").session("t")).await);
    assert_eq!(model.requests()[2].texts(), ["Hi."]);
}

#[tokio::test]
async fn a_run_that_goes_on_elsewhere_has_its_history_once_and_is_kept_once() {
    let store = InMemoryChatMessageStore::default();
    store.write("s", vec![Message::user("a").into(), Message::assistant("A").into()]).await.expect("writes");
    let model = ScriptedModel::new([Turn::call("c1", "wait", json!({})), Turn::text("so")]);
    let end = agent(&model, ChatHistory::new(store.clone())).start(RunRequest::user("Go.").session("s")).await;
    let end = end.expect("runs");
    assert_eq!(store.count("s").await.expect("counts"), 2);
    let end = answered(&agent(&model, ChatHistory::new(store.clone())), end.checkpoint().expect("waits")).await;
    assert_eq!(end.history.iter().map(Message::text).collect::<Vec<_>>(), ["a", "A", "Go.", "", "well", "so"]);
    assert_eq!(store.count("s").await.expect("counts"), 6);
}

/// Removes everything before the newest message.
struct Forgets;

#[async_trait]
impl Middleware for Forgets {
    fn name(&self) -> &str {
        "forgets"
    }

    async fn before_tools(&self, cx: &RunCx, _: &mut agent_core::ToolBatch) -> Result<()> {
        let history = agent_core::History::from_messages([Message::user("It was about bees.")])?;
        cx.replace_history(history, ReplaceReason::CompactAuto);
        Ok(())
    }
}

#[tokio::test]
async fn what_compaction_took_away_is_still_kept_as_question_and_answer() {
    let store = InMemoryChatMessageStore::default();
    let model = ScriptedModel::new([Turn::call("c1", "look", json!({})), Turn::text("so")]);
    let agent = Agent::builder("a", model)
        .tool(tool("look", ""))
        .middleware(ChatHistory::new(store.clone()))
        .middleware(Forgets)
        .build()
        .expect("builds");
    finished(agent.start(RunRequest::user("Go.").session("s")).await);
    assert_eq!(chat(&store, "s").await, ["user: Go.", "assistant: so"]);
}

#[test]
fn the_configurations_are_data_and_refuse_what_they_do_not_know() {
    let config: LongTermMemoryConfig =
        serde_json::from_value(json!({"scope": "session", "keep": "nothing"})).expect("reads");
    assert_eq!((config.scope, config.keep, config.top_k), (MemoryScope::Session, KeepOfRun::Nothing, 5));
    assert!(serde_json::from_value::<LongTermMemoryConfig>(json!({"k": 1})).is_err());
    let config: ChatHistoryConfig = serde_json::from_value(json!({"last_k": null})).expect("reads");
    assert_eq!(config.last_k, None);
    assert!(serde_json::from_value::<ChatHistoryConfig>(json!({"k": 1})).is_err());
}

//! Sub-agents that code calls: each call and each hook gets back the ones that it started.

mod combined;
mod driven_again;
mod of_hooks;
mod of_tools;
mod together;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    AssistantMessage, Block, BoxFuture, Checkpoint, Effect, Finished, History, MemoryJournal, Message, Middleware,
    Model, ModelInfo, ModelRequest, ModelResponse, Question, Result, RunCx, RunEnd, RunRequest, Tool, ToolOptions,
    ToolOutput, ToolRequest, ToolResults, ToolSpec, Usage, Verdict, async_trait, testing::MortalJournal,
};
use agent_exec::Agent;
use serde_json::{Value, json};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

// --- how a run went ---

pub(crate) fn finished(end: Result<RunEnd>) -> Finished {
    end.expect("the run does not fail").finished().expect("the run finishes")
}

/// The end of a run that stopped, with its checkpoint as another process would read it.
pub(crate) fn stopped(end: Result<RunEnd>) -> (&'static str, Checkpoint) {
    let end = end.expect("the run does not fail");
    let checkpoint = end.checkpoint().expect("the run does not finish");
    (end.as_str(), Checkpoint::from_json(&checkpoint.to_json().expect("serialises")).expect("parses"))
}

/// The results of tools in a conversation: call, text, and whether it is an error.
pub(crate) fn results(history: &History) -> Vec<(String, String, bool)> {
    let result = |m: &Message| m.as_tool().map(|tool| (tool.call_id().to_owned(), m.text(), tool.is_error()));
    history.iter().filter_map(result).collect()
}

/// The texts of the results of tools.
pub(crate) fn told(history: &History) -> Vec<String> {
    results(history).into_iter().map(|(_, text, _)| text).collect()
}

pub(crate) fn asked(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.questions.iter().map(|q| q.id.as_str()).collect()
}

// --- tools ---

type Body = Box<dyn Fn(ToolRequest) -> BoxFuture<'static, Result<ToolOutput>> + Send + Sync>;

pub(crate) struct FnTool {
    spec: ToolSpec,
    options: ToolOptions,
    body: Body,
}

/// A tool that takes any arguments, and whose effect is `AtMostOnce`.
pub(crate) fn tool<F, Fut>(name: &str, body: F) -> FnTool
where
    F: Fn(ToolRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    let anything = json!({"type": "object", "additionalProperties": true});
    let spec = ToolSpec::new(name, "", anything);
    FnTool { spec, options: ToolOptions::default(), body: Box::new(move |req| Box::pin(body(req))) }
}

impl FnTool {
    pub(crate) fn with(mut self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Self {
        self.options = change(self.options);
        self
    }

    /// It only runs sub-agents.
    pub(crate) fn delegates(self) -> Self {
        self.with(|options| options.effect(Effect::Idempotent).delegates())
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        self.options.clone()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        (self.body)(req).await
    }
}

/// A tool that gives back always the same.
pub(crate) fn gives(name: &str, text: &'static str) -> FnTool {
    tool(name, move |_| async move { Ok(ToolOutput::text(text)) })
}

/// A tool that asks a person, once, and does nothing else.
pub(crate) fn asks(name: &str) -> FnTool {
    tool(name, async |req: ToolRequest| {
        let answer: Value = req.ask("may", (*req.args).clone())?;
        Ok(ToolOutput::text(answer.to_string()))
    })
}

// --- models ---

/// The input of a model call.
pub(crate) struct Seen {
    /// First message of the run.
    pub(crate) task: String,
    /// The tool results since the newest message of a user, in order: call and text.
    pub(crate) results: Vec<(String, String)>,
    /// True if the conversation has no message but the task.
    pub(crate) is_first: bool,
}

type Thought = dyn Fn(&Seen) -> AssistantMessage + Send + Sync;

/// A model whose answer depends on nothing but the conversation, so that it says the same again. It counts its calls.
#[derive(Clone)]
pub(crate) struct Thinks {
    think: Arc<Thought>,
    pub(crate) calls: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn thinks(think: impl Fn(&Seen) -> AssistantMessage + Send + Sync + 'static) -> Thinks {
    Thinks { think: Arc::new(think), calls: Arc::default() }
}

#[async_trait]
impl Model for Thinks {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("thinks")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let messages: Vec<Message> = req.messages.iter().cloned().collect();
        let task = messages.iter().find(|m| matches!(m, Message::User(_))).map(Message::text).unwrap_or_default();
        let since = messages.iter().rposition(|m| matches!(m, Message::User(_))).unwrap_or(0);
        let results = messages[since..].iter();
        let results = results.filter_map(|m| Some((m.as_tool()?.call_id().to_owned(), m.text()))).collect();
        self.calls.lock().expect("free").push(task.clone());
        let is_first = messages.len() == 1;
        let says = (self.think)(&Seen { task, results, is_first });
        Ok(ModelResponse::new(says).with_usage(Usage::new(1, 1)))
    }
}

/// A message with these calls: id, tool, arguments.
pub(crate) fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> AssistantMessage {
    AssistantMessage::new(calls.map(|(id, name, args)| Block::tool_call(id, name, args.to_string())).to_vec())
}

pub(crate) fn call(id: &str, name: &str) -> AssistantMessage {
    calls([(id, name, json!({}))])
}

/// A model that calls these tools one after the other, and is done then.
pub(crate) fn calls_in_turn<const N: usize>(names: [&'static str; N]) -> Thinks {
    thinks(move |seen| match names.get(seen.results.len()) {
        Some(name) => call(&format!("c{}", seen.results.len() + 1), name),
        None => "done".into(),
    })
}

// --- what is outside of all processes ---

/// A shop that records payments. Clones share one state.
#[derive(Clone, Default)]
pub(crate) struct Shop(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    paid: Vec<String>,
    by_key: BTreeMap<String, String>,
    doubts: Vec<String>,
    hook_is_over: bool,
}

impl Shop {
    /// Something is paid by this call.
    pub(crate) fn pay(&self, req: &ToolRequest, what: &str) {
        let mut inner = self.0.lock().expect("free");
        inner.paid.push(what.to_owned());
        inner.by_key.insert(req.idempotency_key(), what.to_owned());
    }

    /// All that was paid, sorted.
    pub(crate) fn paid(&self) -> Vec<String> {
        let mut paid = self.0.lock().expect("free").paid.clone();
        paid.sort();
        paid
    }

    /// Answers a question about a call in doubt from the payments, and any other with `true`.
    pub(crate) fn answer(&self, question: &Question) -> Value {
        let mut inner = self.0.lock().expect("free");
        let Some(key) = question.payload["idempotency_key"].as_str().map(str::to_owned) else { return json!(true) };
        inner.doubts.push(question.id.clone());
        match inner.by_key.get(&key) {
            Some(paid) => json!({ "happened": format!("paid {paid}") }),
            None => json!("did_not"),
        }
    }

    /// The questions about calls in doubt that were answered.
    pub(crate) fn doubts(&self) -> Vec<String> {
        self.0.lock().expect("free").doubts.clone()
    }

    /// A hook that has called a sub-agent is about to return.
    pub(crate) fn hook_is_over(&self) {
        self.0.lock().expect("free").hook_is_over = true;
    }

    /// The tool `pay`, which pays what its argument `for` says, at most once.
    pub(crate) fn tool(&self) -> FnTool {
        let shop = self.clone();
        tool("pay", move |req| {
            let what = req.args["for"].as_str().unwrap_or("something").to_owned();
            shop.pay(&req, &what);
            async move { Ok(ToolOutput::text(format!("paid {what}"))) }
        })
    }
}

/// An agent that pays for its task and then says what it found: `found {task}`. If `ask` holds for the task, it asks
/// a person first.
pub(crate) fn researcher(shop: &Shop, ask: fn(&str) -> bool) -> Agent {
    researcher_with(shop, &paying(ask))
}

pub(crate) fn researcher_with(shop: &Shop, model: &Thinks) -> Agent {
    Agent::builder("researcher", model.clone()).tool(shop.tool()).tool(asks("ask")).build().expect("builds")
}

pub(crate) fn paying(ask: fn(&str) -> bool) -> Thinks {
    thinks(move |seen| {
        let done = |id: &str| seen.results.iter().any(|(call, _)| call == id);
        match () {
            () if ask(&seen.task) && !done("q") => calls([("q", "ask", json!({"about": seen.task}))]),
            () if !done("p") => calls([("p", "pay", json!({"for": seen.task}))]),
            () => format!("found {}", seen.task).as_str().into(),
        }
    })
}

// --- processes ---

/// Resumes the run of session `s` until it is over, or starts it, and answers its questions. An error says
/// what went wrong.
pub(crate) async fn drive_to_its_end(agent: &Agent, shop: &Shop) -> std::result::Result<Finished, String> {
    for _ in 0..8 {
        let unfinished = agent.unfinished("s").await.map_err(|e| format!("cannot be read: {e}"))?;
        let request = match &unfinished {
            None => RunRequest::user("go").session("s"),
            Some(checkpoint) => {
                let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), shop.answer(q)));
                RunRequest::recover("s", answers.collect::<Vec<_>>())
            }
        };
        let end = tokio::time::timeout(Duration::from_secs(600), agent.start(request)).await;
        match end.map_err(|_| "hangs for ten minutes".to_owned())? {
            Ok(RunEnd::Finished(finished)) => return Ok(*finished),
            Ok(end) => {
                let checkpoint = end.checkpoint().expect("not finished");
                if checkpoint.questions.is_empty() && end.as_str() == "interrupted" {
                    return Err("is interrupted without a question".into());
                }
            }
            Err(e) => return Err(format!("cannot go on: {}", e.message())),
        }
    }
    Err("asks for ever".into())
}

/// Has the agent run in a process that dies when it is to write its n-th entry, for each n, and then in one that
/// lives. Gives what `wrong` finds to be wrong, each with where the first process died. A process that does not die
/// must do it right. Where a hook is over by then ([`Shop::hook_is_over`]) nothing is claimed: it may be entered
/// again from its start.
pub(crate) async fn after_each_death(
    build: impl Fn(MortalJournal, &Shop) -> Agent,
    wrong: impl Fn(&Finished, &Shop) -> Option<String>,
) -> Vec<String> {
    let (shop, process) = (Shop::default(), MortalJournal::new(MemoryJournal::default()));
    let end = drive_to_its_end(&build(process.clone(), &shop), &shop).await.expect("it finishes if nobody dies");
    assert_eq!(wrong(&end, &shop), None, "without any death");
    let mut all = Vec::new();
    for n in 1..=process.written() {
        let (shop, journal) = (Shop::default(), MemoryJournal::default());
        let mortal = MortalJournal::new(journal.clone()).dying_at(n);
        let first = build(mortal.clone(), &shop);
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = drive_to_its_end(&first, &shop) => assert!(end.is_err(), "died at {n}, and yet {end:?}"),
        }
        drop(first);
        tokio::time::sleep(ms(1)).await;
        if shop.0.lock().expect("free").hook_is_over {
            continue;
        }
        let paid = shop.paid();
        let end = drive_to_its_end(&build(MortalJournal::new(journal.clone()), &shop), &shop).await;
        let wrong = match &end {
            Ok(end) => wrong(end, &shop),
            Err(e) => Some(e.lines().next().unwrap_or_default().to_owned()),
        };
        if let Some(wrong) = wrong {
            all.push(format!("died at entry {n} of {}, had paid {paid:?}: {wrong}", process.written()));
        }
    }
    all
}

/// Describes the difference from these tool results and payments, if there is one.
pub(crate) fn not_as(end: &Finished, shop: &Shop, results: &[&str], paid: &[&str]) -> Option<String> {
    let (has, was) = (told(&end.history), shop.paid());
    match (has == results, was == paid) {
        (true, true) => None,
        (true, false) => Some(format!("paid {was:?}, doubts {:?}", shop.doubts())),
        _ => Some(format!("the tools said {has:?}, paid {was:?}, doubts {:?}", shop.doubts())),
    }
}

/// A hook that looks at each result and takes its time, as one does that asks another service: meanwhile the journal
/// gets what is recorded.
pub(crate) struct Lingers;

#[async_trait]
impl Middleware for Lingers {
    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        tokio::time::sleep(ms(1)).await;
        Ok(())
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        tokio::time::sleep(ms(1)).await;
        Ok(Verdict::Proceed)
    }
}

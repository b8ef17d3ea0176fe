//! Writes of calls to the shared storage and to the state, while their process dies.

use agent_core::{
    Effect, Error, Finished, GlobalStorage, Journal, Key, MemoryJournal, Result, RunRequest, StateField, StateSchema,
    ToolOutput, ToolRequest, storage::Merge, testing::MortalJournal,
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::{Value, json};

use super::world::{SESSION, Steps};
use crate::common::{FnTool, finished, ms, stopped, tool};

const COUNT: Key<u32> = Key::new("count");

/// Returns a tool that counts each of its calls, in the storage and in the state, and then runs
/// `then`.
fn counting<F>(name: &str, then: impl Fn(ToolRequest) -> F + Clone + Send + Sync + 'static) -> FnTool
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let count = async |req: &ToolRequest| -> Result<()> {
        req.cx.globals().update(&COUNT, |n| n.unwrap_or(0) + 1)?;
        req.cx.state().set_value("sum", json!(1), None)
    };
    let counted = tool(name, move |req| {
        let (id, then) = (req.call.id.clone(), then.clone());
        async move {
            count(&req).await?;
            then(req).await?;
            Ok(ToolOutput::value(json!({"note": [*id]})))
        }
    });
    counted.with(|options| options.effect(Effect::Idempotent).writes("notes", Some("note")))
}

fn tools(builder: AgentBuilder) -> AgentBuilder {
    let waits = async |_| {
        tokio::time::sleep(ms(50)).await;
        Ok(())
    };
    let decides = async |req: ToolRequest| {
        req.decide("now", async { Ok(json!(1)) }).await?;
        tokio::time::sleep(ms(20)).await;
        Ok(())
    };
    let sum = |old: Option<Value>, new: Value| {
        Ok((old.and_then(|n| n.as_u64()).unwrap_or(0) + new.as_u64().unwrap_or(0)).into())
    };
    let schema = StateSchema::default()
        .key("sum", StateField::of::<u64>().merge(Merge::custom(sum)))
        .key("notes", StateField::of::<Vec<String>>());
    builder
        .state(schema)
        .tool(counting("waits", waits))
        .tool(counting("quick", async |_| Ok(())))
        .tool(counting("decides", decides))
        .tool(counting("fails", async |_| Err(Error::tool("it is broken"))))
}

/// Builds an agent with concurrent calls in one message, during which a sub-agent makes two more.
fn agent(journal: impl Journal) -> Agent {
    let call = |id, name| (id, name, json!({}));
    let helper = Steps::new(vec![vec![call("h1", "waits"), call("h2", "quick")]]);
    let helper = tools(Agent::builder("helper", helper)).build().expect("builds");
    let help = ("e", "delegate", json!({"agent": "helper", "message": "help"}));
    let calls = vec![call("a", "waits"), call("b", "quick"), call("c", "decides"), call("d", "fails"), help];
    tools(Agent::builder("root", Steps::new(vec![calls])))
        .middleware(Delegation::new().to("helper", "Helps.", helper))
        .store(journal)
        .build()
        .expect("builds")
}

/// Starts the run, or resumes it.
async fn finish(journal: &MemoryJournal) -> Finished {
    let request = match journal.sessions().await.expect("reads").is_empty() {
        true => RunRequest::user("go").session(SESSION),
        false => RunRequest::recover(SESSION, []),
    };
    finished(agent(journal.clone()).start(request).await)
}

#[tokio::test(start_paused = true)]
async fn what_a_call_changed_is_kept_with_its_own_result_and_no_other() {
    let journal = MemoryJournal::default();
    let whole = finish(&journal).await;
    assert_eq!((&whole.state["sum"], &whole.state["notes"]), (&json!(4), &json!(["a", "b", "c"])));
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len() as u64;
    for dies_at in 1..=entries {
        let journal = MemoryJournal::default();
        let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = agent(mortal.clone()).start(RunRequest::user("go").session(SESSION)) => panic!("it lived: {end:?}"),
        }
        tokio::time::sleep(ms(1)).await; // its aborted tasks are gone
        let end = finish(&journal).await;
        assert_eq!(end.state, whole.state, "died at {dies_at}");
        let kept = journal.index(SESSION).await.expect("folds").look(|index| index.globals().clone());
        assert_eq!(kept["count"], json!(6), "died at {dies_at}: each call counts once");
        assert_eq!(end.history.len(), whole.history.len(), "died at {dies_at}");
    }
}

/// Builds an agent with one tool, which counts its call and then runs `then`, over the storage
/// `globals`.
fn counts<F>(globals: &GlobalStorage, then: impl Fn(ToolRequest) -> F + Clone + Send + Sync + 'static) -> Agent
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let model = Steps::new(vec![vec![("a", "counts", json!({}))]]);
    let builder = tools(Agent::builder("root", model)).globals(globals.clone());
    builder.tool(counting("counts", then)).build().expect("builds")
}

#[tokio::test]
async fn a_call_that_asks_leaves_nothing_behind_and_counts_once_when_it_is_gone_on_with() {
    let globals = GlobalStorage::default();
    let asks = async |req: ToolRequest| req.ask::<String>("input", json!(null)).map(drop);
    let (end, checkpoint) = stopped(counts(&globals, asks).run("go").await);
    assert_eq!((end, globals.is_empty(), checkpoint.state.contains_key("sum")), ("interrupted", true, false));
    let answer = [(checkpoint.questions[0].id.clone(), json!("yes"))];
    let end = finished(counts(&globals, asks).start(RunRequest::resume(checkpoint, answer)).await);
    assert_eq!((globals.get(&COUNT).expect("reads"), &end.state["sum"]), (Some(1), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_leaves_nothing_behind() {
    let globals = GlobalStorage::default();
    let run = counts(&globals, async |_| std::future::pending().await).start(RunRequest::user("go"));
    let handle = run.handle();
    let cancel = async {
        tokio::time::sleep(ms(5)).await;
        assert_eq!(globals.get(&COUNT).expect("reads"), Some(1), "everybody sees it while the call is under way");
        handle.cancel();
    };
    let (end, checkpoint) = stopped(tokio::join!(run, cancel).0);
    assert_eq!((end, globals.is_empty(), checkpoint.state.contains_key("sum")), ("cancelled", true, false));
}

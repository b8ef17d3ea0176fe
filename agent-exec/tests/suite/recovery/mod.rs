//! A run whose process died at any entry of its journal resumes from the journal alone, and ends as
//! if nothing had happened.

mod compaction;
mod doubt;
mod events;
mod storage;
mod world;

use agent_core::{
    Effect, Error, ExitReason, Journal, MemoryJournal, Message, Middleware, Result, RunCx, RunEnd, RunRequest, Tool,
    ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait,
    journal::EntryBody,
    testing::{MortalJournal, ScriptedModel, Turn},
    tool::Doubt,
    tool::Reconciled,
};
use agent_exec::Agent;
use serde_json::json;

use self::world::{Asked, Outside, SESSION, finish, tree};

/// Returns the messages and calls, without ids and times.
fn said(messages: &agent_core::History) -> Vec<String> {
    messages
        .iter()
        .map(|m: &Message| format!("{} {} {:?}", m.role(), m.text(), m.as_tool().map(agent_core::ToolMessage::call_id)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_died_at_any_entry_ends_as_one_that_did_not_and_does_nothing_twice() {
    let (journal, outside) = (MemoryJournal::default(), Outside::default());
    let whole = finish(&journal, &outside, &mut Asked::default()).await;
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
    let marks = outside.0.lock().expect("lock").clone();
    assert!(marks.values().all(|n| *n == 1) && marks.len() == 10, "{marks:?}");
    let mut in_doubt = 0;
    for dies_at in 1..=entries.len() as u64 {
        let (journal, outside) = (MemoryJournal::default(), Outside::default());
        let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
        let run = tree(mortal.clone(), &outside).start(RunRequest::user("go").session(SESSION));
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = run => panic!("it lived to the end: {end:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // its aborted tasks are gone
        let kept = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
        let begun = |body: &EntryBody| match body {
            EntryBody::ToolStarted { call_id, effect: Effect::AtMostOnce, .. } => Some(call_id.clone()),
            _ => None,
        };
        let ended = |body: &EntryBody| match body {
            EntryBody::ToolFinished { call_id, .. } | EntryBody::ToolAnswered { call_id, .. } => Some(call_id.clone()),
            _ => None,
        };
        let ended: Vec<_> = kept.iter().filter_map(|e| ended(&e.body)).collect();
        let doubted = kept.iter().filter_map(|e| begun(&e.body)).filter(|id| !ended.contains(id)).count();

        let mut asked = Asked::default();
        let end = finish(&journal, &outside, &mut asked).await;
        assert_eq!(said(&end.history), said(&whole.history), "died at {dies_at}");
        assert_eq!((&end.answer, end.steps), (&whole.answer, whole.steps), "died at {dies_at}");
        assert_eq!(end.state, whole.state, "died at {dies_at}");
        // A process that dies before the opinion is recorded requests it again, and pays for both.
        let opinions = journal.read(SESSION, 0, usize::MAX).await.expect("reads");
        let opinions = opinions.iter().filter_map(|entry| match &entry.body {
            EntryBody::SideModelFinished { usage } => Some(**usage),
            _ => None,
        });
        let (mut own, mut all) = (whole.usage, whole.tree_usage);
        opinions.skip(1).for_each(|again| {
            own += again;
            all += again;
        });
        assert_eq!((end.usage, end.tree_usage), (own, all), "died at {dies_at}");
        assert_eq!(end.tool_calls, whole.tool_calls, "died at {dies_at}");
        assert_eq!(asked.0.len(), doubted, "died at {dies_at}: {asked:?}");
        let again = outside.0.lock().expect("lock").clone();
        let only_pure_again = again.iter().all(|(key, n)| *n == 1 || key.ends_with("/r1"));
        assert!(only_pure_again && again.keys().eq(marks.keys()), "died at {dies_at}: {again:?}");
        let view = journal.index(SESSION).await.expect("folds").look(|index| index.view("root"));
        assert_eq!(view.history, end.history, "died at {dies_at}");
        in_doubt += doubted;
    }
    assert!(in_doubt > 5, "some calls were in doubt");
}

/// Lets process after process die before the run ends.
async fn dies_often(seed: u64) {
    let (journal, outside) = (MemoryJournal::default(), Outside::default());
    let mut random = seed;
    for _ in 0..40 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let written = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len();
        let mortal = MortalJournal::new(journal.clone()).dying_at(1 + (random >> 33) % 24);
        let mut asked = Asked::default();
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = world::finish_as(mortal.clone(), &journal, &outside, &mut asked) => drop(end),
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        if tree(journal.clone(), &outside).unfinished(SESSION).await.expect("reads").is_none() && written > 0 {
            break;
        }
    }
    if tree(journal.clone(), &outside).unfinished(SESSION).await.expect("reads").is_some() {
        finish(&journal, &outside, &mut Asked::default()).await;
    }
    let whole = (MemoryJournal::default(), Outside::default());
    let end = finish(&whole.0, &whole.1, &mut Asked::default()).await;
    let view = journal.index(SESSION).await.expect("folds").look(|index| index.view("root"));
    assert_eq!(said(&view.history), said(&end.history), "seed {seed}");
    assert_eq!(view.usage, end.usage, "seed {seed}");
    let marks = outside.0.lock().expect("lock").clone();
    assert!(
        marks.iter().all(|(key, n)| *n == 1 || key.ends_with("/r1")) && marks.len() == 10,
        "seed {seed}: {marks:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn recoveries_that_die_too_are_gone_on_with() {
    for seed in 30..50 {
        dies_often(seed).await;
    }
}

/// A tool that is cut off in the middle of its effect, and cannot tell afterwards whether it
/// happened.
struct CutOff(Effect);

#[async_trait]
impl Tool for CutOff {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("cut_off", "", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.0)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        std::future::pending().await
    }

    async fn reconcile(&self, _: ToolRequest) -> Result<Reconciled> {
        Err(Error::tool("the server is down"))
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_is_told_to_the_model_and_not_done_again() {
    for effect in [Effect::AtMostOnce, Effect::Reconcilable] {
        let agent = |turns: Vec<Turn>| {
            Agent::builder("a", ScriptedModel::new(turns)).tool(CutOff(effect)).build().expect("builds")
        };
        let run = agent(vec![Turn::call("c", "cut_off", json!({}))]).start(RunRequest::user("go"));
        let handle = run.handle();
        let cancel = async {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            handle.cancel();
        };
        let end = tokio::join!(run, cancel).0.expect("is cancelled");
        let checkpoint = end.checkpoint().expect("where it stood").clone();
        assert_eq!(checkpoint.begun["c"].effect, effect);

        let asked = agent(vec![]).start(RunRequest::resume(checkpoint, [])).await.expect("waits");
        let checkpoint = asked.checkpoint().expect("where it stands").clone();
        let question = checkpoint.questions[0].clone();
        assert_eq!((question.kind.as_str(), asked.as_str()), (Doubt::KIND, "interrupted"));

        let resumed = RunRequest::resume(checkpoint, [(question.id, json!("unknown"))]);
        let end =
            agent(vec![Turn::text("I see.")]).start(resumed).await.expect("finishes").finished().expect("finishes");
        let told = end.history.iter().find_map(Message::as_tool).expect("a result");
        assert!(told.is_error() && Message::Tool(told.clone()).text().contains("not known whether it happened"));
    }
}

/// Delays the end of the run, so that the earlier entries are stored separately from it.
struct Waits;

#[async_trait]
impl Middleware for Waits {
    async fn after_agent(&self, _: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        tokio::task::yield_now().await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_died_at_its_step_limit_is_over_once_it_is_recovered() {
    let agent = |store: &MortalJournal| {
        let model = ScriptedModel::new([Turn::call("c", "none", json!({})), Turn::text("in short")]);
        let agent = Agent::builder("a", model).max_steps(1).final_answer(true).middleware(Waits);
        agent.store(store.clone()).build().expect("builds")
    };
    let journal = MemoryJournal::default();
    let whole =
        agent(&MortalJournal::new(journal.clone())).start(RunRequest::user("go").session(SESSION)).await.expect("ends");
    let entries = journal.read(SESSION, 0, usize::MAX).await.expect("reads").len() as u64;
    assert_eq!(whole.finished().expect("finishes").answer, "in short");

    let journal = MemoryJournal::default();
    let mortal = MortalJournal::new(journal.clone()).dying_at(entries);
    tokio::select! {
        biased;
        () = mortal.died() => {}
        end = agent(&mortal).start(RunRequest::user("go").session(SESSION)) => panic!("it lived: {end:?}"),
    }
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let agent = agent(&MortalJournal::new(journal));
    let end = agent.start(RunRequest::recover(SESSION, [])).await.expect("ends").finished().expect("finishes");
    assert_eq!((end.answer.as_str(), end.reason), ("in short", ExitReason::StepLimit));
    assert!(agent.unfinished(SESSION).await.expect("reads").is_none(), "the journal says that it is over");
}

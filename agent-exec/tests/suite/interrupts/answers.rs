//! Binding of answers to questions, and refused answers: the run keeps waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use agent_core::{
    Answer, Ask, Checkpoint, Error, ErrorKind, Journal, MemoryJournal, RunEnd, RunRequest, ToolOutput, ToolRequest,
    journal::EntryBody,
    run::{Clock, Refusal},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;

use crate::common::{FnTool, Log, finished, results, stopped, tool};

/// Returns a tool that asks before it acts, as `ask` configures, and logs the answer.
fn careful(log: &Log, ask: impl Fn(Ask) -> Ask + Send + Sync + 'static) -> FnTool {
    let log = log.clone();
    let body = move |req: ToolRequest| {
        let question = ask(Ask::new("input", req.args["show"].clone()));
        let answer = req.ask_with(question);
        let log = log.clone();
        async move {
            let answer = answer?;
            log.note(format!("{} {}", req.args["x"], answer.value));
            Ok(ToolOutput::text(answer.value.to_string()))
        }
    };
    tool("careful", body)
}

fn call(id: &str, x: u32) -> Turn {
    Turn::call(id, "careful", json!({"x": x, "show": "really?"}))
}

fn agent(turns: impl IntoIterator<Item = Turn>, log: &Log) -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new(turns)).tool(careful(log, |ask| ask))
}

async fn waiting(agent: &Agent) -> Checkpoint {
    let (kind, checkpoint) = stopped(agent.run("go").await);
    assert_eq!(kind, "interrupted");
    checkpoint
}

async fn give(agent: &Agent, checkpoint: &Checkpoint, answer: (String, Answer)) -> Result<RunEnd, Error> {
    agent.start(RunRequest::resume_with(checkpoint.clone(), [answer])).await
}

/// Checks that the answer is refused, that nothing ran, and that the run still accepts a right
/// answer. Returns the reason for the refusal.
async fn refused(agent: &Agent, checkpoint: &Checkpoint, answer: (String, Answer)) -> Refusal {
    let e = give(agent, checkpoint, answer).await.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::AnswerRefused);
    assert_eq!(e.checkpoint(), Some(checkpoint), "the run waits where it waited");
    Refusal::of(&e).expect("says why").clone()
}

#[tokio::test]
async fn a_forged_edited_or_misdirected_answer_is_refused_by_its_own_error_and_the_run_still_waits() {
    let log = Log::default();
    let build = || agent([call("1", 1), Turn::text("done")], &log).build().expect("builds");
    let agent = build();
    let checkpoint = waiting(&agent).await;
    let question = &checkpoint.questions[0];
    let bound_to = |digest: String| {
        let (id, mut answer) = question.answer(true);
        answer.digest = digest;
        (id, answer)
    };

    assert_eq!(refused(&agent, &checkpoint, bound_to("x".into())).await, Refusal::Forged);
    let flipped = if question.digest.ends_with('0') { "1" } else { "0" };
    let edited = format!("{}{flipped}", &question.digest[..question.digest.len() - 1]);
    assert_eq!(refused(&agent, &checkpoint, bound_to(edited)).await, Refusal::Edited);
    let other = waiting(&build()).await.questions[0].answer(true);
    assert_eq!(refused(&agent, &checkpoint, other).await, Refusal::AnotherRun);
    let nobody = ("2/input".to_owned(), question.answer(true).1);
    assert_eq!(refused(&agent, &checkpoint, nobody).await, Refusal::NotAsked { asked: vec!["1/input".into()] });

    assert!(log.seen().is_empty());
    finished(give(&agent, &checkpoint, question.answer("yes")).await);
    assert_eq!(log.seen(), ["1 \"yes\""]);
}

#[tokio::test]
async fn an_answer_in_a_checkpoint_whose_call_was_changed_does_not_hold_for_the_changed_call() {
    let log = Log::default();
    let agent = agent([call("1", 1), Turn::text("done")], &log).build().expect("builds");
    let waits = waiting(&agent).await;
    let text = waits.to_json().expect("serialises").replace(r#"\"x\":1"#, r#"\"x\":2"#);
    let tampered = Checkpoint::from_json(&text).expect("parses");
    assert_ne!(tampered.phase, waits.phase, "the call is another one now");
    let (kind, asked_again) = stopped(give(&agent, &tampered, waits.questions[0].answer(true)).await);
    assert_eq!((kind, log.seen().len()), ("interrupted", 0), "the answer was not for this call");
    assert_ne!(asked_again.questions[0].digest, waits.questions[0].digest);
}

#[tokio::test]
async fn an_answer_is_used_once_where_the_session_remembers() {
    let (log, journal) = (Log::default(), MemoryJournal::default());
    let turns = [call("call_0", 1), call("call_0", 1), Turn::text("done")];
    let agent = agent(turns, &log).store(journal.clone()).build().expect("builds");
    let (_, first) = stopped(agent.start(RunRequest::user("go").session("s")).await);
    let answer = first.questions[0].answer("yes");
    let (_, second) = stopped(give(&agent, &first, answer.clone()).await);
    assert_eq!(second.questions[0].id, first.questions[0].id, "the very same call again");

    // The old answer to the new question, and the old checkpoint with its answer once more.
    assert_eq!(refused(&agent, &second, answer.clone()).await, Refusal::Replayed);
    assert_eq!(refused(&agent, &first, answer).await, Refusal::Replayed);
    assert_eq!(log.seen().len(), 1, "nothing ran twice");
    finished(give(&agent, &second, second.questions[0].answer("again")).await);
    assert_eq!(log.seen(), ["1 \"yes\"", "1 \"again\""]);
}

#[tokio::test]
async fn an_open_question_stays_the_same_while_others_are_answered_in_any_order() {
    let log = Log::default();
    let four = ["a", "b", "c", "d"].map(|id| (id, "careful", json!({"x": 1, "show": id})));
    let model = ScriptedModel::new([Turn::calls(four), Turn::text("done")]);
    let build = || Agent::builder("a", model.clone()).tool(careful(&log, |ask| ask)).build().expect("builds");
    let first = waiting(&build()).await;
    let answers: Vec<_> = first.questions.iter().map(|question| question.answer(question.payload.clone())).collect();
    let mut checkpoint = first;
    for at in [2, 0, 3] {
        // A question that a person saw days ago, answered in another process.
        checkpoint = stopped(give(&build(), &checkpoint, answers[at].clone()).await).1;
    }
    let end = finished(give(&build(), &checkpoint, answers[1].clone()).await);
    assert_eq!(results(&end.history).len(), 4);
    let mut seen = log.seen();
    seen.sort();
    assert_eq!(seen, ["1 \"a\"", "1 \"b\"", "1 \"c\"", "1 \"d\""], "each ran once");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_schema_is_refused_with_all_problems() {
    let schema = json!({
        "type": "object",
        "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}},
        "required": ["amount", "to"],
    });
    let log = Log::default();
    let model = ScriptedModel::new([call("1", 1), Turn::text("done")]);
    let asks = careful(&log, move |ask| ask.schema(schema.clone()));
    let agent = Agent::builder("a", model).tool(asks).build().expect("builds");
    let checkpoint = waiting(&agent).await;
    let question = &checkpoint.questions[0];
    let wrong = refused(&agent, &checkpoint, question.answer(json!({"amount": "much", "to": 7}))).await;
    let Refusal::Misfit { problems } = wrong else { panic!("{wrong:?}") };
    assert!(problems.contains("amount") && problems.contains("'to'"), "{problems}");
    // A plain value is validated in the same way.
    let plain = (question.id.clone(), Answer::from(json!(null)));
    assert!(matches!(refused(&agent, &checkpoint, plain).await, Refusal::Misfit { .. }));
    finished(give(&agent, &checkpoint, question.answer(json!({"amount": 1, "to": "Ada"}))).await);
}

#[tokio::test]
async fn only_who_was_asked_may_answer_and_the_journal_says_who_did() {
    let (log, journal) = (Log::default(), MemoryJournal::default());
    let model = ScriptedModel::new([call("1", 1), Turn::text("done")]);
    let builder = Agent::builder("a", model).tool(careful(&log, |ask| ask.only("ada")));
    let agent = builder.store(journal.clone()).build().expect("builds");
    let (_, checkpoint) = stopped(agent.start(RunRequest::user("go").session("s")).await);
    let (id, answer) = checkpoint.questions[0].answer(true);
    let wanted = Refusal::WrongActor { wanted: "ada".into() };
    assert_eq!(refused(&agent, &checkpoint, (id.clone(), answer.clone())).await, wanted);
    assert_eq!(refused(&agent, &checkpoint, (id.clone(), answer.clone().by("bob"))).await, wanted);
    finished(give(&agent, &checkpoint, (id, answer.by("ada"))).await);
    let entries = journal.read("s", 0, 1000).await.expect("reads");
    let answered: Vec<_> = entries.iter().filter(|e| matches!(e.body, EntryBody::Answered { .. })).collect();
    let [one] = answered.as_slice() else { panic!("{answered:?}") };
    assert!(matches!(&one.body, EntryBody::Answered { by: Some(by), .. } if **by == *"ada"));
    assert!(one.time > 0);
}

/// Returns a clock that the test sets, in seconds since 1970.
fn clock(at: &Arc<AtomicU64>) -> Clock {
    let at = at.clone();
    Clock::new(move || UNIX_EPOCH + Duration::from_secs(at.load(Ordering::SeqCst)))
}

#[tokio::test]
async fn after_its_end_a_question_takes_no_answer_and_the_default_holds() {
    for (default, told) in [(Some(json!("no")), "\"no\""), (None, "nobody answered question '1/input' in time")] {
        let (log, now) = (Log::default(), Arc::new(AtomicU64::new(1000)));
        let model = ScriptedModel::new([call("1", 1), Turn::text("done")]);
        let asks = careful(&log, move |ask| {
            let ask = ask.within(Duration::from_secs(60));
            default.clone().into_iter().fold(ask, Ask::or)
        });
        let agent = Agent::builder("a", model).tool(asks).resource(clock(&now)).build().expect("builds");
        let checkpoint = waiting(&agent).await;
        let answer = checkpoint.questions[0].answer("yes");
        assert_eq!(checkpoint.questions[0].expires, Some(1_060_000));

        // Resuming without an answer does not extend the expiry.
        now.store(1059, Ordering::SeqCst);
        let go_on = RunRequest::resume(checkpoint.clone(), []);
        let (_, checkpoint) = stopped(agent.start(go_on).await);
        assert_eq!(checkpoint.questions[0].expires, Some(1_060_000));

        now.store(1060, Ordering::SeqCst);
        assert_eq!(refused(&agent, &checkpoint, answer).await, Refusal::Expired);
        let go_on = RunRequest::resume(checkpoint, []);
        let end = finished(agent.start(go_on).await);
        assert!(results(&end.history)[0].1.contains(told), "{:?}", results(&end.history));
    }
}

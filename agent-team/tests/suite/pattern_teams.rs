//! Teams whose course is a pattern.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    Block, Error, ErrorKind, Journal, MemoryJournal, Message, ToolOutput, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_team::{
    MemberStatus, Team, TeamChange, TeamEndReason, TeamEventKind, TeamRequest,
    pattern::{MapReduce, Optimiser, Pattern, Sequence},
};
use agent_tools::from_schema;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::common::{Thinker, clock, mortal::Mortal, scripted};

fn request() -> TeamRequest {
    TeamRequest::user("a\nb").session("s").run_id("r1")
}

fn of(pattern: impl Into<Pattern>) -> Team {
    Team::builder("team").pattern(pattern).clock(clock()).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_pattern_are_turns_of_members_with_events_and_usage() {
    let team =
        of(Sequence::new([scripted("a", [Turn::text("one")]), scripted("b", [Turn::text("two")])]).expect("two"));
    let mut run = team.start(request());
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        match &event.kind {
            TeamEventKind::Change(TeamChange::TurnBegan { member, .. }) => told.push(format!("began {member}")),
            TeamEventKind::Change(TeamChange::TurnEnded { member, .. }) => told.push(format!("ended {member}")),
            TeamEventKind::Change(TeamChange::Ended { reason }) => told.push(reason.to_string()),
            _ => {}
        }
    }
    let end = run.await.expect("runs");
    assert_eq!(told, ["began 1-a", "ended 1-a", "began 2-b", "ended 2-b", "finished"]);
    assert_eq!((end.text.as_str(), end.usage.calls, end.rounds), ("two", 2, 2));
    let members: Vec<_> = end.members.iter().map(|member| (&*member.id, &*member.role)).collect();
    assert_eq!(members, [("1-a", "a"), ("2-b", "b")]);
    assert_eq!(team.session("s").state().await.expect("reads").pattern(), Some("sequence"));
}

#[tokio::test(start_paused = true)]
async fn a_team_of_a_pattern_that_died_at_any_entry_repeats_no_finished_part() {
    let build = |store: Arc<dyn Journal>, asked: Arc<Mutex<Vec<String>>>| {
        let think = Thinker::new(move |messages: &[Message]| {
            let text = messages.last().map(Message::text).unwrap_or_default();
            asked.lock().expect("free").push(text.clone());
            agent_core::AssistantMessage::new(vec![Block::text(format!("<{text}>"))])
        });
        let agent = |name: &str| Agent::builder(name, think.clone()).build().expect("builds");
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let pattern = MapReduce::new(lines, agent("map"), agent("reduce"), 1).expect("limited");
        Team::builder("team").pattern(pattern).store(store).clock(clock()).build().expect("builds")
    };
    let counted = Mortal::new(MemoryJournal::default(), u64::MAX, false);
    let whole = build(Arc::new(counted.clone()), Arc::default()).start(request()).await.expect("runs");
    assert_eq!((&whole.reason, whole.text.as_str()), (&TeamEndReason::Finished, "<<a>\n\n<b>>"));
    for dies_at in 1..=counted.written() {
        for is_written in [false, true] {
            let (journal, asked) = (MemoryJournal::default(), Arc::default());
            let process = Mortal::new(journal.clone(), dies_at, is_written);
            let mortal = build(Arc::new(process.clone()), Arc::clone(&asked));
            tokio::select! {
                biased;
                () = process.died() => {}
                end = mortal.start(request()) => panic!("it lived: {end:?}"),
            }
            drop(mortal);
            tokio::time::sleep(Duration::from_millis(1)).await; // lets aborted tasks end
            let end = build(Arc::new(journal), Arc::clone(&asked)).start(request()).await.expect("runs");
            assert_eq!((&end.reason, &end.text), (&whole.reason, &whole.text), "died at {dies_at}: {is_written}");
            let asked = asked.lock().expect("free");
            assert!(asked.len() <= 4, "only the call that was cut off is repeated: {asked:?}");
        }
    }
}

fn payer(turns: impl IntoIterator<Item = Turn>) -> Agent {
    let pay = from_schema("pay", "Pays.", json!({"type": "object"}), |_: Value, req: ToolRequest| async move {
        let may: bool = req.ask("may_i", json!({"amount": 3}))?;
        Ok::<_, Error>(ToolOutput::text(if may { "paid" } else { "not paid" }))
    });
    Agent::builder("payer", ScriptedModel::new(turns)).tool(pay).build().expect("builds")
}

#[tokio::test(start_paused = true)]
async fn a_part_that_asks_suspends_the_team_and_continues_with_the_answer() {
    let asks = payer([Turn::call("p", "pay", json!({})), Turn::text("It is paid.")]);
    let team = of(Sequence::new([scripted("a", [Turn::text("one")]), asks]).expect("two"));
    let end = team.start(request()).await.expect("is suspended");
    assert_eq!((&end.reason, &*end.questions[0].member), (&TeamEndReason::Waiting, "2-payer"));
    assert_eq!(end.members[1].status, MemberStatus::Waiting);
    let again = team.start(TeamRequest::resume("s")).await.expect("still waits");
    assert_eq!(again.reason, TeamEndReason::Waiting);
    let id = end.questions[0].question.id.clone();
    team.session("s").answer("2-payer", id, json!(true)).await.expect("answers");
    let end = team.start(TeamRequest::resume("s")).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "It is paid."));
}

#[tokio::test(start_paused = true)]
async fn a_pattern_is_stopped_from_outside_and_ends_at_its_limits() {
    let slow = |name: &str| scripted(name, [Turn::text("late").delay(Duration::from_secs(3600))]);
    let team = of(Sequence::new([slow("a")]).expect("one"));
    let run = team.start(request());
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        team.session("s").stop().await.expect("stops");
    };
    let (end, ()) = tokio::join!(run, stop);
    assert_eq!(end.expect("ends").reason, TeamEndReason::Stopped);

    let limited = Team::builder("team").pattern(Sequence::new([slow("a")]).expect("one")).clock(clock());
    let team = limited.deadline(Duration::from_secs(60)).build().expect("builds");
    assert_eq!(team.start(request()).await.expect("ends").reason, TeamEndReason::Deadline);

    let two = Sequence::new([scripted("a", [Turn::text("one")]), scripted("b", [Turn::text("two")])]).expect("two");
    let team = Team::builder("team").pattern(two).max_rounds(1).build().expect("builds");
    assert_eq!(team.start(request()).await.expect("ends").reason, TeamEndReason::Rounds);

    let drafts = Optimiser::new(scripted("w", [Turn::text("one")]), scripted("c", [Turn::text("no")]), 1);
    let end = of(drafts.expect("rounds")).start(request()).await.expect("ends");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Rounds, "one"));

    let failing = scripted("a", [Turn::error(|| Error::new(ErrorKind::InvalidRequest, "no such model"))]);
    let end = of(Sequence::new([failing]).expect("one")).start(request()).await.expect("ends");
    assert!(matches!(&end.reason, TeamEndReason::Failed(why) if why.contains("no such model")), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_later_request_runs_the_pattern_again_in_the_same_conversations() {
    let second = Turn::text("two").expect(|seen| match seen.texts().len() {
        3 => Ok(()),
        other => Err(format!("{other} texts")),
    });
    let team = of(Sequence::new([scripted("a", [Turn::text("one"), second])]).expect("one"));
    team.start(request()).await.expect("runs");
    let end = team.start(TeamRequest::user("again").session("s").run_id("r2")).await.expect("runs");
    assert_eq!((end.text.as_str(), end.members[0].turns), ("two", 2));
}

#[test]
fn a_team_with_a_leader_and_a_pattern_or_with_neither_is_refused() {
    let sequence = || Sequence::new([scripted("a", [])]).expect("one");
    let both = Team::builder("team").leader(scripted("lead", [])).pattern(sequence()).build().expect_err("both");
    assert!(both.message().contains("a pattern has no leader"), "{both}");
    let neither = Team::builder("team").build().expect_err("neither");
    assert!(neither.message().contains("needs a leader or a pattern"), "{neither}");
}

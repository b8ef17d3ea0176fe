//! A process that dies while sub-agents run in the background.

use agent_core::{Journal, MemoryJournal, RunEnd, RunRequest, testing::MortalJournal};

use super::*;
use crate::common::{Log, finished, slow};

/// Builds a boss that works while its helper works in the background, and then repeats the messages
/// it received.
fn tree(journal: impl Journal, log: &Log) -> Agent {
    let helper = thinks(|spoke, _| match spoke {
        0 => call("k", "work", json!({})),
        _ => "helped".into(),
    });
    let helper = built(Agent::builder("helper", helper).tool(slow("work", 30, log).repeatable()));
    let model = thinks(|_, history| {
        let heard = history.iter().map(Message::text).find(|text| text.contains("which ran in the background"));
        let lost = history.iter().any(|m| m.text().contains("was lost before it began"));
        let results = history.iter().filter(|m| m.as_tool().is_some()).count();
        match (results, heard, lost) {
            (0, ..) => ask("a", "help", json!({"background": true})),
            (1, ..) => call("b", "work", json!({})),
            (_, Some(report), _) => says(report.split("\n\n").nth(1).expect("an answer")),
            (2, None, true) => ask("c", "help", json!({"background": true})),
            _ => "I wait.".into(),
        }
    });
    built(boss(model, helper).tool(slow("work", 10, log).repeatable()).store(journal))
}

async fn recovered(journal: &MemoryJournal, log: &Log) -> Finished {
    let agent = tree(journal.clone(), log);
    match agent.unfinished("s").await.expect("reads") {
        Some(_) => finished(agent.start(RunRequest::recover("s", [])).await),
        None => finished(agent.start(RunRequest::user("go").session("s")).await),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_died_anywhere_hears_of_its_sub_agent_exactly_once() {
    let whole = MemoryJournal::default();
    assert_eq!(recovered(&whole, &Log::default()).await.answer, "helped");
    let entries = whole.read("s", 0, usize::MAX).await.expect("reads").len() as u64;
    assert!(entries > 20, "{entries}");
    for dies_at in 1..=entries {
        let journal = MemoryJournal::default();
        let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
        let run = tree(mortal.clone(), &Log::default()).start(RunRequest::user("go").session("s"));
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = run => assert!(matches!(end, Ok(RunEnd::Finished(_)) | Err(_)), "died at {dies_at}: {end:?}"),
        }
        tokio::time::sleep(crate::common::ms(1)).await;
        let again = Log::default();
        let end = recovered(&journal, &again).await;
        assert_eq!(end.answer, "helped", "died at {dies_at}");
        let reports = told(&end).iter().filter(|text| text.contains("which ran in the background")).count();
        assert_eq!(reports, 1, "died at {dies_at}: {:?}", told(&end));
        let begun = again.seen().iter().filter(|line| *line == "k begins").count();
        assert!(begun <= 1, "died at {dies_at}: one sub-agent did its work twice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorded_run_with_sub_agents_in_the_background_is_replayed() {
    let journal = MemoryJournal::default();
    let end = recovered(&journal, &Log::default()).await;
    let log = Log::default();
    let replayed = finished(tree(journal, &log).start(RunRequest::replay("s")).await);
    assert_eq!((replayed.answer, replayed.history), (end.answer, end.history));
    assert!(log.seen().is_empty(), "nothing is called");
    assert_eq!(replayed.tree_usage, end.tree_usage);
}

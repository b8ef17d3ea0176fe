//! The caller's process dies: a message that a peer received is not sent again in silence.

use std::mem::ManuallyDrop;

use agent::{
    Agent, Finished, RunEnd, RunRequest,
    journal::{Journal, MemoryJournal},
    testing::MortalJournal,
    tool::Doubt,
};
use serde_json::{Value, json};

use super::support::*;

/// Runs what `agent` makes of a journal that dies at its entry number `dies_at`. Nothing is dropped, as with a process that is
/// killed. False if the run came to its end first.
async fn dies(
    journal: &MemoryJournal,
    dies_at: u64,
    request: RunRequest,
    agent: impl Fn(MortalJournal) -> Agent,
) -> bool {
    let mortal = MortalJournal::new(journal.clone()).dying_at(dies_at);
    let agent = agent(mortal.clone());
    let mut run = Box::pin(agent.start(request));
    let died = tokio::select! {
        biased;
        () = mortal.died() => true,
        _ = &mut run => false,
    };
    // A process that dies drops nothing.
    let (_, _) = (ManuallyDrop::new(run), ManuallyDrop::new(agent));
    died
}

/// The end of the session's run, in a new process. A call in doubt is said to have happened, with this result.
async fn recovered(agent: &Agent, mut given: Vec<(String, Value)>, happened: &str) -> (Finished, bool) {
    let first = match agent.unfinished("s").await.expect("reads") {
        Some(open) => {
            // An answer that the journal has is not given again.
            given.retain(|(id, _)| open.questions.iter().any(|question| question.id == *id));
            agent.start(RunRequest::recover("s", given)).await
        }
        None => agent.start(RunRequest::user("go").session("s")).await,
    };
    if let Ok(RunEnd::Interrupted(waits)) = &first {
        assert!(waits.questions.iter().all(|question| question.kind == Doubt::KIND), "{:?}", waits.questions);
        let said = answers(waits, &json!({"happened": happened}));
        return (finished(agent.start(RunRequest::recover("s", said)).await), true);
    }
    (finished(first), false)
}

/// Copies the journal for a process that may write: the dead process still holds its session.
async fn left_by(dead: &MemoryJournal) -> MemoryJournal {
    let journal = MemoryJournal::default();
    let entries = dead.read("s", 0, usize::MAX).await.expect("reads");
    let entries: Vec<_> = entries.iter().map(|entry| (**entry).clone()).collect();
    if !entries.is_empty() {
        journal.open("s", "boss").await.expect("opens").append(entries).await.expect("writes");
    }
    journal
}

async fn entries(journal: &MemoryJournal) -> u64 {
    journal.read("s", 0, usize::MAX).await.expect("reads").len() as u64
}

#[tokio::test]
async fn a_task_is_begun_once_wherever_its_callers_process_died() {
    for kind in KINDS {
        let (whole, peer) = (MemoryJournal::default(), Peer::start(kind).await);
        let agent = boss(peer.agent(), "hello").store(whole.clone()).build().expect("builds");
        finished(agent.start(RunRequest::user("go").session("s")).await);
        let (mut doubts, most) = (0, entries(&whole).await);
        assert!(most > 10, "{kind:?}: {most}");
        for dies_at in 1..=most {
            let (journal, peer) = (MemoryJournal::default(), Peer::start(kind).await);
            let make = |store: MortalJournal| boss(peer.agent(), "hello").store(store).build().expect("builds");
            dies(&journal, dies_at, RunRequest::user("go").session("s"), make).await;
            let agent = boss(peer.agent(), "hello").store(left_by(&journal).await).build().expect("builds");
            let (end, in_doubt) = recovered(&agent, Vec::new(), "you said hello").await;
            doubts += u32::from(in_doubt);
            assert!(end.answer.starts_with("you said hello"), "{kind:?} died at {dies_at}: {}", end.answer);
            let told = peer.count("hello");
            assert!(told == 1 || (told == 0 && in_doubt), "{kind:?} died at {dies_at}: told {told} times");
        }
        assert!(doubts >= 1, "{kind:?}: between the note and the result there is a doubt");
    }
}

#[tokio::test]
async fn the_answer_to_a_peers_question_is_given_once_wherever_its_callers_process_died() {
    for kind in KINDS {
        let mut deaths = 0;
        for dies_at in 1..100 {
            let (journal, peer) = (MemoryJournal::default(), Peer::start(kind).await);
            let agent = boss(peer.agent(), "ask").store(journal.clone()).build().expect("builds");
            let waits = interrupted(agent.start(RunRequest::user("go").session("s")).await);
            drop(agent);
            let given = answers(&waits, &json!("yes"));
            let make = |store: MortalJournal| boss(peer.agent(), "ask").store(store).build().expect("builds");
            if !dies(&journal, dies_at, RunRequest::recover("s", given.clone()), make).await {
                break;
            }
            deaths += 1;
            let agent = boss(peer.agent(), "ask").store(left_by(&journal).await).build().expect("builds");
            if agent.unfinished("s").await.expect("reads").is_none() {
                continue;
            }
            let (end, _) = recovered(&agent, given, "the answer: yes").await;
            assert!(end.answer.starts_with("the answer: yes"), "{kind:?} died at {dies_at}: {}", end.answer);
            assert!(peer.count("ask") <= 1 && peer.count("yes") <= 1, "{kind:?} died at {dies_at}: {:?}", peer.log());
        }
        assert!(deaths > 3, "{kind:?}: {deaths}");
    }
}

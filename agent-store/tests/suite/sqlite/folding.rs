//! The fold of the same entries is equal on every store.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, Block, History, Journal, MemoryJournal, Message, ModelResponse, RunIds, ToolOutput,
    journal::{Entry, EntryBody},
};
use proptest::{collection::vec, prelude::*};
use serde_json::Value;

use super::Place;

/// Event in the newest run of one of three agents.
#[derive(Clone, Debug)]
enum Happening {
    RunStarts,
    Heard(String),
    Answered(String),
    Called {
        answered: bool,
    },
    Replaced(Vec<String>),
    /// Undo to the state before the run that began this many runs ago.
    Undone(usize),
    Kept(String, Option<i64>),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => Just(Happening::RunStarts),
        4 => any::<String>().prop_map(Happening::Heard),
        2 => "[a-z]{1,9}".prop_map(Happening::Answered),
        3 => any::<bool>().prop_map(|answered| Happening::Called { answered }),
        1 => vec(any::<String>(), 0..3).prop_map(Happening::Replaced),
        1 => (0_usize..4).prop_map(Happening::Undone),
        1 => ("[ab]", any::<Option<i64>>()).prop_map(|(key, value)| Happening::Kept(key, value)),
    ]
}

/// Returns the entries of an event of `agent`, whose runs are `runs`.
fn entries(agent: &str, happening: Happening, runs: &mut Vec<Arc<str>>) -> Vec<Entry> {
    let mut bodies = Vec::new();
    if runs.is_empty() || matches!(happening, Happening::RunStarts) {
        let ids = RunIds::root(agent, "s");
        runs.push(ids.run_id.clone());
        bodies.push(EntryBody::RunStarted { ids: Arc::new(ids), fingerprint: String::new() });
    }
    let answer = |message: AssistantMessage| {
        let response = ModelResponse::new(message);
        [
            EntryBody::ModelFinished { step: 1, response: std::sync::Arc::new(response) },
            EntryBody::ModelAccepted { step: 1, message: None, exit: None },
        ]
    };
    match happening {
        Happening::RunStarts => {}
        Happening::Heard(text) => bodies.push(EntryBody::MessageAppended { message: Message::user(text) }),
        Happening::Answered(text) => bodies.extend(answer(AssistantMessage::from(text.as_str()))),
        Happening::Called { answered } => {
            bodies.extend(answer(AssistantMessage::new(vec![Block::tool_call("c", "tool", "{}")])));
            if answered {
                bodies.push(EntryBody::ToolFinished { call_id: "c".into(), output: ToolOutput::text("done") });
                bodies.push(EntryBody::TurnEnded { step: 1, changed: BTreeMap::new(), exit: None });
            }
        }
        Happening::Replaced(texts) => {
            let history = History::from_messages(texts.into_iter().map(Message::user)).expect("no calls");
            bodies.push(EntryBody::HistoryReplaced { reason: "user_clear".into(), before: 0, history });
        }
        Happening::Undone(ago) => {
            let before_run = runs[runs.len().saturating_sub(ago + 1)].clone();
            bodies.push(EntryBody::Undone { before_run });
        }
        Happening::Kept(key, value) => {
            let globals = BTreeMap::from([(key, value.map(Value::from))]);
            bodies.push(EntryBody::StateChanged { state: BTreeMap::new(), globals });
        }
    }
    let run = runs.last().expect("one has begun");
    bodies.into_iter().map(|body| Entry::new(run.clone(), 0, body)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_log_folds_as_in_memory(happenings in vec((0_usize..3, happening()), 0..40)) {
        let place = Place::new();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let agents = ["a", "b", "c"];
            let (sqlite, memory) = (place.open(), MemoryJournal::default());
            let (ours, theirs) = (sqlite.open("s", "x").await.expect("is free"), memory.open_now("s", "x").expect("is free"));
            let mut runs = [const { Vec::new() }; 3];
            let mut acks = Vec::new();
            for (agent, happening) in happenings {
                let batch = entries(agents[agent], happening, &mut runs[agent]);
                drop(theirs.append(batch.clone()));
                acks.push(ours.append(batch));
            }
            futures::future::try_join_all(acks).await.expect("appends");
            let (read, kept) = (sqlite.read("s", 0, 1000).await, memory.read("s", 0, 1000).await);
            prop_assert_eq!(read.expect("reads"), kept.expect("reads"));
            for agent in agents {
                let ours = sqlite.index("s").await.expect("folds").look(|index| index.view(agent));
                prop_assert_eq!(ours, memory.index("s").await.expect("folds").look(|index| index.view(agent)));
            }
            Ok(())
        })?;
    }
}

//! Wherever a tree of runs is stopped, resuming from there ends as if it had never been stopped.

use agent_core::{
    AssistantMessage, Block, Finished, Journal, MemoryJournal, Message, Model, ModelInfo, ModelRequest, ModelResponse,
    Result, RunRequest, Usage, async_trait,
};
use agent_exec::{Agent, RunHandle};
use agent_middleware::Delegation;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::common::{Log, carried_over, finished, ms, slow};

/// A model that takes three milliseconds and responds according to the step that the conversation
/// is in.
struct Steps(Vec<AssistantMessage>);

impl Steps {
    fn new<const N: usize>(steps: [&[(&str, &str, Value)]; N]) -> Self {
        let block = |(id, name, args): &(&str, &str, Value)| Block::tool_call(*id, *name, args.to_string());
        let message = |calls: &[_]| AssistantMessage::new(calls.iter().map(block).collect());
        Self(steps.map(message).into_iter().chain(["done".into()]).collect())
    }
}

#[async_trait]
impl Model for Steps {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("steps")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        sleep(ms(3)).await;
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        Ok(ModelResponse::new(self.0[step].clone()).with_usage(Usage::new(1, 1)))
    }
}

/// Builds a tree of two agents anew, as each process does.
fn tree(journal: &MemoryJournal, log: &Log) -> Agent {
    let slow = |millis| slow("slow", millis, log).repeatable();
    let helper = Steps::new([&[("h1", "slow", json!({})), ("h2", "slow", json!({}))]]);
    let helper = Agent::builder("helper", helper).tool(slow(5)).build().expect("builds");
    let calls = [
        ("b1", "slow", json!({})),
        ("b2", "delegate", json!({"agent": "helper", "message": "help"})),
        ("b3", "slow", json!({})),
    ];
    let boss = Steps::new([&calls, &[("b4", "slow", json!({}))]]);
    let builder = Agent::builder("boss", boss).tool(slow(7)).tool_concurrency(2).store(journal.clone());
    builder.middleware(Delegation::new().to("helper", "Helps.", helper)).build().expect("builds")
}

/// Runs the tree to its end; stops it after each of these times and resumes it in another process.
/// Returns the number of stops.
async fn run(stops: &[u64], stop: fn(&RunHandle), log: &Log) -> (Finished, usize) {
    let journal = MemoryJournal::default();
    let (mut request, mut stopped) = (RunRequest::user("go").session("s"), 0);
    for after in stops {
        let run = tree(&journal, log).start(request);
        let handle = run.handle();
        let stopping = async {
            sleep(ms(*after)).await;
            stop(&handle);
        };
        let end = tokio::join!(run, stopping).0.expect("does not fail");
        match end.checkpoint() {
            Some(checkpoint) => request = RunRequest::resume(carried_over(checkpoint), []),
            None => return (finished(Ok(end)), stopped),
        }
        stopped += 1;
    }
    let end = finished(tree(&journal, log).start(request).await);
    let kept = journal.index("s").await.expect("folds").look(|index| index.view("boss"));
    assert_eq!((&kept.history, kept.usage), (&end.history, end.usage), "the session knows the same: {stops:?}");
    (end, stopped)
}

fn calls_that_ended(log: &Log) -> Vec<String> {
    let mut ended: Vec<_> = log.seen().into_iter().filter(|line| line.ends_with("ends")).collect();
    ended.sort();
    ended
}

async fn wherever_it_is_stopped(stop: fn(&RunHandle)) {
    let log = Log::default();
    let begun = Instant::now();
    let (straight, mut stopped) = run(&[], stop, &log).await;
    let millis = u64::try_from(begun.elapsed().as_millis()).expect("small");
    let ended = calls_that_ended(&log);
    assert_eq!(ended, ["b1 ends", "b3 ends", "b4 ends", "h1 ends", "h2 ends"]);
    for first in 0..=millis {
        for then in [None, Some(1), Some(4), Some(10)] {
            let (log, stops) = (Log::default(), [Some(first), then].into_iter().flatten().collect::<Vec<_>>());
            let (mut end, times) = run(&stops, stop, &log).await;
            assert_eq!(calls_that_ended(&log), ended, "each call ends once: {stops:?}");
            end.ids = straight.ids.clone();
            assert_eq!(end, straight, "{stops:?}");
            stopped += times;
        }
    }
    assert!(stopped > 100, "it was stopped {stopped} times");
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_is_cancelled_anywhere_goes_on_as_if_it_had_not_been() {
    wherever_it_is_stopped(RunHandle::cancel).await;
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_is_paused_anywhere_goes_on_as_if_it_had_not_been() {
    wherever_it_is_stopped(RunHandle::pause).await;
}

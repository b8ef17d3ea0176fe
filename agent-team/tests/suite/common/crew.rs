//! A team that works off random tasks with dependencies: its members decide by their conversations alone, so that any call
//! may be repeated. Whatever happens to its processes, some facts always hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use agent_core::{AssistantMessage, Block, Effect, Error, Journal, Message, ToolOutput, ToolRequest};
use agent_exec::Agent;
use agent_team::{Team, TeamEnd, TeamEndReason, TeamRequest};
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

use super::Thinker;

pub(crate) const SESSION: &str = "crew";

/// Size of a crew, and the seed of its decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    pub(crate) seed: u64,
    pub(crate) members: usize,
    pub(crate) tasks: usize,
}

/// Records an effect outside of the team, by its idempotency key.
pub(crate) type Record = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// A number that depends on the seed and on some words.
fn mix(seed: u64, words: &[&str]) -> u64 {
    let mut hash = seed ^ 0x9e37_79b9_7f4a_7c15;
    for byte in words.iter().flat_map(|word| word.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        hash ^= hash >> 29;
    }
    hash
}

fn says(text: &str) -> AssistantMessage {
    AssistantMessage::new(vec![Block::text(text)])
}

/// Calls of tools. The number of messages makes their ids unique.
fn calls(messages: &[Message], calls: &[(&str, Value)]) -> AssistantMessage {
    let call = |(at, (name, args)): (usize, &(&str, Value))| {
        Block::tool_call(format!("c{}-{at}", messages.len()), *name, args.to_string())
    };
    AssistantMessage::new(calls.iter().enumerate().map(call).collect())
}

fn id(number: usize) -> String {
    format!("T-{number:03}")
}

impl Crew {
    /// The tasks that a task depends on: up to two of those before it.
    fn needs(self, task: usize) -> Vec<String> {
        let pick = |n: u64| mix(self.seed, &["needs", &task.to_string(), &n.to_string()]);
        let count = if task < 3 { 0 } else { pick(9) % 3 };
        let picked: BTreeSet<_> = (0..count).map(|n| id(1 + (pick(n) as usize) % (task - 1))).collect();
        picked.into_iter().collect()
    }

    fn lead(self, messages: &[Message]) -> AssistantMessage {
        let answers = messages.iter().filter_map(Message::as_assistant).filter(|said| said.has_calls()).count();
        if answers == 0 {
            let spawn = (0..self.members).map(|_| ("spawn_teammate", json!({"role_name": "worker"})));
            let create = (1..=self.tasks).map(|task| {
                ("create_task", json!({"title": format!("Task {task}"), "dependencies": self.needs(task)}))
            });
            let begin = [("broadcast", json!({"content": "begin"}))];
            return calls(messages, &spawn.chain(create).chain(begin).collect::<Vec<_>>());
        }
        match messages.last() {
            // Refused while tasks are open.
            Some(Message::User(_)) => calls(messages, &[("finish_team", json!({"summary": "all done"}))]),
            _ => says("I wait."),
        }
    }

    fn work(self, messages: &[Message]) -> AssistantMessage {
        let turn = messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or_default();
        let listed = || calls(messages, &[("list_tasks", json!({"status": "pending"}))]);
        let Some(Message::Tool(result)) = messages.last() else { return listed() };
        let heard = messages.last().map(Message::text).unwrap_or_default();
        let tool = |message: &&Message| matches!(message, Message::Tool(tool) if tool.name() == "list_tasks");
        match result.name() {
            "list_tasks" => {
                let seen: Value = serde_json::from_str(&heard).unwrap_or_default();
                let free: Vec<_> =
                    seen["tasks"].as_array().into_iter().flatten().filter(|task| task["is_blocked"] == false).collect();
                let looks = messages[turn..].iter().filter(tool).count();
                if free.is_empty() || looks > 2 * self.tasks {
                    return says("idle");
                }
                let at = mix(self.seed, &["claim", &messages.len().to_string()]) as usize % free.len();
                calls(messages, &[("claim_task", json!({"task_id": free[at]["task_id"]}))])
            }
            "claim_task" if result.is_error() => listed(),
            "claim_task" => {
                let seen: Value = serde_json::from_str(&heard).unwrap_or_default();
                calls(messages, &[("work", json!({"task": seen["task_id"]}))])
            }
            "work" => {
                let done = messages
                    .iter()
                    .filter(|message| matches!(message, Message::Tool(tool) if tool.name() == "work"))
                    .count();
                let task = heard;
                let complete = json!({"task_id": task, "status": "completed", "result_summary": "built"});
                let tell = json!({"content": format!("{task} is done, number {done} of mine.")});
                calls(messages, &[("update_task_status", complete), ("broadcast", tell)])
            }
            _ => listed(),
        }
    }

    /// The team over a store. `record` receives each effect, possibly more than once with the same key.
    pub(crate) fn team(self, store: impl Journal, record: Record) -> Team {
        let schema = json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]});
        let work = from_schema("work", "Works on a task.", schema, move |args: Value, req: ToolRequest| {
            let record = record.clone();
            async move {
                let task = args["task"].as_str().unwrap_or_default().to_owned();
                record(&task, &req.idempotency_key());
                Ok::<_, Error>(ToolOutput::text(task))
            }
        });
        let agent = |name: &str, think: Thinker| Agent::builder(name, think).max_steps(500);
        let lead = agent("lead", Thinker::new(move |messages| self.lead(messages)));
        let worker = agent("worker", Thinker::new(move |messages| self.work(messages)));
        let worker =
            worker.tool(work.with_options(|options| options.effect(Effect::Idempotent))).build().expect("builds");
        let team = Team::builder("crew").leader(lead.build().expect("builds")).member("worker", worker);
        team.max_members(self.members as u32).max_idle_turns(50).store(store).build().expect("builds")
    }

    pub(crate) fn request() -> TeamRequest {
        TeamRequest::user("Work off all tasks.").session(SESSION).run_id("r1")
    }

    /// Checks what always holds at the end: every task done once by its one owner, and every message delivered
    /// once and in order.
    pub(crate) async fn check(self, team: &Team, end: &TeamEnd, effects: &[(String, String)]) {
        let about = format!("{self:?}");
        assert_eq!((&end.reason, end.text.as_str()), (&TeamEndReason::Finished, "all done"), "{about}: {end:?}");
        assert_eq!(end.board.tasks().count(), self.tasks, "{about}");
        for task in end.board.tasks() {
            assert_eq!(task.status.as_str(), "completed", "{about}: {task:?}");
            let kept: Vec<_> = task.claims.iter().filter(|claim| claim.released.is_none()).collect();
            assert_eq!((kept.len(), Some(&kept[0].member)), (1, task.owner.as_ref()), "{about}: {task:?}");
        }
        let keys: BTreeSet<_> = effects.iter().map(|(task, key)| (task.as_str(), key.as_str())).collect();
        let done: BTreeSet<_> = keys.iter().map(|(task, _)| *task).collect();
        assert_eq!((keys.len(), done.len()), (self.tasks, self.tasks), "{about}: every task was worked on once");
        for member in &end.members {
            let session = team.session(SESSION).of_member(&member.id);
            let agent = if &*member.id == "leader" { "lead" } else { "worker" };
            let history = team.store().index(&session).await.expect("reads").look(|index| index.history(agent));
            let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
            for text in history.iter().filter(|message| matches!(message, Message::User(_))).map(Message::text) {
                let Some((from, rest)) = text.strip_prefix("Message from ").and_then(|text| text.split_once(" to all"))
                else {
                    continue;
                };
                let number: Option<u64> =
                    rest.split("number ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
                numbers.entry(from.to_owned()).or_default().extend(number);
            }
            for (from, numbers) in numbers {
                let expected: Vec<_> = (1..=numbers.len() as u64).collect();
                assert_eq!(numbers, expected, "{about}: messages of {from} to {}", member.id);
            }
        }
    }
}

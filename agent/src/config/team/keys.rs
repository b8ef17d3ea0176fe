//! The keys of a team.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value, json};

use super::TEAM;
use crate::config::{file::FileKeys, problem::Problem, text::Node};

/// Name of the schema of agents in a team.
pub(in crate::config) const AGENT_OF_TEAM: &str = "TeamAgent";

/// The agents of a team, and how they work together: a leader with members, or one pattern.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct TeamKeys {
    /// The agent that plans: it spawns members, puts tasks on the board and ends the team.
    pub(super) leader: Option<AgentSlot>,
    /// Roles that the leader can spawn, any number of times.
    pub(super) members: BTreeMap<String, MemberKeys>,
    /// Members besides the leader at one time, at most. Default: 10.
    #[schemars(range(min = 1))]
    pub(super) max_members: Option<u32>,
    /// Turns of all members in one run, at most. Default: unlimited.
    #[schemars(range(min = 1))]
    pub(super) max_rounds: Option<u32>,
    /// Turns at the same time, at most. Default: unlimited.
    #[schemars(range(min = 1))]
    pub(super) max_concurrent_turns: Option<usize>,
    /// Seconds that a run may take, over restarts. Default: unlimited.
    #[schemars(range(min = 0.001))]
    pub(super) deadline: Option<f64>,
    /// The task board.
    pub(super) board: BoardKeys,
    /// Notices about members that do nothing, and the end of a team that makes no progress.
    pub(super) watchdog: WatchdogKeys,
    /// Agents that run one after the other; each receives the text of the one before.
    #[schemars(length(min = 1))]
    pub(super) sequence: Option<Vec<AgentSlot>>,
    /// Agents that all receive the input, at the same time; their texts are joined.
    #[schemars(length(min = 1))]
    pub(super) parallel: Option<Vec<AgentSlot>>,
    /// One agent chooses which of several answers.
    pub(super) router: Option<RouterKeys>,
    /// Splits the input, runs an agent on each part, and another one on their results.
    pub(super) map_reduce: Option<MapReduceKeys>,
    /// Agents that argue in rounds, and a judge.
    pub(super) debate: Option<DebateKeys>,
    /// An agent that writes drafts, and one that evaluates them.
    pub(super) optimiser: Option<OptimiserKeys>,
    /// Agents that speak in turn, or in an order that an agent selects.
    pub(super) group_chat: Option<GroupChatKeys>,
    /// An agent that gives tasks to workers until it can answer.
    pub(super) supervisor: Option<SupervisorKeys>,
    /// Agents that hand the conversation over to each other.
    pub(super) swarm: Option<SwarmKeys>,
    /// A manager with a plan, who checks the progress after each step.
    pub(super) magentic: Option<MagenticKeys>,
}

/// An agent: the path of its file, or the agent itself. It was read, and is known by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentSlot(pub(super) usize);

impl<'de> Deserialize<'de> for AgentSlot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = String::deserialize(deserializer)?;
        number.parse().map(Self).map_err(|_| D::Error::custom("an agent is expected here"))
    }
}

impl JsonSchema for AgentSlot {
    fn schema_name() -> Cow<'static, str> {
        "AgentOrFile".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "string", "description": "The path of the agent's file."},
            {"$ref": format!("#/$defs/{AGENT_OF_TEAM}")},
        ]})
    }
}

/// A role: an agent, or an agent with a description for the leader.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum MemberKeys {
    Agent(AgentSlot),
    Described(DescribedMember),
}

/// A role with a description.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DescribedMember {
    /// Abilities of the members of this role, for the leader.
    #[serde(default)]
    pub(super) description: Option<String>,
    /// The agent.
    pub(super) agent: AgentSlot,
}

/// The task board.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BoardKeys {
    /// Seconds after which the task of an owner without a turn returns to the board. Default: never.
    #[schemars(range(min = 0.001))]
    pub(super) task_lease: Option<f64>,
    /// Folder of the tasks' deliverables, as members see it. Default: `tasks`.
    pub(super) deliverables: Option<String>,
}

/// Notices to the leader.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WatchdogKeys {
    /// Seconds for which all members are idle before the leader is notified. Default: 10.
    #[schemars(range(min = 0.0))]
    pub(super) idle_after: Option<f64>,
    /// Turns of the leader without progress after which an idle team ends. Default: 3.
    #[schemars(range(min = 1))]
    pub(super) max_idle_turns: Option<u32>,
    /// Seconds after which the leader is notified of a turn that is still running. Default: never.
    #[schemars(range(min = 0.001))]
    pub(super) stall_after: Option<f64>,
}

/// One agent chooses which of several answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RouterKeys {
    /// The agent that chooses: it answers with the name of one of the agents.
    pub(super) chooser: AgentSlot,
    /// The agents.
    #[schemars(length(min = 1))]
    pub(super) agents: Vec<AgentSlot>,
}

/// Splits the input, runs an agent on each part, and another one on their results.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MapReduceKeys {
    /// Separator of the input's parts: `lines`, `paragraphs`, or another text. Default: `paragraphs`.
    #[serde(default)]
    pub(super) split: Option<String>,
    /// The agent that each part is given to.
    pub(super) map: AgentSlot,
    /// The agent that all results are given to.
    pub(super) reduce: AgentSlot,
    /// Parts at the same time, at most. Default: 4.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) concurrency: Option<usize>,
}

/// Agents that argue in rounds, and a judge.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DebateKeys {
    /// The agents that argue.
    #[schemars(length(min = 1))]
    pub(super) debaters: Vec<AgentSlot>,
    /// The agent that decides.
    pub(super) judge: AgentSlot,
    /// Contributions of each agent.
    #[schemars(range(min = 1))]
    pub(super) rounds: usize,
}

/// An agent that writes drafts, and one that evaluates them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OptimiserKeys {
    /// The agent that writes.
    pub(super) writer: AgentSlot,
    /// The agent that evaluates: an answer that begins with `ACCEPT` accepts the draft.
    pub(super) evaluator: AgentSlot,
    /// Drafts, at most.
    #[schemars(range(min = 1))]
    pub(super) rounds: usize,
}

/// Agents that speak in turn, or in an order that an agent selects.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupChatKeys {
    /// The agents, in the order in which they speak if there is no selector.
    #[schemars(length(min = 1))]
    pub(super) agents: Vec<AgentSlot>,
    /// The agent that selects the next speaker: it answers with a name, or with `DONE`. Default: in turn.
    #[serde(default)]
    pub(super) selector: Option<AgentSlot>,
    /// Contributions, at most.
    #[schemars(range(min = 1))]
    pub(super) rounds: usize,
    /// Text of a contribution that ends the chat. Default: none.
    #[serde(default)]
    pub(super) until: Option<String>,
}

/// An agent that gives tasks to workers until it can answer. The workers' descriptions are those of their files.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SupervisorKeys {
    /// The agent that gives the tasks and answers.
    pub(super) manager: AgentSlot,
    /// The agents that work.
    #[schemars(length(min = 1))]
    pub(super) workers: Vec<AgentSlot>,
    /// Tasks, at most.
    #[schemars(range(min = 1))]
    pub(super) rounds: usize,
}

/// Agents that hand the conversation over to each other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SwarmKeys {
    /// The agents; conversations begin with the first one. Each has a description.
    #[schemars(length(min = 2))]
    pub(super) agents: Vec<AgentSlot>,
    /// Transfers that one message causes, at most. Default: 8.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) max_handoffs: Option<u32>,
}

/// A manager with a plan, who checks the progress after each step. The agents' descriptions are those of their files.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MagenticKeys {
    /// The agent that plans and directs.
    pub(super) manager: AgentSlot,
    /// The agents that work.
    #[schemars(length(min = 1))]
    pub(super) agents: Vec<AgentSlot>,
    /// Steps, at most.
    #[schemars(range(min = 1))]
    pub(super) rounds: usize,
    /// Steps without progress after which the manager plans again. Default: 3.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) max_stalls: Option<usize>,
    /// New plans, at most. Default: 2.
    #[serde(default)]
    pub(super) max_replans: Option<usize>,
    /// Asks a person to approve each plan. Default: false.
    #[serde(default)]
    pub(super) approve_plan: bool,
}

/// Keys that say how the agents work together, of which a team has one.
pub(super) const COURSES: [&str; 11] = [
    "leader",
    "sequence",
    "parallel",
    "router",
    "map_reduce",
    "debate",
    "optimiser",
    "group_chat",
    "supervisor",
    "swarm",
    "magentic",
];

/// Keys that only a team with a leader has.
const OF_LEADER: [&str; 4] = ["members", "max_members", "board", "watchdog"];

/// The problem of a team without a course, with several, or with keys that its course has no use for.
pub(super) fn wrong_course(file: &Node) -> Option<Problem> {
    let team = file.get(TEAM).filter(|team| !team.is_lost)?;
    let given: Vec<_> = team.entries().iter().filter(|entry| COURSES.contains(&entry.key.as_str())).collect();
    match given[..] {
        [] => {
            let help = format!("a team has one of: {}", COURSES.join(", "));
            Some(Problem::new(team.place.clone(), "the team has neither a leader nor a pattern").help(help))
        }
        [one] if one.key != "leader" => {
            let other = team.entries().iter().find(|entry| OF_LEADER.contains(&entry.key.as_str()))?;
            let why = format!("'{}' is for teams with a leader, and this one runs '{}'", other.key, one.key);
            Some(Problem::new(other.place.clone(), why).help("leave it out"))
        }
        [_] => None,
        [one, other, ..] => {
            let why = format!("a team has one course of work, and this one has '{}' and '{}'", one.key, other.key);
            Some(Problem::new(other.place.clone(), why).help("leave one of them out"))
        }
    }
}

/// The schema of a team's file, from the properties of an agent's.
pub(in crate::config) fn file_schema(agent: &Map<String, Value>, generator: &mut SchemaGenerator) -> Value {
    let is_shared =
        |key: &str| key == "name" || (FileKeys::ALL.contains(&key) && !["globals", "offer_sub_agents"].contains(&key));
    let mut properties: Map<_, _> =
        agent.iter().filter(|(key, _)| is_shared(key)).map(|(key, schema)| (key.clone(), schema.clone())).collect();
    for (key, about) in [
        ("name", "Name of the team."),
        ("description", "Purpose of the team, for people and for clients."),
        ("budget", "Budget of a run of the team: of all its members together."),
        ("telemetry", "Export of the members' runs by OpenTelemetry. Default: none."),
    ] {
        if let Some(property) = properties.get_mut(key) {
            property["description"] = json!(about);
        }
    }
    properties.insert(TEAM.to_owned(), generator.subschema_for::<TeamKeys>().to_value());
    json!({
        "type": "object",
        "description": "A team.",
        "properties": properties,
        "required": ["name", TEAM],
        "additionalProperties": false,
    })
}

/// The schema of an agent in a team, from that of an agent.
pub(in crate::config) fn member_schema(agent: &Value) -> Value {
    let mut member = agent.clone();
    member["description"] = json!("An agent of a team. Store and telemetry are those of the team.");
    if let Some(properties) = member["properties"].as_object_mut() {
        properties.retain(|key, _| !["store", "telemetry"].contains(&key.as_str()));
    }
    member
}

//! The state machine of a team, without a journal.
// Over 500 lines: one world, and the claims about it.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{ExitReason, Part, Usage};
use proptest::prelude::*;

use super::TeamState;
use crate::{
    board::{NewTask, TaskStatus},
    command::{Command, Outcome, Reply, TeamEntry},
    end::TeamEndReason,
    mail::Actor,
    member::{LEADER, Member, MemberStatus, Turn, TurnEnd},
    refusal::RefusalKind,
    settings::Settings,
};

struct World {
    state: TeamState,
    entries: Vec<TeamEntry>,
    time: u64,
}

impl World {
    fn new(settings: Settings) -> Self {
        let mut world = Self { state: TeamState::default(), entries: Vec::new(), time: 1_000 };
        let roles = [("builder".to_owned(), String::new()), ("tester".to_owned(), String::new())];
        let settings = Settings { roles: roles.into(), ..settings };
        let messages = vec![vec![Part::text("Go.")]];
        world.by(Actor::User, Command::Start { run: "r".into(), settings, messages }).expect("starts");
        world
    }

    fn apply(&mut self, by: Actor, key: Option<String>, command: Command) -> Outcome {
        let turn = by.member().and_then(|id| Some(self.state.member(id)?.turn.as_ref()?.run.clone()));
        let entry = TeamEntry { key, by, turn, time: self.time, origin: ("o".into(), 0), command };
        self.entries.push(entry.clone());
        self.state.apply(&entry)
    }

    fn by(&mut self, by: Actor, command: Command) -> Outcome {
        self.apply(by, None, command)
    }

    fn leader(&mut self, command: Command) -> Outcome {
        self.by(member(LEADER), command)
    }

    fn spawn(&mut self, role: &str) -> Arc<str> {
        match self.leader(Command::Spawn { role: role.into() }) {
            Ok(Reply::Spawned(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    fn create(&mut self, dependencies: &[&str]) -> String {
        let dependencies = dependencies.iter().map(|id| (*id).to_owned()).collect();
        let new = NewTask { title: "Build the Parser!".into(), dependencies, ..NewTask::default() };
        match self.leader(Command::CreateTask(new)) {
            Ok(Reply::Task(task)) => task.id,
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self, id: &str) -> Turn {
        match self.by(Actor::Team, Command::BeginTurn { member: id.into() }) {
            Ok(Reply::Turn(turn)) => *turn,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, id: &str, end: TurnEnd) {
        let run = self.state.member(id).and_then(|member| member.turn.as_ref()).expect("a turn").run.clone();
        let command = Command::EndTurn { member: id.into(), run, end, usage: Usage::new(1, 1) };
        self.by(Actor::Team, command).expect("ends");
    }

    fn finish(&mut self, id: &str) {
        self.end(id, TurnEnd::Finished { reason: ExitReason::Text, text: "said".into() });
    }
}

fn member(id: &str) -> Actor {
    Actor::Member(id.into())
}

fn claim(task: &str) -> Command {
    Command::ClaimTask { task: task.into(), assignee: None }
}

fn complete(task: &str) -> Command {
    Command::UpdateTask { task: task.into(), status: TaskStatus::Completed, result: Some("ok".into()) }
}

fn say(to: &str, text: &str) -> Command {
    Command::Message { to: to.into(), parts: vec![Part::text(text)] }
}

fn refusal(outcome: Outcome) -> (RefusalKind, String) {
    let refused = outcome.expect_err("refused");
    (refused.kind, refused.message)
}

#[test]
fn ids_are_numbered_per_role_and_never_used_again() {
    let mut world = World::new(Settings::default());
    assert_eq!(
        [&*world.spawn("builder"), &*world.spawn("builder"), &*world.spawn("tester")],
        ["builder-1", "builder-2", "tester-1"]
    );
    world.leader(Command::Remove { member: "builder-2".into() }).expect("idle");
    assert_eq!(&*world.spawn("builder"), "builder-3");
    let (first, second) = (world.create(&[]), world.create(&[]));
    assert_eq!((first.as_str(), second.as_str()), ("T-001", "T-002"));
    let custom = NewTask { id: Some("T-003".into()), title: "x".into(), ..NewTask::default() };
    world.leader(Command::CreateTask(custom.clone())).expect("free");
    assert_eq!(refusal(world.leader(Command::CreateTask(custom))).0, RefusalKind::Conflict);
    assert_eq!(world.create(&[]), "T-004");
    let path = &world.state.board().get("T-001").expect("there").deliverable_path;
    assert_eq!(path, "tasks/T-001-build-the-parser.md");
}

#[test]
fn members_cannot_spawn_create_assign_remove_or_finish() {
    let mut world = World::new(Settings::default());
    let (one, two) = (world.spawn("builder"), world.spawn("builder"));
    let task = world.create(&[]);
    let forbidden = [
        Command::Spawn { role: "builder".into() },
        Command::Remove { member: two.clone() },
        Command::CreateTask(NewTask { title: "x".into(), ..NewTask::default() }),
        Command::ClaimTask { task: task.clone(), assignee: Some(two.clone()) },
        Command::Finish { summary: "x".into(), force: true },
    ];
    for command in forbidden {
        assert_eq!(refusal(world.by(member(&one), command)).0, RefusalKind::NotAllowed);
    }
    world.by(member(&one), claim(&task)).expect("free");
    assert_eq!(refusal(world.by(member(&two), complete(&task))).0, RefusalKind::NotAllowed, "another's task");
}

#[test]
fn the_number_of_members_is_limited_and_a_removed_one_makes_room() {
    let mut world = World::new(Settings { max_members: 1, ..Settings::default() });
    world.spawn("builder");
    let (kind, message) = refusal(world.leader(Command::Spawn { role: "builder".into() }));
    assert_eq!(kind, RefusalKind::Limit, "{message}");
    world.leader(Command::Remove { member: "builder-1".into() }).expect("idle");
    world.spawn("tester");
    let (kind, message) = refusal(world.leader(Command::Spawn { role: "cook".into() }));
    assert_eq!((kind, message.as_str()), (RefusalKind::NotFound, "unknown role 'cook'; roles: builder, tester"));
}

#[test]
fn a_task_is_claimed_by_one_member_and_a_member_works_on_one_task() {
    let mut world = World::new(Settings::default());
    let (one, two) = (world.spawn("builder"), world.spawn("builder"));
    let (first, second) = (world.create(&[]), world.create(&[]));
    world.by(member(&one), claim(&first)).expect("free");
    let (kind, message) = refusal(world.by(member(&two), claim(&first)));
    assert_eq!((kind, message.as_str()), (RefusalKind::Conflict, "task T-001 is already claimed by builder-1"));
    assert_eq!(refusal(world.by(member(&one), claim(&second))).0, RefusalKind::Conflict, "one task at a time");
    world.by(member(&one), complete(&first)).expect("its own");
    assert_eq!(refusal(world.by(member(&two), claim(&first))).1, "task T-001 is completed");
    world.by(member(&one), claim(&second)).expect("free again");
    world.by(member(&one), Command::ReleaseTask { task: second.clone() }).expect("its own");
    world.by(member(&two), claim(&second)).expect("released");
    let task = world.state.board().get(&second).expect("there");
    assert_eq!((task.owner.as_deref(), task.claims.len()), (Some("builder-2"), 2), "the history of claims is kept");
    assert_eq!(task.claims[0].released.as_deref(), Some("released by builder-1"));
}

#[test]
fn a_task_is_blocked_until_its_dependencies_are_completed_whatever_is_listed() {
    let mut world = World::new(Settings::default());
    let one = world.spawn("builder");
    let first = world.create(&[]);
    let second = world.create(&[&first, &first]);
    let (kind, message) = refusal(world.by(member(&one), claim(&second)));
    assert_eq!((kind, message.contains("blocked")), (RefusalKind::Conflict, true), "{message}");
    let new = NewTask { title: "x".into(), dependencies: vec!["T-009".into()], ..NewTask::default() };
    assert_eq!(refusal(world.leader(Command::CreateTask(new))).0, RefusalKind::NotFound);
    world.by(member(&one), claim(&first)).expect("free");
    world.by(member(&one), complete(&first)).expect("its own");
    world.by(member(&one), claim(&second)).expect("unblocked");
    let board = world.state.board();
    let task = board.get(&second).expect("there");
    assert_eq!((task.dependencies.len(), board.blocked_by(task).count()), (1, 0));
}

#[test]
fn an_assignee_is_told_of_its_task() {
    let mut world = World::new(Settings::default());
    let one = world.spawn("builder");
    let task = world.create(&[]);
    world.leader(Command::ClaimTask { task, assignee: Some(one.clone()) }).expect("free");
    let turn = world.begin(&one);
    assert_eq!(turn.messages.len(), 1);
    assert!(turn.messages[0].text().starts_with("You were assigned task T-001: Build the Parser!"));
}

#[test]
fn a_broadcast_reaches_each_recipient_once_and_never_its_sender() {
    let mut world = World::new(Settings::default());
    let (one, two) = (world.spawn("builder"), world.spawn("builder"));
    world.begin(LEADER);
    world.leader(Command::Broadcast { parts: vec![Part::text("hello")] }).expect("sent");
    for id in [&one, &two] {
        let turn = world.begin(id);
        assert_eq!(turn.messages.iter().map(|m| m.text()).collect::<Vec<_>>(), ["hello"]);
        world.finish(id);
    }
    world.finish(LEADER);
    assert!(world.state.ready().is_empty(), "nothing is left");
}

#[test]
fn messages_to_a_removed_member_return_to_their_sender() {
    let mut world = World::new(Settings::default());
    let (one, two) = (world.spawn("builder"), world.spawn("builder"));
    world.by(member(&two), say(&one, "are you there?")).expect("sent");
    world.leader(Command::Remove { member: one.clone() }).expect("idle");
    let turn = world.begin(&two);
    assert!(turn.messages[0].text().ends_with("are you there?"), "{:?}", turn.messages);
    assert_eq!(turn.messages[0].from, Actor::Team);
    assert_eq!(refusal(world.by(member(&two), say(&one, "hm"))).1, "member builder-1 was removed");
    assert_eq!(world.state.member(&one).map(Member::status), Some(MemberStatus::Removed));
}

#[test]
fn a_running_member_cannot_be_removed() {
    let mut world = World::new(Settings::default());
    let one = world.spawn("builder");
    world.leader(say(&one, "work")).expect("sent");
    world.begin(&one);
    assert_eq!(refusal(world.leader(Command::Remove { member: one })).0, RefusalKind::Conflict);
}

#[test]
fn the_task_of_a_member_that_failed_returns_to_the_board_and_the_leader_hears_of_it() {
    let mut world = World::new(Settings::default());
    world.begin(LEADER);
    let one = world.spawn("builder");
    let task = world.create(&[]);
    world.leader(Command::ClaimTask { task: task.clone(), assignee: Some(one.clone()) }).expect("free");
    world.finish(LEADER);
    world.begin(&one);
    world.end(&one, TurnEnd::Failed { error: "no credit".into() });
    let state = world.state.board().get(&task).expect("there");
    assert_eq!((state.status, &state.owner), (TaskStatus::Pending, &None));
    assert_eq!(state.claims[0].released.as_deref(), Some("builder-1 failed"));
    assert_eq!(world.state.member(&one).map(Member::status), Some(MemberStatus::Error));
    let turn = world.begin(LEADER);
    assert_eq!(turn.messages[0].text(), "builder-1 failed: no credit\nTask T-001 returned to the board.");
}

#[test]
fn a_leader_that_fails_ends_the_team() {
    let mut world = World::new(Settings::default());
    world.begin(LEADER);
    world.end(LEADER, TurnEnd::Failed { error: "no credit".into() });
    assert_eq!(world.state.reason(), Some(&TeamEndReason::Failed("no credit".into())));
    assert_eq!(refusal(world.by(Actor::User, say(LEADER, "hello?"))).0, RefusalKind::Ended);
}

#[test]
fn finishing_is_refused_while_tasks_are_open_and_touches_nobody() {
    let mut world = World::new(Settings::default());
    world.begin(LEADER);
    let one = world.spawn("builder");
    let task = world.create(&[]);
    world.leader(say(&one, "work")).expect("sent");
    world.begin(&one);
    world.by(member(&one), claim(&task)).expect("free");
    let before = world.state.clone();
    let finish = |force| Command::Finish { summary: "done".into(), force };
    let (kind, message) = refusal(world.leader(finish(false)));
    assert_eq!((kind, message.contains("T-001")), (RefusalKind::Conflict, true), "{message}");
    assert_eq!(world.state, before);
    world.leader(finish(true)).expect("forced");
    assert_eq!(world.state.reason(), Some(&TeamEndReason::Finished));
    assert_eq!(world.state.end(&"s".into(), TeamEndReason::Waiting).text, "done");
}

#[test]
fn a_command_of_a_turn_that_is_over_is_refused() {
    let mut world = World::new(Settings::default());
    world.begin(LEADER);
    let late = TeamEntry {
        key: None,
        by: member(LEADER),
        turn: Some("r-leader-0".into()),
        time: 0,
        origin: ("o".into(), 0),
        command: Command::Spawn { role: "builder".into() },
    };
    assert_eq!(world.state.apply(&late).expect_err("over").message, "the turn of leader is over");
}

#[test]
fn an_idle_leader_is_notified_and_the_team_ends_after_three_turns_without_progress() {
    let mut world = World::new(Settings::default());
    for turn in 1..=3 {
        world.begin(LEADER);
        assert_eq!(refusal(world.by(Actor::Team, Command::Idle {})).0, RefusalKind::Conflict, "it is at work");
        world.finish(LEADER);
        world.by(Actor::Team, Command::Idle {}).expect("idle");
        assert_eq!(world.state.is_open(), turn < 3, "after turn {turn}");
    }
    assert_eq!(world.state.reason(), Some(&TeamEndReason::Quiescent));
}

#[test]
fn progress_begins_a_new_period_of_idleness_and_a_completed_board_ends_the_team_after_one_notice() {
    let mut world = World::new(Settings::default());
    world.begin(LEADER);
    world.finish(LEADER);
    world.by(Actor::Team, Command::Idle {}).expect("idle");
    world.begin(LEADER);
    let task = world.create(&[]);
    world.leader(claim(&task)).expect("free");
    world.leader(complete(&task)).expect("its own");
    world.finish(LEADER);
    world.by(Actor::Team, Command::Idle {}).expect("idle");
    assert!(world.state.is_open(), "the leader made progress, and hears once more");
    world.begin(LEADER);
    world.finish(LEADER);
    world.by(Actor::Team, Command::Idle {}).expect("idle");
    assert_eq!(world.state.reason(), Some(&TeamEndReason::Quiescent));
}

#[test]
fn a_claim_expires_while_its_owner_has_no_turn_and_a_turn_renews_it() {
    let mut world = World::new(Settings { task_lease: Some(100), ..Settings::default() });
    world.begin(LEADER);
    let one = world.spawn("builder");
    let task = world.create(&[]);
    world.leader(Command::ClaimTask { task: task.clone(), assignee: Some(one.clone()) }).expect("free");
    assert_eq!(world.state.next_timer(), Some(1_100));
    world.begin(&one);
    assert_eq!(world.state.next_timer(), None, "it is at work");
    world.time = 5_000;
    world.finish(&one);
    assert_eq!(world.state.next_timer(), Some(5_100));
    world.time = 5_099;
    world.by(Actor::Team, Command::Tick {}).expect("ticks");
    assert_eq!(world.state.board().get(&task).map(|task| task.status), Some(TaskStatus::InProgress));
    world.time = 5_100;
    world.by(Actor::Team, Command::Tick {}).expect("ticks");
    assert_eq!(world.state.board().get(&task).map(|task| task.status), Some(TaskStatus::Pending));
    assert_eq!((world.state.next_timer(), world.state.unread(LEADER)), (None, 1));
}

#[test]
fn the_leader_hears_once_of_a_passed_deadline_and_of_a_stalled_turn() {
    let mut world = World::new(Settings { stall_after: Some(50), ..Settings::default() });
    world.begin(LEADER);
    let one = world.spawn("builder");
    let new = NewTask { title: "x".into(), time_limit: Some(200), ..NewTask::default() };
    world.leader(Command::CreateTask(new)).expect("created");
    world.leader(say(&one, "work")).expect("sent");
    world.begin(&one);
    assert_eq!(world.state.next_timer(), Some(1_050));
    world.time = 1_050;
    world.by(Actor::Team, Command::Tick {}).expect("ticks");
    assert_eq!((world.state.unread(LEADER), world.state.next_timer()), (1, Some(1_200)));
    world.time = 1_300;
    world.by(Actor::Team, Command::Tick {}).expect("ticks");
    world.by(Actor::Team, Command::Tick {}).expect("ticks");
    assert_eq!((world.state.unread(LEADER), world.state.next_timer()), (2, None));
}

// --- properties ---

#[derive(Clone, Debug)]
enum Step {
    Spawn(bool),
    Remove(usize),
    Create(Vec<usize>),
    Claim(usize, usize),
    Assign(usize, usize),
    Complete(usize, usize),
    Release(usize, usize),
    Message(usize, usize),
    Broadcast(usize),
    Begin(usize),
    End(usize, bool),
    Idle,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<(Step, bool)>> {
    let n = || 0..6_usize;
    let step = prop_oneof![
        any::<bool>().prop_map(Step::Spawn),
        n().prop_map(Step::Remove),
        prop::collection::vec(n(), 0..3).prop_map(Step::Create),
        (n(), n()).prop_map(|(a, b)| Step::Claim(a, b)),
        (n(), n()).prop_map(|(a, b)| Step::Assign(a, b)),
        (n(), n()).prop_map(|(a, b)| Step::Complete(a, b)),
        (n(), n()).prop_map(|(a, b)| Step::Release(a, b)),
        (n(), n()).prop_map(|(a, b)| Step::Message(a, b)),
        n().prop_map(Step::Broadcast),
        n().prop_map(Step::Begin),
        (n(), any::<bool>()).prop_map(|(a, b)| Step::End(a, b)),
        Just(Step::Idle),
        (1..200_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec((step, any::<bool>()), 0..120)
}

/// Ids of a world by small numbers: mostly existing ones.
struct Ids {
    members: Vec<Arc<str>>,
    tasks: Vec<String>,
}

impl Ids {
    fn member(&self, n: usize) -> Arc<str> {
        self.members.get(n % (self.members.len() + 1)).cloned().unwrap_or_else(|| "nobody-1".into())
    }

    fn task(&self, n: usize) -> String {
        self.tasks.get(n % (self.tasks.len() + 1)).cloned().unwrap_or_else(|| "T-999".into())
    }
}

fn command(step: &Step, ids: &Ids) -> Option<(Actor, Command)> {
    let leader = member(LEADER);
    Some(match step {
        Step::Spawn(builder) => {
            let role = if *builder { "builder" } else { "tester" };
            (leader, Command::Spawn { role: role.into() })
        }
        Step::Remove(n) => (leader, Command::Remove { member: ids.member(*n) }),
        Step::Create(on) => {
            let dependencies = on.iter().map(|n| ids.task(*n)).filter(|id| id != "T-999").collect();
            (leader, Command::CreateTask(NewTask { title: "x".into(), dependencies, ..NewTask::default() }))
        }
        Step::Claim(m, t) => (Actor::Member(ids.member(*m)), claim(&ids.task(*t))),
        Step::Assign(m, t) => (leader, Command::ClaimTask { task: ids.task(*t), assignee: Some(ids.member(*m)) }),
        Step::Complete(m, t) => (Actor::Member(ids.member(*m)), complete(&ids.task(*t))),
        Step::Release(m, t) => (Actor::Member(ids.member(*m)), Command::ReleaseTask { task: ids.task(*t) }),
        Step::Message(from, to) => (Actor::Member(ids.member(*from)), say(&ids.member(*to), "hello")),
        Step::Broadcast(from) => {
            (Actor::Member(ids.member(*from)), Command::Broadcast { parts: vec![Part::text("all")] })
        }
        Step::Begin(m) => (Actor::Team, Command::BeginTurn { member: ids.member(*m) }),
        Step::Idle => (Actor::Team, Command::Idle {}),
        Step::End(..) | Step::Wait(_) => return None,
    })
}

/// Numbers of the messages that were sent to each recipient, and of those delivered to it.
#[derive(Default)]
struct Mail {
    sent: BTreeMap<Arc<str>, Vec<u64>>,
    delivered: BTreeMap<Arc<str>, Vec<u64>>,
}

fn check_board(world: &World) -> Result<(), TestCaseError> {
    let board = world.state.board();
    let mut owners = Vec::new();
    for task in board.tasks() {
        let is_done = |id: &String| board.get(id).is_some_and(|task| task.status == TaskStatus::Completed);
        match task.status {
            TaskStatus::Pending => prop_assert!(task.owner.is_none()),
            TaskStatus::InProgress => {
                let owner = task.owner.clone();
                prop_assert!(owner.is_some() && !owners.contains(&owner), "{owner:?} works on two tasks");
                prop_assert!(owner.as_ref().and_then(|id| world.state.member(id)).is_some_and(|m| !m.removed));
                owners.push(owner);
            }
            TaskStatus::Completed => prop_assert!(task.owner.is_some()),
        }
        let has_begun = task.status != TaskStatus::Pending;
        prop_assert!(!has_begun || task.dependencies.iter().all(is_done), "{} began too early", task.id);
        let open = task.claims.iter().filter(|claim| claim.released.is_none()).count();
        prop_assert_eq!(open, usize::from(has_begun), "one claim is open");
    }
    Ok(())
}

proptest! {
    #[test]
    fn random_commands_keep_the_board_and_the_mailboxes_whole(steps in steps()) {
        let mut world = World::new(Settings { task_lease: Some(100), max_members: 4, ..Settings::default() });
        let mut mail = Mail::default();
        mail.sent.insert(LEADER.into(), vec![1]);
        for (at, (step, repeats)) in steps.iter().enumerate() {
            let ids = Ids {
                members: world.state.members().map(|m| m.id.clone()).collect(),
                tasks: world.state.board().tasks().map(|task| task.id.clone()).collect(),
            };
            match step {
                Step::Wait(time) => {
                    world.time += time;
                    let _ = world.by(Actor::Team, Command::Tick {});
                }
                Step::End(m, fails) => {
                    let id = ids.member(*m);
                    if world.state.member(&id).is_some_and(|member| member.turn.is_some()) && (*id != *LEADER || !fails) {
                        match fails {
                            true => world.end(&id, TurnEnd::Failed { error: "x".into() }),
                            false => world.finish(&id),
                        }
                    }
                }
                step => {
                    let Some((by, command)) = command(step, &ids) else { continue };
                    let key = Some(format!("k{at}"));
                    let outcome = world.apply(by.clone(), key.clone(), command.clone());
                    if let Ok(Reply::Sent(number, to)) = &outcome {
                        to.iter().for_each(|to| mail.sent.entry(to.clone()).or_default().push(*number));
                    }
                    if let Ok(Reply::Turn(turn)) = &outcome
                        && let Command::BeginTurn { member } = &command
                    {
                        // Notices of the team itself have no reply of their own.
                        let by_members = turn.messages.iter().filter(|m| m.from != Actor::Team);
                        let numbers = by_members.filter(|m| m.number == 1 || !m.text().starts_with("You were assigned"));
                        mail.delivered.entry(member.clone()).or_default().extend(numbers.map(|m| m.number));
                    }
                    if *repeats {
                        let before = world.state.clone();
                        prop_assert_eq!(world.apply(by, key, command), outcome, "a repeated key has the first outcome");
                        prop_assert_eq!(&world.state, &before, "and changes nothing");
                    }
                }
            }
            check_board(&world)?;
        }
        for (recipient, delivered) in &mail.delivered {
            let sent = mail.sent.get(recipient).map(Vec::as_slice).unwrap_or_default();
            prop_assert!(delivered.len() <= sent.len());
            prop_assert_eq!(delivered, &sent[..delivered.len()], "each once, in order, to {}", recipient);
        }
        let mut again = TeamState::default();
        for entry in &world.entries {
            let text = serde_json::to_string(entry).expect("JSON");
            let _ = again.apply(&serde_json::from_str(&text).expect("the same entry"));
        }
        prop_assert_eq!(again, world.state, "the journal yields the same state");
    }
}

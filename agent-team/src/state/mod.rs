//! [`TeamState`]: the state of a team, folded from the entries of its journal.

mod members;
mod messages;
mod parts;
mod tasks;
#[cfg(test)]
mod tests;
mod turns;
mod watch;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use agent_core::Usage;

use crate::{
    board::Board,
    command::{Command, Outcome, Reply, TeamEntry},
    end::{MemberInfo, TeamEnd, TeamEndReason, TeamQuestion},
    mail::{Actor, Mailboxes},
    member::{LEADER, Member},
    refusal::{RefusalKind, Refused},
    settings::Settings,
};

/// State of a team: its members with their turns, the task board and the undelivered messages.
///
/// The state changes only by entries of the team's journal, and depends on nothing else.
/// [`TeamSession::state`](crate::TeamSession::state) returns it, from any process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeamState {
    settings: Settings,
    /// Id of the newest run of the team.
    run: Option<Arc<str>>,
    started: u64,
    /// Input of the run, if a pattern runs.
    input: String,
    members: BTreeMap<Arc<str>, Member>,
    /// Number of members ever spawned, by role.
    spawned: BTreeMap<String, u32>,
    board: Board,
    mail: Mailboxes,
    /// Number of turns that began in the run.
    rounds: u32,
    usage: Usage,
    /// Number of consecutive notices of idleness without progress.
    idle: u32,
    /// Outcomes of commands with an idempotency key.
    outcomes: HashMap<String, Outcome>,
    end: Option<Ended>,
}

/// Recorded end of a run.
#[derive(Clone, Debug, PartialEq)]
struct Ended {
    reason: TeamEndReason,
    summary: Option<String>,
    /// The member whose turn ended the run.
    by: Option<Arc<str>>,
}

impl TeamState {
    // --- views ---

    /// Id of the team's newest run; `None` if it never ran.
    pub fn run(&self) -> Option<&Arc<str>> {
        self.run.as_ref()
    }

    /// Name of the pattern that the newest run runs; `None` if a leader plans.
    pub fn pattern(&self) -> Option<&str> {
        self.settings.pattern.as_deref()
    }

    /// True if the newest run has not ended.
    pub fn is_open(&self) -> bool {
        self.run.is_some() && self.end.is_none()
    }

    /// Reason of the newest run's end; `None` while it is open.
    pub fn reason(&self) -> Option<&TeamEndReason> {
        self.end.as_ref().map(|end| &end.reason)
    }

    /// The task board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// All members by id, including removed ones.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Returns the member with this id.
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id)
    }

    /// Number of messages that are not delivered to this member yet.
    pub fn unread(&self, member: &str) -> usize {
        self.mail.waiting(member)
    }

    /// The members as others see them, including removed ones.
    pub fn member_infos(&self) -> Vec<MemberInfo> {
        self.members().map(|member| MemberInfo::of(member, &self.board, self.unread(&member.id))).collect()
    }

    /// The open questions of all members.
    pub fn questions(&self) -> Vec<TeamQuestion> {
        let of_member = |member: &Member| {
            let open = member.turn.as_ref().map(|turn| turn.open_questions().cloned().collect::<Vec<_>>());
            let questions = open.unwrap_or_default();
            let member = member.id.clone();
            questions.into_iter().map(move |question| TeamQuestion { member: member.clone(), question })
        };
        self.members().flat_map(of_member).collect()
    }

    /// Number of turns that began in the newest run.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Usage of all ended turns of the newest run.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Result of the newest run, or else the leader's last text.
    pub fn text(&self) -> String {
        let leader = || self.member(LEADER).map(|leader| leader.text.clone()).unwrap_or_default();
        let summary = self.end.as_ref().and_then(|end| end.summary.clone());
        summary.unwrap_or_else(leader)
    }

    /// Returns the end of the newest run with this reason, or with the recorded one.
    pub(crate) fn end(&self, session: &Arc<str>, suspended: TeamEndReason) -> TeamEnd {
        TeamEnd {
            run: self.run.clone().unwrap_or_default(),
            session: session.clone(),
            reason: self.reason().cloned().unwrap_or(suspended),
            text: self.text(),
            board: self.board.clone(),
            members: self.member_infos(),
            questions: self.questions(),
            usage: self.usage,
            rounds: self.rounds,
        }
    }

    /// Caps of the request that started the newest run.
    pub(crate) fn caps(&self) -> Option<agent_core::Caps> {
        self.settings.caps
    }

    /// The member whose turn ended the run.
    pub(crate) fn ended_by(&self) -> Option<&Arc<str>> {
        self.end.as_ref()?.by.as_ref()
    }

    // --- entries ---

    /// Applies the next entry of the journal and returns its outcome.
    pub(crate) fn apply(&mut self, entry: &TeamEntry) -> Outcome {
        if let Some(outcome) = entry.key.as_ref().and_then(|key| self.outcomes.get(key)) {
            return outcome.clone();
        }
        let outcome = self.admit(entry).and_then(|()| self.execute(entry));
        if outcome.is_ok() && !entry.command.is_bookkeeping() {
            self.idle = 0;
        }
        if let Some(key) = &entry.key {
            self.outcomes.insert(key.clone(), outcome.clone());
        }
        outcome
    }

    /// True if the entry repeats a command, and so changes nothing.
    pub(crate) fn is_repeated(&self, entry: &TeamEntry) -> bool {
        entry.key.as_ref().is_some_and(|key| self.outcomes.contains_key(key))
    }

    /// Checks that the author may act now.
    fn admit(&self, entry: &TeamEntry) -> Result<(), Refused> {
        if !self.is_open() && !matches!(entry.command, Command::Start { .. } | Command::EndTurn { .. }) {
            let message = match &self.end {
                Some(end) => format!("the team run has ended ({})", end.reason.as_str()),
                None => "the team has not started".to_owned(),
            };
            return Err(Refused::new(RefusalKind::Ended, message));
        }
        let Some(id) = entry.by.member() else { return Ok(()) };
        let turn = self.active(id)?.turn.as_ref().map(|turn| &turn.run);
        if entry.turn.is_some() && turn != entry.turn.as_ref() {
            return Err(Refused::conflict(format!("the turn of {id} is over")));
        }
        Ok(())
    }

    fn execute(&mut self, entry: &TeamEntry) -> Outcome {
        let (by, time) = (&entry.by, entry.time);
        match &entry.command {
            Command::Start { run, settings, messages } => self.start(run, settings, messages, time),
            Command::Spawn { role } => self.spawn(by, role),
            Command::Remove { member } => self.remove(by, member, time),
            Command::CreateTask(new) => self.create_task(by, new, time),
            Command::ClaimTask { task, assignee } => self.claim_task(by, task, assignee.as_ref(), time),
            Command::UpdateTask { task, status, result } => self.update_task(by, task, *status, result.clone(), time),
            Command::ReleaseTask { task } => self.release_task(by, task),
            Command::Message { to, parts } => self.message(by, to, parts, time),
            Command::Broadcast { parts } => self.broadcast(by, parts, time),
            Command::Finish { summary, force } => self.finish(by, summary, *force),
            Command::BeginTurn { member } => self.begin_turn(member, time),
            Command::SuspendTurn { member, run, questions, used } => self.suspend_turn(member, run, questions, used),
            Command::Answer { member, question, answer } => self.answer(member, question, answer),
            Command::EndTurn { member, run, end, usage } => self.end_turn(member, run, end, *usage, time),
            Command::Tick {} => {
                self.tick(time);
                Ok(Reply::Done)
            }
            Command::Idle {} => self.notice_idleness(time),
            Command::BeginPart { member, role, run, text } => self.begin_part(member, role, run, text, time),
            Command::Complete { reason, text } => {
                self.end_with(reason.clone(), Some(text.clone()), None);
                Ok(Reply::Done)
            }
            Command::End { reason } => {
                self.end_with(reason.clone(), None, None);
                Ok(Reply::Done)
            }
        }
    }

    fn start(&mut self, run: &Arc<str>, settings: &Settings, messages: &[Vec<agent_core::Part>], time: u64) -> Outcome {
        if self.is_open() {
            return Err(Refused::conflict("the team has an open run"));
        }
        self.settings = settings.clone();
        (self.run, self.started, self.end) = (Some(run.clone()), time, None);
        (self.rounds, self.usage, self.idle) = (0, Usage::default(), 0);
        self.outcomes.clear();
        if self.settings.pattern.is_some() {
            self.begin_pattern(messages);
            return Ok(Reply::Done);
        }
        let leader: Arc<str> = LEADER.into();
        self.members.entry(leader.clone()).or_insert_with(|| Member::new(leader.clone(), leader.clone()));
        for parts in messages {
            self.mail.send(Actor::User, vec![leader.clone()], false, parts.clone(), time);
        }
        Ok(Reply::Done)
    }

    /// Ends the run as finished, unless tasks are open. Members are not touched before that check.
    fn finish(&mut self, by: &Actor, summary: &str, force: bool) -> Outcome {
        self.only_leader(by, "finish the team")?;
        let open: Vec<_> = self.board.open().map(|task| task.id.as_str()).collect();
        if !open.is_empty() && !force {
            let open = open.join(", ");
            return Err(Refused::conflict(format!(
                "tasks are open: {open}; complete them, or pass force to give them up"
            )));
        }
        self.end_with(TeamEndReason::Finished, Some(summary.to_owned()), by.member().cloned());
        Ok(Reply::Done)
    }

    fn end_with(&mut self, reason: TeamEndReason, summary: Option<String>, by: Option<Arc<str>>) {
        self.end.get_or_insert(Ended { reason, summary, by });
    }

    // --- permissions ---

    /// Refuses members other than the leader.
    fn only_leader(&self, by: &Actor, action: &str) -> Result<(), Refused> {
        match by.member() {
            Some(id) if **id != *LEADER => Err(Refused::not_allowed(format!("only the leader may {action}"))),
            _ => Ok(()),
        }
    }

    /// Returns a member that was not removed.
    fn active(&self, id: &str) -> Result<&Member, Refused> {
        match self.members.get(id) {
            Some(member) if !member.removed => Ok(member),
            Some(_) => Err(Refused::not_found(format!("member {id} was removed"))),
            None => {
                let known: Vec<_> = self.active_members().map(|member| &*member.id).collect();
                Err(Refused::not_found(format!("unknown member '{id}'; members: {}", known.join(", "))))
            }
        }
    }

    fn active_members(&self) -> impl Iterator<Item = &Member> {
        self.members().filter(|member| !member.removed)
    }

    /// Returns the open turn `run` of a member.
    fn turn_mut(&mut self, member: &str, run: &str) -> Option<&mut crate::member::Turn> {
        self.members.get_mut(member)?.turn.as_mut().filter(|turn| *turn.run == *run)
    }

    /// Sends a message of the team itself to the leader.
    fn notify_leader(&mut self, text: String, time: u64) {
        let leader: Arc<str> = LEADER.into();
        if !self.members.contains_key(&leader) {
            return; // a pattern has no leader
        }
        self.mail.send(Actor::Team, vec![leader], false, vec![agent_core::Part::text(text)], time);
    }
}

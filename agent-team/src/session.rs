//! [`TeamSession`]: a team's session from outside of its run.

use std::{fmt, sync::Arc};

use agent_core::{Answer, Error, Part, Result, run::Refusal};
use agent_tools::check_value;

use crate::{
    board::Board,
    command::{Command, Reply},
    end::{MemberInfo, TeamEndReason, TeamQuestion},
    history::{TeamHistory, read_state},
    log::Author,
    mail::Actor,
    member::member_session,
    parts::Parts,
    state::TeamState,
};

/// A team's session, to observe it and to act on it on behalf of the user. Returned by
/// [`Team::session`](crate::Team::session); works from any process that shares the store.
///
/// A command takes effect once it is in the team's journal. A run that is in progress acts on it, at once
/// in the same process and after a notification of the store in another one; otherwise the next run
/// does.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::{Team, TeamEndReason, TeamRequest};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let leader = Agent::builder("lead", ScriptedModel::new([Turn::text("Noted.")])).build()?;
/// let team = Team::builder("notes").leader(leader).max_idle_turns(1).build()?;
/// team.start(TeamRequest::user("Take this down.").session("ada")).await?;
///
/// let session = team.session("ada");
/// assert_eq!(session.state().await?.reason(), Some(&TeamEndReason::Quiescent));
/// assert_eq!(session.members().await?[0].turns, 1);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct TeamSession {
    parts: Arc<Parts>,
    name: Arc<str>,
}

impl TeamSession {
    pub(crate) fn new(parts: Arc<Parts>, name: Arc<str>) -> Self {
        Self { parts, name }
    }

    /// Name of the session.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Name of a member's session, which holds its conversation.
    pub fn of_member(&self, member: &str) -> Arc<str> {
        member_session(&self.name, member)
    }

    /// Returns the state of the team.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn state(&self) -> Result<TeamState> {
        read_state(&*self.parts.store, &self.name).await
    }

    /// Returns the state and all changes of the team, which observers of the past read.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn history(&self) -> Result<TeamHistory> {
        TeamHistory::read(&*self.parts.store, &self.name).await
    }

    /// Returns the task board.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn board(&self) -> Result<Board> {
        Ok(self.state().await?.board().clone())
    }

    /// Returns the members, including removed ones.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn members(&self) -> Result<Vec<MemberInfo>> {
        Ok(self.state().await?.member_infos())
    }

    /// Returns the open questions of all members.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn questions(&self) -> Result<Vec<TeamQuestion>> {
        Ok(self.state().await?.questions())
    }

    /// Sends a message of the user to a member, which receives it in its next turn. Returns the number
    /// of the message.
    ///
    /// # Errors
    /// [`Refused`](crate::Refused) if there is no such member, or if no run of the team is open; the
    /// errors of the store.
    pub async fn message(&self, member: impl Into<Arc<str>>, text: impl Into<String>) -> Result<u64> {
        self.send(member, vec![Part::text(text)], None).await
    }

    /// As [`message`](Self::message), with attachments, and with an idempotency key: a message with the
    /// key of an earlier one is not sent again.
    ///
    /// # Errors
    /// Those of [`message`](Self::message).
    pub async fn send(&self, member: impl Into<Arc<str>>, parts: Vec<Part>, key: Option<String>) -> Result<u64> {
        let author = Author { by: Actor::User, turn: None, key: key.map(|key| format!("user:{key}")) };
        self.sent(author, Command::Message { to: member.into(), parts }).await
    }

    /// Sends a message of the user to all members.
    ///
    /// # Errors
    /// Those of [`message`](Self::message).
    pub async fn broadcast(&self, text: impl Into<String>) -> Result<u64> {
        let parts = vec![Part::text(text)];
        self.sent(Author::new(Actor::User), Command::Broadcast { parts }).await
    }

    /// Answers a question of a member. The first answer counts.
    ///
    /// # Errors
    /// [`ErrorKind::AnswerRefused`](agent_core::ErrorKind::AnswerRefused) if the question does not admit
    /// the answer; [`Refused`](crate::Refused) if the member has no such open question; the errors of
    /// the store.
    pub async fn answer(
        &self,
        member: impl Into<Arc<str>>,
        question: impl Into<String>,
        answer: impl Into<Answer>,
    ) -> Result<()> {
        let (member, question, answer) = (member.into(), question.into(), answer.into());
        let log = self.parts.open_client(&self.name).await?;
        let asked = log.look(TeamState::questions);
        let asked = asked.into_iter().find(|asked| asked.member == member && asked.question.id == question);
        if let Some(asked) = asked.map(|asked| asked.question) {
            asked.admits(&answer, log.now())?;
            let check = asked.schema.as_deref().map(check_value).transpose()?;
            check.map_or(Ok(()), |check| check(&answer.value)).map_err(|problems| Refusal::Misfit { problems })?;
        }
        self.submit(Author::new(Actor::User), Command::Answer { member, question, answer }).await.map(drop)
    }

    /// Ends the open run of the team as [`Stopped`](TeamEndReason::Stopped). Running turns are
    /// cancelled.
    ///
    /// # Errors
    /// [`Refused`](crate::Refused) if no run is open; the errors of the store.
    pub async fn stop(&self) -> Result<()> {
        self.submit(Author::new(Actor::User), Command::End { reason: TeamEndReason::Stopped }).await.map(drop)
    }

    async fn sent(&self, author: Author, command: Command) -> Result<u64> {
        match self.submit(author, command).await? {
            Reply::Sent(number, _) => Ok(number),
            reply => Err(Error::config(format!("the key belongs to another command, with the outcome {reply:?}"))),
        }
    }

    async fn submit(&self, author: Author, command: Command) -> Result<Reply> {
        let log = self.parts.open_client(&self.name).await?;
        Ok(log.submit(author, command).await??)
    }
}

impl fmt::Debug for TeamSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamSession").field("name", &self.name).finish_non_exhaustive()
    }
}

//! From the keys of a team to the team.

use agent_core::{Budget, Error, Result};
use agent_exec::Agent;
use agent_team::{
    Team, TeamBuilder,
    pattern::{
        Debate, GroupChat, Magentic, MagenticBuilder, MapReduce, Optimiser, Parallel, Pattern, Router, Sequence,
        Supervisor, Swarm,
    },
};

use super::{
    keys::{AgentSlot, MapReduceKeys, MemberKeys, TeamKeys},
    loaded::LoadedTeam,
};
use crate::config::file::seconds;

impl LoadedTeam {
    /// The builder of the team, for what is not data. The store is not opened yet.
    ///
    /// # Errors
    /// Those of [`AgentBuilder::build`](agent_exec::AgentBuilder::build), with their source location.
    pub fn builder(&self) -> Result<TeamBuilder> {
        let agents = self.agents.iter().map(|(_, agent)| {
            let built = agent.builder().build();
            built.map_err(|error| agent.locator().located(error))
        });
        let agents = agents.collect::<Result<Vec<_>>>()?;
        let mut builder = self.with_limits(Team::builder(&self.name))?;
        if let Some(leader) = self.keys.leader {
            builder = builder.leader(agents[leader.0].clone());
        }
        for (role, member) in &self.keys.members {
            let (slot, description) = match member {
                MemberKeys::Agent(slot) => (slot, None),
                MemberKeys::Described(member) => (&member.agent, member.description.as_deref()),
            };
            builder = builder.member(role, agents[slot.0].clone());
            let description = description.unwrap_or_else(|| self.agents[slot.0].1.description());
            if !description.is_empty() {
                builder = builder.describe(role, description);
            }
        }
        Ok(match self.pattern(&agents).map_err(|error| self.located(error))? {
            Some(pattern) => builder.pattern(pattern),
            None => builder,
        })
    }

    fn with_limits(&self, mut builder: TeamBuilder) -> Result<TeamBuilder> {
        let TeamKeys { board, watchdog, .. } = &self.keys;
        if let Some(most) = self.keys.max_members {
            builder = builder.max_members(most);
        }
        if let Some(most) = self.keys.max_rounds {
            builder = builder.max_rounds(most);
        }
        if let Some(most) = self.keys.max_concurrent_turns {
            builder = builder.max_concurrent_turns(most);
        }
        if let Some(limit) = self.keys.deadline {
            builder = builder.deadline(seconds(limit)?);
        }
        if let Some(lease) = board.task_lease {
            builder = builder.task_lease(seconds(lease)?);
        }
        if let Some(folder) = &board.deliverables {
            builder = builder.deliverables(folder);
        }
        if let Some(time) = watchdog.idle_after {
            builder = builder.idle_after(seconds(time)?);
        }
        if let Some(most) = watchdog.max_idle_turns {
            builder = builder.max_idle_turns(most);
        }
        if let Some(time) = watchdog.stall_after {
            builder = builder.stall_after(seconds(time)?);
        }
        if let Some(caps) = self.budget.caps()? {
            // The caps are those of each run; a cost is counted with the prices of a budget.
            let prices = Budget::builder().prices(agent_llm::models::Catalogue::builtin()).build()?;
            builder = builder.budget(prices).caps(caps);
        }
        Ok(builder)
    }
}

impl LoadedTeam {
    /// The pattern that the keys name.
    fn pattern(&self, agents: &[Agent]) -> Result<Option<Pattern>> {
        let keys = &self.keys;
        let described = |slots: &[AgentSlot]| {
            let of = |slot: &AgentSlot| (agents[slot.0].clone(), self.agents[slot.0].1.description().to_owned());
            slots.iter().map(of).collect::<Vec<_>>()
        };
        let one = |slot: AgentSlot| agents[slot.0].clone();
        let all = |slots: &[AgentSlot]| slots.iter().map(|slot| agents[slot.0].clone()).collect::<Vec<_>>();
        Ok(Some(if let Some(agents) = &keys.sequence {
            Sequence::new(all(agents))?.into()
        } else if let Some(agents) = &keys.parallel {
            Parallel::new(all(agents))?.into()
        } else if let Some(keys) = &keys.router {
            Router::by(one(keys.chooser), all(&keys.agents))?.into()
        } else if let Some(keys) = &keys.map_reduce {
            let concurrency = keys.concurrency.unwrap_or(4);
            MapReduce::new(split(keys), one(keys.map), one(keys.reduce), concurrency)?.into()
        } else if let Some(keys) = &keys.debate {
            Debate::new(all(&keys.debaters), one(keys.judge), keys.rounds)?.into()
        } else if let Some(keys) = &keys.optimiser {
            Optimiser::new(one(keys.writer), one(keys.evaluator), keys.rounds)?.into()
        } else if let Some(keys) = &keys.group_chat {
            let agents = all(&keys.agents);
            let chat = match keys.selector {
                Some(selector) => GroupChat::by(one(selector), agents, keys.rounds)?,
                None => GroupChat::in_turn(agents, keys.rounds)?,
            };
            keys.until.iter().fold(chat, GroupChat::until).into()
        } else if let Some(keys) = &keys.supervisor {
            Supervisor::new(one(keys.manager), described(&keys.workers), keys.rounds)?.into()
        } else if let Some(keys) = &keys.swarm {
            let mut all = described(&keys.agents).into_iter();
            let (first, about) = all.next().ok_or_else(|| Error::config("a swarm has no agents"))?;
            Swarm::new(first, about, all, keys.max_handoffs.unwrap_or(8))?.into()
        } else if let Some(keys) = &keys.magentic {
            let magentic = Magentic::builder(one(keys.manager)).rounds(keys.rounds);
            let magentic =
                described(&keys.agents).into_iter().fold(magentic, |all, (agent, about)| all.agent(agent, about));
            let magentic = keys.max_stalls.into_iter().fold(magentic, MagenticBuilder::max_stalls);
            let magentic = keys.max_replans.into_iter().fold(magentic, MagenticBuilder::max_replans);
            let magentic = if keys.approve_plan { magentic.approve_plan() } else { magentic };
            magentic.build()?.into()
        } else {
            return Ok(None);
        }))
    }
}

/// Splits a text as the keys say; parts without content are left out.
fn split(keys: &MapReduceKeys) -> impl Fn(&str) -> Vec<String> + Send + Sync + 'static {
    let at = match keys.split.as_deref() {
        None | Some("paragraphs") => "\n\n".to_owned(),
        Some("lines") => "\n".to_owned(),
        Some(text) => text.to_owned(),
    };
    move |text| text.split(&at).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

//! The solver's state machine, replayed over the run's history from the query to the outputs.

use std::sync::Arc;

use agent_core::{Block, History, Message, OutputFormat, ToolMessage};
use agent_tools::ArgumentSchema;
use serde_json::Value;

use crate::{
    Action, Ending, Memory, MemoryVerification, Method, NextStep, Output, Prompts, Query, QueryAnalysis, RoleCall,
    Scene, Solution, StepProblem, ToolCommand, ToolMetadata,
    ask::Ask,
    command::{Known, references, resolve},
    memory::CallOutcome,
    progress::Progress,
    tools::Toolbox,
};

/// Text that replaces an answer after a timeout.
pub(crate) const TOO_LATE: &str = "(no answer: the time was up)";

/// Configuration of a solver's course, independent of the query.
pub(crate) struct Script {
    pub(crate) prompts: Box<dyn Prompts>,
    pub(crate) tools: Toolbox,
    pub(crate) outputs: Vec<Output>,
    pub(crate) max_steps: u32,
    pub(crate) base_tokens: u64,
}

/// The next action.
pub(crate) enum Next {
    /// Call a role.
    Ask(Box<Ask>),
    /// Call tools.
    Act(Vec<Block>),
    /// Finish: all outputs exist.
    Done,
}

/// State of a run after replaying its history.
pub(crate) struct Play<'a> {
    script: &'a Script,
    tape: Tape<'a>,
    pub(crate) memory: Memory,
    pub(crate) calls: Vec<RoleCall>,
    pub(crate) analysis: Option<QueryAnalysis>,
    pub(crate) outputs: Vec<(Output, Option<String>)>,
    pub(crate) ending: Option<Ending>,
    pub(crate) next: Next,
    step: u32,
    known: Known,
}

/// Reason why the replay stopped.
enum Halt {
    /// The history ends here, and this is the next action.
    Next(Next),
    /// The time limit for the steps was reached here.
    TimeIsUp,
}

/// Recorded messages, in order. If the tape is `over`, no messages will be added.
struct Tape<'a> {
    messages: &'a [&'a Message],
    over: bool,
}

impl Script {
    /// True if the outputs require steps.
    pub(crate) fn has_steps(&self) -> bool {
        self.outputs.iter().any(|output| *output != Output::Base)
    }

    /// Replays the messages of a run, of which the first is the query.
    pub(crate) fn play<'a>(&'a self, messages: &'a [&'a Message], progress: &Progress) -> Play<'a> {
        let query = match messages.first() {
            Some(Message::User(query)) => Query::from_message(query, progress.files.clone()),
            _ => Query::default(),
        };
        let rest = messages.get(1..).unwrap_or_default();
        let (solving, after) = match progress.cut {
            Some(cut) => rest.split_at(cut.saturating_sub(1).min(rest.len())),
            None => (rest, [].as_slice()),
        };
        let mut play = Play {
            script: self,
            tape: Tape { messages: solving, over: progress.cut.is_some() },
            memory: Memory::new(query),
            calls: Vec::new(),
            analysis: None,
            outputs: Vec::new(),
            ending: None,
            next: Next::Done,
            step: 0,
            known: Known::new(),
        };
        if let Err(Halt::Next(next)) = play.run(after) {
            play.next = next;
        }
        play
    }

    /// Builds the solution of a run with this history.
    pub(crate) fn solution(&self, history: &History, progress: &Progress) -> Solution {
        let messages: Vec<_> = history.iter().skip(progress.start).collect();
        let Play { ending, analysis, memory, calls, outputs, .. } = self.play(&messages, progress);
        Solution { ending, analysis, memory, calls, outputs, execution_time: progress.elapsed() }
    }
}

impl<'a> Play<'a> {
    fn run(&mut self, after: &'a [&'a Message]) -> Result<(), Halt> {
        match self.solve() {
            Ok(ending) => self.ending = Some(ending),
            Err(Halt::TimeIsUp) => {
                self.ending = Some(Ending::TimeLimit);
                self.tape = Tape { messages: after, over: false };
            }
            Err(next) => return Err(next),
        }
        for (output, method) in [(Output::Final, Method::FinalOutput), (Output::Direct, Method::DirectOutput)] {
            if self.script.outputs.contains(&output) {
                let ask = self.pose(method, None);
                let said = self.ask(ask)?;
                self.outputs.push((output, said));
            }
        }
        Ok(())
    }

    /// Replays everything before the outputs.
    fn solve(&mut self) -> Result<Ending, Halt> {
        if self.script.outputs.contains(&Output::Base) {
            let mut ask = self.pose(Method::BaseResponse, None);
            ask.max_tokens = Some(self.script.base_tokens);
            let said = self.ask(ask)?;
            self.outputs.push((Output::Base, said.clone()));
            said.ok_or(Halt::TimeIsUp)?;
        }
        if !self.script.has_steps() {
            return Ok(Ending::NoSteps);
        }
        if self.script.max_steps > 0 {
            let ask = self.pose(Method::AnalyzeQuery, Some(QueryAnalysis::format()));
            let said = self.ask(ask)?.ok_or(Halt::TimeIsUp)?;
            self.analysis = Some(QueryAnalysis::read(&said));
        }
        while self.step < self.script.max_steps {
            self.step += 1;
            self.act_once()?;
            let ask = self.pose(Method::Verify, Some(MemoryVerification::format()));
            let said = self.ask(ask)?.ok_or(Halt::TimeIsUp)?;
            if MemoryVerification::read(&said).stop_signal {
                return Ok(Ending::Verified);
            }
        }
        Ok(Ending::StepLimit)
    }

    /// Replays one step up to its results. Problems are recorded in the memory, for the verifier
    /// and the next step.
    fn act_once(&mut self) -> Result<(), Halt> {
        let ask = self.pose(Method::NextStep, Some(NextStep::format()));
        let step = match self.ask_for(ask, NextStep::read)? {
            Ok(step) => step,
            Err(problem) => {
                self.remember("", "", Some(StepProblem::UnreadableStep { problem }));
                return Ok(());
            }
        };
        let script = self.script;
        let Some((tool, schema)) = script.tools.find(&step.tool_name) else {
            let asked = step.tool_name.clone();
            self.remember(&asked, &step.sub_goal, Some(StepProblem::UnknownTool { asked: asked.clone() }));
            return Ok(());
        };
        self.remember(&tool.tool_name, &step.sub_goal, None);
        let ask = self.pose_command(&step, tool);
        match self.ask_for(ask, |said| ToolCommand::read(said)?.checked(schema))? {
            Ok(command) => self.call(tool, schema, &command),
            Err(problem) => {
                self.action().problem = Some(StepProblem::RefusedCommand { problem });
                Ok(())
            }
        }
    }

    /// Runs the calls of a command: independent calls concurrently, the others as soon as their
    /// references are resolved.
    fn call(&mut self, tool: &ToolMetadata, schema: &ArgumentSchema, command: &ToolCommand) -> Result<(), Halt> {
        self.action().command = Some(command.clone());
        self.known.retain(|name, _| name.contains('/')); // short names refer to the current step
        let mut open: Vec<_> = command.calls.iter().collect();
        while !open.is_empty() {
            let waits = |call: &crate::PlannedCall| {
                let arguments = Value::Object(call.arguments.clone());
                references(&arguments).iter().any(|name| open.iter().any(|other| other.id == *name))
            };
            let mut ready: Vec<_> = open.iter().copied().filter(|call| !waits(call)).collect();
            if command.in_order {
                ready = open[..1].to_vec();
            } else if ready.is_empty() {
                // The calls form a cycle: the first one receives the error that there is no such
                // result.
                ready = open[..1].to_vec();
            }
            open.retain(|call| !ready.iter().any(|ready| ready.id == call.id));
            let mut wave = Vec::new();
            for call in ready {
                let arguments = resolve(&Value::Object(call.arguments.clone()), &self.known).and_then(|arguments| {
                    schema.check(&arguments, &[]).map_err(|e| e.message().to_owned()).map(|()| arguments)
                });
                match arguments {
                    Ok(arguments) => {
                        let id = format!("step-{}/{}", self.step, call.id);
                        wave.push((&call.id, Block::tool_call(id, tool.tool_name.as_str(), arguments.to_string())));
                    }
                    Err(why) => self.learn(&call.id, &format!("Not run: {why}."), None),
                }
            }
            if !wave.is_empty() {
                let (ids, calls): (Vec<_>, Vec<_>) = wave.into_iter().unzip();
                let results = self.act(calls)?;
                for (id, result) in ids.into_iter().zip(results) {
                    let text = Message::Tool(result.clone()).text();
                    let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.clone()));
                    self.learn(id, &text, (!result.is_error()).then_some(value));
                }
            }
        }
        Ok(())
    }

    // --- memory ---

    fn remember(&mut self, tool: &str, sub_goal: &str, problem: Option<StepProblem>) {
        self.memory.actions.push(Action {
            tool_name: tool.to_owned(),
            sub_goal: sub_goal.to_owned(),
            command: None,
            results: Vec::new(),
            problem,
        });
    }

    fn action(&mut self) -> &mut Action {
        let last = self.memory.actions.len() - 1;
        &mut self.memory.actions[last]
    }

    /// Records the result of a call; `None` if the call failed.
    fn learn(&mut self, id: &str, text: &str, value: Option<Value>) {
        let failed = value.is_none();
        self.known.insert(format!("step-{}/{id}", self.step), value.clone());
        self.known.insert(id.to_owned(), value);
        let action = self.action();
        action.results.push(CallOutcome::new(id, text, failed));
        if let Some(command) = &action.command {
            action.results.sort_by_key(|outcome| command.calls.iter().position(|call| call.id == outcome.id));
        }
        if failed {
            match &mut action.problem {
                Some(StepProblem::FailedCalls { ids }) => ids.push(id.to_owned()),
                problem => *problem = Some(StepProblem::FailedCalls { ids: vec![id.to_owned()] }),
            }
        }
    }

    // --- calls of roles ---

    fn scene<'s>(&'s self, tools: &'s [&'s ToolMetadata], analysis: &'s str) -> Scene<'s> {
        Scene { memory: &self.memory, analysis, tools, step: self.step, max_steps: self.script.max_steps }
    }

    fn pose(&mut self, method: Method, format: Option<OutputFormat>) -> Ask {
        self.listen();
        let (tools, analysis) = self.surroundings();
        let (scene, prompts) = (self.scene(&tools, &analysis), &self.script.prompts);
        let prompt = match method {
            Method::BaseResponse => prompts.base_response(&scene),
            Method::AnalyzeQuery => prompts.analyze_query(&scene),
            Method::NextStep | Method::ToolCommand => prompts.next_step(&scene),
            Method::Verify => prompts.verify(&scene),
            Method::FinalOutput => prompts.final_output(&scene),
            Method::DirectOutput => prompts.direct_output(&scene),
        };
        self.question(method, prompt, format)
    }

    fn pose_command(&mut self, step: &NextStep, tool: &ToolMetadata) -> Ask {
        self.listen();
        let (tools, analysis) = self.surroundings();
        let prompt = self.script.prompts.tool_command(&self.scene(&tools, &analysis), step, tool);
        self.question(Method::ToolCommand, prompt, Some(ToolCommand::format(&tool.input_types)))
    }

    fn surroundings(&self) -> (Vec<&'a ToolMetadata>, String) {
        let analysis = self.analysis.as_ref().map(ToString::to_string);
        (self.script.tools.all().collect(), analysis.unwrap_or_default())
    }

    fn question(&self, method: Method, prompt: String, format: Option<OutputFormat>) -> Ask {
        let attachments = self.memory.query.attachments.clone();
        Ask { method, step: self.step, prompt, attachments, format: format.map(Arc::new), max_tokens: None }
    }

    /// Returns the answer of a role; `None` after a timeout.
    fn ask(&mut self, ask: Ask) -> Result<Option<String>, Halt> {
        self.ask_again(ask, false)
    }

    /// Returns the parsed answer of a role; if parsing fails, the role is called once more.
    fn ask_for<T>(&mut self, ask: Ask, read: impl Fn(&str) -> Result<T, String>) -> Result<Result<T, String>, Halt> {
        let said = self.ask(ask.clone())?.ok_or(Halt::TimeIsUp)?;
        let problem = match read(&said) {
            Ok(value) => return Ok(Ok(value)),
            Err(problem) => problem,
        };
        let prompt = format!(
            "{}\n\n# Your answer before\n{said}\n\nIt could not be used: {problem}. Answer again, in the form above.",
            ask.prompt
        );
        let said = self.ask_again(Ask { prompt, ..ask }, true)?.ok_or(Halt::TimeIsUp)?;
        Ok(read(&said))
    }

    fn ask_again(&mut self, ask: Ask, repair: bool) -> Result<Option<String>, Halt> {
        let Some(message) = self.read_on() else { return Err(self.tape.end(|| Next::Ask(Box::new(ask)))) };
        let response = message.text();
        let answer = (response != TOO_LATE).then(|| response.clone());
        let Ask { method, step, prompt, .. } = ask;
        self.calls.push(RoleCall { method, step, repair, prompt, response });
        Ok(answer)
    }

    /// Returns the results of calls, in order.
    fn act(&mut self, calls: Vec<Block>) -> Result<Vec<&'a ToolMessage>, Halt> {
        let count = calls.len();
        if self.read_on().is_none() {
            return Err(self.tape.end(|| Next::Act(calls)));
        }
        let results: Vec<_> = self.tape.messages.iter().map_while(|message| message.as_tool()).take(count).collect();
        self.tape.messages = &self.tape.messages[results.len()..];
        Ok(results)
    }

    /// Returns the next message of the run itself.
    fn read_on(&mut self) -> Option<&'a Message> {
        self.listen();
        let (first, rest) = self.tape.messages.split_first()?;
        self.tape.messages = rest;
        Some(first)
    }

    /// Records messages from the user at this point.
    fn listen(&mut self) {
        while let Some((Message::User(said), rest)) = self.tape.messages.split_first() {
            self.memory.notes.push(said.text());
            self.tape.messages = rest;
        }
    }
}

impl Tape<'_> {
    fn end(&self, next: impl FnOnce() -> Next) -> Halt {
        if self.over { Halt::TimeIsUp } else { Halt::Next(next()) }
    }
}

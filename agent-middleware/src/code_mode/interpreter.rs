//! One execution of a program: from its start to the next call whose result is not known.

use std::{collections::BTreeMap, fmt, time::Duration};

use agent_core::tool::ToolSpecs;
use monty::{FunctionCall, MontyRun, ResolveFutures, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, PrintWriter, ResourceLimits,
    ResourceTracker, StackFrame,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CodeModeConfig, check, functions::Function, screen::Screen, source::Source, values};

/// Maximum number of bytes of the arguments of one call.
const LONGEST_ARGUMENTS: usize = 1 << 20;

/// Maximum number of bytes of a program: syntax nesting can grow with its length, and each
/// walker needs the stack for that.
const LONGEST_PROGRAM: usize = 128 << 10;

/// Upper limit of the recursion depth.
const DEEPEST: usize = 2_000;

/// A program, and the known results of its calls.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) code: String,
    pub(super) functions: Vec<Function>,
    pub(super) known: Vec<(Call, CallResult)>,
    /// The tools against which its calls are checked before it runs for the first time.
    pub(super) check: Option<ToolSpecs>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) tool: String,
    /// JSON text.
    pub(super) arguments: String,
}

/// Result of a call; an error is its text.
pub(super) type CallResult = Result<Value, String>;

/// Progress of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It needs the results of these calls, which can run concurrently.
    Needs(Vec<Call>),
    Ended(Ended),
}

/// Result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl Ended {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

/// Runs a program until the process uses `memory` bytes at most. Needs a large stack.
pub(super) fn run(config: &CodeModeConfig, memory: usize, job: &Job) -> Progress {
    if job.code.len() > LONGEST_PROGRAM {
        let bytes = job.code.len();
        return Progress::Ended(Ended::error(format!(
            "The program has {bytes} bytes, and {LONGEST_PROGRAM} are the most. Write it in parts."
        )));
    }
    let source = Source::read(&job.code).unwrap_or_default();
    if let Some(tools) = &job.check
        && let Some(problems) = check::problems(&job.code, &source, &config.functions(tools))
    {
        return Progress::Ended(Ended::error(problems));
    }
    let mut screen = Screen::new(config.output);
    let mut run = Run { config, memory, is_async: source.awaits, waiting: BTreeMap::new(), made: 0, job };
    match run.drive(&mut screen) {
        Ok(Stop::Needs(calls)) => Progress::Needs(calls),
        Ok(Stop::Value(value)) => Progress::Ended(run.ended(screen, &value)),
        Ok(Stop::Error(text)) => Progress::Ended(Ended { text: screen.with(&text), is_error: true }),
        Err(raised) => Progress::Ended(Ended { text: screen.with(&Traceback(&raised)), is_error: true }),
    }
}

/// Reason why the interpreter returned.
enum Stop {
    Needs(Vec<Call>),
    Value(MontyObject),
    Error(String),
}

struct Run<'a> {
    config: &'a CodeModeConfig,
    memory: usize,
    job: &'a Job,
    is_async: bool,
    /// Calls that are not awaited yet, by the interpreter's number.
    waiting: BTreeMap<u32, Call>,
    /// Number of calls that received their results.
    made: usize,
}

type Next = Result<Result<RunProgress, Stop>, MontyException>;

impl Run<'_> {
    fn drive(&mut self, screen: &mut Screen) -> Result<Stop, MontyException> {
        let program = MontyRun::new(self.job.code.clone(), "program.py", Vec::new(), CompileOptions::default())?;
        let limits = ResourceLimits::default()
            .max_duration(self.config.time.max(Duration::from_millis(1)))
            .max_memory(self.memory)
            .max_recursion_depth(self.config.recursion.min(DEEPEST));
        let mut progress = program.start(Vec::new(), ResourceTracker::new(limits), PrintWriter::Callback(screen))?;
        loop {
            let next = match progress {
                RunProgress::Complete(value) => return Ok(Stop::Value(value)),
                RunProgress::NameLookup(lookup) => {
                    let found = self.job.functions.iter().find(|function| function.name == lookup.name);
                    let found = found.map(|f| MontyObject::Function { name: f.name.clone(), docstring: None });
                    Ok(lookup.resume(found, PrintWriter::Callback(screen))?)
                }
                RunProgress::OsCall(call) => {
                    let refused = call.function_call.on_no_handler();
                    Ok(call.resume(refused, PrintWriter::Callback(screen))?)
                }
                RunProgress::FunctionCall(call) => self.called(call, screen)?,
                RunProgress::ResolveFutures(futures) => self.awaited(futures, screen)?,
            };
            match next {
                Ok(next) => progress = next,
                Err(stop) => return Ok(stop),
            }
        }
    }

    fn called(&mut self, call: FunctionCall, screen: &mut Screen) -> Next {
        let name = &call.function_name;
        let function = self.job.functions.iter().find(|function| function.name == *name && call.object_id.is_none());
        let Some(function) = function else {
            let unknown = ExtFunctionResult::NotFound(name.clone());
            return Ok(Ok(call.resume(unknown, PrintWriter::Callback(screen))?));
        };
        let made = match read(function, &call) {
            Ok(made) => made,
            Err(wrong) => {
                let wrong = MontyException::new(ExcType::TypeError, Some(wrong));
                return Ok(Ok(call.resume(wrong, PrintWriter::Callback(screen))?));
            }
        };
        if self.is_async {
            // The limit also applies to a program that makes endless calls without awaiting them.
            if self.made + self.waiting.len() >= self.config.calls {
                return Ok(Err(self.too_many()));
            }
            self.waiting.insert(call.call_id, made);
            return Ok(Ok(call.resume_pending(PrintWriter::Callback(screen))?));
        }
        match self.results_of(vec![made]) {
            Ok(mut results) => match results.pop().expect("one for each call") {
                Ok(value) => Ok(Ok(call.resume(values::to_python(&value), PrintWriter::Callback(screen))?)),
                Err(text) => Ok(Ok(call.resume(raised(text), PrintWriter::Callback(screen))?)),
            },
            Err(stop) => Ok(Err(stop)),
        }
    }

    fn awaited(&mut self, futures: ResolveFutures, screen: &mut Screen) -> Next {
        let mut ids = futures.pending_call_ids().to_vec();
        ids.sort_unstable();
        let calls: Vec<_> = ids.iter().filter_map(|id| self.waiting.get(id).cloned()).collect();
        if ids.is_empty() || calls.len() != ids.len() {
            return Ok(Err(Stop::Error("RuntimeError: the program waits for nothing that could come".into())));
        }
        let results = match self.results_of(calls) {
            Ok(results) => results,
            Err(stop) => return Ok(Err(stop)),
        };
        ids.iter().for_each(|id| drop(self.waiting.remove(id)));
        let results = ids.into_iter().zip(results).map(|(id, result)| match result {
            Ok(value) => (id, values::to_python(&value).into()),
            Err(text) => (id, raised(text).into()),
        });
        Ok(Ok(futures.resume(results.collect(), PrintWriter::Callback(screen))?))
    }

    /// Returns the results of the next calls, if they are known.
    fn results_of(&mut self, calls: Vec<Call>) -> Result<Vec<CallResult>, Stop> {
        let end = self.made + calls.len();
        if end > self.config.calls {
            return Err(self.too_many());
        }
        if self.made == self.job.known.len() {
            return Err(Stop::Needs(calls));
        }
        let known = self.job.known.get(self.made..end).filter(|known| known.iter().map(|(call, _)| call).eq(&calls));
        let Some(known) = known else {
            let text = "RuntimeError: the program did something else when it was run again, so its calls so far cannot be \
                        matched with it. They were made. Look at what they did before you go on.";
            return Err(Stop::Error(text.into()));
        };
        self.made = end;
        Ok(known.iter().map(|(_, result)| result.clone()).collect())
    }

    fn too_many(&self) -> Stop {
        Stop::Error(format!(
            "RuntimeError: a program may call tools {} times, and this one wants more",
            self.config.calls
        ))
    }

    fn ended(&self, screen: Screen, value: &MontyObject) -> Ended {
        let shown = match value {
            MontyObject::None => screen.with(&""),
            value => screen.with(value),
        };
        let never = match self.waiting.len() {
            0 => String::new(),
            calls => format!("\n[{calls} calls were never awaited, so they were not made]"),
        };
        let text = format!("{shown}{never}");
        let text = if text.is_empty() { "[The program ended and printed nothing.]".into() } else { text };
        Ended { text, is_error: false }
    }
}

/// Formats an exception for the model: of many frames, only the outermost and the innermost.
struct Traceback<'a>(&'a MontyException);

impl fmt::Display for Traceback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        const LONGEST_LINE: usize = 300;
        let frames = self.0.traceback();
        let ends = if frames.len() > 3 * SHOWN { SHOWN } else { frames.len() };
        let show = |frames: &[StackFrame], f: &mut fmt::Formatter<'_>| {
            frames.iter().try_for_each(|frame| match &frame.preview_line {
                Some(line) if line.len() > LONGEST_LINE => {
                    writeln!(f, "  File \"{}\", line {}", frame.filename, frame.start.line)
                }
                _ => frame.fmt(f),
            })
        };
        if !frames.is_empty() {
            f.write_str("Traceback (most recent call last):\n")?;
        }
        show(&frames[..ends], f)?;
        if ends < frames.len() {
            writeln!(f, "  [{} frames left out]", frames.len() - 2 * ends)?;
            show(&frames[frames.len() - ends..], f)?;
        }
        f.write_str(&self.0.summary())
    }
}

/// Converts the failure of a call to the program's exception.
fn raised(text: String) -> MontyException {
    MontyException::new(ExcType::RuntimeError, Some(text))
}

/// Converts a function call to a tool call.
fn read(function: &Function, call: &FunctionCall) -> Result<Call, String> {
    let name = &function.name;
    let json = |what: &str, value| {
        values::to_json(value).map_err(|e| format!("{name}(): the argument {what} {e}, which is not JSON"))
    };
    let args = call.args.iter().enumerate().map(|(at, value)| json(&(at + 1).to_string(), value));
    let args = args.collect::<Result<Vec<_>, _>>()?;
    let kwargs = call.kwargs.iter().map(|(key, value)| {
        let key = String::try_from(key).map_err(|e| format!("{name}(): {e}"))?;
        let value = json(&format!("'{key}'"), value)?;
        Ok::<_, String>((key, value))
    });
    let kwargs = kwargs.collect::<Result<Vec<_>, _>>()?;
    let arguments = function.arguments(args, kwargs)?.to_string();
    if arguments.len() > LONGEST_ARGUMENTS {
        return Err(format!("{name}(): the arguments take {} bytes of JSON, more than a call may", arguments.len()));
    }
    Ok(Call { tool: function.tool.clone(), arguments })
}

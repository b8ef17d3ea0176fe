//! Questions of a run, asked at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use agent::{Error, ErrorKind, Result, core::exact, run::Question};
use agent_server::decision;
use serde_json::{Value, json};

use super::Answers;
use crate::output::{Paint, cannot, line, plain};

/// True if there is somebody to ask: questions are written to standard error and read from standard input.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Describes a question in one line.
pub(crate) fn about(question: &Question) -> String {
    let payload = &question.payload;
    match (payload["tool"].as_str(), payload["questions"][0]["question"].as_str(), payload.as_str()) {
        (Some(tool), ..) => format!("{tool} {}", payload["arguments"]),
        (_, Some(asked), _) => asked.to_owned(),
        (.., Some(text)) => text.to_owned(),
        _ => format!("{} {payload}", question.kind),
    }
}

/// Asks all questions, one after the other. `None` at the end of the input.
///
/// # Errors
/// If the terminal cannot be read.
pub(crate) async fn answers(questions: &[Question]) -> Result<Option<Answers>> {
    let mut answers = Vec::new();
    for question in questions {
        let asked = question.clone();
        let asking = tokio::task::spawn_blocking(move || ask(&asked));
        let value = asking.await.map_err(|_| Error::new(ErrorKind::Cancelled, "the question was dropped"))??;
        let Some(value) = value else { return Ok(None) };
        answers.push(question.answer(value));
    }
    Ok(Some(answers))
}

/// Asks one question. `None` at the end of the input.
fn ask(question: &Question) -> Result<Option<Value>> {
    let paint = Paint::stderr();
    eprintln!("{}", paint.bold(&about(question)));
    if let Some(why) = question.payload["why"].as_str() {
        eprintln!("{}", paint.dim(why));
    }
    loop {
        let value = match question.kind.as_str() {
            "approval" => approval(question)?,
            "approvals" | "in_doubt" | "confirm" | "breakpoint" => yes_or_no(question)?,
            "ask_user" => options(question)?,
            _ => match read("answer (JSON, or a text): ")? {
                None => return Ok(None),
                Some(text) => Some(Some(json_or_text(&text))),
            },
        };
        match value {
            None => return Ok(None),
            Some(None) => eprintln!("That is no answer."),
            Some(Some(value)) => return Ok(Some(value)),
        }
    }
}

/// The answer, `Some(None)` if it is invalid, or `None` at the end of the input.
type Read = Option<Option<Value>>;

fn yes_or_no(question: &Question) -> Result<Read> {
    let said = read("[y]es or [n]o: ")?;
    Ok(said.map(|said| match said.as_str() {
        "y" | "yes" => Some(decision(question, true, None)),
        "n" | "no" => Some(decision(question, false, None)),
        _ => None,
    }))
}

fn approval(question: &Question) -> Result<Read> {
    let prompt = format!("[y]es, [a]lways {}in this session, [n]o, [e]dit: ", always_what(question));
    let Some(said) = read(&prompt)? else { return Ok(None) };
    let (said, rest) = said.split_once(' ').unwrap_or((&said, ""));
    Ok(Some(match said {
        "y" | "yes" => Some(decision(question, true, None)),
        "a" | "always" => Some(always(question)),
        "n" | "no" => Some(decision(question, false, Some(rest).filter(|reason| !reason.is_empty()))),
        "e" | "edit" => {
            eprintln!("now: {}", plain(&question.payload["arguments"].to_string()));
            let Some(text) = read("arguments: ")? else { return Ok(None) };
            match exact::from_str(&text) {
                Ok(arguments) if arguments.is_object() => Some(json!({"decision": "edit", "arguments": arguments})),
                _ => None,
            }
        }
        _ => None,
    }))
}

/// Returns the approval of this call and of similar ones in the session: those of the same commands
/// if the call is a command line, else all of the tool.
pub(crate) fn always(question: &Question) -> Value {
    let remember = if prefixes(question).next().is_some() { "prefix" } else { "tool" };
    json!({"decision": "approve", "remember": remember})
}

/// Describes what [`always`] approves, followed by a blank; empty for all calls of the tool.
pub(crate) fn always_what(question: &Question) -> String {
    let prefixes: Vec<_> = prefixes(question).map(|prefix| format!("'{}'", plain(prefix))).collect();
    if prefixes.is_empty() { String::new() } else { format!("{} ", prefixes.join(", ")) }
}

/// Returns the beginnings of the commands in the call.
fn prefixes(question: &Question) -> impl Iterator<Item = &str> {
    question.payload["prefixes"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn options(question: &Question) -> Result<Read> {
    let mut answers = Vec::new();
    for asked in question.payload["questions"].as_array().into_iter().flatten() {
        eprintln!("{}", plain(asked["question"].as_str().unwrap_or_default()));
        let options: Vec<_> = asked["options"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (n, option) in (1..).zip(&options) {
            eprintln!("  {n}  {}", line(option, 200));
        }
        let many = asked["multiple"] == true;
        let Some(text) = read(if many { "numbers, with commas: " } else { "number, or your words: " })? else {
            return Ok(None);
        };
        let chosen = |word: &str| {
            let at = word.trim().parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            at.and_then(|at| options.get(at)).map_or_else(|| word.trim().to_owned(), |option| (*option).to_owned())
        };
        answers.push(if many { text.split(',').map(chosen).collect() } else { json!(chosen(&text)) });
    }
    Ok(Some(Some(Value::Array(answers))))
}

/// Parses the text as JSON, or returns it as a string.
pub(crate) fn json_or_text(text: &str) -> Value {
    exact::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Reads a line; `None` at the end of the input.
fn read(prompt: &str) -> Result<Option<String>> {
    let failed = |e| cannot("the terminal", e);
    eprint!("{prompt}");
    io::stderr().flush().map_err(failed)?;
    let mut text = String::new();
    let bytes = io::stdin().lock().read_line(&mut text).map_err(failed)?;
    Ok((bytes > 0).then(|| text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_approves_the_commands_of_a_line_or_else_the_tool() {
        let question = |payload: Value| {
            serde_json::from_value::<Question>(json!({"id": "c1/approval", "kind": "approval", "payload": payload}))
                .expect("a question")
        };
        let line = question(json!({"tool": "shell", "arguments": {}, "prefixes": ["cargo test", "git status"]}));
        assert_eq!(always(&line)["remember"], "prefix");
        assert_eq!(always_what(&line), "'cargo test', 'git status' ");
        let other = question(json!({"tool": "fetch", "arguments": {}}));
        assert_eq!((always(&other)["remember"].as_str(), always_what(&other).as_str()), (Some("tool"), ""));
    }
}

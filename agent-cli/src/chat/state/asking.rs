//! A question that the user is asked.

use agent::{Question, core::exact, run::Answer};
use crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Value, json};

use super::Input;
use crate::run::{always, decision, json_or_text};

/// Result of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// More is to be said.
    Open,
    /// All is answered.
    Answered(Vec<(String, Answer)>),
    /// The user looks away; the run waits.
    Left,
}

/// Questions, and what was answered of them.
#[derive(Debug)]
pub(in crate::chat) struct Asking {
    questions: Vec<Question>,
    answers: Vec<(String, Answer)>,
    /// Text being written: other arguments, or an answer in words.
    pub(in crate::chat) editor: Option<Input>,
    /// Answers to the parts of a question that has several.
    parts: Vec<Value>,
    /// Why what was written is no answer.
    pub(in crate::chat) problem: Option<String>,
}

impl Asking {
    pub(super) fn new(questions: Vec<Question>) -> Self {
        let mut asking = Self { questions, answers: Vec::new(), editor: None, parts: Vec::new(), problem: None };
        asking.open_editor();
        asking
    }

    /// The question that is asked now.
    pub(in crate::chat) fn question(&self) -> Option<&Question> {
        self.questions.get(self.answers.len())
    }

    /// Current part of a question with parts.
    pub(in crate::chat) fn part(&self) -> Option<&Value> {
        self.question()?.payload["questions"].get(self.parts.len())
    }

    /// True if the question wants a yes or a no.
    pub(in crate::chat) fn is_decision(&self) -> bool {
        let is_bool = |question: &Question| question.schema.as_ref().is_some_and(|schema| schema["type"] == "boolean");
        self.question().is_some_and(|question| {
            matches!(question.kind.as_str(), "approval" | "approvals" | "in_doubt" | "confirm" | "breakpoint")
                || is_bool(question)
        })
    }

    pub(in crate::chat) fn can_edit(&self) -> bool {
        self.question().is_some_and(|question| question.kind == "approval")
    }

    /// A text answer has an input.
    fn open_editor(&mut self) {
        self.editor = (!self.is_decision()).then(Input::default);
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(editor) = &mut self.editor {
            editor.insert(text);
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        self.problem = None;
        if self.editor.is_some() {
            return self.edit(key);
        }
        let Some(question) = self.question() else { return Outcome::Left };
        let answer = match key.code {
            KeyCode::Char('y') => decision(question, true, None),
            KeyCode::Char('n') => decision(question, false, None),
            KeyCode::Char('a') if self.can_edit() => always(question),
            KeyCode::Char('e') if self.can_edit() => {
                let arguments = &question.payload["arguments"];
                self.editor = Some(Input::of(&serde_json::to_string_pretty(arguments).unwrap_or_default()));
                return Outcome::Open;
            }
            KeyCode::Esc => return Outcome::Left,
            _ => return Outcome::Open,
        };
        self.answer(answer)
    }

    fn edit(&mut self, key: KeyEvent) -> Outcome {
        let can_edit = self.can_edit();
        let Some(editor) = &mut self.editor else { return Outcome::Open };
        match key.code {
            KeyCode::Esc if can_edit => {
                self.editor = None;
                Outcome::Open
            }
            KeyCode::Esc => Outcome::Left,
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = editor.text().trim().to_owned();
                self.written(&text)
            }
            _ => {
                editor.key(key);
                Outcome::Open
            }
        }
    }

    fn written(&mut self, text: &str) -> Outcome {
        if self.can_edit() {
            return match exact::from_str(text) {
                Ok(arguments) if arguments.is_object() => {
                    self.answer(json!({"decision": "edit", "arguments": arguments}))
                }
                Ok(_) => self.refuse("arguments are a JSON object"),
                Err(error) => self.refuse(&format!("that is no JSON: {error}")),
            };
        }
        if text.is_empty() {
            return self.refuse("say something, or leave with Esc");
        }
        let Some(part) = self.part().cloned() else { return self.answer(json_or_text(text)) };
        let options: Vec<_> = part["options"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let chosen = |word: &str| {
            let at = word.trim().parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            json!(at.and_then(|at| options.get(at)).copied().unwrap_or(word.trim()))
        };
        self.parts.push(if part["multiple"] == true { text.split(',').map(chosen).collect() } else { chosen(text) });
        if self.part().is_some() {
            self.open_editor();
            return Outcome::Open;
        }
        let parts = std::mem::take(&mut self.parts);
        self.answer(Value::Array(parts))
    }

    fn refuse(&mut self, why: &str) -> Outcome {
        self.problem = Some(why.to_owned());
        Outcome::Open
    }

    fn answer(&mut self, value: Value) -> Outcome {
        self.answers.extend(self.question().map(|question| question.answer(value)));
        if self.question().is_some() {
            self.open_editor();
            Outcome::Open
        } else {
            Outcome::Answered(std::mem::take(&mut self.answers))
        }
    }
}

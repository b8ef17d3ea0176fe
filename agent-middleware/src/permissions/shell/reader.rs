//! Converts the text of a line to its commands.

use brush_parser::{
    ast::{
        self, CommandPrefixOrSuffixItem as Item, CompoundCommand, IoFileRedirectKind as Kind,
        IoFileRedirectTarget as Target,
    },
    word::{Parameter, ParameterExpr, WordPiece, WordPieceWithSource},
};

use super::{
    Line,
    command::{Command, Does},
    inner, syntax,
    word::{Draft, Word},
};

/// Maximum nesting depth of lines. Beyond it, a line is unclear.
const DEEPEST: usize = 16;

/// Files that may always be written to: they store nothing.
const NOWHERE: &[&str] = &["/dev/null", "/dev/stderr", "/dev/stdout"];

/// Paths for which the shell itself opens a connection, instead of a file.
const NETWORK: &[&str] = &["/dev/tcp/", "/dev/udp/"];

pub(super) fn read(text: &str, depth: usize) -> Line {
    let mut reader = Reader { depth, line: Line::default(), texts: Vec::new() };
    if depth <= DEEPEST
        && let Some(program) = syntax::program(text)
    {
        reader.line.clear = true;
        program.complete_commands.iter().for_each(|list| reader.list(list));
        reader.texts();
    }
    reader.line
}

struct Reader {
    depth: usize,
    line: Line,
    /// Input texts that the line itself contains.
    texts: Vec<String>,
}

impl Reader {
    fn unclear(&mut self) {
        self.line.clear = false;
    }

    fn take_in(&mut self, text: &str, guess: bool) {
        inner::take_in(&mut self.line, read(text, self.depth + 1), guess);
    }

    /// The input of a shell is a program.
    fn texts(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        if self.line.commands.iter().any(inner::is_shell) {
            texts.iter().for_each(|text| self.take_in(text, true));
        }
    }

    fn list(&mut self, list: &ast::CompoundList) {
        for ast::CompoundListItem(list, _) in &list.0 {
            let others = list.additional.iter().map(|(ast::AndOr::And(other) | ast::AndOr::Or(other))| other);
            let commands = [&list.first].into_iter().chain(others).flat_map(|pipeline| &pipeline.seq);
            commands.for_each(|command| self.command(command));
        }
    }

    fn command(&mut self, command: &ast::Command) {
        match command {
            ast::Command::Simple(command) => self.simple(command),
            ast::Command::Compound(command, redirects) => {
                self.compound(command);
                self.redirects(redirects.as_ref());
            }
            ast::Command::Function(function) => {
                self.unclear();
                self.compound(&function.body.0);
                self.redirects(function.body.1.as_ref());
            }
            ast::Command::ExtendedTest(test, redirects) => {
                self.unclear();
                self.word(&test.to_string());
                self.redirects(redirects.as_ref());
            }
        }
    }

    /// Reads a compound command. Bodies that may run any number of times, or that shells interpret
    /// differently, are unclear.
    fn compound(&mut self, command: &CompoundCommand) {
        match command {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(group) => self.list(&group.list),
            CompoundCommand::IfClause(choice) => {
                self.list(&choice.condition);
                self.list(&choice.then);
                for other in choice.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list));
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(repeat) | CompoundCommand::UntilClause(repeat) => {
                self.list(&repeat.0);
                self.list(&repeat.1.list);
            }
            unclear => {
                self.unclear();
                self.unclear_compound(unclear);
            }
        }
    }

    fn unclear_compound(&mut self, command: &CompoundCommand) {
        match command {
            // Two subshells, for a shell without arithmetic.
            CompoundCommand::Arithmetic(arithmetic) => self.take_in(&arithmetic.expr.value, true),
            CompoundCommand::ArithmeticForClause(repeat) => {
                let parts = [&repeat.initializer, &repeat.condition, &repeat.updater];
                parts.into_iter().flatten().for_each(|part| drop(self.word(&part.value)));
                self.list(&repeat.body.list);
            }
            CompoundCommand::ForClause(repeat) => {
                repeat.values.iter().flatten().for_each(|word| drop(self.word(&word.value)));
                self.list(&repeat.body.list);
            }
            CompoundCommand::CaseClause(choice) => {
                self.word(&choice.value.value);
                for case in &choice.cases {
                    case.patterns.iter().for_each(|pattern| drop(self.word(&pattern.value)));
                    case.cmd.iter().for_each(|list| self.list(list));
                }
            }
            CompoundCommand::Coprocess(process) => self.command(&process.body),
            _ => {}
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand) {
        let mut command = Command::default();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            if let Item::AssignmentWord(..) = item {
                command.assigns = true;
                self.item(item, &mut Command::default());
            } else {
                self.item(item, &mut command);
            }
        }
        if let Some(name) = &simple.word_or_name {
            command.words.insert(0, self.word(&name.value));
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut command);
        }
        if command.assigns || !command.words.is_empty() {
            inner::add(&mut self.line, command, self.depth);
        }
    }

    fn item(&mut self, item: &Item, command: &mut Command) {
        match item {
            Item::Word(word) => command.words.push(self.word(&word.value)),
            Item::AssignmentWord(assignment, word) => {
                self.line.clear &= !matches!(assignment.value, ast::AssignmentValue::Array(_));
                command.words.push(self.word(&word.value));
            }
            Item::ProcessSubstitution(_, inner) => {
                self.list(&inner.list);
                command.words.push(Word::default());
            }
            Item::IoRedirect(redirect) => self.redirect(redirect, command),
        }
    }

    fn redirects(&mut self, redirects: Option<&ast::RedirectList>) {
        let mut opened = Command::default();
        redirects.iter().flat_map(|redirects| &redirects.0).for_each(|redirect| self.redirect(redirect, &mut opened));
    }

    /// Reads a redirection: a written file is a separate command, a read file is an additional
    /// argument.
    fn redirect(&mut self, redirect: &ast::IoRedirect, command: &mut Command) {
        match redirect {
            ast::IoRedirect::File(_, _, Target::Fd(_)) => {}
            ast::IoRedirect::File(_, _, Target::ProcessSubstitution(_, inner)) => {
                self.list(&inner.list);
                command.is_fed = true;
            }
            ast::IoRedirect::File(_, kind, Target::Filename(file)) => self.open(file, kind, command),
            ast::IoRedirect::File(_, kind, Target::Duplicate(file)) => {
                let is_number = file.value.bytes().all(|c| c.is_ascii_digit() || c == b'-');
                if !is_number {
                    self.open(file, kind, command);
                }
            }
            ast::IoRedirect::OutputAndError(file, _) => self.open(file, &Kind::Write, command),
            ast::IoRedirect::HereString(_, text) => {
                let text = self.word(&text.value);
                self.texts.push(text.text.clone());
                command.words.push(text);
            }
            ast::IoRedirect::HereDocument(_, document) => {
                command.is_fed = true;
                let text = &document.doc.value;
                self.texts.push(text.clone());
                if document.requires_expansion {
                    match syntax::heredoc(text) {
                        Some(pieces) => self.pieces(text, &pieces, true, &mut Draft::default()),
                        None => self.unclear(),
                    }
                }
            }
        }
    }

    fn open(&mut self, file: &ast::Word, kind: &Kind, command: &mut Command) {
        let file = self.word(&file.value);
        let connects = NETWORK.iter().any(|network| file.text.contains(network));
        if !connects && matches!(kind, Kind::Read | Kind::DuplicateInput) {
            self.line.clear &= file.exact; // it may expand to a connection
            return command.words.push(file);
        }
        let does = if connects { Does::Connect } else { Does::Write };
        if !(file.exact && NOWHERE.contains(&file.text.as_str())) {
            self.line.commands.push(Command { does, words: vec![file], ..Command::default() });
        }
    }

    fn word(&mut self, text: &str) -> Word {
        let Some(pieces) = syntax::word(text) else {
            self.unclear();
            return Word::default();
        };
        let mut draft = Draft::default();
        self.pieces(text, &pieces, false, &mut draft);
        draft.finish()
    }

    /// Adds the pieces of `text` to a word, and nested commands to the line.
    fn pieces(&mut self, text: &str, pieces: &[WordPieceWithSource], quoted: bool, draft: &mut Draft) {
        for WordPieceWithSource { piece, start_index, end_index } in pieces {
            let source = &text[*start_index..*end_index];
            match piece {
                WordPiece::Text(plain) if quoted => draft.text.push_str(plain),
                WordPiece::Text(_) => self.unquoted(source, &text[*end_index..], draft),
                WordPiece::SingleQuotedText(plain) => draft.text.push_str(plain),
                WordPiece::EscapeSequence(escaped) => draft.text.push_str(&escaped[1..]),
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(text, inner, true, draft);
                }
                WordPiece::AnsiCQuotedText(plain) => {
                    self.unclear();
                    draft.filled |= plain.contains('\\');
                    draft.text.push_str(plain);
                }
                expansion => {
                    self.expansion(expansion, source);
                    draft.text.push('$');
                    draft.filled |= quoted;
                    draft.split |= !quoted;
                }
            }
        }
    }

    fn unquoted(&mut self, plain: &str, after: &str, draft: &mut Draft) {
        // A word ends at these characters: the parser's stages disagree.
        self.line.clear &= !plain.contains(|c: char| c.is_whitespace() || ";&|<>()".contains(c));
        let followed = plain.chars().skip(1).chain(after.chars());
        let begins_list = |(c, next): (char, char)| c == '{' && next != '}';
        draft.split |= plain.chars().zip(followed).any(begins_list);
        draft.glob |= plain.contains(['*', '?', '[']);
        draft.text.push_str(plain);
    }

    /// Reads an expansion: a variable, or the output of a command.
    fn expansion(&mut self, piece: &WordPiece, source: &str) {
        match piece {
            WordPiece::CommandSubstitution(inner) => {
                self.line.clear &= syntax::ends_clearly(inner);
                self.take_in(inner, false);
            }
            WordPiece::BackquotedCommandSubstitution(inner) => {
                self.line.clear &= !source.contains('\\');
                self.take_in(inner, false);
            }
            WordPiece::ParameterExpansion(ParameterExpr::Parameter {
                parameter: Parameter::Positional(_) | Parameter::Special(_) | Parameter::Named(_),
                indirect: false,
            }) => {}
            _ => {
                self.unclear();
                let inner = source.get(2..source.len().saturating_sub(1)).unwrap_or_default();
                self.word(inner);
            }
        }
    }
}

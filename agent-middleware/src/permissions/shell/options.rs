//! Determines which arguments of a program an allow rule covers implicitly.

use super::{
    programs::{Operands, PROGRAMS, Program},
    word::Word,
};

/// Entry for unknown programs: any operands, and no options.
const UNKNOWN: Program = Program { name: "", operands: Operands::Any, options: "" };

#[derive(Debug, PartialEq)]
enum Value {
    /// It has no value, or the value is in the same word.
    Here,
    /// The value is the next word.
    Next,
}

/// Returns the indices of the arguments that an allow rule must spell out: options that the
/// program's entry does not list, operands beyond those that the entry allows, and words that may
/// expand to an option.
pub(super) fn open(program: &str, arguments: &[Word]) -> Vec<usize> {
    let mut row = row(program).unwrap_or(&UNKNOWN);
    let (mut open, mut operands, mut has_value, mut are_operands) = (Vec::new(), 0, false, false);
    for (at, word) in arguments.iter().enumerate() {
        let is_option = word.text.starts_with('-') && word.text != "-" && !are_operands;
        let passes = if !word.tame || (word.expands && row.may_send()) {
            false
        } else if std::mem::take(&mut has_value) {
            !is_option || word.text[1..].starts_with(|c: char| c.is_ascii_digit())
        } else if is_option && word.text == "--" && !row.has_long_words() {
            are_operands = true;
            true
        } else if is_option {
            let option = row.option(&word.text);
            has_value = option == Some(Value::Next);
            option.is_some()
        } else if let Some(inner) = self::row(&format!("{} {}", row.name, word.text)).filter(|_| operands == 0) {
            row = inner;
            true
        } else {
            operands += 1;
            row.operands.let_pass(word, operands)
        };
        if !passes {
            open.push(at);
        }
    }
    open
}

/// True if a word after the program is a sub-command: one that the table lists, or for a program
/// without an entry a plain word.
pub(super) fn is_sub_command(program: &str, word: &Word) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_word =
        word.exact && word.text.starts_with(|c: char| c.is_ascii_alphabetic()) && word.text.chars().all(is_part);
    is_word && (row(program).is_none() || row(&format!("{program} {}", word.text)).is_some())
}

fn row(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|row| row.name == name)
}

impl Operands {
    /// True if the entry allows the operand, which is the `number`th one.
    fn let_pass(self, word: &Word, number: usize) -> bool {
        match self {
            Self::Any => true,
            Self::AtMost(most) => word.exact && number <= most,
            Self::Beginning(starts) => starts.iter().any(|start| word.text.starts_with(start)),
            Self::Local => word.exact && !word.text.contains(':'),
            Self::Names => {
                let is_part = |c: char| c.is_alphanumeric() || "._-/".contains(c);
                let is_name = word.text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
                word.exact && is_name && word.text.chars().all(is_part) && !word.text.contains("..")
            }
        }
    }
}

impl Program {
    /// True if the program may send its arguments to somebody, as far as the table tells.
    fn may_send(&self) -> bool {
        self.name.is_empty() || matches!(self.operands, Operands::Beginning(_) | Operands::Local | Operands::Names)
    }

    /// Returns where the option's value is; `None` if the entry does not list the option.
    fn option(&self, text: &str) -> Option<Value> {
        if self.options == "*" {
            return Some(Value::Here);
        }
        let listed = self.listed(text);
        if listed.is_some() {
            return listed;
        }
        if text.starts_with("--") {
            let (name, _) = text.split_once('=')?;
            return self.listed(name).map(|_| Value::Here);
        }
        if self.has_long_words() { None } else { self.letters(&text[1..]) }
    }

    /// As [`option`](Self::option), for several one-letter options in one word, the last possibly
    /// with its value; or for a number.
    fn letters(&self, letters: &str) -> Option<Value> {
        if letters.bytes().all(|c| c.is_ascii_digit()) && self.listed("-#").is_some() {
            return Some(Value::Here);
        }
        for (at, letter) in letters.char_indices() {
            if self.listed(&format!("-{letter}"))? == Value::Next {
                let is_last = at + letter.len_utf8() == letters.len();
                return Some(if is_last { Value::Next } else { Value::Here });
            }
        }
        Some(Value::Here)
    }

    fn listed(&self, name: &str) -> Option<Value> {
        self.options.split_whitespace().find_map(|option| match option.strip_suffix('=') {
            Some(option) => (option == name).then_some(Value::Next),
            None => (option == name).then_some(Value::Here),
        })
    }

    /// True if the program has multi-letter options with a single dash, so that one-letter options
    /// cannot be combined.
    fn has_long_words(&self) -> bool {
        let is_long = |option: &str| !option.starts_with("--") && option.trim_end_matches('=').len() > 2;
        self.options.split_whitespace().any(is_long)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<Word> {
        line.split_whitespace()
            .map(|word| Word { text: word.to_owned(), exact: true, tame: true, expands: false })
            .collect()
    }

    fn open_of(line: &str) -> Vec<usize> {
        let (program, arguments) = line.split_once(' ').unwrap_or((line, ""));
        open(program, &words(arguments))
    }

    #[test]
    fn an_option_is_known_however_it_is_written_and_no_other_is() {
        for (line, wanted) in [
            ("ls -la --color=auto src", vec![]),
            ("head -n -5 -c3 a", vec![]),
            ("head -5 a", vec![]),
            ("head -n -x a", vec![1]),
            ("sort -k2,2 -t, a", vec![]),
            ("sort -uo a", vec![0]),
            ("sort --outp=a", vec![0]),
            ("sort -- -o", vec![]),
            ("find . -name -delete", vec![2]),
            ("find . -LP", vec![1]),
            ("find -- -delete", vec![0, 1]),
            ("git --no-pager log --oneline", vec![]),
            ("git log --output=a", vec![1]),
            ("git gc", vec![0]),
            ("git log push +main", vec![]),
            ("git push origin main", vec![]),
            ("git push origin +main :x a:b ../y", vec![2, 3, 4, 5]),
            ("uniq in out", vec![1]),
            ("mytool build -v --fast -- -x", vec![1, 2]),
        ] {
            assert_eq!(open_of(line), wanted, "{line}");
        }
    }

    proptest! {
        #[test]
        fn an_option_that_the_row_does_not_list_is_open(
            row in prop::sample::select(PROGRAMS),
            option in "-[a-zA-Z]|--[a-z]{2,8}(-[a-z]{2,8})?|-[a-z]{2,6}",
            value in prop::option::of("=[a-z@./]{1,8}"),
        ) {
            prop_assume!(row.options != "*");
            let listed: Vec<&str> = row.options.split_whitespace().map(|o| o.trim_end_matches('=')).collect();
            let is_listed = if option.starts_with("--") || option.len() == 2 {
                listed.contains(&option.as_str())
            } else {
                listed.contains(&option.as_str()) || listed.iter().any(|o| o.len() == 2 && option.starts_with(o))
            };
            prop_assume!(!is_listed);
            let written = format!("{} {option}{}", row.name, value.unwrap_or_default());
            let at = row.name.split(' ').count() - 1;
            let (program, _) = row.name.split_once(' ').unwrap_or((row.name, ""));
            let arguments: Vec<_> = words(&written).split_off(1);
            prop_assert!(open(program, &arguments).contains(&at), "{}", written);
        }
    }
}

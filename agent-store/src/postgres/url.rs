//! Extraction of settings that the client does not know from a URL or libpq's `key=value` form.

#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
    /// True if a pooler assigns another connection to each transaction.
    pub(super) pooled: Option<String>,
    /// False if the tables must not be migrated.
    pub(super) migrate: Option<String>,
}

/// Splits the text into the settings for the client and the extracted ones.
pub(super) fn split(text: &str) -> (String, Asked) {
    let mut asked = Asked::default();
    let rest = match ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        true => of_url(text, &mut asked),
        false => of_pairs(text, &mut asked),
    };
    (rest, asked)
}

impl Asked {
    /// Stores a setting if it is one of these.
    fn take(&mut self, key: &str, value: impl FnOnce() -> String) -> bool {
        match key {
            "sslmode" => self.sslmode = Some(value()),
            "sslrootcert" => self.sslrootcert = Some(value()),
            "pooled" => self.pooled = Some(value()),
            "migrate" => self.migrate = Some(value()),
            _ => return false,
        }
        true
    }
}

fn of_url(url: &str, asked: &mut Asked) -> String {
    // A password may contain a question mark.
    let host = url.find('@').map_or(0, |at| at + 1);
    let Some(query) = url[host..].find('?').map(|at| host + at) else { return url.to_owned() };
    let is_rest = |pair: &&str| match pair.split_once('=') {
        Some((key, value)) => !asked.take(key, || decoded(value)),
        None => true,
    };
    let rest: Vec<_> = url[query + 1..].split('&').filter(is_rest).collect();
    format!("{}?{}", &url[..query], rest.join("&")).trim_end_matches('?').to_owned()
}

/// Decodes the percent-encoding of a query value.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|_| byte == b'%').and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses `key=value` pairs, separated by spaces, with optional spaces around the sign; a value is
/// bare or quoted, with a backslash before a quote, a space or a backslash in it.
fn of_pairs(text: &str, asked: &mut Asked) -> String {
    let (mut kept, mut rest) = (String::new(), text.trim_start());
    while let Some(sign) = rest.find('=') {
        let key = rest[..sign].trim();
        let after = rest[sign + 1..].trim_start();
        let (value, end) = value(after);
        let whole = &rest[..rest.len() - after.len() + end];
        if !asked.take(key, || value) {
            kept.push_str(whole);
            kept.push(' ');
        }
        rest = after[end..].trim_start();
    }
    // The client rejects malformed pairs.
    kept + rest
}

/// Returns the value at the beginning of the text, and its end.
fn value(text: &str) -> (String, usize) {
    let is_quoted = text.starts_with('\'');
    let (mut value, mut chars) = (String::new(), text.char_indices().skip(usize::from(is_quoted)));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return (value, at + 1),
            c if c.is_whitespace() && !is_quoted => return (value, at),
            c => value.push(c),
        }
    }
    (value, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sslmode: Option<&str>, sslrootcert: Option<&str>) -> Asked {
        let (sslmode, sslrootcert) = (sslmode.map(str::to_owned), sslrootcert.map(str::to_owned));
        Asked { sslmode, sslrootcert, ..Asked::default() }
    }

    #[test]
    fn only_what_the_client_does_not_know_is_taken_out() {
        let pooled = || Asked { pooled: Some("true".to_owned()), ..Asked::default() };
        assert_eq!(split("postgres://h/d?pooled=true&a=b"), ("postgres://h/d?a=b".to_owned(), pooled()));
        assert_eq!(split("host=h pooled=true"), ("host=h ".to_owned(), pooled()));
        for (text, rest, taken) in [
            ("postgres://u:p@h/d", "postgres://u:p@h/d", asked(None, None)),
            ("postgres://u:p?sslmode=x@h/d", "postgres://u:p?sslmode=x@h/d", asked(None, None)),
            ("postgresql://h/d?sslmode=require", "postgresql://h/d", asked(Some("require"), None)),
            (
                "postgres://u@h/d?a=b&sslrootcert=%2Fetc%2Fmy%20ca&sslmode=verify-full&c=d%3D",
                "postgres://u@h/d?a=b&c=d%3D",
                asked(Some("verify-full"), Some("/etc/my ca")),
            ),
            ("host=h user=u", "host=h user=u ", asked(None, None)),
            ("host=h sslmode = prefer user=u", "host=h user=u ", asked(Some("prefer"), None)),
            (
                r"password='it\'s sslmode=x \\' sslrootcert='/my \'ca\'' dbname=a\ b",
                r"password='it\'s sslmode=x \\' dbname=a\ b ",
                asked(None, Some("/my 'ca'")),
            ),
            ("nonsense", "nonsense", asked(None, None)),
        ] {
            assert_eq!(split(text), (rest.to_owned(), taken), "{text}");
        }
    }

    #[test]
    fn any_text_is_split_and_none_panics() {
        proptest::proptest!(|(text in "(postgres://)?[a-z@?&=%' \\\\ä]*")| drop(split(&text)));
    }
}

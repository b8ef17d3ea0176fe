//! `robots.txt` parser and matcher (RFC 9309).

use super::pattern::fits;

/// Maximum length and number of rules for one agent, since each rule is matched against each
/// address. Rules beyond the limits are treated as restrictive, so that no disallowed page is read.
const LONGEST_RULE: usize = 200;
const MOST_RULES: usize = 1_000;

/// Maximum of bytes of a `robots.txt` that are read; RFC 9309 requires at least 500 KiB.
pub(super) const MOST_BYTES: usize = 512 << 10;

/// Rules of a site.
#[derive(Clone, Debug, Default)]
pub(super) struct Robots {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    pattern: Vec<u8>,
    allow: bool,
}

impl Robots {
    /// Allows everything.
    pub(super) fn all() -> Self {
        Self::default()
    }

    /// Parses the groups for this agent, or else those for all. The agent is a product name:
    /// `agent-tools`.
    pub(super) fn read(text: &str, agent: &str) -> Self {
        let (mut own, mut any) = (None::<Self>, Self::default());
        let (mut for_own, mut for_any, mut in_rules) = (false, false, false);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match field.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if std::mem::take(&mut in_rules) {
                        (for_own, for_any) = (false, false);
                    }
                    let word = value.split(|c: char| !(c.is_ascii_alphanumeric() || "-_*".contains(c))).next();
                    match word.unwrap_or_default() {
                        "*" => for_any = true,
                        word if word.eq_ignore_ascii_case(agent) => {
                            for_own = true;
                            own.get_or_insert_default();
                        }
                        _ => {}
                    }
                }
                field @ ("allow" | "disallow") => {
                    in_rules = true;
                    let Some(rule) = Rule::read(value, field == "allow") else { continue };
                    if let Some(own) = own.as_mut().filter(|_| for_own) {
                        own.add(rule.clone());
                    }
                    if for_any {
                        any.add(rule);
                    }
                }
                _ => {}
            }
        }
        own.unwrap_or(any)
    }

    /// Adds a rule. Beyond the maximum, the whole site counts as disallowed.
    fn add(&mut self, rule: Rule) {
        match self.rules.len() {
            MOST_RULES => self.rules = vec![Rule { pattern: Vec::new(), allow: false }],
            1 if self.rules[0].pattern.is_empty() => {}
            _ => self.rules.push(rule),
        }
    }

    /// Returns true if this path, with its query, is allowed: the longest matching rule wins, and
    /// among equally long ones the allowing rule.
    pub(super) fn allows(&self, path: &str) -> bool {
        let path = normal(path);
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow)).is_none_or(|rule| rule.allow)
    }
}

impl Rule {
    /// Parses a rule; `None` for a rule without effect: an empty `allow` matches nothing. An
    /// overlong rule disallows its prefix, or allows nothing.
    fn read(value: &str, allow: bool) -> Option<Self> {
        let mut pattern = normal(value);
        let is_cut = pattern.len() > LONGEST_RULE;
        if pattern.is_empty() || (is_cut && allow) {
            return None;
        }
        pattern.truncate(LONGEST_RULE);
        // An escape sequence is not cut in half.
        if let Some(escape) =
            pattern.iter().rposition(|byte| *byte == b'%').filter(|at| is_cut && at + 3 > LONGEST_RULE)
        {
            pattern.truncate(escape);
        }
        Some(Self { pattern, allow })
    }

    fn fits(&self, path: &[u8]) -> bool {
        match self.pattern.strip_suffix(b"$") {
            Some(whole) => fits(whole, path),
            None => fits(&[&self.pattern, &b"*"[..]].concat(), path),
        }
    }
}

/// Normalises a path, so that each byte has one spelling: only bytes that need it are
/// percent-encoded.
fn normal(path: &str) -> Vec<u8> {
    let bytes = path.as_bytes();
    let (mut normal, mut i) = (Vec::with_capacity(bytes.len()), 0);
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%')
            .then(|| bytes.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let (byte, width) = escaped.map_or((bytes[i], 1), |byte| (byte, 3));
        let plain =
            byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (width == 1 && byte.is_ascii() && byte != b'%');
        if plain {
            normal.push(byte);
        } else {
            normal.extend(format!("%{byte:02X}").bytes());
        }
        i += width;
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_of_the_agents_own_group_decides() {
        let text = "\u{feff}User-agent: *\nDisallow: /\n\nUser-Agent: other\nUser-agent: Agent-Tools/2.0 # us\nDisallow: /private\n\
                    Allow: /private/open\nDisallow: /*.zip$\nDisallow: /same\nAllow: /same\nDisallow:\nDisallow: /caf%C3%A9\n\
                    Disallow: /a%2fb\nSitemap: https://example.org/map\n\nuser-agent: agent-tools\ndisallow: /more";
        let robots = Robots::read(text, "agent-tools");
        let cases = [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a.zip", false),
            ("/a.zip?x", true),
            ("/same", true),
            ("/café", false),
            ("/caf%c3%a9/x", false),
            ("/more/x", false),
            ("/a/b", true),
            ("/a%2Fb", false),
            ("/%70rivate", false),
        ];
        for (path, expected) in cases {
            assert_eq!(robots.allows(path), expected, "{path}");
        }
        assert!(!Robots::read(text, "someone").allows("/x"), "the group for all");
        assert!(Robots::read("", "x").allows("/") && Robots::all().allows("/"));
        assert!(Robots::read("User-agent: a\nUser-agent: b\nDisallow: /x", "a").allows("/y"));
        assert!(!Robots::read("User-agent: a\nUser-agent: b\nDisallow: /x", "a").allows("/x"), "two agents, one group");
    }

    fn group(agent: &str, rules: usize) -> String {
        let rules = (0..rules).map(|n| format!("Disallow: /{agent}/{n}/\n"));
        format!("User-agent: {agent}\n{}", rules.collect::<String>())
    }

    #[test]
    fn rules_for_other_agents_take_no_room_from_ones_own() {
        let robots = Robots::read(&(group("other", 5_000) + &group("agent-tools", 3)), "agent-tools");
        assert!(!robots.allows("/agent-tools/2/") && robots.allows("/agent-tools/3/") && robots.allows("/other/1/"));
    }

    #[test]
    fn a_site_with_more_rules_than_are_kept_is_closed() {
        assert!(Robots::read(&group("agent-tools", MOST_RULES), "agent-tools").allows("/x"));
        for more in [1, 2, 100] {
            assert!(!Robots::read(&group("agent-tools", MOST_RULES + more), "agent-tools").allows("/x"), "{more}");
        }
    }

    #[test]
    fn a_rule_that_is_too_long_forbids_more_and_allows_nothing() {
        let long = format!("/{}", "a".repeat(300));
        let robots = Robots::read(&format!("User-agent: *\nDisallow: {long}$\nAllow: {long}/open\n"), "x");
        assert!(!robots.allows(&long) && !robots.allows(&format!("{long}/open")) && robots.allows("/aaa"));
        let escaped = format!("/{}%20b", "a".repeat(197));
        assert!(!Robots::read(&format!("User-agent: *\nDisallow: {escaped}"), "x").allows(&escaped));
    }
}

//! The optional block of Haystack templates around their message:
//! `{% message role="user" %}`..`{% endmessage %}`.

/// Returns the template inside its block, or all of it without a block. At most one block is
/// allowed, with this role and around the whole template.
pub(super) fn unwrap<'a>(source: &'a str, role: &str) -> Result<&'a str, String> {
    let (begins, ends) = (tags(source, "message"), tags(source, "endmessage"));
    let (begin, end) = match (begins.as_slice(), ends.as_slice()) {
        ([], []) => return Ok(source),
        ([begin], [end]) => (begin, end),
        _ => return Err("it is one message: at most one {% message %} block, and its {% endmessage %}".to_owned()),
    };
    let is_around = source[..begin.from].trim().is_empty() && source[end.to..].trim().is_empty();
    if begin.to > end.from || !is_around {
        return Err("its {% message %} block must be around everything".to_owned());
    }
    match literal_role(begin.rest) {
        Some(given) if given == role => Ok(source[begin.to..end.from].trim()),
        Some(given) => Err(format!("its message has the role '{given}', and must have '{role}'")),
        None => Err(format!("write the role of its message out: {{% message role=\"{role}\" %}}")),
    }
}

/// A tag: its byte range, and the text after its name.
struct Tag<'a> {
    from: usize,
    to: usize,
    rest: &'a str,
}

fn tags<'a>(source: &'a str, name: &str) -> Vec<Tag<'a>> {
    let opens = source.match_indices("{%").map(|(from, _)| from);
    let tag = |from: usize| {
        let length = source[from..].find("%}")?;
        let inside = source[from + 2..from + length].trim_matches(['-', '+']).trim();
        let rest = inside.strip_prefix(name)?;
        let is_name = rest.chars().next().is_none_or(char::is_whitespace);
        is_name.then_some(Tag { from, to: from + length + 2, rest })
    };
    opens.filter_map(tag).collect()
}

fn literal_role(attributes: &str) -> Option<&str> {
    let value = attributes.trim().strip_prefix("role")?.trim_start().strip_prefix('=')?.trim();
    let quote = value.chars().next().filter(|c| ['"', '\''].contains(c))?;
    value.strip_prefix(quote)?.strip_suffix(quote).filter(|role| !role.contains(quote))
}

#[cfg(test)]
mod tests {
    use super::unwrap;

    #[test]
    fn one_block_of_the_right_role_around_everything_is_taken_off() {
        assert_eq!(unwrap("Hi {{ name }}", "user"), Ok("Hi {{ name }}"));
        assert_eq!(unwrap(" {%- message role='user' -%} Hi {% endmessage %}\n", "user"), Ok("Hi"));
        assert_eq!(unwrap("{% messages %}", "user"), Ok("{% messages %}"), "another tag, for the template to refuse");
    }

    #[test]
    fn other_blocks_are_refused_with_the_reason() {
        let refused = |source: &str| unwrap(source, "user").expect_err(source);
        let block = r#"{% message role="user" %}x{% endmessage %}"#;
        assert!(refused(&block.repeat(2)).contains("at most one"));
        assert!(refused(&format!("before {block}")).contains("around everything"));
        assert!(refused("{% endmessage %}{% message role='user' %}").contains("around everything"));
        assert!(refused("{% message role='user' %}x").contains("endmessage"));
        assert!(refused("{% message role='system' %}x{% endmessage %}").contains("must have 'user'"));
        for attributes in ["role=who", "role=\"user\" name=\"x\"", ""] {
            assert!(refused(&format!("{{% message {attributes} %}}x{{% endmessage %}}")).contains("write the role"));
        }
    }
}

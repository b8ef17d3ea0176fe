//! Pagination of lists.

use rmcp::{ErrorData, model::PaginatedRequestParams};

/// Maximum of entries per page.
const PAGE: usize = 250;

/// Returns the requested page, and the cursor of the next one.
///
/// # Errors
/// For an unknown cursor.
pub(super) fn page<T: Clone>(
    all: &[T],
    asked: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let from = match asked.and_then(|asked| asked.cursor) {
        None => 0,
        Some(cursor) => {
            // The list may have become shorter: then the page is empty.
            let from = cursor.parse().ok().filter(|from: &usize| from.is_multiple_of(PAGE));
            from.ok_or_else(|| ErrorData::invalid_params("the cursor is none of this list's", None))?
        }
    };
    let rest = all.get(from..).unwrap_or_default();
    let next = (rest.len() > PAGE).then(|| (from + PAGE).to_string());
    Ok((rest[..rest.len().min(PAGE)].to_vec(), next))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_pages_together_are_the_list(length in 0_usize..1000) {
            let all: Vec<usize> = (0..length).collect();
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let asked = PaginatedRequestParams::default().with_cursor(cursor);
                let (entries, next) = page(&all, Some(asked)).expect("a page");
                prop_assert!(entries.len() <= PAGE);
                seen.extend(entries);
                cursor = next;
                if cursor.is_none() { break; }
            }
            prop_assert_eq!(seen, all);
        }
    }

    #[test]
    fn a_cursor_that_no_page_gave_is_refused() {
        for cursor in ["", "-1", "7", "x", "99999999999999999999999"] {
            let asked = PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned()));
            assert!(page(&[1, 2, 3], Some(asked)).is_err(), "{cursor}");
        }
        let late = PaginatedRequestParams::default().with_cursor(Some("250".to_owned()));
        assert_eq!(page(&[1, 2, 3], Some(late)).expect("a list that is shorter by now"), (vec![], None));
    }
}

//! Code that the attribute rejects, with the errors that its author reads.

/// The cases are compiled in a project of their own, with nothing but what this package needs: here
/// that is little.
#[test]
fn what_does_not_work_does_not_compile_and_says_why() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}

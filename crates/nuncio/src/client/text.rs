//! What others say, made fit for a terminal.
//!
//! An agent's text may hold escape sequences that move the cursor, set the title or answer on
//! the user's behalf, and marks that reverse the order of what is read. None of that gets to a
//! terminal. What is written to a pipe or a file is left as it came.

/// Text with nothing in it that steers a terminal. Line breaks and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' || c == '\t' {
                c
            } else {
                harmless(c)
            }
        })
        .collect()
}

/// The same in one line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_whitespace() { ' ' } else { harmless(c) })
        .collect()
}

fn harmless(c: char) -> char {
    if c.is_control() || is_bidi_control(c) {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

/// Whether a character changes the direction of what is read.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_taken_out() {
        assert_eq!(
            plain("a\u{1b}]0;x\u{7}b\n\tc\r"),
            "a\u{fffd}]0;x\u{fffd}b\n\tc\u{fffd}"
        );
        assert_eq!(one_line("a\nb\u{9b}1m\u{202e}"), "a b\u{fffd}1m\u{fffd}");
    }
}

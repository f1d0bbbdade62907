//! The states of a task and the moves between them.

/// Where a task is in its life (A2A 1.0 §4.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Not known: `unknown` in 0.3, `TASK_STATE_UNSPECIFIED` in 1.0. Only ever read from other
    /// servers; no task of ours has it.
    Unspecified,
    /// Taken in, not begun.
    Submitted,
    /// At work.
    Working,
    /// Waiting for the user to say more.
    InputRequired,
    /// Waiting for the user to authenticate somewhere.
    AuthRequired,
    /// Done.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended at the user's wish.
    Canceled,
    /// Not taken on.
    Rejected,
}

impl TaskState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Unspecified,
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];

    /// Whether a task in this state has ended for good.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Whether a task in this state waits for its user.
    #[must_use]
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether a turn is over for its caller once this state is reached: `final` in 0.3.
    #[must_use]
    pub fn is_final(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }

    /// Whether a task in this state may be reported as being in `next`. Repeating a state is
    /// legal (it may carry a new message); leaving a terminal one, going back to `submitted`
    /// and going to no known state are not.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (_, Self::Unspecified) => false,
            (from, _) if from.is_terminal() => false,
            (from, Self::Submitted) => from == Self::Submitted,
            _ => true,
        }
    }
}

//! Settings of the screen.

/// Use of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mouse {
    /// The wheel scrolls, and dragging selects.
    #[default]
    On,
    /// The wheel scrolls; selecting is the terminal's own with Shift.
    Wheel,
    /// Nothing is asked of the terminal, which sends arrows for the wheel: these scroll.
    Off,
}

/// Colors of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// None.
    None,
    /// The sixteen that the terminal's own theme has.
    #[default]
    Sixteen,
    /// Those of the sixteen that can be read on a light ground.
    SixteenOnLight,
    /// True colors on a dark ground.
    Dark,
    /// True colors on a light ground.
    Light,
}

/// Output to the terminal's own scrollback when the screen is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitOutput {
    /// Everything that was not printed yet.
    #[default]
    All,
    /// The last answer.
    Last,
    /// No output.
    None,
}

/// How a person is called who looks at another window, when a turn ends or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// By the terminal's title.
    Title,
    /// By its bell.
    Bell,
    /// By a note on the desktop, as most terminals take it (OSC 9).
    Osc9,
    /// The same, as rxvt, foot and those of GNOME take it (OSC 777).
    Osc777,
}

/// Settings of the screen.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Use of the mouse.
    pub mouse: Mouse,
    /// Colors of the screen.
    pub colours: Colours,
    /// Set if the terminal may answer questions.
    pub may_ask: bool,
    /// Asks the terminal for its background, to choose readable colors.
    pub asks_ground: bool,
    /// Set if the terminal has true colors.
    pub has_true_colours: bool,
    /// Disables animations.
    pub is_still: bool,
    /// Set if the earlier messages of the session are in the terminal's scrollback already.
    pub is_continued: bool,
    /// Output when it is left.
    pub at_exit: ExitOutput,
    /// How a person is called who looks elsewhere.
    pub notify: Notify,
    /// Uses the editing keys of vi.
    pub has_vi_keys: bool,
}
